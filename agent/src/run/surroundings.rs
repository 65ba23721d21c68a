//! What the loop has in a cluster and not on a host: an observer of other reconcilers, and doors for the cluster's other pods. Traits, so
//! that the loop is the same in both; `kubernetes` makes the real ones.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use kedge_model::wire::{BlobRef, DesiredState, PackagesKey, Timestamp};

use crate::external::ObserverReport;
use crate::link::HubLink;
use crate::objects::Objects;
use crate::paths::Paths;
use crate::swarm::SwarmError;

/// The cluster that this agent works for since it holds the Lease.
pub(crate) trait Surroundings: Debug + Send + Sync {
    /// For the hub's page.
    fn facts(&self) -> BTreeMap<&'static str, String>;
    fn observer(&self) -> Box<dyn Observer>;
    /// None: nobody is let in.
    fn doors(&self, paths: &Paths, objects: &Objects) -> Option<Box<dyn Doors>>;
}

/// Sees what Flux, Argo CD and others did.
pub(crate) trait Observer {
    fn follow(&mut self, state: &DesiredState);
    /// Returns when there may be something new to say. May be dropped and called again.
    fn next(&mut self) -> LocalBoxFuture<'_, ()>;
    /// What is seen of every observed assignment. `running` is what was last told to run.
    fn report(
        &self,
        state: &DesiredState,
        running: &dyn Fn(&str) -> Option<PackagesKey>,
        now: Timestamp,
    ) -> ObserverReport;
}

/// Where the cluster's other pods get content.
pub(crate) trait Doors {
    /// They may have this, whether it is here or not. Doors that aren't open yet are opened. Must be called in the runtime.
    fn offer(&mut self, link: Option<Arc<HubLink>>, blobs: Vec<BlobRef>);
    /// Where downloads ask first.
    fn nearby(&self) -> Option<Arc<dyn Nearby>>;
}

/// Content that is nearer than the site's peers and the hub.
pub(crate) trait Nearby {
    /// The blob is an object when this returns true. False: nobody has it.
    fn fetch<'a>(&'a self, blob: &'a BlobRef, objects: &'a Objects) -> LocalBoxFuture<'a, Result<bool, SwarmError>>;
}
