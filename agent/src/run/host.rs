//! The real applier: the transaction engine on this host or cluster, with goals made from packages. It lives in the applier's thread and
//! is made anew after a breakdown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kedge_durable::Disk;
use kedge_model::wire::{Digest, Timestamp};
use kedge_status::Severity;
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;

use super::kubernetes::ClusterTarget;
use crate::apply::Host;
use crate::apply::host::HostApplier;
use crate::clock::Clock;
use crate::engine::{Desired, Engine, Order, Scope};
use crate::health::{HealthContext, HubProbe};
use crate::holds::Holds;
use crate::link::HubLink;
use crate::objects::Objects;
use crate::paths::Paths;
use crate::records::{self, Found, Records};
use crate::store::index::PackageIndex;
use crate::store::memory::MemoryStore;
use crate::store::sled::SledStore;
use crate::told::Told;
use crate::worker::pulse::{Breath, Pulse};
use crate::worker::{Applier, Make, Tended, Wish};
use crate::{content, facts};

/// What every applier of this process is made of.
#[derive(Clone, Debug)]
pub(super) struct ApplierFactory {
    pub paths: Paths,
    pub disk: Arc<dyn Disk>,
    pub clock: Arc<dyn Clock>,
    pub objects: Objects,
    pub pulse: Arc<Pulse>,
    pub line: HubLine,
    pub target: TargetKind,
}

/// What is changed: this host, or the cluster that it is a node of.
#[derive(Clone, Debug)]
pub(super) enum TargetKind {
    Host,
    Cluster(ClusterTarget),
}

/// The way to ask the hub from the applier's thread: the link, while there is one.
#[derive(Clone, Debug)]
pub(super) struct HubLine {
    link: Arc<Mutex<Option<Arc<HubLink>>>>,
    runtime: Handle,
}

#[derive(Debug)]
struct HostEngine {
    engine: Engine,
    holds: Holds,
    objects: Objects,
    tell: UnboundedSender<Told>,
    paths: Paths,
    target: TargetKind,
}

impl ApplierFactory {
    pub(super) fn make(self) -> Make {
        Box::new(move |tell| self.applier(tell).map(|applier| Box::new(applier) as Box<dyn Applier>))
    }

    fn applier(&self, tell: &UnboundedSender<Told>) -> Result<HostEngine, String> {
        let (mut records, found) = Records::open(Arc::clone(&self.disk), &self.paths).map_err(|error| chain(&error))?;
        warn_of(&found, tell);
        if let TargetKind::Cluster(_) = &self.target {
            let all: Vec<String> = records.all().keys().cloned().collect();
            all.iter().for_each(|assignment| _ = records.note(assignment, content::kubernetes::earlier::adopt));
        }
        let host: Box<dyn Host> = match &self.target {
            TargetKind::Host => {
                let health = HealthContext::host(Some(Box::new(self.line.clone())));
                Box::new(HostApplier::new(&self.paths, &self.objects, health))
            }
            TargetKind::Cluster(cluster) => Box::new(cluster.applier(&self.objects, &self.pulse)),
        };
        let pause = Box::new(Breath::new(Arc::clone(&self.pulse)));
        let engine = Engine::open(host, records, Arc::clone(&self.clock), tell.clone(), pause, &self.paths);
        let holds = Holds::on(Arc::clone(&self.disk), &self.paths);
        let (objects, paths, target) = (self.objects.clone(), self.paths.clone(), self.target.clone());
        Ok(HostEngine { engine, holds, objects, tell: tell.clone(), paths, target })
    }
}

impl HubLine {
    /// Must be called in the runtime.
    pub(super) fn new() -> HubLine {
        HubLine { link: Arc::default(), runtime: Handle::current() }
    }

    pub(super) fn connect(&self, link: Option<Arc<HubLink>>) {
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = link;
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

impl Applier for HostEngine {
    fn recover(&mut self) {
        self.engine.recover();
    }

    fn desire(&mut self, desired: BTreeMap<String, Desired>) {
        self.engine.desire(desired);
    }

    fn apply(&mut self, wishes: Vec<Wish>) {
        let orders = self.orders(wishes);
        let held = |assignment: &str| self.holds.held().is_ok_and(|held| held.contains_key(assignment));
        self.engine.apply_unless(orders, held);
    }

    fn remove(&mut self, assignment: &str) {
        self.engine.remove(assignment);
    }

    fn forget(&mut self, assignment: &str) {
        self.engine.forget(assignment);
    }

    fn retry(&mut self, assignment: &str) {
        self.engine.retry(assignment);
    }

    fn look(&mut self, scope: &Scope, held: &BTreeSet<String>) -> Option<Timestamp> {
        self.engine.look(scope, held)
    }

    fn tend(&mut self) -> Tended {
        self.engine.tend()
    }
}

impl HostEngine {
    /// What the wishes mean here. The cache is open only meanwhile: an idle agent has no use for its memory.
    fn orders(&self, wishes: Vec<Wish>) -> Vec<Order> {
        let (index, mut trouble) = self.index();
        let records = self.engine.records().all().values();
        let mut needed: BTreeSet<Digest> = records.flat_map(records::objects).collect();
        needed.extend(wishes.iter().flat_map(|wish| [wish.packages.platform.digest, wish.packages.workload.digest]));
        let order = |wish: Wish| {
            let Wish { assignment, packages, restart, generation, membership, failure } = wish;
            let goal = failure.map_or_else(
                || match &self.target {
                    TargetKind::Host => {
                        let facts = facts::gather(&membership, &self.paths);
                        content::goal_of(&assignment, &packages, &self.objects, &index, &facts, &self.paths)
                    }
                    TargetKind::Cluster(cluster) => {
                        let facts = facts::of_cluster(&membership);
                        let kinds = &*cluster.kinds;
                        content::kubernetes::goal_of(
                            &assignment,
                            &packages,
                            restart,
                            &self.objects,
                            &index,
                            &facts,
                            kinds,
                        )
                    }
                },
                Err,
            );
            Order { assignment, packages, generation, restart, goal }
        };
        let orders = wishes.into_iter().map(order).collect();
        index.retain(|package| needed.contains(package));
        trouble = trouble.or_else(|| index.trouble());
        warn_of_cache(trouble, &self.tell);
        orders
    }

    /// The cache on disk; one that can't be used is done without.
    fn index(&self) -> (PackageIndex, Option<String>) {
        match SledStore::open(&self.paths.cache()) {
            Ok((store, warning)) => (PackageIndex::new(Arc::new(store)), warning),
            Err(error) => (PackageIndex::new(Arc::new(MemoryStore::default())), Some(chain(&error))),
        }
    }
}

/// A cache that broke has begun anew by itself: nothing is lost but time.
fn warn_of_cache(trouble: Option<String>, tell: &UnboundedSender<Told>) {
    let code = "CacheBroken".to_owned();
    // Nobody listens any more only when the agent ends.
    _ = tell.send(match trouble {
        Some(message) => Told::Warning { code, severity: Severity::Warning, message },
        None => Told::WarningOver { code },
    });
}

/// A ledger that was whole at this start ends an older warning.
fn warn_of(found: &[Found], tell: &UnboundedSender<Told>) {
    let sentences = |aside: bool| {
        let said = found.iter().filter_map(move |one| match one {
            Found::Healed { file, why } if !aside => Some(format!("{file}: {why}")),
            Found::SetAside { file, why } if aside => Some(format!("{file}: {why}")),
            _ => None,
        });
        said.collect::<Vec<_>>().join("; ")
    };
    for (code, severity, message) in
        [("RecordHealed", Severity::Warning, sentences(false)), ("RecordSetAside", Severity::Error, sentences(true))]
    {
        let code = code.to_owned();
        // Nobody listens any more only when the agent ends.
        _ = tell.send(match message.is_empty() {
            true => Told::WarningOver { code },
            false => Told::Warning { code, severity, message },
        });
    }
}

pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
