//! Puts the modules together and runs them until told to stop: first what was cut is brought to its end without a network, then the hub is
//! asked for as long as the agent lives. Called by the command `run` and by tests. One task; the applier has its own thread.

mod applier;
#[cfg(feature = "host")]
mod host;
mod hub;
#[cfg(feature = "kubernetes")]
mod kubernetes;
pub mod lock;
pub mod mode;
mod runtime;
mod service;
mod surroundings;
mod sync;
mod target;

use std::error::Error;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kedge_durable::Disk;
use kedge_model::kinds::Destination;

use crate::causes::chain;
use crate::clock::Clock;
use crate::config::Config;
use crate::desired::Memory;
use crate::holds::Holds;
use crate::identity::Identity;
use crate::join::{self, JoinError};
use crate::link::{HubLink, LinkError};
use crate::metrics;
use crate::objects::Objects;
use crate::paths::Paths;
use crate::records::Records;
use crate::worker::pulse::Pulse;
use crate::worker::{Heard, Worker};
use applier::ApplierFactory;
use lock::{Lock, LockError};
pub use runtime::Signals;
use runtime::{AgentRuntime, Event, Outside};
use service::Service;
use surroundings::Surroundings;
use sync::{Ended, SyncLoop};
use target::Target;

/// What the whole loop shares.
#[derive(Clone, Debug)]
pub(crate) struct AgentContext {
    pub paths: Paths,
    pub disk: Arc<dyn Disk>,
    pub clock: Arc<dyn Clock>,
    pub objects: Objects,
    pub config: Config,
    /// What this agent applies to.
    pub place: Destination,
    /// What is known of the cluster; none: it is a host.
    pub cluster: Option<Arc<dyn Surroundings>>,
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
    #[error("{what}")]
    Cluster { what: &'static str, source: Box<dyn Error + Send + Sync>, hint: Option<&'static str> },
    #[error("{0}")]
    Usage(&'static str),
    #[error("this kedge-agent is built for hosts and can't work for a Kubernetes cluster")]
    NotForClusters,
    #[error("this kedge-agent is built for Kubernetes clusters and can't change a host")]
    NotForHosts,
}

/// What can't be read now may be readable again: a disk that was full, a join that a person is making.
const BROKEN_RETRY: Duration = Duration::from_secs(60);

impl RunError {
    fn cluster(what: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> RunError {
        RunError::Cluster { what, source: source.into(), hint: None }
    }

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
            RunError::Cluster { hint, .. } => hint.map(str::to_owned),
            RunError::NotForClusters => Some(
                "run the agent's image in the cluster (packaging/kubernetes), or build kedge-agent with the feature \
                 `kubernetes`"
                    .to_owned(),
            ),
            RunError::NotForHosts => Some(
                "give --kubernetes to work for the cluster; on a host install the Debian package kedge-agent, or build it \
                 with the feature `host`"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// Applies and reports until the signals say stop.
async fn work(
    context: &AgentContext,
    target: Arc<dyn Target>,
    signals: Signals,
    service: Service,
    outside: Option<Outside>,
) -> Result<(), RunError> {
    let pulse = Arc::new(Pulse::default());
    let factory = ApplierFactory {
        paths: context.paths.clone(),
        disk: Arc::clone(&context.disk),
        clock: Arc::clone(&context.clock),
        objects: context.objects.clone(),
        pulse: Arc::clone(&pulse),
        target: Arc::clone(&target),
    };
    let worker = Worker::start(pulse, factory.make()).map_err(RunError::Begin)?;
    let mut agent =
        AgentRuntime::new(worker, signals, service, context.config.look_interval, outside).map_err(RunError::Begin)?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), root = %context.paths.root().display(), "the agent runs");
    agent.service.ready();
    let numbers = context.config.metrics.clone().map(|at| tokio::spawn(metrics::serve(at, context.paths.clone())));
    let ended = live(&mut agent, context, &*target).await;
    if let Some(numbers) = numbers {
        numbers.abort();
    }
    target.connect(None);
    tracing::info!("the agent stops");
    ended
}

/// From one identity to the next, until it is told to stop.
async fn live(agent: &mut AgentRuntime, context: &AgentContext, target: &dyn Target) -> Result<(), RunError> {
    loop {
        let Some(identity) = wait_for_identity(agent, context).await? else {
            agent.close(|_| {}).await;
            return Ok(());
        };
        let opened = Memory::open(Arc::clone(&context.disk), &context.paths, &identity);
        let memory = match opened {
            Ok(opened) => opened,
            Err(error) => {
                tracing::error!(error = chain(&error), "what the hub said can't be read; what runs goes on");
                if alone(agent, context, tokio::time::sleep(BROKEN_RETRY)).await?.is_none() {
                    agent.close(|_| {}).await;
                    return Ok(());
                }
                continue;
            }
        };
        let is_copy = !identity.is_of_this_machine(&context.paths);
        let link = connect(context, &identity, &memory.memory);
        target.connect(link.as_ref().ok().cloned());
        let mut sync_loop = SyncLoop::open(context.clone(), identity, memory, link);
        if is_copy {
            sync_loop.flush();
            if join_again(agent, context).await?.is_none() {
                agent.close(|_| {}).await;
                return Ok(());
            }
            continue;
        }
        match sync_loop.serve(agent).await {
            Ended::Stopped => {
                agent.close(|heard| sync_loop.last_word(heard)).await;
                return Ok(());
            }
            Ended::Replaced => tracing::info!("this host joined again"),
            Ended::Deserted => return Err(RunError::Deserted),
        }
    }
}

fn connect(context: &AgentContext, identity: &Identity, memory: &Memory) -> Result<Arc<HubLink>, LinkError> {
    // The link renews the certificate in its own copy.
    let own = Identity::read(&*context.disk, &context.paths)?;
    let own = own.filter(|own| own.cluster() == identity.cluster()).ok_or(crate::identity::IdentityError::Replaced)?;
    let (authorities, time, clock) = (memory.authorities(), memory.hub_time(), Arc::clone(&context.clock));
    let mut link = HubLink::new(Arc::clone(&context.disk), &context.paths, own, authorities, time, clock)?;
    if let Some(hub) = &context.config.hub {
        link = link.towards(hub)?;
    }
    Ok(Arc::new(link))
}

/// Who this host is; none: it is told to stop.
async fn wait_for_identity(agent: &mut AgentRuntime, context: &AgentContext) -> Result<Option<Identity>, RunError> {
    loop {
        match Identity::open(&context.disk, &context.paths) {
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
                match join_again(agent, context).await? {
                    None => return Ok(None),
                    Some(()) => continue,
                }
            }
            Err(error) => tracing::error!(
                error = chain(&error),
                "the identity can't be read: join again with a new token; what runs continues"
            ),
        }
        if alone(agent, context, tokio::time::sleep(BROKEN_RETRY)).await?.is_none() {
            return Ok(None);
        }
    }
}

/// Until the command `join` or the image's token has made an identity for this machine. None: it is told to stop.
async fn join_again(agent: &mut AgentRuntime, context: &AgentContext) -> Result<Option<()>, RunError> {
    agent.service.say("not joined: kedge-agent join --token-file FILE".to_owned());
    let told = |error: &JoinError| {
        tracing::warn!(error = chain(error), hint = error.hint(), "the join with the image's token failed");
    };
    loop {
        let (clock, name) = (Arc::clone(&context.clock), context.config.name.clone());
        let joined = join::until_joined(&context.disk, &context.paths, clock, name, told);
        match alone(agent, context, joined).await? {
            None => return Ok(None),
            Some(Ok(_)) => return Ok(Some(())),
            Some(Err(error)) => tracing::error!(error = chain(&error), "the host can't join"),
        }
        if alone(agent, context, tokio::time::sleep(BROKEN_RETRY)).await?.is_none() {
            return Ok(None);
        }
    }
}

/// Keeps what runs as it is, without a hub, until `work` has ended. None: it is told to stop.
async fn alone<T>(
    agent: &mut AgentRuntime,
    context: &AgentContext,
    work: impl Future<Output = T>,
) -> Result<Option<T>, RunError> {
    let mut work = std::pin::pin!(work);
    let holds = Holds::on(Arc::clone(&context.disk), &context.paths);
    loop {
        let held = holds.held().map(|held| held.into_keys().collect()).unwrap_or_default();
        agent.keep_up(&held);
        tokio::select! {
            biased;
            event = agent.event(None) => match event {
                Event::Stop => return Ok(None),
                Event::Deserted => return Err(RunError::Deserted),
                Event::Heard(heard) => {
                    if let Heard::Broke { why, .. } = &heard {
                        tracing::error!(why, "the applier broke down and is made again");
                    }
                    if let Heard::Done { again: Some(again), .. } = heard {
                        agent.look_again(again, &*context.clock);
                    }
                    if matches!(heard, Heard::Ready | Heard::Done { .. })
                        && let Ok((records, _)) = Records::read_all(&*context.disk, &context.paths)
                    {
                        agent.follow(&records, &context.paths);
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
