//! Which target is on which cluster type, and the policies that say so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kedge_model::AssignmentId;

/// Every chosen pair with its policies, sorted by name.
#[derive(Debug, Default)]
pub struct Pairs {
    chosen: BTreeMap<AssignmentId, Vec<Arc<str>>>,
}

/// Pairs that have to be rendered again.
pub type Dirty = BTreeSet<AssignmentId>;

impl Pairs {
    pub fn policies(&self, id: &AssignmentId) -> Option<&Vec<Arc<str>>> {
        self.chosen.get(id)
    }

    pub fn contains(&self, id: &AssignmentId) -> bool {
        self.chosen.contains_key(id)
    }

    pub fn ids(&self) -> impl Iterator<Item = &AssignmentId> {
        self.chosen.keys()
    }

    /// The pairs of one cluster type.
    pub fn row(&self, cluster_type: &Arc<str>) -> impl Iterator<Item = &AssignmentId> {
        let first = AssignmentId { cluster_type: Arc::clone(cluster_type), target: Arc::from("") };
        let cluster_type = Arc::clone(cluster_type);
        self.chosen.range(first..).map(|(id, _)| id).take_while(move |id| id.cluster_type == cluster_type)
    }

    pub fn clear_row(&mut self, cluster_type: &Arc<str>, dirty: &mut Dirty) {
        let row: Vec<AssignmentId> = self.row(cluster_type).cloned().collect();
        for id in row {
            self.chosen.remove(&id);
            dirty.insert(id);
        }
    }

    pub fn clear(&mut self, id: AssignmentId, dirty: &mut Dirty) {
        if self.chosen.remove(&id).is_some() {
            dirty.insert(id);
        }
    }

    pub fn add(&mut self, cluster_type: &Arc<str>, target: &Arc<str>, policy: &Arc<str>, dirty: &mut Dirty) {
        let id = AssignmentId { cluster_type: Arc::clone(cluster_type), target: Arc::clone(target) };
        let policies = self.chosen.entry(id.clone()).or_default();
        if let Err(at) = policies.binary_search(policy) {
            policies.insert(at, Arc::clone(policy));
            dirty.insert(id);
        }
    }

    /// Takes one policy away; the pair goes with its last one.
    pub fn withdraw(&mut self, cluster_type: &Arc<str>, target: &Arc<str>, policy: &Arc<str>, dirty: &mut Dirty) {
        let id = AssignmentId { cluster_type: Arc::clone(cluster_type), target: Arc::clone(target) };
        let Some(policies) = self.chosen.get_mut(&id) else { return };
        if let Ok(at) = policies.binary_search(policy) {
            policies.remove(at);
            if policies.is_empty() {
                self.chosen.remove(&id);
            }
            dirty.insert(id);
        }
    }
}
