//! The thread that talks to the API server: the Lease is renewed in it whatever the loop and the applier wait for, and their requests
//! run in it. There is one, from the agent's start to its end.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;

use super::super::RunError;
use super::super::mode::{ClusterSettings, LEASE};
use super::NAMESPACE;
use crate::cluster::lease::{self, Gate, Offer, Place, Standing};
use crate::cluster::secret_ledger::{SecretStore, Secrets};
use crate::cluster::{Cluster, ClusterError};

pub(super) struct LeaseCandidate {
    pub cluster: Cluster,
    pub handle: Handle,
    pub place: Place,
    pub gate: Arc<Gate>,
    pub standing: watch::Receiver<Standing>,
    /// What those that stand by are told.
    pub offer: watch::Sender<Option<Offer>>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

/// Requests nest little; some of the default of 2 MiB would become resident.
const STACK: usize = 512 * 1024;

impl LeaseCandidate {
    /// Connects, and tries to get the Lease from now on.
    pub(super) fn start(settings: &ClusterSettings) -> Result<LeaseCandidate, RunError> {
        let (gate, (stop, stopped)) = (Arc::new(Gate::default()), watch::channel(false));
        let (tell, standing) = watch::channel(Standing::By { holder: None, offer: None });
        let (offer, offered) = watch::channel(None);
        let (settings, shared) = (settings.clone(), Arc::clone(&gate));
        let (ready, begun) = mpsc::sync_channel::<Result<(Cluster, Handle, Place), RunError>>(1);
        let body = move || {
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    _ = ready.send(Err(RunError::Begin(error)));
                    return;
                }
            };
            runtime.block_on(async move {
                let connected = Cluster::connect(settings.kubeconfig.as_deref()).await;
                let cluster = match connected {
                    Ok(cluster) => cluster,
                    Err(error) => {
                        _ = ready.send(Err(error.into()));
                        return;
                    }
                };
                let place = settings.place(&cluster, offered);
                _ = ready.send(Ok((cluster.clone(), Handle::current(), place.clone())));
                lease::keep(cluster.client().clone(), place, shared, tell, stopped).await;
            });
        };
        let thread = thread::Builder::new().name("api".to_owned()).stack_size(STACK).spawn(body);
        let thread = thread.map_err(RunError::Begin)?;
        let gone = |_| RunError::Begin(io::Error::other("the thread of the API server ended"));
        let (cluster, handle, place) = begun.recv().map_err(gone)??;
        Ok(LeaseCandidate { cluster, handle, place, gate, standing, offer, stop, thread: Some(thread) })
    }

    /// Where the cluster keeps what the agent remembers.
    pub(super) fn secret_store(&self) -> Arc<dyn SecretStore> {
        Arc::new(Secrets::new(self.cluster.client().clone(), self.handle.clone(), self.place.namespace.clone()))
    }

    /// Gives the Lease back and ends the thread.
    pub(super) fn close(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic was told when it happened.
            _ = thread.join();
        }
    }
}

impl Drop for LeaseCandidate {
    fn drop(&mut self) {
        self.close();
    }
}

impl ClusterSettings {
    fn place(&self, cluster: &Cluster, offer: watch::Receiver<Option<Offer>>) -> Place {
        let host = || nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
        // A kubeconfig's context mostly says `default`, which is nobody's.
        let own = Some(cluster.namespace()).filter(|_| self.kubeconfig.is_none()).map(str::to_owned);
        Place {
            namespace: self
                .namespace
                .clone()
                .or_else(|| said("POD_NAMESPACE"))
                .or(own)
                .unwrap_or_else(|| NAMESPACE.to_owned()),
            lease: self.lease.clone().unwrap_or_else(|| LEASE.to_owned()),
            holder: self
                .holder
                .clone()
                .or_else(|| said("POD_NAME"))
                .or_else(host)
                .unwrap_or_else(|| "kedge-agent".to_owned()),
            offer,
        }
    }
}

/// Where the others find this pod; none: the agent runs beside the cluster.
pub(super) fn pod_ip() -> Option<IpAddr> {
    said("POD_IP")?.parse().ok()
}

/// By the pod's manifest.
fn said(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl From<ClusterError> for RunError {
    fn from(error: ClusterError) -> RunError {
        let hint = matches!(error, ClusterError::Pod(_))
            .then_some("run it as a pod with a service account, or give --kubeconfig");
        RunError::Cluster { what: "the cluster can't be reached", source: error.into(), hint }
    }
}
