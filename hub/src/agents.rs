//! What agents ask: join, renew, poll, blobs, status, and news for a whole site; over mutual TLS. `run` makes one `AgentService` and calls `serve`; people's
//! changes to clusters and join tokens come through its `Fleet`.

mod answer;
mod attempts;
mod blobs;
mod entry;
mod file;
mod fleet;
mod hold_pace;
mod holds;
mod join;
mod listener;
mod pace;
mod poll;
mod renew;
mod request;
pub mod rings;
mod roster;
mod route;
pub mod services;
mod sign;
pub mod silence;
mod site;
mod status;
#[cfg(test)]
mod testing;
mod tls;
mod token;

use std::sync::Arc;

use prometheus_client::metrics::gauge::Gauge;

pub use fleet::{Changes, Fleet, FleetError};
pub use holds::take as take_hold;
pub use listener::serve;
pub use roster::Roster;
pub use sign::{SignError, SignOrder, Signed};
pub use tls::TlsError;
pub use token::TokenOrder;

use crate::config;
use crate::connections::shares::Shares;
use crate::keys::Keys;
use crate::metrics::Metrics;
use crate::permits::UpdateLimiter;
use crate::permits::UpdatePermits;
use crate::rollout::policy::Policies;
use crate::state::DesiredStateCache;
use crate::store::Store;
use services::{Intake, Packages, Proofs};

/// Everything that a request is answered from. One for all connections.
pub struct AgentService {
    store: Store,
    keys: Keys,
    desired_states: Arc<DesiredStateCache>,
    packages: Arc<dyn Packages>,
    intake: Arc<dyn Intake>,
    proofs: Arc<dyn Proofs>,
    config: config::Agents,
    fleet: Fleet,
    update_limiter: UpdateLimiter,
    reading: request::Reading,
    attempts: attempts::Attempts,
    named: blobs::Named,
    /// Downloads that may run at one time.
    downloads: Arc<Shares>,
    /// Connections of clusters, and of those who haven't shown a certificate.
    known: Arc<Shares>,
    strangers: Arc<Shares>,
    metrics: Arc<Metrics>,
}

/// What the service is made from.
pub struct Parts {
    pub store: Store,
    pub keys: Keys,
    pub desired_states: Arc<DesiredStateCache>,
    pub packages: Arc<dyn Packages>,
    pub intake: Arc<dyn Intake>,
    pub proofs: Arc<dyn Proofs>,
    pub permits: UpdatePermits,
    pub policies: Policies,
    pub config: config::Agents,
    pub metrics: Arc<Metrics>,
}

/// One that is counted as long as it lives.
#[derive(Debug)]
struct Counted(Gauge);

impl AgentService {
    pub fn new(parts: Parts) -> AgentService {
        let update_limiter = UpdateLimiter::new(Arc::clone(&parts.desired_states), parts.permits.clone());
        let (permits, policies) = (parts.permits, parts.policies);
        let (known, strangers) = listener::bounds(parts.config.max_connections);
        let fleet = Fleet::new(&parts.store, &parts.keys, &parts.desired_states, permits, policies, &parts.config);
        AgentService {
            store: parts.store,
            keys: parts.keys,
            desired_states: parts.desired_states,
            packages: parts.packages,
            intake: parts.intake,
            proofs: parts.proofs,
            config: parts.config,
            fleet,
            update_limiter,
            reading: request::Reading::default(),
            attempts: attempts::Attempts::default(),
            named: blobs::Named::default(),
            downloads: Shares::new(blobs::DOWNLOADS),
            known: Shares::new(known),
            strangers: Shares::new(strangers),
            metrics: parts.metrics,
        }
    }

    /// For the API: join tokens, and what people do to clusters.
    pub fn fleet(&self) -> &Fleet {
        &self.fleet
    }
}

impl Counted {
    fn one(gauge: &Gauge) -> Counted {
        gauge.inc();
        Counted(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl std::fmt::Debug for AgentService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentService").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}
