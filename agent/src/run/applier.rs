//! The real applier: the transaction engine, with goals made from packages for what it changes. It lives in the applier's thread and is
//! made anew after a breakdown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kedge_durable::Disk;
use kedge_model::wire::{Digest, Timestamp};
use kedge_status::Severity;
use tokio::sync::mpsc::UnboundedSender;

use super::target::Target;
use crate::causes::chain;
use crate::clock::Clock;
use crate::engine::{Desired, Engine, Order, Scope, Tended};
use crate::holds::Holds;
use crate::objects::Objects;
use crate::paths::Paths;
use crate::records::{self, Found, Records};
use crate::store::index::PackageIndex;
use crate::store::memory::MemoryStore;
use crate::store::sled::SledStore;
use crate::told::Told;
use crate::worker::pulse::{Breath, Pulse};
use crate::worker::{Applier, Make, Wish};

/// What every applier of this process is made of.
#[derive(Clone, Debug)]
pub(super) struct ApplierFactory {
    pub paths: Paths,
    pub disk: Arc<dyn Disk>,
    pub clock: Arc<dyn Clock>,
    pub objects: Objects,
    pub pulse: Arc<Pulse>,
    pub target: Arc<dyn Target>,
}

#[derive(Debug)]
struct EngineApplier {
    engine: Engine,
    holds: Holds,
    objects: Objects,
    tell: UnboundedSender<Told>,
    paths: Paths,
    target: Arc<dyn Target>,
}

impl ApplierFactory {
    pub(super) fn make(self) -> Make {
        Box::new(move |tell| self.applier(tell).map(|applier| Box::new(applier) as Box<dyn Applier>))
    }

    fn applier(&self, tell: &UnboundedSender<Told>) -> Result<EngineApplier, String> {
        let (mut records, found) = Records::open(Arc::clone(&self.disk), &self.paths).map_err(|error| chain(&error))?;
        warn_of(&found, tell);
        self.target.adopt(&mut records);
        let host = self.target.host(&self.objects, &self.pulse);
        let pause = Box::new(Breath::new(Arc::clone(&self.pulse)));
        let engine = Engine::open(host, records, Arc::clone(&self.clock), tell.clone(), pause, &self.paths);
        let holds = Holds::on(Arc::clone(&self.disk), &self.paths);
        let (objects, paths, target) = (self.objects.clone(), self.paths.clone(), Arc::clone(&self.target));
        Ok(EngineApplier { engine, holds, objects, tell: tell.clone(), paths, target })
    }
}

impl Applier for EngineApplier {
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

impl EngineApplier {
    /// What the wishes mean here. The cache is open only meanwhile: an idle agent has no use for its memory.
    fn orders(&self, wishes: Vec<Wish>) -> Vec<Order> {
        let (index, mut trouble) = self.index();
        let records = self.engine.records().all().values();
        let mut needed: BTreeSet<Digest> = records.flat_map(records::objects).collect();
        needed.extend(wishes.iter().flat_map(|wish| [wish.packages.platform.digest, wish.packages.workload.digest]));
        let order = |mut wish: Wish| {
            let goal = match wish.failure.take() {
                Some(failure) => Err(failure),
                None => self.target.goal(&wish, &self.objects, &index),
            };
            let Wish { assignment, packages, restart, generation, .. } = wish;
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
