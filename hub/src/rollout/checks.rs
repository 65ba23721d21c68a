//! What external checks said last, by rollout and ring. Written by whoever asks them, read by the controller.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use kedge_rollout::{CheckFact, RolloutId};

/// Cheap to clone. All clones hold the same answers.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    said: Arc<RwLock<BTreeMap<RolloutId, Said>>>,
}

/// By ring, then by the check's name.
pub type Said = BTreeMap<String, BTreeMap<String, CheckFact>>;

impl Checks {
    /// Keeps an answer. Whether it says something else than before.
    pub fn tell(&self, rollout: RolloutId, ring: &str, check: &str, fact: CheckFact) -> bool {
        let mut said = self.said.write().unwrap_or_else(PoisonError::into_inner);
        let of_ring = said.entry(rollout).or_default().entry(ring.to_owned()).or_default();
        let before = of_ring.insert(check.to_owned(), fact.clone());
        before.is_none_or(|before| before.ok != fact.ok || before.said != fact.said)
    }

    pub fn of(&self, rollout: RolloutId) -> Said {
        self.said.read().unwrap_or_else(PoisonError::into_inner).get(&rollout).cloned().unwrap_or_default()
    }

    /// Nobody asks for it any more.
    pub fn forget(&self, rollout: RolloutId) {
        self.said.write().unwrap_or_else(PoisonError::into_inner).remove(&rollout);
    }
}
