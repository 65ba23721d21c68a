//! Puts the rooms together and runs them until told to stop: first what was cut is brought to its end without a network, then the hub is
//! asked for as long as the agent lives. Called by the command `run` and by tests. One task; the applier has its own thread.

mod desk;
mod host;
mod house;
mod hub;
pub mod kubernetes;
pub mod lock;
mod service;

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kedge_durable::{Disk, RealDisk};
use kedge_model::kinds::Destination;
use tokio::runtime::Handle;

use crate::clock::{Clock, SystemClock};
use crate::cluster::asking::AskError;
use crate::cluster::keeper::KeeperError;
use crate::cluster::{Cluster, ClusterError};
use crate::config::Config;
use crate::desired::Memory;
use crate::holds::Holds;
use crate::identity::Identity;
use crate::join::{self, JoinError};
use crate::link::{HubLink, LinkError};
use crate::metrics;
use crate::objects::Objects;
use crate::paths::Paths;
use crate::peers::pods::Pod;
use crate::records::Records;
use crate::worker::pulse::Pulse;
use crate::worker::{Heard, Worker};
use desk::{Desk, Ended};
use host::{Ground, HubLine, Workshop, chain};
pub use house::Signals;
use house::{Event, House, Outside};
use lock::{Lock, LockError};
use service::Service;

/// What the whole loop shares.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub paths: Paths,
    pub disk: Arc<dyn Disk>,
    pub clock: Arc<dyn Clock>,
    pub objects: Objects,
    pub config: Config,
    /// What this agent applies to.
    pub place: Destination,
    /// What is known of the cluster; none: it is a host.
    pub cluster: Option<Surroundings>,
}

/// The cluster that this agent works for since it holds the Lease.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    /// For the hub's page.
    pub facts: BTreeMap<&'static str, String>,
    /// For the observer, whose watches run where the others do.
    pub cluster: Cluster,
    pub runtime: Handle,
    /// The agent's own.
    pub namespace: String,
    /// None: nobody is let in.
    pub pod: Option<Pod>,
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("the folder {path} can't be used")]
    Folder { path: PathBuf, source: io::Error },
    #[error("the agent can't begin")]
    Begin(#[source] io::Error),
    #[error("the applier's thread has ended")]
    Deserted,
    #[error("the cluster can't be reached")]
    Cluster(#[source] ClusterError),
    #[error("the cluster doesn't say which one it is")]
    Facts(#[source] AskError),
    #[error(transparent)]
    Keeper(KeeperError),
    #[error("{0}")]
    Usage(&'static str),
}

/// What can't be read now may be readable again: a disk that was full, a join that a person is making.
const BROKEN_RETRY: Duration = Duration::from_secs(60);

impl RunError {
    /// The way out, where one is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            RunError::Lock(LockError::Taken) => {
                Some("it is the service, most likely: systemctl status kedge-agent".to_owned())
            }
            RunError::Lock(LockError::Io(_, source)) | RunError::Folder { source, .. }
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                Some("run it as root, or with --root and a folder of your own".to_owned())
            }
            RunError::Cluster(ClusterError::Pod(_)) => {
                Some("run it as a pod with a service account, or give --kubeconfig".to_owned())
            }
            _ => None,
        }
    }
}

/// Runs until the signals say stop. Must be called in a runtime of one thread.
pub async fn run(config: Config, paths: Paths, signals: Signals) -> Result<(), RunError> {
    let _lock = Lock::take(&paths)?;
    let folder = paths.objects();
    let objects = Objects::open(&folder).map_err(|source| RunError::Folder { path: folder, source })?;
    let site = Site {
        paths,
        disk: Arc::new(RealDisk),
        clock: Arc::new(SystemClock),
        objects,
        config,
        place: Destination::Host,
        cluster: None,
    };
    work(&site, Ground::Host, signals, Service::new(), None).await
}

/// Applies and reports until the signals say stop.
async fn work(
    site: &Site,
    ground: Ground,
    signals: Signals,
    service: Service,
    outside: Option<Outside>,
) -> Result<(), RunError> {
    let (pulse, line) = (Arc::new(Pulse::default()), HubLine::new());
    let workshop = Workshop {
        paths: site.paths.clone(),
        disk: Arc::clone(&site.disk),
        clock: Arc::clone(&site.clock),
        objects: site.objects.clone(),
        pulse: Arc::clone(&pulse),
        line: line.clone(),
        ground,
    };
    let worker = Worker::start(pulse, workshop.make()).map_err(RunError::Begin)?;
    let mut house =
        House::new(worker, signals, service, site.config.look_interval, outside).map_err(RunError::Begin)?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), root = %site.paths.root().display(), "the agent runs");
    house.service.ready();
    let numbers = site.config.metrics.clone().map(|at| tokio::spawn(metrics::serve(at, site.paths.clone())));
    let ended = live(&mut house, site, &line).await;
    if let Some(numbers) = numbers {
        numbers.abort();
    }
    line.connect(None);
    tracing::info!("the agent stops");
    ended
}

/// From one identity to the next, until it is told to stop.
async fn live(house: &mut House, site: &Site, line: &HubLine) -> Result<(), RunError> {
    loop {
        let Some(identity) = wait_for_identity(house, site).await? else {
            house.close(|_| {}).await;
            return Ok(());
        };
        let opened = Memory::open(Arc::clone(&site.disk), &site.paths, &identity);
        let memory = match opened {
            Ok(opened) => opened,
            Err(error) => {
                tracing::error!(error = chain(&error), "what the hub said can't be read; what runs goes on");
                if alone(house, site, tokio::time::sleep(BROKEN_RETRY)).await?.is_none() {
                    house.close(|_| {}).await;
                    return Ok(());
                }
                continue;
            }
        };
        let is_copy = !identity.is_of_this_machine(&site.paths);
        let link = connect(site, &identity, &memory.memory);
        line.connect(link.as_ref().ok().cloned());
        let mut desk = Desk::open(site.clone(), identity, memory, link);
        if is_copy {
            desk.flush();
            if join_again(house, site).await?.is_none() {
                house.close(|_| {}).await;
                return Ok(());
            }
            continue;
        }
        match desk.serve(house).await {
            Ended::Stopped => {
                house.close(|heard| desk.last_word(heard)).await;
                return Ok(());
            }
            Ended::Replaced => tracing::info!("this host joined again"),
            Ended::Deserted => return Err(RunError::Deserted),
        }
    }
}

fn connect(site: &Site, identity: &Identity, memory: &Memory) -> Result<Arc<HubLink>, LinkError> {
    // The link renews the certificate in its own copy.
    let own = Identity::read(&*site.disk, &site.paths)?;
    let own = own.filter(|own| own.cluster() == identity.cluster()).ok_or(crate::identity::IdentityError::Replaced)?;
    let (authorities, time, clock) = (memory.authorities(), memory.hub_time(), Arc::clone(&site.clock));
    let mut link = HubLink::new(Arc::clone(&site.disk), &site.paths, own, authorities, time, clock)?;
    if let Some(hub) = &site.config.hub {
        link = link.towards(hub)?;
    }
    Ok(Arc::new(link))
}

/// Who this host is; none: it is told to stop.
async fn wait_for_identity(house: &mut House, site: &Site) -> Result<Option<Identity>, RunError> {
    loop {
        match Identity::open(&site.disk, &site.paths) {
            Ok((Some(identity), healed)) => {
                if let Some(healed) = healed {
                    tracing::warn!(healed, "a copy of the identity was broken and is whole again");
                }
                return Ok(Some(identity));
            }
            Ok((None, _)) => {
                tracing::info!(
                    "this host hasn't joined a hub: kedge-agent join --token-file FILE, or a token in \
                                /etc/kedge/join-token"
                );
                match join_again(house, site).await? {
                    None => return Ok(None),
                    Some(()) => continue,
                }
            }
            Err(error) => tracing::error!(
                error = chain(&error),
                "the identity can't be read: join again with a new token; what runs goes on"
            ),
        }
        if alone(house, site, tokio::time::sleep(BROKEN_RETRY)).await?.is_none() {
            return Ok(None);
        }
    }
}

/// Until the command `join` or the image's token has made an identity for this machine. None: it is told to stop.
async fn join_again(house: &mut House, site: &Site) -> Result<Option<()>, RunError> {
    house.service.say("not joined: kedge-agent join --token-file FILE".to_owned());
    let told = |error: &JoinError| {
        tracing::warn!(error = chain(error), hint = error.hint(), "the join with the image's token failed");
    };
    loop {
        let (clock, name) = (Arc::clone(&site.clock), site.config.name.clone());
        let joined = join::until_joined(&site.disk, &site.paths, clock, name, told);
        match alone(house, site, joined).await? {
            None => return Ok(None),
            Some(Ok(_)) => return Ok(Some(())),
            Some(Err(error)) => tracing::error!(error = chain(&error), "the host can't join"),
        }
        if alone(house, site, tokio::time::sleep(BROKEN_RETRY)).await?.is_none() {
            return Ok(None);
        }
    }
}

/// Keeps what runs as it is, without a hub, until `work` has ended. None: it is told to stop.
async fn alone<T>(house: &mut House, site: &Site, work: impl Future<Output = T>) -> Result<Option<T>, RunError> {
    let mut work = std::pin::pin!(work);
    let holds = Holds::on(Arc::clone(&site.disk), &site.paths);
    loop {
        let held = holds.held().map(|held| held.into_keys().collect()).unwrap_or_default();
        house.keep_up(&held);
        tokio::select! {
            biased;
            event = house.event(None) => match event {
                Event::Stop => return Ok(None),
                Event::Deserted => return Err(RunError::Deserted),
                Event::Heard(heard) => {
                    if let Heard::Broke { why, .. } = &heard {
                        tracing::error!(why, "the applier broke down and is made again");
                    }
                    if let Heard::Done { again: Some(again), .. } = heard {
                        house.look_again(again, &*site.clock);
                    }
                    if matches!(heard, Heard::Ready | Heard::Done { .. })
                        && let Ok((records, _)) = Records::read_all(&*site.disk, &site.paths)
                    {
                        house.follow(&records, &site.paths);
                    }
                }
                Event::Noticed(_) | Event::Time => {}
            },
            done = &mut work => return Ok(Some(done)),
        }
    }
}

#[cfg(test)]
mod tests;
