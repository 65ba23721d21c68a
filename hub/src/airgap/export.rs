//! A bundle for a cluster or a cluster type: key sets, memberships, holds, the newest state of each stream, and the packages and
//! artifacts that they name. The index is made in memory, the blobs are sent from disk as they are read.

use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::io;

use bytes::Bytes;
use kedge_bundle::{BlobEntry, BundleError, Index, Sealed, fingerprint};
use kedge_hub_types::status::tally::Tally;
use kedge_model::wire::{
    BlobRef, ClusterId, DesiredState, Digest, Entry, Envelope, Generation, KeySet, Mode, PackagesKey, Stream, Turn,
};
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;

use super::AirGap;
use crate::pack::Blobs;
use crate::store::airgap::Addressee;
use crate::store::{StoreError, now};

/// What somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub environment: String,
    pub whom: Whom,
    pub since: Since,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    ClusterType(String),
    Cluster(ClusterId),
}

/// What is left out of the blobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Since {
    #[default]
    Nothing,
    /// What everybody it is for has reported to run.
    Reported,
    /// What this generation of the only stream names.
    Generation(Generation),
    /// The same, by the ring of the stream.
    Rings(BTreeMap<String, Generation>),
}

/// A bundle that is ready to be sent.
#[derive(Debug)]
pub struct Export {
    pub clusters: usize,
    pub streams: Vec<Stream>,
    /// Blobs that are left out because they are there already.
    pub left_out: usize,
    sealed: Sealed,
    blobs: Blobs,
}

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("there is no active cluster to make a bundle for")]
    Nobody,
    #[error("a bundle is for at most {MAX_CLUSTERS} clusters")]
    TooMany,
    #[error("{0} has no desired state yet")]
    NoState(Stream),
    #[error("the hub has no generation {1} of {0}")]
    NoGeneration(Stream, Generation),
    #[error("a generation is one of one stream, and these are {0}: name it by the ring, `RING:GENERATION`")]
    ManyStreams(usize),
    #[error("the hub has {0} no more, which {1} names")]
    Gone(Digest, Stream),
    #[error("the bundle can't be made")]
    Bundle(#[from] BundleError),
}

/// With their memberships, holds and turns these fill half of the largest index.
const MAX_CLUSTERS: usize = 10_000;
/// One read of a blob.
const PIECE: usize = 64 * 1024;

impl AirGap {
    pub async fn export(&self, order: &Order) -> Result<Export, ExportError> {
        let (cluster_type, cluster) = match &order.whom {
            Whom::ClusterType(name) => (Some(name.as_str()), None),
            Whom::Cluster(id) => (None, Some(id)),
        };
        let most = MAX_CLUSTERS as i64 + 1;
        let addressees = self.store.addressees(&order.environment, cluster_type, cluster, most).await?;
        if addressees.is_empty() {
            return Err(ExportError::Nobody);
        }
        if addressees.len() > MAX_CLUSTERS {
            return Err(ExportError::TooMany);
        }
        let key_sets = self.keys.key_sets_after(0);
        let first = key_sets.first().and_then(|envelope| KeySet::first(envelope).ok());
        let fleet = first.as_ref().and_then(fingerprint).unwrap_or_else(|| self.keys.authority().fingerprint());
        let mut index = Index::new(fleet, now());
        index.environment = Some(order.environment.clone());
        index.key_sets = key_sets;
        index.clusters = addressees.iter().map(|one| one.id).collect();
        for one in &addressees {
            index.memberships.push(envelope(&one.membership)?);
            index.holds.extend(one.holds.as_deref().map(envelope).transpose()?);
        }
        let mut streams: BTreeMap<Stream, Vec<Addressee>> = BTreeMap::new();
        for one in addressees {
            streams.entry(one.stream.clone()).or_default().push(one);
        }
        if matches!(order.since, Since::Generation(_)) && streams.len() > 1 {
            return Err(ExportError::ManyStreams(streams.len()));
        }
        let (mut needed, mut named): (BTreeMap<Digest, u64>, BTreeSet<Digest>) = Default::default();
        for (stream, members) in &streams {
            let Some((envelope, state)) = self.state(stream, None).await? else {
                return Err(ExportError::NoState(stream.clone()));
            };
            let known = self.known(&order.since, stream, members, &state).await?;
            for blob in state.entries.iter().flat_map(blobs) {
                named.insert(blob.digest);
                if !known.contains(&blob.digest) {
                    needed.insert(blob.digest, blob.size);
                    self.claim(stream, blob).await?;
                }
            }
            index.streams.push(stream.clone());
            index.states.push(envelope);
            if state.turns {
                let turns = members.iter().map(|member| self.turn(member, &state));
                index.turns.extend(turns.collect::<Result<Vec<_>, _>>()?);
            }
        }
        let mut offset = 0;
        for (digest, size) in &needed {
            index.blobs.push(BlobEntry { digest: *digest, size: *size, offset });
            offset += size;
        }
        let (clusters, streams, left_out) = (index.clusters.len(), index.streams.clone(), named.len() - needed.len());
        let keys = self.keys.clone();
        let sealed = tokio::task::spawn_blocking(move || keys.seal(&index)).await;
        let sealed = sealed.map_err(|error| BundleError::Io(io::Error::other(error)))??;
        Ok(Export { clusters, streams, left_out, sealed, blobs: self.blobs.clone() })
    }

    /// Whoever made the bundle for a cluster said that it may change.
    fn turn(&self, member: &Addressee, state: &DesiredState) -> Result<Envelope, ExportError> {
        let (stream, generation) = (state.stream.clone(), state.generation);
        let turn = Turn { cluster: member.id, stream, generation, issued_at: now(), asked: None };
        Ok(self.keys.sign(&turn).map_err(BundleError::Signature)?)
    }

    /// It must be here, and stay while it is sent.
    async fn claim(&self, stream: &Stream, blob: BlobRef) -> Result<(), ExportError> {
        let (blobs, digest) = (self.blobs.clone(), blob.digest);
        let claimed = tokio::task::spawn_blocking(move || blobs.claim(&blob)).await;
        match claimed {
            Ok(true) => Ok(()),
            _ => Err(ExportError::Gone(digest, stream.clone())),
        }
    }

    async fn state(
        &self,
        stream: &Stream,
        generation: Option<Generation>,
    ) -> Result<Option<(Envelope, DesiredState)>, StoreError> {
        let generation = generation.map(|number| i64::try_from(number.0).unwrap_or(i64::MAX));
        let Some(seen) = self.store.state_of(stream, generation).await? else { return Ok(None) };
        let corrupt = |why: String| StoreError::Corrupt(format!("a state of {stream}: {why}"));
        let envelope = Envelope::from_json(&seen.envelope).map_err(|why| corrupt(why.to_string()))?;
        let state = serde_json::from_slice(&envelope.payload).map_err(|why| corrupt(why.to_string()))?;
        Ok(Some((envelope, state)))
    }

    /// What all of a stream's members have.
    async fn known(
        &self,
        since: &Since,
        stream: &Stream,
        members: &[Addressee],
        newest: &DesiredState,
    ) -> Result<BTreeSet<Digest>, ExportError> {
        let generation = match since {
            Since::Nothing => return Ok(BTreeSet::new()),
            Since::Reported => return Ok(self.reported(stream, members, newest).await?),
            Since::Generation(generation) => *generation,
            Since::Rings(rings) => match rings.get(&stream.ring) {
                Some(generation) => *generation,
                None => return Ok(BTreeSet::new()),
            },
        };
        let found = self.state(stream, Some(generation)).await?;
        let (_, state) = found.ok_or_else(|| ExportError::NoGeneration(stream.clone(), generation))?;
        Ok(state.entries.iter().flat_map(blobs).map(|blob| blob.digest).collect())
    }

    /// What runs is there. Its packages are known by the states that named them: the newest, and the one that was accepted last.
    async fn reported(
        &self,
        stream: &Stream,
        members: &[Addressee],
        newest: &DesiredState,
    ) -> Result<BTreeSet<Digest>, StoreError> {
        let ids: Vec<ClusterId> = members.iter().map(|one| one.id).collect();
        let tallies = self.store.tallies(&ids).await?;
        let mut accepted: BTreeMap<Generation, Option<DesiredState>> = BTreeMap::new();
        let mut all: Option<BTreeSet<Digest>> = None;
        for member in members {
            let Some(tally) = tallies.get(&member.id) else { return Ok(BTreeSet::new()) };
            let last = match accepted.entry(member.generation) {
                btree_map::Entry::Occupied(known) => known.into_mut(),
                btree_map::Entry::Vacant(unknown) => {
                    let state = self.state(stream, Some(member.generation)).await?;
                    unknown.insert(state.map(|(_, state)| state))
                }
            };
            let states = [Some(newest), last.as_ref()];
            let has = running(tally, states.into_iter().flatten());
            all = Some(match all {
                Some(all) => all.intersection(&has).copied().collect(),
                None => has,
            });
        }
        Ok(all.unwrap_or_default())
    }
}

/// The blobs of the packages that run.
fn running<'a>(tally: &Tally, states: impl Iterator<Item = &'a DesiredState>) -> BTreeSet<Digest> {
    let keys: BTreeSet<PackagesKey> = tally.0.values().filter_map(|tallied| tallied.1).collect();
    let entries = states.flat_map(|state| &state.entries).filter(|entry| keys.contains(&entry.packages_key()));
    entries.flat_map(blobs).map(|blob| blob.digest).collect()
}

/// The packages of an assignment that is ours to apply, and their artifacts.
fn blobs(entry: &Entry) -> Vec<BlobRef> {
    let Mode::Apply(packages) = &entry.mode else { return Vec::new() };
    let mut found = Vec::new();
    for package in [&packages.platform, &packages.workload] {
        found.push(BlobRef { digest: package.digest, size: package.size });
        found.extend(package.artifacts.iter().cloned());
    }
    found
}

fn envelope(json: &[u8]) -> Result<Envelope, StoreError> {
    Envelope::from_json(json).map_err(|why| StoreError::Corrupt(format!("a stored envelope: {why}")))
}

/// What is still to be sent.
struct Pour {
    head: Option<Bytes>,
    blobs: std::vec::IntoIter<BlobEntry>,
    now: Option<(File, u64)>,
    folder: Blobs,
}

impl Export {
    /// The bytes of all of it.
    pub fn length(&self) -> u64 {
        self.sealed.length()
    }

    pub fn blobs(&self) -> usize {
        self.sealed.blobs().len()
    }

    /// The container, in pieces, as fast as they are taken.
    pub fn pour(self) -> impl futures_util::Stream<Item = io::Result<Bytes>> + Send + 'static {
        let blobs = self.sealed.blobs().to_vec().into_iter();
        let head = Some(Bytes::from(self.sealed.into_head()));
        futures_util::stream::try_unfold(Pour { head, blobs, now: None, folder: self.blobs }, Pour::next)
    }
}

impl Pour {
    async fn next(mut self) -> io::Result<Option<(Bytes, Pour)>> {
        if let Some(head) = self.head.take() {
            return Ok(Some((head, self)));
        }
        loop {
            match &mut self.now {
                Some((_, 0)) => self.now = None,
                Some((file, left)) => {
                    let most = usize::try_from(*left).map_or(PIECE, |left| left.min(PIECE));
                    let mut piece = vec![0; most];
                    let read = file.read(&mut piece).await?;
                    if read == 0 {
                        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a blob was cut meanwhile"));
                    }
                    piece.truncate(read);
                    *left -= read as u64;
                    return Ok(Some((Bytes::from(piece), self)));
                }
                None => {
                    let Some(blob) = self.blobs.next() else { return Ok(None) };
                    self.now = Some((File::open(self.folder.path(&blob.digest)).await?, blob.size));
                }
            }
        }
    }
}
