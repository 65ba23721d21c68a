//! Issues desired states: the leader's. A state is signed, written in one transaction with its picks under the leader's
//! term, and only then shown. Numbers only grow, also past what a cluster proved.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use kedge_hub_types::pack::{PackedEntry, PackedType};
use kedge_hub_types::state::Issued;
use kedge_model::wire::{DesiredState, Digest, EnvelopeError, Generation, PlatformSource, Stream, Tombstone};
use tokio::sync::{Mutex, watch};

use super::cache::DesiredStateCache;
use super::{Signer, plan};
use crate::history::issued::issued;
use crate::pack::Packed;
use crate::store::state::NewState;
use crate::store::{Store, StoreError, Term, now};

/// The one writer of desired states in this hub.
pub struct Issuer {
    store: Store,
    desired_states: Arc<DesiredStateCache>,
    signer: Arc<dyn Signer>,
    confirmations: Arc<dyn Confirmations>,
    known: Mutex<Known>,
}

/// What streams of an environment should hold.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub environment: String,
    /// The head that other reconcilers read; none: what the states say of it stays.
    pub source: Option<PlatformSource>,
    pub streams: BTreeMap<Stream, Arc<PackedType>>,
}

/// What others know and a state says or depends on.
#[async_trait]
pub trait Confirmations: Send + Sync {
    /// Sizes of the confirmed sets of an environment, by cluster type.
    async fn confirmed_sizes(&self, environment: &str) -> Result<BTreeMap<String, u64>, StoreError>;

    /// Which of these tombstones every member of the stream has confirmed.
    async fn settled(&self, stream: &Stream, tombstones: &[Tomb]) -> Result<BTreeSet<String>, StoreError>;
}

/// A tombstone that may have been confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tomb {
    pub assignment: String,
    pub since: Generation,
    /// Or only stops managing it.
    pub removes: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the state of {stream} can't be signed")]
    Sign { stream: Stream, source: EnvelopeError },
    #[error("the state of {stream} can't be written")]
    Content { stream: Stream, source: serde_json::Error },
}

/// The newest states as this term knows them: nobody else writes while it lasts.
#[derive(Default)]
struct Known {
    term: Option<Term>,
    environments: BTreeMap<String, BTreeMap<Stream, Newest>>,
}

#[derive(Clone)]
struct Newest {
    state: Arc<DesiredState>,
    content: Digest,
    /// What it was made from, for a cheap "nothing changed".
    packed: Option<Arc<PackedType>>,
}

/// A state of one environment that is to be issued, its content, and what it was made from.
type Fresh = (DesiredState, Digest, Option<Arc<PackedType>>);

/// What a stream's next state would be made from.
struct Asked<'a> {
    entries: &'a Arc<PackedType>,
    confirmed: Option<u64>,
    source: Option<&'a PlatformSource>,
    floor: Generation,
    restarts: &'a BTreeMap<String, u64>,
}

/// Streams written in one transaction: it stays short.
const STREAMS_AT_ONCE: usize = 32;
/// How soon a cluster's proof is answered with a state above it.
const FLOOR_INTERVAL: Duration = Duration::from_secs(1);

impl Issuer {
    pub fn new(
        store: Store,
        desired_states: Arc<DesiredStateCache>,
        signer: Arc<dyn Signer>,
        confirmations: Arc<dyn Confirmations>,
    ) -> Issuer {
        Issuer { store, desired_states, signer, confirmations, known: Mutex::default() }
    }

    /// Issues the head to every stream of an environment: one without rings that a change reaches step by step.
    pub async fn issue(&self, term: Term, packed: &Packed) -> Result<Vec<(Stream, Generation)>, IssueError> {
        let environment = packed.environment.as_str();
        let mut known = self.known.lock().await;
        let mut streams: BTreeSet<Stream> = self.load(&mut known, term, environment).await?.keys().cloned().collect();
        streams.extend(packed.types.keys().map(|name| Stream::new(environment, name, Stream::ALL)));
        let empty = Arc::new(PackedType::new());
        let head = |stream: Stream| {
            let entries = Arc::clone(packed.types.get(&stream.cluster_type).unwrap_or(&empty));
            (stream, entries)
        };
        let streams = streams.into_iter().map(head).collect();
        let wanted = Wanted { environment: environment.to_owned(), source: Some(packed.source.clone()), streams };
        self.bring(&mut known, term, wanted).await
    }

    /// Issues what each stream should hold; streams that aren't named stay as they are.
    pub async fn issue_streams(&self, term: Term, wanted: Wanted) -> Result<Vec<(Stream, Generation)>, IssueError> {
        let mut known = self.known.lock().await;
        self.bring(&mut known, term, wanted).await
    }

    /// What every stream of an environment holds now. Given back unchanged it is known to be nothing new.
    pub async fn held(&self, term: Term, environment: &str) -> Result<BTreeMap<Stream, Arc<PackedType>>, IssueError> {
        let mut known = self.known.lock().await;
        let newest = self.load(&mut known, term, environment).await?;
        Ok(newest.iter_mut().map(|(stream, newest)| (stream.clone(), newest.held())).collect())
    }

    /// Issues what changed. The new generations, after they can be served.
    async fn bring(
        &self,
        known: &mut Known,
        term: Term,
        wanted: Wanted,
    ) -> Result<Vec<(Stream, Generation)>, IssueError> {
        let Wanted { environment, source, streams } = wanted;
        let newest = self.load(known, term, &environment).await?;
        let sizes = self.confirmations.confirmed_sizes(&environment).await?;
        let floors = self.store.generation_floors_of(&environment).await?;
        let restarts = self.store.restarts_of(&environment).await?;
        let none = BTreeMap::new();
        let mut fresh = Vec::new();
        for (stream, entries) in streams {
            let before = newest.get(&stream);
            let confirmed = sizes.get(&stream.cluster_type).copied();
            let floor = floors.floor(&stream);
            let restarts = restarts.get(&stream).unwrap_or(&none);
            let asked = Asked { entries: &entries, confirmed, source: source.as_ref(), floor, restarts };
            if before.is_some_and(|before| before.says(&asked)) {
                continue;
            }
            let settled = self.settled(before).await?;
            let inputs = plan::Inputs {
                stream: &stream,
                generation: above(before, floor),
                packed: &entries,
                confirmed,
                source: source.as_ref(),
                settled: &settled,
                restarts,
            };
            let state = plan::next(before.map(|before| &*before.state), &inputs);
            let content = content_of(&state)?;
            let is_old = before.is_some_and(|before| before.content == content && before.state.generation > floor);
            if is_old {
                if let Some(before) = newest.get_mut(&stream) {
                    before.packed = Some(entries);
                }
                continue;
            }
            fresh.push((state, content, Some(entries)));
        }
        let issued = self.write(term, newest, fresh).await;
        if issued.is_err() {
            // It may be in the database all the same: read again before the next number is chosen.
            known.environments.remove(&environment);
        }
        issued
    }

    /// Issues the present content again above what clusters proved. Does nothing when there is no such proof.
    pub async fn pass_floors(&self, term: Term) -> Result<Vec<(Stream, Generation)>, IssueError> {
        let behind = self.store.streams_below_floor().await?;
        let mut all = Vec::new();
        for (stream, floor) in behind {
            let mut known = self.known.lock().await;
            let newest = self.load(&mut known, term, &stream.environment).await?;
            // Without a state there is nothing to say yet; the first one will be above.
            let Some(before) = newest.get(&stream).cloned() else { continue };
            let state = DesiredState { generation: above(Some(&before), floor), ..(*before.state).clone() };
            tracing::warn!(%stream, proven = %floor, generation = %state.generation,
                "a cluster proved a generation that this hub didn't know; issuing the present content above it");
            let issued = self.write(term, newest, vec![(state, before.content, before.packed)]).await;
            if issued.is_err() {
                known.environments.remove(&stream.environment);
            }
            all.extend(issued?);
        }
        Ok(all)
    }

    /// The leader's task: answers proofs until its term or the hub ends.
    pub async fn watch_floors(&self, term: Term, mut shutdown: watch::Receiver<bool>) -> Result<(), IssueError> {
        let mut timer = tokio::time::interval(FLOOR_INTERVAL);
        timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = timer.tick() => {}
                _ = shutdown.wait_for(|stop| *stop) => return Ok(()),
            }
            match self.pass_floors(term).await {
                Ok(_) => {}
                Err(IssueError::Store(StoreError::Unavailable(error))) => {
                    tracing::warn!(%error, "proven generations can't be looked up");
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn load<'a>(
        &self,
        known: &'a mut Known,
        term: Term,
        environment: &str,
    ) -> Result<&'a mut BTreeMap<Stream, Newest>, IssueError> {
        if known.term != Some(term) {
            *known = Known { term: Some(term), environments: BTreeMap::new() };
        }
        if !known.environments.contains_key(environment) {
            let mut newest = BTreeMap::new();
            for (stream, state) in self.store.newest_states_of(environment).await? {
                let content = content_of(&state)?;
                newest.insert(stream, Newest { state: Arc::new(state), content, packed: None });
            }
            known.environments.insert(environment.to_owned(), newest);
        }
        Ok(known.environments.entry(environment.to_owned()).or_default())
    }

    async fn settled(&self, before: Option<&Newest>) -> Result<BTreeSet<String>, IssueError> {
        let Some(state) = before.map(|before| &before.state) else { return Ok(BTreeSet::new()) };
        let tombs = |all: &[Tombstone], removes: bool| -> Vec<Tomb> {
            let tomb = |one: &Tombstone| Tomb { assignment: one.assignment.clone(), since: one.since, removes };
            all.iter().map(tomb).collect()
        };
        let tombs = [tombs(&state.removed, true), tombs(&state.unmanaged, false)].concat();
        match tombs.is_empty() {
            true => Ok(BTreeSet::new()),
            false => Ok(self.confirmations.settled(&state.stream, &tombs).await?),
        }
    }

    /// Rings of the environment whose clusters change a few at a time: limits are written before the states that they are about.
    async fn limited(&self, fresh: &[Fresh]) -> Result<BTreeSet<String>, StoreError> {
        let Some((state, ..)) = fresh.first() else { return Ok(BTreeSet::new()) };
        let limits = self.store.ring_limits(&state.stream.environment).await?;
        let held_up = limits.into_iter().filter(|(_, limit)| limit.permits.is_some() || limit.closed);
        Ok(held_up.map(|(ring, _)| ring).collect())
    }

    async fn write(
        &self,
        term: Term,
        newest: &mut BTreeMap<Stream, Newest>,
        fresh: Vec<Fresh>,
    ) -> Result<Vec<(Stream, Generation)>, IssueError> {
        let time = now();
        let mut signed = Vec::with_capacity(fresh.len());
        let limited = self.limited(&fresh).await?;
        for (mut state, content, packed) in fresh {
            state.created_at = time;
            state.turns = limited.contains(&state.stream.ring);
            let sign = |source| IssueError::Sign { stream: state.stream.clone(), source };
            let envelope = self.signer.sign_state(&state).and_then(|envelope| envelope.to_json()).map_err(sign)?;
            let moves = plan::moves(newest.get(&state.stream).map(|before| &*before.state), &state);
            let told = issued(newest.get(&state.stream).map(|before| &*before.state), &state);
            signed.push((NewState { state, content, envelope: Bytes::from(envelope), moves }, packed, told));
        }
        let mut numbers = Vec::with_capacity(signed.len());
        let mut rest = signed.into_iter().peekable();
        while rest.peek().is_some() {
            let mut chunk: Vec<_> = rest.by_ref().take(STREAMS_AT_ONCE).collect();
            let mut tx = self.store.write_as(term).await?;
            let tick = tx.tick().await?;
            for (new, _, told) in &mut chunk {
                tx.add_state(new, tick).await?;
                tx.record(std::mem::take(told)).await?;
            }
            tx.commit().await?;
            for (new, packed, _) in chunk {
                let (stream, generation) = (new.state.stream.clone(), new.state.generation);
                tracing::info!(%stream, %generation, entries = new.state.entries.len(), "desired state issued");
                let turns = new.state.turns;
                self.desired_states.show(&stream, Issued { generation, envelope: new.envelope, turns });
                let entry = Newest { state: Arc::new(new.state), content: new.content, packed };
                newest.insert(stream.clone(), entry);
                numbers.push((stream, generation));
            }
        }
        Ok(numbers)
    }
}

impl std::fmt::Debug for Issuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issuer").finish_non_exhaustive()
    }
}

impl Newest {
    /// Whether this is what would be said again, seen without making it.
    fn says(&self, asked: &Asked<'_>) -> bool {
        let state = &self.state;
        self.packed.as_ref().is_some_and(|before| Arc::ptr_eq(before, asked.entries))
            && state.removed.is_empty()
            && state.unmanaged.is_empty()
            && asked.confirmed.unwrap_or(state.entries.len() as u64) == state.confirmed
            && state.source.as_ref().is_none_or(|source| asked.source.is_none_or(|asked| asked == source))
            && state.generation > asked.floor
            && plan::is_restarted(state, asked.restarts)
    }

    /// Its content as it would be asked for again.
    fn held(&mut self) -> Arc<PackedType> {
        let explicit = |entries: &Arc<PackedType>| !entries.values().any(|entry| *entry == PackedEntry::Quarantined);
        match self.packed.as_ref().filter(|entries| explicit(entries)) {
            Some(entries) => Arc::clone(entries),
            None => {
                let entries = Arc::new(plan::entries(&self.state));
                self.packed = Some(Arc::clone(&entries));
                entries
            }
        }
    }
}

fn above(before: Option<&Newest>, floor: Generation) -> Generation {
    let newest = before.map_or(Generation(0), |before| before.state.generation);
    Generation(newest.max(floor).0 + 1)
}

fn content_of(state: &DesiredState) -> Result<Digest, IssueError> {
    plan::content(state).map_err(|source| IssueError::Content { stream: state.stream.clone(), source })
}

#[cfg(test)]
mod tests;
