//! The cluster around the loop: its facts, the observer of other reconcilers, and the doors for its other pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use kedge_model::wire::{BlobRef, DesiredState, PackagesKey, Timestamp};
use tokio::runtime::Handle;

use super::super::surroundings::{Doors, Nearby, Observer, Surroundings};
use crate::causes::chain;
use crate::cluster::Cluster;
use crate::external::ObserverReport;
use crate::link::HubLink;
use crate::objects::Objects;
use crate::observe;
use crate::paths::Paths;
use crate::peers::caches::{CacheDoor, CacheKey, Caches};
use crate::peers::pods::{Pod, PodDoor};
use crate::swarm::SwarmError;

#[derive(Clone, Debug)]
pub(super) struct ClusterSurroundings {
    pub facts: BTreeMap<&'static str, String>,
    pub cluster: Cluster,
    /// Where watches and requests run.
    pub runtime: Handle,
    /// The agent's own.
    pub namespace: String,
    /// None: nobody is let in.
    pub pod: Option<Pod>,
}

struct ClusterDoors {
    around: ClusterSurroundings,
    pod: Pod,
    paths: Paths,
    objects: Objects,
    /// For the pods that stand by.
    pods: Option<PodDoor>,
    /// For the caches on the nodes.
    caches: Option<CacheDoor>,
}

impl Surroundings for ClusterSurroundings {
    fn facts(&self) -> BTreeMap<&'static str, String> {
        self.facts.clone()
    }

    fn observer(&self) -> Box<dyn Observer> {
        Box::new(observe::Observer::new(self.cluster.client().clone(), self.runtime.clone()))
    }

    fn doors(&self, paths: &Paths, objects: &Objects) -> Option<Box<dyn Doors>> {
        let (paths, objects) = (paths.clone(), objects.clone());
        let pod = self.pod.clone()?;
        Some(Box::new(ClusterDoors { around: self.clone(), pod, paths, objects, pods: None, caches: None }))
    }
}

impl Observer for observe::Observer {
    fn follow(&mut self, state: &DesiredState) {
        observe::Observer::follow(self, state);
    }

    fn next(&mut self) -> LocalBoxFuture<'_, ()> {
        observe::Observer::next(self).boxed_local()
    }

    fn report(
        &self,
        state: &DesiredState,
        running: &dyn Fn(&str) -> Option<PackagesKey>,
        now: Timestamp,
    ) -> ObserverReport {
        self.observed(state, running, now)
    }
}

impl Doors for ClusterDoors {
    fn offer(&mut self, link: Option<Arc<HubLink>>, blobs: Vec<BlobRef>) {
        if self.pods.is_none() {
            self.pods = link.map(|link| PodDoor::open(self.pod.clone(), link, &self.paths, &self.objects));
        }
        if let Some(pods) = &self.pods {
            pods.name(blobs.iter().map(|blob| blob.digest).collect());
        }
        if self.caches.is_none() {
            self.caches = Some(self.open_for_caches());
        }
        if let Some(caches) = &self.caches {
            caches.name(blobs.into_iter());
        }
    }

    fn nearby(&self) -> Option<Arc<dyn Nearby>> {
        self.caches.as_ref().map(|caches| Arc::new(caches.caches()) as Arc<dyn Nearby>)
    }
}

impl ClusterDoors {
    fn open_for_caches(&self) -> CacheDoor {
        let ClusterSurroundings { cluster, runtime, namespace, .. } = self.around.clone();
        // Its requests run where those to the API server do.
        let key = move || {
            let (cluster, namespace) = (cluster.clone(), namespace.clone());
            let asked = runtime.spawn(async move { CacheKey::of_cluster(&cluster, &namespace).await });
            async move { asked.await.map_err(|error| error.to_string())?.map_err(|error| chain(&error)) }
        };
        CacheDoor::open(self.pod.ip, key, &self.paths, &self.objects)
    }
}

impl Nearby for Caches {
    fn fetch<'a>(&'a self, blob: &'a BlobRef, objects: &'a Objects) -> LocalBoxFuture<'a, Result<bool, SwarmError>> {
        Caches::fetch(self, blob, objects).boxed_local()
    }
}
