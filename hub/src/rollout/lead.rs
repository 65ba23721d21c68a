//! The leader's task of this module: passes of all governed environments, when facts, words, policies or the clock may have
//! changed something.

use std::collections::BTreeSet;
use std::time::Duration;

use super::controller::RolloutController;
use crate::state::IssueError;
use crate::store::{StoreError, Term};

/// Documents come in bursts; one pass answers many.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// Words and documents that other hubs took are found by asking so often.
const OTHER_HUBS: Duration = Duration::from_secs(1);

impl RolloutController {
    /// Until it is dropped.
    pub async fn lead(&self, term: Term) {
        let mut bell = self.parts.shared.nudge.listen();
        let mut policies = self.parts.shared.policies.changed();
        let mut second = tokio::time::interval(OTHER_HUBS);
        second.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut leading =
            Leading { controller: self, term, unfinished: BTreeSet::new(), governed: BTreeSet::new(), restarts: 0 };
        self.parts.shared.policies.known().await;
        // What was under way in an earlier term goes on at once.
        let mut all = true;
        loop {
            leading.round(all).await;
            all = tokio::select! {
                Ok(()) = bell.changed() => {
                    tokio::time::sleep(DEBOUNCE).await;
                    bell.mark_unchanged();
                    true
                }
                Ok(()) = policies.changed() => true,
                _ = second.tick() => false,
            };
        }
    }
}

struct Leading<'a> {
    controller: &'a RolloutController,
    term: Term,
    /// Something may change there without news.
    unfinished: BTreeSet<String>,
    governed: BTreeSet<String>,
    /// The newest restart that was issued.
    restarts: i64,
}

impl Leading<'_> {
    async fn round(&mut self, all: bool) {
        let due = match self.due(all).await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(%error, "what people said about rollouts can't be looked up");
                return;
            }
        };
        for environment in due {
            let passed = self.controller.pass(self.term, &environment).await;
            let issued = passed.as_ref().map_or(0, |passed| passed.issued.len());
            self.controller.parts.metrics.states_issued.inc_by(issued as u64);
            match passed {
                Ok(passed) if passed.unfinished => {
                    self.unfinished.insert(environment);
                }
                Ok(_) => {
                    self.unfinished.remove(&environment);
                }
                // Another hub leads: whoever holds the lock notices.
                Err(IssueError::Store(StoreError::Fenced(_))) => return,
                Err(error) => {
                    self.unfinished.insert(environment.clone());
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(environment, error, "rollouts can't go on now; tried again in a second");
                }
            }
        }
    }

    async fn due(&mut self, all: bool) -> Result<BTreeSet<String>, StoreError> {
        let store = &self.controller.parts.store;
        let mut due: BTreeSet<String> = store.environments_with_words().await?.into_iter().collect();
        let (restarted, newest) = store.restarts_after(self.restarts).await?;
        due.extend(restarted);
        self.restarts = newest;
        due.extend(self.unfinished.iter().cloned());
        if all {
            let governed: BTreeSet<String> = self.controller.parts.shared.policies.all().keys().cloned().collect();
            // One that no policy names any more follows its head again.
            due.extend(self.governed.difference(&governed).cloned());
            due.extend(governed.iter().cloned());
            self.governed = governed;
        }
        Ok(due)
    }
}
