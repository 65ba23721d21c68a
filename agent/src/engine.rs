//! Transactions on this host: one per assignment, one at a time, each journaled so that a cut at any moment ends in the old or the new
//! state. It owns the records and the host; the worker's thread calls it, and it tells what became true.

mod conflict;
mod describe;
mod health;
mod look;
mod outcome;
mod pause;
mod prepare;
mod status;
mod transaction;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kedge_model::wire::{Generation, Packages, PackagesKey, Timestamp};
use kedge_status::Severity;
use tokio::sync::mpsc::UnboundedSender;

use crate::apply::Host;
use crate::clock::Clock;
use crate::goal::{DebGoal, Goal};
use crate::paths::Paths;
use crate::record::{Cause, Failure, Running};
use crate::records::Records;
use crate::told::Told;
use crate::trace::Tracer;
use health::Wait;
pub use look::Scope;
pub use pause::{Pause, Stop};

pub struct Engine {
    host: Box<dyn Host>,
    records: Records,
    clock: Arc<dyn Clock>,
    tell: UnboundedSender<Told>,
    pause: Box<dyn Pause>,
    objects: PathBuf,
    /// None before the first desired state: then the records say what was wanted.
    desired: Option<BTreeMap<String, Desired>>,
    /// Debs that orders asked for, applied or not.
    wishes: BTreeMap<String, (PackagesKey, Vec<DebGoal>)>,
    /// What the last look found to differ.
    drift: BTreeMap<String, String>,
    repairs: BTreeMap<String, Repairs>,
    /// Units that looks found starting, and since when.
    starting: BTreeMap<String, Duration>,
    /// Changes that are done and wait for their health.
    waits: BTreeMap<String, Wait>,
}

/// What tending came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tended {
    /// A change that waited has ended.
    pub ended: bool,
    /// When to tend again; none: nothing waits.
    pub next: Option<Duration>,
}

/// An assignment to bring to these packages. A goal that can't be made, or content that can't be had, is told and remembered too.
#[derive(Clone, Debug)]
pub struct Order {
    pub assignment: String,
    pub packages: Packages,
    pub generation: Generation,
    pub restart: u64,
    pub goal: Result<Goal, Failure>,
}

/// What the desired state asks of an assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Desired {
    pub key: PackagesKey,
    pub generation: Generation,
}

/// How often the same thing was repaired lately.
#[derive(Clone, Debug)]
struct Repairs {
    what: String,
    times: u32,
    last: Duration,
}

impl Engine {
    pub fn open(
        host: Box<dyn Host>,
        records: Records,
        clock: Arc<dyn Clock>,
        tell: UnboundedSender<Told>,
        pause: Box<dyn Pause>,
        paths: &Paths,
    ) -> Engine {
        Engine {
            host,
            records,
            clock,
            tell,
            pause,
            objects: paths.objects(),
            desired: None,
            wishes: BTreeMap::new(),
            drift: BTreeMap::new(),
            repairs: BTreeMap::new(),
            starting: BTreeMap::new(),
            waits: BTreeMap::new(),
        }
    }

    pub fn records(&self) -> &Records {
        &self.records
    }

    /// At start, before anything else and without a network: ends what a cut or a stop interrupted, then tells what is true.
    pub fn recover(&mut self) {
        let clock = Arc::clone(&self.clock);
        let mut trace = Tracer::new(&*clock);
        let repaired = self.host.repair(&mut trace);
        if let Err(failure) = &repaired {
            tracing::error!(
                reason = failure.reason,
                message = failure.message,
                "an interrupted change of debs can't be finished"
            );
        }
        self.warn("RepairFailed", Severity::Error, repaired.err().map(|failure| failure.message));
        let lines = trace.take();
        let interrupted = self.records.all().values().filter(|record| record.transaction.is_some());
        let names: Vec<String> = interrupted.map(|record| record.assignment.clone()).collect();
        for line in lines.iter().filter(|_| names.is_empty()) {
            tracing::info!(what = line.what, failed = line.failed, "mended at the start");
        }
        for (at, assignment) in names.iter().enumerate() {
            self.resume(assignment, if at == 0 { lines.clone() } else { Vec::new() });
        }
        self.tell_all();
    }

    /// What is wanted from now on; everything is told again.
    pub fn desire(&mut self, desired: BTreeMap<String, Desired>) {
        self.wishes.retain(|assignment, (key, _)| desired.get(assignment).is_some_and(|desired| desired.key == *key));
        self.desired = Some(desired);
        self.tell_all();
    }

    pub fn apply(&mut self, order: Order) {
        self.apply_all(vec![order]);
    }

    /// Orders that came together know of each other: of two that want different versions of a deb that neither runs, both fail.
    pub fn apply_all(&mut self, orders: Vec<Order>) {
        self.apply_unless(orders, |_| false);
    }

    /// The same, and whoever is held when its turn comes is left alone: one before it may have taken hours.
    pub fn apply_unless(&mut self, orders: Vec<Order>, held: impl Fn(&str) -> bool) {
        for order in &orders {
            let key = order.packages.key();
            if let Some(desired) = &mut self.desired {
                let new = Desired { key, generation: order.generation };
                let known = desired.entry(order.assignment.clone()).or_insert(new);
                if known.key != key {
                    *known = new;
                }
            }
            let debs = order.goal.as_ref().map(|goal| goal.debs.clone()).unwrap_or_default();
            self.wishes.insert(order.assignment.clone(), (key, debs));
        }
        for order in orders {
            if self.pause.stopping() {
                return;
            }
            if !held(&order.assignment) {
                self.apply_one(order);
            }
        }
    }

    /// Looks after the changes that wait for their health, where others needn't wait for them.
    pub fn tend(&mut self) -> Tended {
        let now = self.pause.elapsed();
        let due: Vec<String> =
            self.waits.iter().filter(|(_, wait)| wait.due <= now).map(|(name, _)| name.clone()).collect();
        let mut ended = false;
        for assignment in due {
            if self.pause.stopping() {
                break;
            }
            self.drive(&assignment);
            ended |= !self.waits.contains_key(&assignment);
        }
        let next = self.waits.values().map(|wait| wait.due).min();
        Tended { ended, next: next.map(|next| next.saturating_sub(self.pause.elapsed())) }
    }

    /// A change that waits for its health while something else is wanted by now goes back at once.
    fn supersede(&mut self, assignment: &str, by: (PackagesKey, u64)) {
        let transaction = self.records.get(assignment).and_then(|record| record.transaction.as_ref());
        let wanted = transaction.and_then(|transaction| transaction.wanted.as_deref());
        if wanted.is_some_and(|wanted| (wanted.key, wanted.restart) != by) && self.waits.remove(assignment).is_some() {
            let why = Failure::new("Superseded", "something else was wanted before it became healthy");
            self.turn(assignment, why);
            self.drive(assignment);
        }
    }

    /// Everything returns to how it was before Kedge.
    pub fn remove(&mut self, assignment: &str) {
        let Some(record) = self.records.get(assignment) else { return };
        if record.transaction.is_some() {
            return;
        }
        if record.running.is_none() {
            self.drop_record(assignment);
        } else {
            self.transact(assignment, Cause::Removal, None);
        }
    }

    /// It is no longer ours; everything stays as it is.
    pub fn forget(&mut self, assignment: &str) {
        if self.records.get(assignment).is_some() {
            self.drop_record(assignment);
        }
    }

    /// A command: what failed may be tried again at once.
    pub fn retry(&mut self, assignment: &str) {
        self.repairs.remove(assignment);
        if self.records.get(assignment).is_some_and(|record| record.failed.is_some() || record.upkeep.is_some()) {
            let written = self.records.change(assignment, |record| {
                record.failed = None;
                record.upkeep = None;
            });
            self.note_disk(written);
            self.tell_status(assignment);
        }
    }

    fn apply_one(&mut self, order: Order) {
        let Order { assignment, packages, restart, generation, goal } = order;
        let key = packages.key();
        self.supersede(&assignment, (key, restart));
        let record = self.records.get(&assignment);
        if record.is_some_and(|record| record.transaction.is_some()) {
            return;
        }
        let running = record.and_then(|record| record.running.as_ref());
        let same = running.filter(|running| running.key == key);
        let generation = same.map_or(generation, |running| running.generation);
        let since = same.map_or_else(|| self.clock.now(), |running| running.since);
        let is_restart = same.is_some_and(|running| running.restart != restart && goal.as_ref() == Ok(&running.goal));
        let cause = if is_restart { Cause::Restart } else { Cause::Change };
        if same.is_some_and(|running| running.restart == restart && goal.as_ref() == Ok(&running.goal)) {
            return self.confirm(&assignment, packages);
        }
        let (goal, failure) = match goal {
            Ok(goal) => (goal, None),
            Err(failure) => (Goal::default(), Some(failure)),
        };
        let wanted = Running { key, packages, generation, restart, since, goal, original: Default::default() };
        match failure {
            None => self.transact(&assignment, cause, Some(wanted)),
            Some(failure) => self.refuse(&assignment, cause, Some(wanted), failure, Vec::new()),
        }
    }

    fn drop_record(&mut self, assignment: &str) {
        let removed = self.records.remove(assignment);
        self.note_disk(removed);
        self.drift.remove(assignment);
        self.wishes.remove(assignment);
        self.repairs.remove(assignment);
        self.send(Told::WarningOver { code: look::disk_code(assignment) });
        self.send(Told::Gone { assignment: assignment.to_owned(), at: self.clock.now() });
        self.release();
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Engine({} assignments)", self.records.all().len())
    }
}

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
pub(crate) mod tests;
