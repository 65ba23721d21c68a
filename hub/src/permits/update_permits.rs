//! Rings whose clusters change a few at a time: which ones have a limit, when a cluster's permit is over, and the news that one is.
//! The writer and `check_ins` end permits in their own transactions; `agents` gives them. One task looks up limits every second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use kedge_hub_types::status::tally::{Tally, Word};
use kedge_model::wire::{ClusterId, DesiredState, Generation, Mode, PackagesKey, Stream, Timestamp};
use tokio::sync::watch;

use crate::store::permits::{Limit, Limits};
use crate::store::{Store, StoreError, Tx, now};

/// What several modules know of permits. Cheap to clone.
#[derive(Clone, Debug)]
pub struct UpdatePermits(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    limits: RwLock<Limits>,
    /// The newest generation of each stream for which the limits were looked up after it was shown.
    looked: RwLock<HashMap<Stream, Generation>>,
    /// One look at a time.
    looking: tokio::sync::Mutex<()>,
    /// What states ask for, read once for all clusters that follow them.
    asked: Mutex<HashMap<(Stream, Generation), Arc<Asked>>>,
    /// Counts what may let somebody through: a permit that ended, or other limits.
    news: watch::Sender<u64>,
}

/// What a cluster must have come to an end with before its permit is over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    entries: Vec<(String, PackagesKey)>,
    removed: Vec<String>,
}

/// How late a limit of another hub's controller may be here, and how late a permit that ended there.
pub const EVERY: Duration = Duration::from_secs(1);
/// Permits that nothing else ends are looked for so often.
const SWEEP_EVERY: u32 = 10;
/// A silent cluster that polls again is known to be back within this.
const BACK_WITHIN_MS: i64 = 30_000;
/// States whose demands are kept in memory; each is a few names.
const MAX_ASKED: usize = 256;

impl UpdatePermits {
    /// Knows no limits yet: `look` reads them.
    pub fn new(store: Store) -> UpdatePermits {
        UpdatePermits(Arc::new(Inner {
            store,
            limits: RwLock::default(),
            looked: RwLock::default(),
            looking: tokio::sync::Mutex::default(),
            asked: Mutex::default(),
            news: watch::Sender::new(0),
        }))
    }

    /// Whether a stream's ring is held up, as far as the last look knows.
    pub fn limit(&self, stream: &Stream) -> Option<Limit> {
        let limits = self.0.limits.read().unwrap_or_else(PoisonError::into_inner);
        limits.get(&stream.environment)?.get(&stream.ring).copied()
    }

    /// The same, by a look that is younger than the state: a limit is written before the states that it is about.
    pub async fn limit_of(&self, stream: &Stream, generation: Generation) -> Result<Option<Limit>, StoreError> {
        if self.is_looked(stream, generation) {
            return Ok(self.limit(stream));
        }
        let _one = self.0.looking.lock().await;
        if !self.is_looked(stream, generation) {
            self.read_limits().await?;
            let mut looked = self.0.looked.write().unwrap_or_else(PoisonError::into_inner);
            looked.insert(stream.clone(), generation);
        }
        Ok(self.limit(stream))
    }

    fn is_looked(&self, stream: &Stream, generation: Generation) -> bool {
        let looked = self.0.looked.read().unwrap_or_else(PoisonError::into_inner);
        looked.get(stream).is_some_and(|known| *known >= generation)
    }

    pub async fn look(&self) -> Result<(), StoreError> {
        let _one = self.0.looking.lock().await;
        self.read_limits().await.map(drop)
    }

    /// Whether they are other ones than before.
    async fn read_limits(&self) -> Result<bool, StoreError> {
        let found = self.0.store.limited_rings().await?;
        let mut limits = self.0.limits.write().unwrap_or_else(PoisonError::into_inner);
        let changed = *limits != found;
        *limits = found;
        drop(limits);
        if changed {
            self.freed();
        }
        Ok(changed)
    }

    /// Somebody who waits may get through now.
    pub fn freed(&self) {
        self.0.news.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub fn news(&self) -> watch::Receiver<u64> {
        self.0.news.subscribe()
    }

    /// Looks up limits until told to stop, and takes away permits that nothing else ends.
    pub(crate) async fn follow(self, mut shutdown: watch::Receiver<bool>) {
        let (mut failing, mut turn) = (false, 0_u32);
        while !*shutdown.borrow_and_update() {
            turn = turn.wrapping_add(1);
            match self.turn(turn.is_multiple_of(SWEEP_EVERY)).await {
                Ok(()) => failing = false,
                Err(error) if !failing => {
                    failing = true;
                    tracing::warn!(%error, "the limits of rings can't be read; those known stay");
                }
                Err(_) => {}
            }
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                stopped = shutdown.changed() => if stopped.is_err() { return },
            }
        }
    }

    async fn turn(&self, sweep: bool) -> Result<(), StoreError> {
        let changed = {
            let _one = self.0.looking.lock().await;
            self.read_limits().await?
        };
        if (changed || sweep) && self.0.store.any_permit().await? {
            let mut tx = self.0.store.write().await?;
            let ended = tx.sweep_permits(Timestamp(now().0 - BACK_WITHIN_MS)).await?;
            tx.commit().await?;
            if ended > 0 {
                tracing::info!(slots = ended, "slots of nobody ended");
                self.freed();
            }
        }
        Ok(())
    }

    /// Ends a cluster's permit if what it says is final for the state that it was told. Whether it did: after the commit, `freed`.
    pub async fn settle(
        &self,
        tx: &mut Tx,
        cluster: &ClusterId,
        stream: &Stream,
        said: Said<'_>,
    ) -> Result<bool, StoreError> {
        if self.limit(stream).is_none() {
            return Ok(false);
        }
        let Some(generation) = tx.permit_of(cluster).await? else { return Ok(false) };
        if said.accepted.is_some_and(|accepted| accepted < generation) {
            return Ok(false);
        }
        let over = match self.asked(tx, stream, generation).await? {
            None => true,
            Some(asked) => {
                let open = asked.open(said.tally);
                open.is_empty() || {
                    let held = held(tx, cluster).await?;
                    open.iter().all(|assignment| held.iter().any(|name| name == assignment))
                }
            }
        };
        if over { tx.end_permit(cluster).await } else { Ok(false) }
    }

    /// Whether two states of a stream want the same content.
    pub async fn asks_the_same(
        &self,
        tx: &mut Tx,
        stream: &Stream,
        one: Generation,
        other: Generation,
    ) -> Result<bool, StoreError> {
        let (one, other) = (self.asked(tx, stream, one).await?, self.asked(tx, stream, other).await?);
        Ok(one.is_some() && one == other)
    }

    async fn asked(
        &self,
        tx: &mut Tx,
        stream: &Stream,
        generation: Generation,
    ) -> Result<Option<Arc<Asked>>, StoreError> {
        let key = (stream.clone(), generation);
        if let Some(known) = self.0.asked.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(Some(Arc::clone(known)));
        }
        let Some(state) = tx.state_of_generation(stream, generation).await? else { return Ok(None) };
        let asked = Arc::new(Asked::of(&state));
        let mut known = self.0.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_ASKED {
            known.clear();
        }
        known.insert(key, Arc::clone(&asked));
        Ok(Some(asked))
    }
}

/// What a cluster said of itself, as far as its permit goes.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    pub tally: Option<&'a Tally>,
    /// The generation that it told with a contact; a document's reports name their packages themselves.
    pub accepted: Option<Generation>,
}

impl Asked {
    /// What other reconcilers bring is theirs to pace.
    fn of(state: &DesiredState) -> Asked {
        let ours = state.entries.iter().filter(|entry| matches!(entry.mode, Mode::Apply(_)));
        Asked {
            entries: ours.map(|entry| (entry.assignment.clone(), entry.packages_key())).collect(),
            removed: state.removed.iter().map(|tombstone| tombstone.assignment.clone()).collect(),
        }
    }

    /// Assignments that haven't come to an end: neither Converged nor Failed with what is asked, or not gone yet.
    fn open<'a>(&'a self, tally: Option<&Tally>) -> Vec<&'a str> {
        let told = |assignment: &str| tally.and_then(|tally| tally.0.get(assignment));
        let wanted = self.entries.iter().filter(|(assignment, key)| {
            !told(assignment)
                .is_some_and(|tallied| tallied.0 == Some(*key) && matches!(tallied.2, Word::Converged | Word::Failed))
        });
        let removed = self.removed.iter().filter(|name| told(name).is_some_and(|tallied| tallied.2 != Word::Failed));
        wanted.map(|(assignment, _)| assignment.as_str()).chain(removed.map(String::as_str)).collect()
    }
}

/// What people keep from changing on a cluster: it can't come to an end there.
async fn held(tx: &mut Tx, cluster: &ClusterId) -> Result<Vec<String>, StoreError> {
    let documents = tx.hold_documents(cluster).await?;
    Ok(documents.into_iter().flat_map(|(_, document)| document.holds).map(|hold| hold.assignment).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kedge_model::wire::Digest;

    use super::*;
    use kedge_hub_types::status::tally::Tallied;

    fn key(name: &str) -> PackagesKey {
        PackagesKey::of_observed(&Digest::of(name.as_bytes()))
    }

    fn tally(entries: &[(&str, &str, Word)]) -> Tally {
        let tallied = |desired: &str, word| Tallied(Some(key(desired)), None, word, None, None);
        let all = entries.iter().map(|(name, desired, word)| ((*name).to_owned(), tallied(desired, *word)));
        Tally(all.collect::<BTreeMap<_, _>>())
    }

    #[test]
    fn a_permit_ends_when_everything_asked_for_is_converged_or_failed_and_what_goes_is_gone() {
        let asked = Asked {
            entries: vec![("a".to_owned(), key("a2")), ("b".to_owned(), key("b1"))],
            removed: vec!["c".to_owned()],
        };
        assert_eq!(asked.open(None), ["a", "b"]);
        let early = tally(&[("a", "a1", Word::Converged), ("b", "b1", Word::Converged), ("c", "c1", Word::Converged)]);
        assert_eq!(asked.open(Some(&early)), ["a", "c"], "converged on what was before is not the end");
        let during = tally(&[("a", "a2", Word::Converging), ("b", "b1", Word::Converged)]);
        assert_eq!(asked.open(Some(&during)), ["a"]);
        let failed = tally(&[("a", "a2", Word::Failed), ("b", "b1", Word::Converged)]);
        assert!(asked.open(Some(&failed)).is_empty());
    }
}
