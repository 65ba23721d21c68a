//! External checks: questions to something outside that a gate waits for. A task of the leader asks them, again and again,
//! while a ring that needs them is rolling, and tells the rollouts. Answers are in the database, so that another leader has
//! them.

mod probe;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kedge_model::kinds::Check;
use kedge_rollout::{CheckFact, Lane, RingState, Rollout, RolloutId};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::branches::Branches;
use super::outcomes::Outcomes;
use crate::rollout::Checks;
use crate::signal::Nudge;
use crate::store::{Store, StoreError, Term};

/// Asks what gates wait for. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Asker {
    pub store: Store,
    pub branches: Branches,
    pub control_plane: String,
    pub outcomes: Arc<dyn Outcomes>,
    /// Where rollouts look.
    pub said: Checks,
    pub nudge: Nudge,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    rollout: RolloutId,
    ring: String,
    name: String,
}

#[derive(Clone, Debug)]
struct Question {
    check: Check,
    about: About,
    next: Instant,
    asking: bool,
}

/// The commit that moves, for commit statuses.
#[derive(Clone, Debug, PartialEq, Eq)]
struct About {
    repo: String,
    commit: String,
}

#[derive(Debug, Default)]
struct CheckQueue {
    questions: BTreeMap<Key, Question>,
    asked: JoinSet<(Key, CheckFact)>,
}

/// A ring that begins to roll has waited longer than this for its gate.
const LOOK: Duration = Duration::from_secs(2);

/// At once, over all rollouts: checks are few, and a slow one holds up no other.
const AT_ONCE: usize = 16;

/// A check isn't asked more often, whatever the policy says.
const LEAST_PAUSE: Duration = Duration::from_secs(1);

impl Asker {
    /// Asks until it is dropped.
    pub async fn lead(self, term: Term) {
        let mut queue = CheckQueue::default();
        let mut look = tokio::time::interval(LOOK);
        loop {
            let next = queue.begin_due(&self.branches);
            tokio::select! {
                _ = look.tick() => {
                    if let Err(error) = self.refresh(&mut queue).await {
                        tracing::warn!(%error, "which checks are needed can't be read; those known go on");
                    }
                }
                () = tokio::time::sleep_until(next) => {}
                Some(Ok((key, fact))) = queue.asked.join_next() => self.learn(term, &mut queue, key, fact).await,
            }
        }
    }

    /// Which questions are needed now.
    async fn refresh(&self, queue: &mut CheckQueue) -> Result<(), StoreError> {
        let rollouts = self.outcomes.checking().await?;
        let mut needed = BTreeMap::new();
        for rollout in &rollouts {
            for (key, check) in questions(rollout) {
                needed.insert(key, (check, self.about(rollout)));
            }
        }
        let before: BTreeSet<RolloutId> = queue.questions.keys().map(|key| key.rollout).collect();
        let now: BTreeSet<RolloutId> = needed.keys().map(|key| key.rollout).collect();
        for rollout in now.difference(&before) {
            for ((ring, name), fact) in self.store.check_facts(*rollout).await? {
                self.said.tell(*rollout, &ring, &name, fact);
            }
        }
        before.difference(&now).for_each(|rollout| self.said.forget(*rollout));
        queue.questions.retain(|key, question| needed.get(key).is_some_and(|(check, _)| question.check == *check));
        for (key, (check, about)) in needed {
            let fresh = Question { check, about, next: Instant::now(), asking: false };
            queue.questions.entry(key).or_insert(fresh);
        }
        Ok(())
    }

    async fn learn(&self, term: Term, queue: &mut CheckQueue, key: Key, fact: CheckFact) {
        // Nobody waits for it any more.
        let Some(question) = queue.questions.get_mut(&key) else { return };
        question.asking = false;
        question.next = Instant::now() + question.check.every.max(LEAST_PAUSE);
        let Key { rollout, ring, name } = &key;
        if let Err(error) = self.store.save_check(term, *rollout, ring, name, &fact).await {
            tracing::warn!(%error, "an answer of an external check can't be written; it is asked again");
        }
        tracing::debug!(%rollout, ring, check = name, ok = fact.ok, said = fact.said, "an external check answers");
        if self.said.tell(*rollout, ring, name, fact) {
            self.nudge.nudge();
        }
    }

    fn about(&self, rollout: &Rollout) -> About {
        let cause = &rollout.cause;
        match &rollout.lane {
            Lane::Platform => {
                let commit = cause.main.clone().unwrap_or_else(|| cause.commit.clone());
                About { repo: self.control_plane.clone(), commit }
            }
            Lane::Source { repo, .. } => About { repo: repo.clone(), commit: cause.commit.clone() },
        }
    }
}

impl CheckQueue {
    /// Begins what is due. Gives the time of the next one.
    fn begin_due(&mut self, branches: &Branches) -> Instant {
        let now = Instant::now();
        let mut soonest = now + LOOK;
        for (key, question) in self.questions.iter_mut().filter(|(_, question)| !question.asking) {
            if question.next > now || self.asked.len() >= AT_ONCE {
                soonest = soonest.min(question.next.max(now + LEAST_PAUSE / 4));
                continue;
            }
            question.asking = true;
            let (key, check, about, branches) =
                (key.clone(), question.check.clone(), question.about.clone(), branches.clone());
            self.asked.spawn(async move { (key, ask(&check, &about, &branches).await) });
        }
        soonest
    }
}

/// The checks of rings that roll.
fn questions(rollout: &Rollout) -> impl Iterator<Item = (Key, Check)> {
    let rolling = rollout.rings.iter().filter(|progress| progress.state == RingState::Rolling);
    rolling.flat_map(|progress| {
        let rules = rollout.policy.rings.iter().find(|ring| ring.name == progress.ring);
        let checks = rules.map(|ring| ring.gate.checks.as_slice()).unwrap_or_default();
        checks.iter().map(|check| {
            let (ring, name) = (progress.ring.clone(), check.name.clone());
            (Key { rollout: rollout.id, ring, name }, check.clone())
        })
    })
}

async fn ask(check: &Check, about: &About, branches: &Branches) -> CheckFact {
    let limit = tokio::time::timeout(check.timeout, probe::ask(check, about, branches));
    let (ok, said) = limit.await.unwrap_or_else(|_| (false, format!("no answer within {:?}", check.timeout)));
    CheckFact { ok, said, at: crate::store::now() }
}
