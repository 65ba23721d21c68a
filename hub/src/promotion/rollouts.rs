//! The rollouts of the database, as promotion sees them. Made by `run`.

use async_trait::async_trait;
use kedge_rollout::chain::Outcome;
use kedge_rollout::{RingState, Rollout, RolloutId};

use super::outcomes::Outcomes;
use crate::rollout::outcome;
use crate::store::promotion::rollouts::Headway;
use crate::store::{Store, StoreError};

/// Reads what rollouts wrote down.
#[derive(Clone, Debug)]
pub struct Rollouts {
    pub store: Store,
}

#[async_trait]
impl Outcomes for Rollouts {
    async fn outcome(&self, environment: &str, main: &str) -> Result<Option<Outcome>, StoreError> {
        outcome(&self.store, environment, main).await.map(Some)
    }

    async fn rollout(&self, id: RolloutId) -> Result<Option<Rollout>, StoreError> {
        Ok(self.store.whole_rollout(id).await?.map(|stored| stored.rollout))
    }

    async fn unwitnessed(&self) -> Result<Vec<Rollout>, StoreError> {
        let mut ended = Vec::new();
        for id in self.store.unwitnessed_rollouts().await? {
            ended.extend(self.rollout(id).await?);
        }
        Ok(ended)
    }

    async fn of_sources(&self) -> Result<Vec<Rollout>, StoreError> {
        self.store.told_rollouts().await
    }

    async fn checking(&self) -> Result<Vec<Rollout>, StoreError> {
        let mut active = self.store.active_rollouts().await?;
        active.retain(asks);
        Ok(active)
    }

    async fn headline(&self, rollout: &Rollout) -> Result<String, StoreError> {
        Ok(say(self.store.headway(rollout.id, &rollout.environment).await?))
    }
}

/// Whether a ring rolls whose gate has external checks.
fn asks(rollout: &Rollout) -> bool {
    let rolling = rollout.rings.iter().filter(|progress| progress.state == RingState::Rolling);
    let rules = |ring: &str| rollout.policy.rings.iter().find(|rules| rules.name == ring);
    rolling.filter_map(|progress| rules(&progress.ring)).any(|rules| !rules.gate.checks.is_empty())
}

fn say(headway: Headway) -> String {
    let Headway { of, converged, failed, offline } = headway;
    let mut text = format!("{converged} of {of} converged");
    for (count, word) in [(failed, "failed"), (offline, "offline")] {
        if count > 0 {
            text = format!("{text}, {count} {word}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_headline_is_a_few_words() {
        let headway = Headway { of: 73, converged: 66, failed: 1, offline: 4 };
        assert_eq!(say(headway), "66 of 73 converged, 1 failed, 4 offline");
        assert_eq!(say(Headway::default()), "0 of 0 converged");
    }
}
