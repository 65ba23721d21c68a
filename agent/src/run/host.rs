//! The agent of this host: debs, files, units and users are what it changes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kedge_durable::RealDisk;
use kedge_model::kinds::Destination;
use tokio::runtime::Handle;

use super::service::Service;
use super::target::Target;
use super::{AgentContext, Lock, RunError, Signals, work};
use crate::apply::Host;
use crate::apply::host::HostApplier;
use crate::clock::SystemClock;
use crate::config::Config;
use crate::content::host::goal_of;
use crate::facts;
use crate::goal::Goal;
use crate::health::{HealthContext, HubProbe};
use crate::link::HubLink;
use crate::objects::Objects;
use crate::paths::Paths;
use crate::record::Failure;
use crate::store::index::PackageIndex;
use crate::worker::Wish;
use crate::worker::pulse::Pulse;

#[derive(Debug)]
struct HostTarget {
    paths: Paths,
    line: HubLine,
}

/// The way to ask the hub from the applier's thread: the link, while there is one.
#[derive(Clone, Debug)]
struct HubLine {
    link: Arc<Mutex<Option<Arc<HubLink>>>>,
    runtime: Handle,
}

/// Runs until the signals say stop. Must be called in a runtime of one thread.
pub async fn run(config: Config, paths: Paths, signals: Signals) -> Result<(), RunError> {
    let _lock = Lock::take(&paths)?;
    let folder = paths.objects();
    let objects = Objects::open(&folder).map_err(|source| RunError::Folder { path: folder, source })?;
    let line = HubLine { link: Arc::default(), runtime: Handle::current() };
    let target = HostTarget { paths: paths.clone(), line };
    let context = AgentContext {
        paths,
        disk: Arc::new(RealDisk),
        clock: Arc::new(SystemClock),
        objects,
        config,
        place: Destination::Host,
        cluster: None,
    };
    work(&context, Arc::new(target), signals, Service::new(), None).await
}

impl Target for HostTarget {
    fn host(&self, objects: &Objects, _pulse: &Arc<Pulse>) -> Box<dyn Host> {
        let health = HealthContext::host(Some(Box::new(self.line.clone())));
        Box::new(HostApplier::new(&self.paths, objects, health))
    }

    fn goal(&self, wish: &Wish, objects: &Objects, index: &PackageIndex) -> Result<Goal, Failure> {
        let facts = facts::gather(&wish.membership, &self.paths);
        goal_of(&wish.assignment, &wish.packages, objects, index, &facts, &self.paths)
    }

    fn connect(&self, link: Option<Arc<HubLink>>) {
        *self.line.link.lock().unwrap_or_else(PoisonError::into_inner) = link;
    }
}

impl HubProbe for HubLine {
    fn reach(&self, limit: Duration) -> Result<(), String> {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let link = link.ok_or("this host hasn't joined one")?;
        // The loop's own thread drives it; here it is only waited for.
        match self.runtime.block_on(async { tokio::time::timeout(limit, link.reach()).await }) {
            Ok(reached) => reached.map_err(|error| error.sentence()),
            Err(_) => Err(format!("not within {} s", limit.as_secs())),
        }
    }
}
