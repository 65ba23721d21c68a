//! The content of wishes: downloads, one at a time and the small ones first, with room made before; then the wishes go to the
//! applier, those that came together in one job. One that can't be had stops itself only. What waits for this cluster's turn is fetched
//! ahead, when there is nothing else to fetch.

mod ahead;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kedge_model::wire::{BlobRef, DesiredState, Digest, Generation, Packages, PackagesKey};
use kedge_status::Severity;
use tokio::time::Instant;

use super::super::hub::{Hub, Pending};
use super::super::runtime::AgentRuntime;
use super::super::surroundings::Nearby;
use super::SyncLoop;
use crate::causes::chain;
use crate::desired::Memory;
use crate::link::{Backoff, FetchError, Next};
use crate::objects::Objects;
use crate::objects::collect::free;
use crate::peers::Content as FromPeers;
use crate::record::{Failure, Record};
use crate::records;
use crate::swarm::SwarmError;
use crate::tally::{self, Counted};
use crate::worker::{Job, Wish};

#[derive(Default)]
pub(super) struct Content {
    pub fetch: Pending<Fetched>,
    /// Whose content is on its way.
    fetching: Option<Whose>,
    /// Whose content is missing, the least first.
    missing: Vec<Missing>,
    /// Whose content is there, or can't be had.
    ready: Vec<Wish>,
    /// What the state that waits for its turn names and isn't here.
    ahead: Vec<BlobRef>,
    /// Not before this, after a failure.
    ahead_at: Option<Instant>,
    /// Downloads that broke off, and when they go on.
    broken: BTreeMap<String, (Backoff, Instant)>,
    /// What must stay on the disk.
    needed: BTreeSet<Digest>,
    swept_at: Option<Instant>,
}

struct Missing {
    wish: Wish,
    blobs: Vec<BlobRef>,
    bytes: u64,
}

pub(super) struct Fetched {
    whose: Whose,
    result: Result<(), FetchError>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Whose {
    Wish(String, PackagesKey),
    /// Of the state that waits.
    Ahead(Generation),
}

/// Wishes wait for each other while the next download is no larger: they are then applied together, and know of each other.
const SMALL: u64 = 16 << 20;
/// A download that broke off so often in a row is told as a failure, and goes on.
const TOLD_AFTER: u32 = 3;
/// What nobody needs is collected so often, beside when the disk needs it.
const SWEEP_EVERY: Duration = Duration::from_secs(86_400);

impl Content {
    pub(super) fn wake(&self) -> Option<Instant> {
        if !self.fetch.is_free() {
            return None;
        }
        let broken = self.missing.iter().filter_map(|missing| Some(self.broken.get(&missing.wish.assignment)?.1));
        broken.chain(self.ahead_at.filter(|_| !self.ahead.is_empty())).min()
    }

    /// The hub is there again: nothing has to wait.
    pub(super) fn hurry(&mut self) {
        self.broken.clear();
        self.ahead_at = None;
    }

    /// All that isn't here yet, the least first.
    pub(super) fn wanted(&self) -> Vec<BlobRef> {
        self.missing.iter().flat_map(|missing| &missing.blobs).chain(&self.ahead).cloned().collect()
    }

    fn is_waiting(&self, assignment: &str) -> bool {
        self.broken.get(assignment).is_some_and(|(_, until)| Instant::now() < *until)
    }
}

impl<H: Hub> SyncLoop<H> {
    /// These are to be applied; what is on its way for others is dropped, and what came of it stays on the disk.
    pub(super) fn want(&mut self, wishes: Vec<Wish>, records: &BTreeMap<String, Record>, agent: &mut AgentRuntime) {
        let offered = self.memory.offered();
        let objects = &self.context.objects;
        let complete = wishes.iter().all(|wish| missing(&wish.packages, objects).is_empty());
        let still = |whose: &Whose| match whose {
            Whose::Wish(name, key) => wishes.iter().any(|wish| wish.assignment == *name && wish.packages.key() == *key),
            Whose::Ahead(generation) => complete && offered.is_some_and(|offered| offered.generation == *generation),
        };
        if !self.content.fetching.as_ref().is_some_and(still) {
            self.content.fetch.clear();
            self.content.fetching = None;
        }
        (self.content.missing, self.content.ready) = (Vec::new(), Vec::new());
        for wish in wishes {
            let blobs = missing(&wish.packages, &self.context.objects);
            if blobs.is_empty() {
                self.content.ready.push(wish);
            } else {
                let bytes = blobs.iter().map(|blob| blob.size).sum();
                self.content.missing.push(Missing { wish, blobs, bytes });
            }
        }
        self.content.missing.sort_by_key(|missing| missing.bytes);
        self.sharing.soon();
        self.content.needed = records.values().flat_map(records::objects).collect();
        self.content.needed.extend(named(&self.memory));
        self.content.ahead = offered.map(|state| ahead::lacking(state, &self.context.objects)).unwrap_or_default();
        self.offer();
        self.sweep();
        self.fetch_next(agent);
    }

    /// Begins the next download, and gives what is ready to the applier.
    pub(super) fn fetch_next(&mut self, agent: &mut AgentRuntime) {
        while self.content.fetch.is_free() && self.hub.is_some() {
            let waits = |missing: &Missing| self.content.is_waiting(&missing.wish.assignment);
            let Some(at) = self.content.missing.iter().position(|missing| !waits(missing)) else { break };
            let Missing { wish, blobs, bytes } = self.content.missing.remove(at);
            if let Err(failure) = self.make_room(bytes) {
                self.content.ready.push(Wish { failure: Some(failure), ..wish });
                continue;
            }
            self.begin_fetch(Whose::Wish(wish.assignment.clone(), wish.packages.key()), blobs.clone());
            self.content.missing.insert(0, Missing { wish, blobs, bytes });
        }
        self.fetch_ahead();
        let soon =
            !self.content.fetch.is_free() && self.content.missing.first().is_some_and(|next| next.bytes <= SMALL);
        if !soon && !self.content.ready.is_empty() {
            let ready = std::mem::take(&mut self.content.ready);
            ready.iter().for_each(|wish| self.tasks.give(&wish.assignment));
            agent.give(Job::Apply(ready));
        }
    }

    pub(super) fn fetched(&mut self, fetched: Fetched) {
        let Fetched { whose, result } = fetched;
        self.content.fetching = None;
        let Whose::Wish(assignment, _) = whose else { return self.fetched_ahead(&result) };
        let Some(at) = self.content.missing.iter().position(|missing| missing.wish.assignment == assignment) else {
            return;
        };
        let failure = match result {
            Ok(()) => {
                self.content.broken.remove(&assignment);
                tally::add(Counted::Fetched, 1);
                tally::add(Counted::FetchedBytes, self.content.missing.get(at).map_or(0, |missing| missing.bytes));
                tracing::info!(assignment, "its content is here");
                self.sharing.soon();
                self.offer();
                None
            }
            Err(error) => match self.broke_off(&assignment, &error) {
                Some(failure) => Some(failure),
                None => return,
            },
        };
        let missing = self.content.missing.remove(at);
        self.content.ready.push(Wish { failure, ..missing.wish });
    }

    /// The failure to be told; none: it goes on later by itself.
    fn broke_off(&mut self, assignment: &str, error: &FetchError) -> Option<Failure> {
        let said = chain(error);
        tally::add(Counted::FetchFailed, 1);
        tracing::warn!(assignment, error = said, "its content can't be fetched");
        match error {
            FetchError::DiskFull { .. } => Some(Failure::passing("DiskFull", said)),
            FetchError::Disk(..) => Some(Failure::passing("FileFailed", said)),
            FetchError::Link(_, link) if matches!(link.next(), Next::Backoff | Next::After(_) | Next::Renew) => {
                let (backoff, until) = self
                    .content
                    .broken
                    .entry(assignment.to_owned())
                    .or_insert_with(|| (Backoff::default(), Instant::now()));
                *until = Instant::now() + backoff.next(rand::random_range(0.0..1.0));
                // While the hub is away everybody waits: that is no failure of this one.
                (self.talk.is_online() && backoff.tries() > TOLD_AFTER).then(|| Failure::passing("Network", said))
            }
            FetchError::Gone { .. } | FetchError::Wrong { .. } | FetchError::Link(..) => {
                Some(Failure::passing("Network", said))
            }
        }
    }

    fn begin_fetch(&mut self, whose: Whose, blobs: Vec<BlobRef>) {
        let Some(hub) = self.hub.clone() else { return };
        let (peers, nearby) = (self.sharing.content(), self.sharing.nearby());
        let objects = self.context.objects.clone();
        let (count, bytes) = (blobs.len(), blobs.iter().map(|blob| blob.size).sum::<u64>());
        match &whose {
            Whose::Wish(assignment, _) => tracing::info!(assignment, blobs = count, bytes, "fetching"),
            Whose::Ahead(generation) => tracing::info!(%generation, blobs = count, bytes, "fetching ahead of the turn"),
        }
        self.content.fetching = Some(whose.clone());
        self.content.fetch.begin(async move {
            for blob in &blobs {
                if let Err(error) = fetch(&*hub, (peers.as_ref(), nearby.as_deref()), blob, &objects).await {
                    return Fetched { whose, result: Err(error) };
                }
            }
            Fetched { whose, result: Ok(()) }
        });
    }

    /// So many bytes can be written, and the reserve stays.
    fn make_room(&mut self, bytes: u64) -> Result<(), Failure> {
        let need = bytes.saturating_add(self.context.config.disk_reserve);
        let folder = self.context.paths.objects();
        if free(&folder).is_ok_and(|free| free >= need) {
            return Ok(());
        }
        self.collect(need);
        // A file system that doesn't say is tried.
        let Ok(free) = free(&folder) else { return Ok(()) };
        if free >= need {
            return Ok(());
        }
        let reserve = self.context.config.disk_reserve;
        let message = format!("{bytes} bytes are to be fetched and {reserve} are to stay free, but only {free} are");
        Err(Failure::passing("DiskFull", message))
    }

    /// Once a day, and whenever the disk is nearly full.
    fn sweep(&mut self) {
        let (folder, reserve) = (self.context.paths.objects(), self.context.config.disk_reserve);
        let full = free(&folder).is_ok_and(|free| free < reserve);
        let daily = self.content.swept_at.is_none_or(|at| at.elapsed() >= SWEEP_EVERY);
        if daily || full {
            self.content.swept_at = Some(Instant::now());
            self.collect(reserve);
        }
        let Ok(free) = free(&folder) else { return };
        // Rounded: a figure that changes with every log line would be told with every log line.
        let low = (free < reserve).then(|| format!("less than {} MiB of the disk are free", (free >> 24 << 4) + 16));
        self.warn_while("DiskLow", Severity::Error, low);
    }

    /// Not while a change is under way: what its steps and its way back need is known when its journal is read again.
    fn collect(&self, need: u64) {
        if !self.tasks.is_idle() {
            return;
        }
        match self.context.objects.collect(&self.content.needed, need) {
            Ok(0) => {}
            Ok(bytes) => tracing::info!(bytes, "collected what nobody needs any more"),
            Err(error) => tracing::warn!(%error, "what nobody needs can't be collected"),
        }
    }
}

/// From a cache of the own cluster that has it, from peers if somebody has it or fetches it, else from the hub.
async fn fetch<H: Hub>(
    hub: &H,
    (peers, nearby): (Option<&FromPeers>, Option<&dyn Nearby>),
    blob: &BlobRef,
    objects: &Objects,
) -> Result<(), FetchError> {
    if let Some(nearby) = nearby {
        match nearby.fetch(blob, objects).await {
            Ok(true) => return Ok(()),
            Ok(false) | Err(SwarmError::Nobody(_)) => {}
            Err(SwarmError::Disk(error)) => return Err(error),
        }
    }
    if let Some(peers) = peers {
        match peers.fetch(blob, objects).await {
            Ok(true) => return Ok(()),
            Ok(false) | Err(SwarmError::Nobody(_)) => {}
            Err(SwarmError::Disk(error)) => return Err(error),
        }
    }
    hub.fetch(blob, objects).await
}

fn missing(packages: &Packages, objects: &Objects) -> Vec<BlobRef> {
    packages.blobs().filter(|blob| !objects.has(&blob.digest)).collect()
}

/// The content that the desired state names, and the one that waits for its turn.
pub(super) fn named(memory: &Memory) -> impl Iterator<Item = Digest> + '_ {
    named_blobs(memory).map(|blob| blob.digest)
}

/// The same with their sizes.
pub(super) fn named_blobs(memory: &Memory) -> impl Iterator<Item = BlobRef> + '_ {
    memory.state().into_iter().chain(memory.offered()).flat_map(DesiredState::blobs)
}
