//! Which environments are governed, and by what rules: the policy in force, as the promotion module knows it. Read by the
//! controller, by whoever signs memberships, and by the API.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_model::kinds::{EnvironmentPolicy, PromotionPolicy};
use tokio::sync::watch;

/// Cheap to clone. All clones show the same.
#[derive(Clone, Debug)]
pub struct Policies {
    shown: Arc<watch::Sender<Arc<InForce>>>,
    looked: Arc<watch::Sender<bool>>,
}

/// By the name of the environment.
pub type InForce = BTreeMap<String, Arc<EnvironmentPolicy>>;

impl Policies {
    /// No environment is governed.
    pub fn new() -> Policies {
        Policies { shown: Arc::default(), looked: Arc::default() }
    }

    /// None: every ring follows the head at once.
    pub fn of(&self, environment: &str) -> Option<Arc<EnvironmentPolicy>> {
        self.shown.borrow().get(environment).cloned()
    }

    pub fn all(&self) -> Arc<InForce> {
        Arc::clone(&self.shown.borrow())
    }

    /// Takes a policy in force. An environment that it describes as before keeps its value.
    pub fn set(&self, policy: Option<&PromotionPolicy>) {
        let named = policy.map(|policy| policy.environments.as_slice()).unwrap_or_default();
        self.shown.send_if_modified(|shown| {
            let kept = |policy: &EnvironmentPolicy| match shown.get(&policy.name) {
                Some(before) if **before == *policy => Arc::clone(before),
                _ => Arc::new(policy.clone()),
            };
            let next: InForce = named.iter().map(|policy| (policy.name.clone(), kept(policy))).collect();
            let changed = next != **shown;
            if changed {
                *shown = Arc::new(next);
            }
            changed
        });
    }

    /// Git was asked, or couldn't be: no policy means none from here on. One that is known from before counts without it.
    pub fn settle(&self) {
        self.looked.send_replace(true);
    }

    /// Waits until it is known whether there is a policy: before that nothing may follow a head at once.
    pub async fn known(&self) {
        let mut looked = self.looked.subscribe();
        let mut shown = self.shown.subscribe();
        // Both senders are this value's own: they can't be gone.
        tokio::select! {
            _ = looked.wait_for(|looked| *looked) => {}
            _ = shown.wait_for(|shown| !shown.is_empty()) => {}
        }
    }

    /// Changes when an environment's rules do.
    pub fn changed(&self) -> watch::Receiver<Arc<InForce>> {
        self.shown.subscribe()
    }
}

impl Default for Policies {
    fn default() -> Policies {
        Policies::new()
    }
}

#[cfg(test)]
mod tests {
    use kedge_model::kinds::Promoter;

    use super::*;

    #[test]
    fn the_same_policy_again_changes_nothing() {
        let policies = Policies::new();
        let environments = vec![EnvironmentPolicy::new("dev", Vec::new())];
        let policy = PromotionPolicy { promoter: Promoter::Kedge, environments };
        let mut changed = policies.changed();
        policies.set(Some(&policy));
        assert!(changed.has_changed().unwrap());
        changed.mark_unchanged();
        policies.clone().set(Some(&policy));
        assert!(!changed.has_changed().unwrap());
        assert!(policies.of("dev").is_some() && policies.of("prod").is_none());
        policies.set(None);
        assert!(policies.of("dev").is_none());
    }

    #[tokio::test]
    async fn no_policy_is_none_only_after_somebody_looked() {
        let policies = Policies::new();
        policies.set(None);
        let waiting = policies.clone();
        let known = tokio::spawn(async move { waiting.known().await });
        tokio::task::yield_now().await;
        assert!(!known.is_finished());
        policies.settle();
        known.await.unwrap();
    }
}
