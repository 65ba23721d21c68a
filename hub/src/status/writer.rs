//! The task that stores documents: all that wait go into one transaction, and each sender is answered after its commit. A
//! commit that fails answers Unavailable to all of them, and nothing is lost: the agents keep their documents.

use std::collections::{BTreeMap, btree_map};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kedge_hub_types::history::{Entry, Place, What};
use kedge_hub_types::status::TakeError;
use kedge_hub_types::status::prepared::Prepared;
use kedge_hub_types::status::tally::{Deltas, Weight};
use kedge_model::wire::{ClusterId, Heads, Stream, Timestamp};
use tokio::sync::{mpsc, oneshot, watch};

use super::check_ins::LOOK_PATIENCE_MS;
use super::{CARRIED_MS, Figures, Heard, Taken, foreign, past};
use crate::history::pace::Pace;
use crate::permits::Said;
use crate::store::status::{Named, Seat, States, StoredHeads};
use crate::store::{Store, StoreError, Tx};

/// One document and who waits for it.
#[derive(Debug)]
pub struct Job {
    pub prepared: Box<Prepared>,
    pub answer: oneshot::Sender<Result<Outcome, TakeError>>,
}

#[derive(Debug)]
pub enum Outcome {
    /// And how far the stored document has come.
    Done(Taken, Heads),
    /// Both histories of the epoch have something that the other hasn't; these envelopes are stored.
    Merge(Vec<u8>),
}

/// What a new document is to the stored one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Store,
    Same,
    Older,
    Merge,
    Clone,
}

/// What the task remembers from one commit to the next.
struct Desk {
    /// How much history each cluster tells.
    pace: Pace,
    states: States,
}

/// What the documents of one commit come to.
#[derive(Default)]
struct Gathered {
    deltas: Deltas,
    news: Vec<Entry>,
    /// What there is in the streams of which a document brought new names.
    named: BTreeMap<Stream, Option<Named>>,
}

/// Lines of history that a cluster tells at once: more than a host with hundreds of assignments has when all of them change.
const TOLD: u32 = 512;
const FORGET_ONE: Duration = Duration::from_secs(10);
/// A document that a cluster sends itself takes a minute at most; an older one that comes later is another host's.
const ON_ITS_WAY_MS: i64 = 120_000;
/// Documents of one commit: at a thousand a second the disk syncs a few times a second.
const BATCH: usize = 512;

/// Ends on shutdown, after everything that was handed in is answered.
pub async fn run(
    store: Store,
    mut jobs: mpsc::Receiver<Job>,
    heard: Heard,
    figures: Arc<Figures>,
    mut shutdown: watch::Receiver<bool>,
) {
    let mut failing = false;
    let mut desk = Desk { pace: Pace::new(TOLD, FORGET_ONE), states: States::default() };
    loop {
        let first = tokio::select! {
            biased;
            job = jobs.recv() => job,
            () = stopped(&mut shutdown) => {
                jobs.close();
                jobs.recv().await
            }
        };
        let Some(first) = first else { return };
        let mut batch = vec![first];
        while batch.len() < BATCH {
            let Ok(job) = jobs.try_recv() else { break };
            batch.push(job);
        }
        // Two hubs must take clusters in the same order; one cluster's documents stay in theirs.
        batch.sort_by_key(|job| job.prepared.status.cluster);
        match write_all(&store, &heard, &mut desk, batch).await {
            Ok(()) => {
                figures.commits.fetch_add(1, Ordering::Relaxed);
                if std::mem::take(&mut failing) {
                    tracing::info!("documents are stored again");
                }
            }
            Err(error) if !failing => {
                failing = true;
                tracing::warn!(%error, "documents can't be stored; agents keep them and send again");
            }
            Err(_) => {}
        }
    }
}

async fn stopped(shutdown: &mut watch::Receiver<bool>) {
    // A sender that is gone means the end too.
    let _ = shutdown.wait_for(|stop| *stop).await;
}

/// One commit for all; if the database refuses it, one for each, so that a document it can't take fails alone.
async fn write_all(store: &Store, heard: &Heard, desk: &mut Desk, mut batch: Vec<Job>) -> Result<(), StoreError> {
    let error = match write(store, heard, desk, &mut batch).await {
        Ok(outcomes) => {
            answer(batch, outcomes);
            return Ok(());
        }
        Err(error) => error,
    };
    if matches!(error, StoreError::Unavailable(_)) || batch.len() == 1 {
        answer(batch, std::iter::repeat_with(|| Err(TakeError::Unavailable)));
        return Err(error);
    }
    let mut last = Ok(());
    for mut job in batch {
        match write(store, heard, desk, std::slice::from_mut(&mut job)).await {
            Ok(outcomes) => answer(vec![job], outcomes),
            Err(error) => {
                answer(vec![job], [Err(TakeError::Unavailable)]);
                last = Err(error);
            }
        }
    }
    last
}

fn answer(batch: Vec<Job>, outcomes: impl IntoIterator<Item = Result<Outcome, TakeError>>) {
    for (job, outcome) in batch.into_iter().zip(outcomes) {
        // Who no longer waits will send again and hear that it is known.
        let _ = job.answer.send(outcome);
    }
}

async fn write(
    store: &Store,
    heard: &Heard,
    desk: &mut Desk,
    batch: &mut [Job],
) -> Result<Vec<Result<Outcome, TakeError>>, StoreError> {
    let mut tx = store.write().await?;
    let mut seats: BTreeMap<ClusterId, Option<Seat>> = BTreeMap::new();
    let mut gathered = Gathered::default();
    let mut outcomes = Vec::with_capacity(batch.len());
    // All rows are held before anything else is: two hubs never wait for each other in a circle.
    for job in &*batch {
        let cluster = job.prepared.status.cluster;
        if let btree_map::Entry::Vacant(entry) = seats.entry(cluster) {
            entry.insert(tx.seat(&cluster, store.backend()).await?);
        }
    }
    for job in batch {
        let cluster = job.prepared.status.cluster;
        let outcome = match seats.get_mut(&cluster) {
            Some(Some(seat)) => one(&mut tx, desk, seat, &mut gathered, &mut job.prepared).await?,
            _ => Err(TakeError::UnknownCluster(cluster)),
        };
        outcomes.push(outcome);
    }
    let mut freed = false;
    for (cluster, seat) in &seats {
        if let Some(Seat { active: true, stream, tally: Some(tally), .. }) = seat {
            let said = Said { tally: Some(tally), accepted: None };
            freed |= heard.permits.settle(&mut tx, cluster, stream, said).await?;
        }
    }
    tx.record(gathered.news).await?;
    let counted = tx.apply(gathered.deltas).await?;
    tx.commit().await?;
    heard.tell(counted, freed);
    Ok(outcomes)
}

async fn one(
    tx: &mut Tx,
    desk: &mut Desk,
    seat: &mut Seat,
    gathered: &mut Gathered,
    prepared: &mut Prepared,
) -> Result<Result<Outcome, TakeError>, StoreError> {
    let status = &prepared.status;
    let cluster = status.cluster;
    if !seat.active {
        return Ok(Err(TakeError::Retired(cluster)));
    }
    if seat.public_key != status.key.as_bytes() {
        return Ok(Err(TakeError::Forged("the key isn't the one that joined".to_owned())));
    }
    let stored = |seat: &Seat| seat.document.as_ref().map(heads).unwrap_or_default();
    Ok(match judge(seat.document.as_ref(), prepared) {
        Verdict::Same => Ok(Outcome::Done(Taken::AlreadyKnown, stored(seat))),
        Verdict::Older => {
            // What others carry may be of any age; a host itself never goes back.
            let late = prepared.received_at.0 > seat.received_at.0.saturating_add(ON_ITS_WAY_MS);
            if late && prepared.carrier == Some(cluster) {
                mark(tx, seat, prepared).await?;
            }
            Ok(Outcome::Done(Taken::Older, stored(seat)))
        }
        Verdict::Merge => Ok(Outcome::Merge(tx.envelopes(&cluster).await?.unwrap_or_default())),
        Verdict::Clone => {
            mark(tx, seat, prepared).await?;
            Err(TakeError::Cloned(cluster))
        }
        Verdict::Store => {
            if prepared.copied {
                mark(tx, seat, prepared).await?;
            }
            keep(tx, desk, seat, gathered, prepared).await?;
            Ok(Outcome::Done(Taken::Stored, stored(seat)))
        }
    })
}

impl Desk {
    /// As much as history takes of one cluster, and how much that leaves out.
    fn paced(&self, seat: &Seat, prepared: &Prepared, mut told: Vec<Entry>) -> Vec<Entry> {
        let cluster = prepared.status.cluster;
        let granted = self.pace.take_some(cluster, told.len(), Instant::now());
        told.truncate(granted.lines);
        if granted.untold > 0 {
            let count = granted.untold;
            tracing::warn!(%cluster, events = count, "a cluster tells more than history takes of one");
            told.push(Entry::new(prepared.received_at, Place::cluster(&seat.stream, cluster), What::Lost { count }));
        }
        told
    }
}

/// Told once. What copies of a disk write in one epoch can't be told apart and is taken; from the next epoch on the first one's stays.
async fn mark(tx: &mut Tx, seat: &mut Seat, prepared: &Prepared) -> Result<(), StoreError> {
    let cluster = prepared.status.cluster;
    if !std::mem::replace(&mut seat.cloned, true) {
        tx.mark_cloned(&cluster, prepared.received_at).await?;
        tracing::error!(%cluster, "two hosts write with one identity");
    }
    Ok(())
}

fn judge(stored: Option<&StoredHeads>, new: &Prepared) -> Verdict {
    let status = &new.status;
    let Some(stored) = stored else { return Verdict::Store };
    match status.epoch.cmp(&stored.epoch) {
        std::cmp::Ordering::Greater => return Verdict::Store,
        std::cmp::Ordering::Less => return Verdict::Older,
        std::cmp::Ordering::Equal => {}
    }
    if status.nonce.to_string() != stored.nonce {
        return Verdict::Clone;
    }
    if status.heads().heads == stored.heads {
        return Verdict::Same;
    }
    if status.contains(&stored.heads) { Verdict::Store } else { Verdict::Merge }
}

/// Stores a document, its exceptions and the difference that it makes; a cluster that was Unknown is back.
async fn keep(
    tx: &mut Tx,
    desk: &mut Desk,
    seat: &mut Seat,
    gathered: &mut Gathered,
    prepared: &mut Prepared,
) -> Result<(), StoreError> {
    let cluster = prepared.status.cluster;
    if foreign::brings_names(prepared, seat.tally.as_ref()) {
        let named = match gathered.named.entry(seat.stream.clone()) {
            btree_map::Entry::Occupied(known) => known.into_mut(),
            btree_map::Entry::Vacant(entry) => entry.insert(tx.assignments(&seat.stream, &mut desk.states).await?),
        };
        foreign::leave_out(prepared, seat.tally.as_ref(), named.as_ref());
    }
    let prepared = &*prepared;
    let Gathered { deltas, news, .. } = gathered;
    let (events, watermark) = past::events(prepared, seat);
    tx.put_document(prepared, watermark).await?;
    let drift = tx.put_conditions(&cluster, seat.tally.as_ref(), prepared).await?;
    let warned = seat.warned.take().unwrap_or_default();
    tx.put_warnings(&cluster, &seat.stream, &warned, prepared).await?;
    deltas.warned(&seat.stream, &warned, &prepared.warned);
    seat.warned = Some(prepared.warned.clone());
    let unknown = revive(tx, seat, news, prepared).await?;
    let drift = past::drift(prepared, seat, drift, &events);
    let mut told = events;
    told.extend(drift);
    news.extend(desk.paced(seat, prepared, told));
    deltas.replace(
        Weight { stream: &seat.stream, tally: seat.tally.as_ref(), unknown: seat.unknown_since.is_some() },
        Weight { stream: &seat.stream, tally: Some(&prepared.tally), unknown: unknown.is_some() },
    );
    let heads = prepared.status.heads();
    seat.unknown_since = unknown;
    seat.told = watermark;
    seat.received_at = prepared.received_at;
    seat.tally = Some(prepared.tally.clone());
    seat.document = Some(StoredHeads { epoch: heads.epoch, nonce: heads.nonce, heads: heads.heads });
    Ok(())
}

/// A new document is a sign of life of the time when it was written. Gives what `unknown_since` is from now on.
async fn revive(
    tx: &mut Tx,
    seat: &mut Seat,
    news: &mut Vec<Entry>,
    prepared: &Prepared,
) -> Result<Option<i64>, StoreError> {
    let cluster = prepared.status.cluster;
    let own = prepared.carrier == Some(cluster);
    if own && seat.unknown_since.is_none() {
        return Ok(None);
    }
    let received_at = prepared.received_at.0;
    let alive_at = if own { received_at } else { prepared.status.written_at_true().0.min(received_at) };
    let until = Timestamp(alive_at.saturating_add(CARRIED_MS));
    if until.0 > seat.check_in_deadline {
        tx.extend_check_in_deadline(&cluster, until).await?;
        seat.check_in_deadline = until.0;
    }
    // Stuck is what the last contact said; an old look alone may only mean that nobody heard of a newer one.
    let stuck = seat.look_at.is_some_and(|look_at| look_at.saturating_add(LOOK_PATIENCE_MS) < seat.last_contact);
    if seat.unknown_since.is_some() && !stuck && seat.check_in_deadline > received_at {
        let tick = tx.tick().await?;
        tx.set_unknown(&cluster, None, tick).await?;
        let place = Place::cluster(&seat.stream, cluster);
        news.push(Entry::new(prepared.received_at, place, What::Back));
        return Ok(None);
    }
    Ok(seat.unknown_since)
}

fn heads(stored: &StoredHeads) -> Heads {
    Heads { epoch: stored.epoch, nonce: stored.nonce.clone(), heads: stored.heads.clone() }
}
