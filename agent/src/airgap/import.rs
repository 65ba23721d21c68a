//! Takes a bundle in: verified with the pinned keys, what this host lacks copied into the objects, and only then the news left in the
//! inbox. A stick that is pulled out leaves whole objects and no news. The command `import` calls it.

use std::collections::BTreeSet;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::sync::Arc;

use kedge_bundle::{Bundle, BundleError, Index, Parts, Reader};
use kedge_durable::Disk;
use kedge_model::wire::{
    BlobRef, ClusterId, DesiredState, Digest, Envelope, Generation, HoldDocument, KeySet, Membership, Mode, Payload,
    PollAnswer, Sequence, Stream, Timestamp, Turn, VerifyingKey,
};

use super::inbox::{Inbox, MAX_DOCUMENTS};
use crate::desired::MemoryError;
use crate::desired::view::View;
use crate::identity::Identity;
use crate::objects::collect::free;
use crate::objects::{Batch, Objects};
use crate::paths::Paths;

/// Whose host it is, and what must stay free of its disk.
#[derive(Debug)]
pub struct Importer<'i> {
    pub disk: Arc<dyn Disk>,
    pub paths: &'i Paths,
    pub identity: &'i Identity,
    pub reserve: u64,
}

/// What a bundle came to here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brought {
    pub created_at: Timestamp,
    pub environment: Option<String>,
    /// The newest key set, if it is new.
    pub keys: Option<u64>,
    pub membership: Option<Sequence>,
    pub state: Option<(Stream, Generation)>,
    pub holds: bool,
    pub copied: usize,
    pub copied_bytes: u64,
    /// What was wanted and here already.
    pub present: usize,
    /// What the state names and neither the bundle nor this host has.
    pub missing: Vec<BlobRef>,
    /// Documents for other clusters of the site.
    pub site: usize,
    /// Each left everything as it was.
    pub refused: Vec<String>,
    /// Something in it was for this host, new or not.
    pub ours: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    Bundle(#[from] BundleError),
    #[error("this file goes to the hub: cluster {0} tells in it what runs there")]
    GoesUp(ClusterId),
    #[error("{need} bytes are to be copied and {reserve} are to stay free, but only {free} are")]
    NoRoom { need: u64, reserve: u64, free: u64 },
    #[error("the content can't be kept")]
    Objects(#[source] io::Error),
    #[error("the news can't be left for the agent")]
    Inbox(#[source] io::Error),
    #[error("what this host knows can't be read")]
    Memory(#[from] MemoryError),
}

/// What is for this host, as the daemon will take it, and for others of the site.
struct Chosen {
    answer: PollAnswer,
    others: Vec<Envelope>,
    /// What this host wants of the blobs.
    own: Vec<BlobRef>,
    /// What the others of the site do.
    carried: Vec<BlobRef>,
}

/// Objects become visible together, so many bytes at a time: what came before a stick was pulled needn't come again.
const BATCH: u64 = 32 << 20;

impl Importer<'_> {
    /// `tell` gets the bytes to be copied at first, then those of each piece.
    pub fn import(&self, path: &Path, mut tell: impl FnMut(Progress)) -> Result<Brought, ImportError> {
        let parts = Parts::open(path)?;
        let following = parts.following();
        let cut = |error: BundleError| match (error, following.clone()) {
            (BundleError::Truncated { .. }, Some(part)) => BundleError::MissingPart(part),
            (error, _) => error,
        };
        let reader = Reader::open(parts).map_err(cut)?;
        if let Some(cluster) = reader.writer()? {
            return Err(ImportError::GoesUp(cluster));
        }
        let view = View::read(&*self.disk, self.paths, self.identity)?;
        let mut bundle = reader.verify(view.keys()).map_err(cut)?;
        let mut brought = Brought {
            created_at: bundle.index().created_at,
            environment: bundle.index().environment.clone(),
            ..Brought::default()
        };
        let trusted = bundle.keys().unwrap_or(view.keys()).trusted();
        let chosen = choose(&view, bundle.index(), &trusted, &mut brought);
        self.copy(&mut bundle, &chosen, &mut brought, &mut tell)?;
        let inbox = Inbox::on(Arc::clone(&self.disk), self.paths);
        inbox.put_site(&chosen.others).map_err(ImportError::Inbox)?;
        if brought.is_news() {
            inbox.put(&chosen.answer).map_err(ImportError::Inbox)?;
        }
        Ok(brought)
    }

    fn copy<R: Read + Seek>(
        &self,
        bundle: &mut Bundle<R>,
        chosen: &Chosen,
        brought: &mut Brought,
        tell: &mut impl FnMut(Progress),
    ) -> Result<(), ImportError> {
        let folder = self.paths.objects();
        let objects = Objects::open(&folder).map_err(ImportError::Objects)?;
        let (mut wanted, mut seen) = (Vec::new(), BTreeSet::new());
        for (blob, own) in
            chosen.own.iter().map(|blob| (blob, true)).chain(chosen.carried.iter().map(|blob| (blob, false)))
        {
            if !seen.insert(blob.digest) {
                continue;
            }
            match bundle.find(&blob.digest) {
                _ if objects.use_again(&blob.digest) => brought.present += 1,
                Some(entry) => wanted.push(entry),
                None if own => brought.missing.push(blob.clone()),
                None => {}
            }
        }
        let need = wanted.iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.size));
        // A file system that doesn't say is tried.
        if need > 0
            && let Ok(free) = free(&folder)
            && free < need.saturating_add(self.reserve)
        {
            return Err(ImportError::NoRoom { need, reserve: self.reserve, free });
        }
        if wanted.is_empty() && !brought.is_news() {
            return Ok(());
        }
        // All of it is read, also what isn't wanted: a file that was damaged anywhere brings nothing.
        tell(Progress::Whole(bundle.index().body()));
        let wanted: BTreeSet<Digest> = wanted.iter().map(|entry| entry.digest).collect();
        let (mut batch, mut waiting) = (objects.batch(), 0);
        for entry in bundle.index().blobs.clone() {
            let mut piece = |bytes| tell(Progress::Piece(bytes));
            if !wanted.contains(&entry.digest) {
                bundle.copy(&entry.digest, &mut io::sink(), &mut piece)?;
                continue;
            }
            let mut sink = Sink { writing: objects.begin().map_err(ImportError::Objects)?, failed: None };
            let copied = bundle.copy(&entry.digest, &mut sink, &mut piece);
            // Whose fault it is decides what a person does: the stick's or this disk's.
            if let Some(error) = sink.failed {
                return Err(ImportError::Objects(error));
            }
            copied?;
            batch.end(sink.writing).map_err(ImportError::Objects)?;
            (brought.copied, brought.copied_bytes) = (brought.copied + 1, brought.copied_bytes + entry.size);
            waiting += entry.size;
            if waiting >= BATCH {
                let full: Batch<'_> = std::mem::replace(&mut batch, objects.batch());
                full.finish().map_err(ImportError::Objects)?;
                waiting = 0;
            }
        }
        batch.finish().map_err(ImportError::Objects)
    }
}

/// How far the copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    Whole(u64),
    Piece(u64),
}

/// Into an object, and which side failed.
struct Sink {
    writing: crate::objects::Writing,
    failed: Option<io::Error>,
}

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.writing.write(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                let said = io::Error::new(error.kind(), error.to_string());
                self.failed = Some(error);
                Err(said)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Brought {
    /// Whether the daemon has to hear of it.
    pub fn is_news(&self) -> bool {
        self.keys.is_some() || self.membership.is_some() || self.state.is_some() || self.holds || self.copied > 0
    }
}

/// What of the index concerns this host, in the order in which the daemon judges it; what it would refuse is left out and told.
fn choose(view: &View, index: &Index, trusted: &[VerifyingKey], brought: &mut Brought) -> Chosen {
    let me = view.membership().cluster;
    let mut answer = PollAnswer {
        time: index.created_at.max(view.hub_time()),
        next: 0,
        promise: 0,
        key_sets: newer_keys(index, view.keys()),
        membership: None,
        state: None,
        holds: None,
        want_status: false,
        want_proof: false,
    };
    brought.keys = Some(answer.key_sets.len() as u64).filter(|new| *new > 0).map(|new| view.keys().version + new);

    let memberships: Vec<(&Envelope, Membership)> = all(&index.memberships, trusted, &mut brought.refused);
    let newest = memberships.iter().filter(|(_, one)| one.cluster == me).max_by_key(|(_, one)| one.sequence);
    let mut membership = view.membership();
    if let Some((envelope, own)) = newest {
        brought.ours = true;
        if own.sequence != view.membership().sequence {
            answer.membership = Some((*envelope).clone());
            if judged(view, &mut answer, brought, |answer| answer.membership = None) {
                (brought.membership, membership) = (Some(own.sequence), own);
            }
        }
    }

    let states: Vec<(&Envelope, DesiredState)> = all(&index.states, trusted, &mut brought.refused);
    let newest = states.iter().filter(|(_, one)| one.stream == membership.stream).max_by_key(|(_, one)| one.generation);
    // What is known already may still lack content.
    let mut state = view.state().filter(|known| known.stream == membership.stream);
    if let Some((envelope, own)) = newest {
        brought.ours = true;
        if state.is_none_or(|known| known.generation != own.generation) {
            answer.state = Some((*envelope).clone());
            if judged(view, &mut answer, brought, |answer| answer.state = None) {
                brought.state = Some((own.stream.clone(), own.generation));
                state = Some(own);
            }
        }
    }

    let holds: Vec<(&Envelope, HoldDocument)> = all(&index.holds, trusted, &mut brought.refused);
    let newest = holds.iter().filter(|(_, one)| one.cluster == me).max_by_key(|(_, one)| one.sequence);
    if let Some((envelope, own)) = newest {
        brought.ours = true;
        if view.holds().is_none_or(|known| known.sequence != own.sequence) {
            answer.holds = Some((*envelope).clone());
            brought.holds = judged(view, &mut answer, brought, |answer| answer.holds = None);
        }
    }

    let own = state.map(named).unwrap_or_default();
    let site = membership.site.as_deref().filter(|site| !site.is_empty());
    let neighbour =
        |one: &&(&Envelope, Membership)| one.1.cluster != me && site.is_some() && one.1.site.as_deref() == site;
    let neighbours: Vec<_> = memberships.iter().filter(neighbour).collect();
    let mut others: Vec<Envelope> = neighbours.iter().map(|(envelope, _)| (*envelope).clone()).collect();
    let mut carried = Vec::new();
    for (envelope, state) in &states {
        if neighbours.iter().any(|(_, one)| one.stream == state.stream) {
            carried.extend(named(state));
            others.push((*envelope).clone());
        }
    }
    let theirs = |one: &&(&Envelope, HoldDocument)| neighbours.iter().any(|(_, other)| other.cluster == one.1.cluster);
    others.extend(holds.iter().filter(theirs).map(|(envelope, _)| (*envelope).clone()));
    // Without them the others would only keep the state until the hub says that it is their turn.
    let turns: Vec<(&Envelope, Turn)> = all(&index.turns, trusted, &mut brought.refused);
    let theirs = |one: &&(&Envelope, Turn)| neighbours.iter().any(|(_, other)| other.cluster == one.1.cluster);
    others.extend(turns.iter().filter(theirs).map(|(envelope, _)| (*envelope).clone()));
    others.truncate(MAX_DOCUMENTS);
    brought.site = others.len();
    Chosen { answer, others, own, carried }
}

/// Whether the daemon would take the part that was just added; if not, it goes again and why is told.
fn judged(view: &View, answer: &mut PollAnswer, brought: &mut Brought, undo: impl Fn(&mut PollAnswer)) -> bool {
    let mut without = answer.clone();
    undo(&mut without);
    let before = view.judge(&without).refused;
    let refused = view.judge(answer).refused;
    let new: Vec<_> = refused.into_iter().filter(|refusal| !before.contains(refusal)).collect();
    brought.refused.extend(new.iter().map(|refusal| refusal.message.clone()));
    // An unknown feature of a state is taken all the same: each assignment says that it can't be followed.
    let taken = new.iter().all(|refusal| refusal.code == "Unsupported");
    if !taken {
        *answer = without;
    }
    taken
}

fn newer_keys(index: &Index, known: &KeySet) -> Vec<Envelope> {
    let newer = |envelope: &&Envelope| {
        serde_json::from_slice::<KeySet>(&envelope.payload).is_ok_and(|set| set.version > known.version)
    };
    index.key_sets.iter().filter(newer).cloned().collect()
}

/// Those that a trusted key signed.
fn all<'e, T: Payload>(
    envelopes: &'e [Envelope],
    trusted: &[VerifyingKey],
    refused: &mut Vec<String>,
) -> Vec<(&'e Envelope, T)> {
    let mut opened = Vec::new();
    for envelope in envelopes {
        match envelope.open::<T>(trusted) {
            Ok(document) => opened.push((envelope, document)),
            Err(why) => refused.push(format!("a document of the bundle is refused: {why}")),
        }
    }
    opened
}

/// All that a state's packages are.
fn named(state: &DesiredState) -> Vec<BlobRef> {
    let packages = state.entries.iter().filter_map(|entry| match &entry.mode {
        Mode::Apply(packages) => Some([&packages.platform, &packages.workload]),
        Mode::Observe(_) => None,
    });
    let blobs = packages.flatten().flat_map(|package| {
        let own = BlobRef { digest: package.digest, size: package.size };
        std::iter::once(own).chain(package.artifacts.iter().cloned())
    });
    let mut seen: BTreeSet<Digest> = BTreeSet::new();
    blobs.filter(|blob| seen.insert(blob.digest)).collect()
}

impl ImportError {
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            ImportError::Bundle(error) => return error.hint().map(str::to_owned),
            ImportError::GoesUp(_) => "on a machine that reaches the hub: kedge status import FILE".to_owned(),
            ImportError::NoRoom { .. } => {
                "make room on the disk (kedge-agent doctor shows the free space), then import again".to_owned()
            }
            ImportError::Objects(_) => "what was copied whole stays; import again".to_owned(),
            ImportError::Inbox(_) => "check with systemctl status kedge-agent whether the agent runs".to_owned(),
            ImportError::Memory(_) => return None,
        })
    }
}
