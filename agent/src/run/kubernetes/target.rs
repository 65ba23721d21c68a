//! The cluster as what is changed: goals are objects, and they are applied at the API server for as long as the Lease is held.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::super::target::Target;
use crate::apply::Host;
use crate::apply::kubernetes::KubernetesApplier;
use crate::cluster::Cluster;
use crate::cluster::kinds::Discovered;
use crate::cluster::lease::Gate;
use crate::cluster::watches::Watches;
use crate::content::kubernetes::{earlier, goal_of};
use crate::goal::{Goal, HostFacts};
use crate::objects::Objects;
use crate::record::Failure;
use crate::records::Records;
use crate::store::index::PackageIndex;
use crate::worker::Wish;
use crate::worker::pulse::Pulse;

pub(super) struct ClusterTarget {
    pub kinds: Arc<Discovered>,
    pub cluster: Cluster,
    pub watches: Watches,
    pub runtime: Handle,
    pub gate: Arc<Gate>,
}

impl Target for ClusterTarget {
    fn host(&self, objects: &Objects, pulse: &Arc<Pulse>) -> Box<dyn Host> {
        let (gate, pulse) = (Arc::clone(&self.gate), Arc::clone(pulse));
        let may = Arc::new(move || gate.is_held() && !pulse.is_stopping());
        Box::new(KubernetesApplier::new(
            self.cluster.clone(),
            Arc::clone(&self.kinds),
            self.watches.clone(),
            objects.clone(),
            self.runtime.clone(),
            may,
        ))
    }

    fn adopt(&self, records: &mut Records) {
        let all: Vec<String> = records.all().keys().cloned().collect();
        all.iter().for_each(|assignment| _ = records.note(assignment, earlier::adopt));
    }

    fn goal(&self, wish: &Wish, objects: &Objects, index: &PackageIndex) -> Result<Goal, Failure> {
        // It has many nodes, so neither an architecture nor an address.
        let facts = HostFacts {
            cluster_name: wish.membership.name.clone(),
            labels: wish.membership.labels.clone(),
            arch: String::new(),
            ip: None,
        };
        goal_of(&wish.assignment, &wish.packages, wish.restart, objects, index, &facts, &*self.kinds)
    }
}

impl std::fmt::Debug for ClusterTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterTarget").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}
