//! The update limiter of rings whose clusters change a few at a time. Polls that wait for a permit stand in one queue per ring; one task
//! of this hub gives permits, many in one transaction, as they are free on all hubs together. A permit is a row: it outlives this hub,
//! and a cluster that lost its answer finds it again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kedge_model::wire::{ClusterId, Generation, Stream};
use tokio::sync::{Notify, oneshot, watch};

use super::update_permits::{EVERY, UpdatePermits};
use crate::state::DesiredStateCache;
use crate::store::permits::Limit;
use crate::store::{Store, StoreError, Tx, now};

/// Where polls wait. One for all connections.
#[derive(Debug)]
pub struct UpdateLimiter {
    desired_states: Arc<DesiredStateCache>,
    permits: UpdatePermits,
    queues: Mutex<BTreeMap<Ring, VecDeque<Ask>>>,
    came: Notify,
}

/// A ring of an environment: all its cluster types share the permits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ring {
    environment: String,
    name: String,
}

/// One poll that would like to tell a newer state.
#[derive(Debug)]
struct Ask {
    cluster: ClusterId,
    stream: Arc<Stream>,
    /// What the cluster has of this stream.
    has: Generation,
    /// It waits; the others want to know at once.
    patient: bool,
    /// Nobody has looked whether it has a permit already.
    fresh: bool,
    answer: oneshot::Sender<Option<Generation>>,
}

/// The generation that may be told, once it may; `None`: not now.
pub type UpdatePermit = oneshot::Receiver<Option<Generation>>;

/// Polls that come together are let through together.
const GATHER: Duration = Duration::from_millis(20);

impl UpdateLimiter {
    pub fn new(desired_states: Arc<DesiredStateCache>, permits: UpdatePermits) -> UpdateLimiter {
        UpdateLimiter { desired_states, permits, queues: Mutex::default(), came: Notify::new() }
    }

    pub fn permits(&self) -> &UpdatePermits {
        &self.permits
    }

    /// Stands in the queue of a ring until the receiver is dropped. Who isn't patient hears `None` when nothing is free.
    pub fn ask(&self, cluster: ClusterId, stream: Arc<Stream>, has: Generation, patient: bool) -> UpdatePermit {
        let (answer, pass) = oneshot::channel();
        let ring = Ring { environment: stream.environment.clone(), name: stream.ring.clone() };
        let ask = Ask { cluster, stream, has, patient, fresh: true, answer };
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).entry(ring).or_default().push_back(ask);
        self.came.notify_one();
        pass
    }

    /// Gives permits until told to stop: when somebody comes, when a permit ends here, and every second for those that end elsewhere.
    pub async fn run(&self, store: &Store, mut shutdown: watch::Receiver<bool>) {
        let mut news = self.permits.news();
        let mut failing = false;
        while !*shutdown.borrow_and_update() {
            let waiting = !self.queues.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
            tokio::select! {
                () = self.came.notified() => {}
                Ok(()) = news.changed() => {}
                () = tokio::time::sleep(EVERY), if waiting => {}
                stopped = shutdown.changed() => if stopped.is_err() { return },
            }
            tokio::time::sleep(GATHER).await;
            match self.grant(store).await {
                Ok(()) => failing = false,
                Err(error) if !failing => {
                    failing = true;
                    tracing::warn!(%error, "slots can't be given; clusters wait");
                }
                Err(_) => {}
            }
        }
    }

    /// Once through all queues. Who isn't let through goes on waiting in its place, also when the database is away.
    pub async fn grant(&self, store: &Store) -> Result<(), StoreError> {
        let queues = std::mem::take(&mut *self.queues.lock().unwrap_or_else(PoisonError::into_inner));
        let mut outcome = Ok(());
        for (ring, queue) in queues {
            let mut queue: VecDeque<Ask> = queue.into_iter().filter(|ask| !ask.answer.is_closed()).collect();
            let let_in = match self.let_in(store, &ring, &mut queue).await {
                Ok(let_in) => let_in,
                Err(error) => {
                    outcome = Err(error);
                    Vec::new()
                }
            };
            for (ask, generation) in let_in {
                // Who is gone meanwhile has its permit: its next poll finds it.
                let _ = ask.answer.send(generation);
            }
            let mut kept = VecDeque::with_capacity(queue.len());
            for ask in queue {
                if ask.patient {
                    kept.push_back(ask);
                } else {
                    let _ = ask.answer.send(None);
                }
            }
            if !kept.is_empty() {
                let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
                let came = queues.entry(ring).or_default();
                kept.append(came);
                *came = kept;
            }
        }
        outcome
    }

    /// Takes out of the queue who may go, after the commit. `None` beside one: it isn't a member there any more.
    async fn let_in(
        &self,
        store: &Store,
        ring: &Ring,
        queue: &mut VecDeque<Ask>,
    ) -> Result<Vec<(Ask, Option<Generation>)>, StoreError> {
        if queue.is_empty() {
            return Ok(Vec::new());
        }
        let mut tx = store.write().await?;
        let limit = tx.ring_limit(&ring.environment, &ring.name, store.backend()).await?;
        let mut gate = Gate::open(&mut tx, ring, limit, queue.iter().any(|ask| ask.fresh)).await?;
        let (mut verdicts, mut wrote) = (Vec::with_capacity(queue.len()), false);
        for ask in &*queue {
            let newest = self.desired_states.watch(&ask.stream).borrow().as_ref().map(|issued| issued.generation);
            let verdict = match newest {
                Some(newest) => gate.judge(&mut tx, &self.permits, ask, newest).await?,
                None => Verdict::Wait,
            };
            wrote |= matches!(verdict, Verdict::Permit(_));
            verdicts.push(verdict);
        }
        if wrote {
            tx.commit().await?;
        }
        let mut let_in = Vec::new();
        let mut rest = VecDeque::new();
        for (mut ask, verdict) in queue.drain(..).zip(verdicts) {
            ask.fresh = false;
            match verdict {
                Verdict::Permit(generation) | Verdict::Free(generation) => let_in.push((ask, Some(generation))),
                Verdict::Gone => let_in.push((ask, None)),
                Verdict::Wait => rest.push_back(ask),
            }
        }
        *queue = rest;
        Ok(let_in)
    }
}

/// What becomes of one who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It has a permit for this generation.
    Permit(Generation),
    /// It needs none.
    Free(Generation),
    Wait,
    /// It is no member of the stream any more.
    Gone,
}

/// A ring during one transaction.
#[derive(Debug)]
struct Gate {
    limit: Option<Limit>,
    holders: BTreeSet<ClusterId>,
    taken: u64,
}

impl Gate {
    /// Who has a permit already matters only for those who came since the last time.
    async fn open(tx: &mut Tx, ring: &Ring, limit: Option<Limit>, fresh: bool) -> Result<Gate, StoreError> {
        let (mut holders, mut taken) = (BTreeSet::new(), 0);
        if limit.is_some() && fresh {
            holders = tx.permit_holders(&ring.environment, &ring.name).await?;
            taken = holders.len() as u64;
        } else if limit.is_some() {
            taken = tx.permits_taken(&ring.environment, &ring.name).await?;
        }
        Ok(Gate { limit, holders, taken })
    }

    async fn judge(
        &mut self,
        tx: &mut Tx,
        permits: &UpdatePermits,
        ask: &Ask,
        newest: Generation,
    ) -> Result<Verdict, StoreError> {
        let Some(limit) = self.limit else { return Ok(Verdict::Free(newest)) };
        if self.holders.contains(&ask.cluster) {
            return take(tx, ask, newest).await;
        }
        let newcomer = ask.has == Generation(0);
        // A cluster that runs nothing yet can't become unavailable, and gets what its ring has.
        if newcomer && ask.fresh && !tx.runs_something(&ask.cluster).await? {
            return Ok(Verdict::Free(newest));
        }
        // One that was moved here isn't left without a state because it isn't the time for changes.
        if limit.closed && !newcomer {
            // A restart brings nothing new, and is asked for most where something failed.
            if permits.asks_the_same(tx, &ask.stream, ask.has, newest).await? {
                return Ok(Verdict::Free(newest));
            }
            // A ring has one state for all lanes: what one lane took back must not wait for another lane's pause.
            let goes_back = limit.returned > 0 && tx.is_issued_before(&ask.stream, ask.has, limit.returned).await?;
            if !goes_back {
                return Ok(Verdict::Wait);
            }
        }
        match limit.permits {
            None => Ok(Verdict::Free(newest)),
            Some(permits) if self.taken < permits => {
                let verdict = take(tx, ask, newest).await?;
                if matches!(verdict, Verdict::Permit(_)) && self.holders.insert(ask.cluster) {
                    self.taken += 1;
                }
                Ok(verdict)
            }
            Some(_) => Ok(Verdict::Wait),
        }
    }
}

async fn take(tx: &mut Tx, ask: &Ask, newest: Generation) -> Result<Verdict, StoreError> {
    match tx.take_permit(&ask.cluster, &ask.stream, newest, now()).await? {
        true => Ok(Verdict::Permit(newest)),
        false => Ok(Verdict::Gone),
    }
}

#[cfg(test)]
mod tests;
