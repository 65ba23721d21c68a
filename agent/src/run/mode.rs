//! As what an agent runs: for its host, for its cluster, or as a cache on a node. A program may be built for hosts alone or for clusters
//! alone (the features `host` and `kubernetes`); this is the only place where it is decided what that means. Called by the command `run`.

use std::path::PathBuf;

use super::{RunError, Signals};
use crate::config::Config;
use crate::paths::Paths;

#[derive(Clone, Debug)]
pub enum Mode {
    Host,
    Cluster(ClusterSettings),
    /// It keeps what the agents at this address apply on its node.
    Cache(String),
}

/// What the command line says of the cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterSettings {
    /// None: the pod's service account.
    pub kubeconfig: Option<PathBuf>,
    /// Of the Lease and the Secrets. None: the service account's, or the usual one.
    pub namespace: Option<String>,
    pub lease: Option<String>,
    /// Under which name the Lease is held. None: the pod's, or the host's.
    pub holder: Option<String>,
}

/// The Lease that the agents of a cluster share, where nobody names another.
pub const LEASE: &str = "kedge-agent";

impl Mode {
    /// Runs until the signals say stop. Must be called in a runtime of one thread.
    pub async fn run(self, config: Config, paths: Paths, signals: Signals) -> Result<(), RunError> {
        match self {
            #[cfg(feature = "host")]
            Mode::Host => super::host::run(config, paths, signals).await,
            #[cfg(feature = "kubernetes")]
            Mode::Cluster(settings) => super::kubernetes::run(config, paths, signals, settings).await,
            #[cfg(feature = "kubernetes")]
            Mode::Cache(agents) => super::kubernetes::run_cache(config, paths, signals, agents).await,
            #[cfg(not(feature = "host"))]
            Mode::Host => Err(RunError::NotForHosts),
            #[cfg(not(feature = "kubernetes"))]
            Mode::Cluster(_) | Mode::Cache(_) => Err(RunError::NotForClusters),
        }
    }
}
