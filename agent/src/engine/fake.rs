//! A host made of maps, for tests: it fails, does half of a step, and loses its power where a test says so.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

mod world;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use kedge_durable::Disk;
use kedge_durable::fake::FakeDisk;
use kedge_model::wire::{Digest, Timestamp};

use super::Pause;
use crate::apply::Host;
use crate::clock::Clock;
use crate::goal::{Check, Probe};
use crate::observed::{Observed, PathState, Subjects};
use crate::plan::debs::{DebPlan, DebWish};
use crate::record::Failure;
use crate::step::Step;
use crate::trace::Tracer;
pub(crate) use world::World;

/// Cheap to clone; clones are the same host.
#[derive(Clone, Debug, Default)]
pub(crate) struct FakeHost(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    world: World,
    /// The world after each change that isn't settled; the first is what is on the medium.
    unsettled: Vec<World>,
    /// What was executed, described.
    done: Vec<String>,
    /// Steps whose description contains this fail, and how often still.
    fails: Vec<(String, u32)>,
    /// Answers of the health checks, in turn; then they pass.
    health: Vec<Result<(), String>>,
    kept: BTreeSet<String>,
    /// Changes until the power goes, and whether the last one is done by half.
    cut: Option<(usize, bool)>,
    changes: usize,
    disk: Option<FakeDisk>,
    used: u64,
    patient: bool,
}

/// A wall clock and a pause that only go on when somebody waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct FakeTime(Arc<Mutex<(u64, Option<u64>)>>);

impl FakeHost {
    pub fn of(world: World) -> FakeHost {
        let host = FakeHost::default();
        host.inner().unsettled = vec![world.clone()];
        host.inner().world = world;
        host
    }

    /// With this disk it shares one power supply.
    pub fn powered_with(self, disk: &FakeDisk) -> FakeHost {
        self.inner().disk = Some(disk.clone());
        self
    }

    pub fn world(&self) -> World {
        self.inner().world.clone()
    }

    pub fn change(&self, change: impl FnOnce(&mut World)) {
        let mut inner = self.inner();
        change(&mut inner.world);
        inner.unsettled = vec![inner.world.clone()];
    }

    /// What was executed since the last call.
    pub fn done(&self) -> Vec<String> {
        std::mem::take(&mut self.inner().done)
    }

    pub fn fail(&self, step: &str, times: u32) {
        self.inner().fails.push((step.to_owned(), times));
    }

    pub fn answer(&self, health: &[Result<(), &str>]) {
        self.inner().health = health.iter().rev().map(|one| one.map_err(str::to_owned)).collect();
    }

    /// Others go on while one waits for its health.
    pub fn patient(&self) {
        self.inner().patient = true;
    }

    pub fn use_disk(&self, bytes: u64) {
        self.inner().used = bytes;
    }

    pub fn kept(&self) -> BTreeSet<String> {
        self.inner().kept.clone()
    }

    pub fn changes(&self) -> usize {
        self.inner().changes
    }

    /// The power goes at the n-th change, which is done by half or not at all.
    pub fn cut_at(&self, nth: usize, half: bool) {
        self.inner().cut = Some((nth, half));
    }

    /// What may be found after a cut: changes survive in their order, as many as the disk took.
    pub fn survivors(&self) -> Vec<World> {
        let inner = self.inner();
        let mut all = inner.unsettled.clone();
        all.push(inner.world.clone());
        // Nothing of it, all of it, and one in the middle.
        let mut some = vec![all[0].clone(), all[all.len() / 2].clone(), all[all.len() - 1].clone()];
        some.dedup();
        some
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }
}

impl Inner {
    fn is_off(&self) -> bool {
        self.disk.as_ref().is_some_and(|disk| disk.list(Path::new("/")).is_err())
    }

    fn powered(&self) -> Result<(), Failure> {
        if self.is_off() { Err(Failure::new("Off", "no power")) } else { Ok(()) }
    }
}

impl Host for FakeHost {
    fn look(&self, subjects: &Subjects) -> Result<Observed, Failure> {
        self.inner().powered()?;
        Ok(self.inner().world.look(subjects))
    }

    fn prepare_debs(&mut self, wish: &DebWish, _: &mut Tracer<'_>) -> Result<DebPlan, Failure> {
        self.inner().powered()?;
        if self.inner().world.lib_needed && wish.give_back.contains_key("lib") {
            return Err(Failure::new("AptRefused", "other would be removed, and the workload doesn't ask for that"));
        }
        Ok(self.inner().world.prepare_debs(wish))
    }

    fn keep(&mut self, path: &str) -> Result<Digest, Failure> {
        self.inner().kept.insert(path.to_owned());
        match self.inner().world.path(path) {
            PathState::File { content, .. } => Ok(content),
            other => panic!("{path} is {other:?}"),
        }
    }

    fn execute(&mut self, step: &Step, _: &mut Tracer<'_>) -> Result<(), Failure> {
        let mut inner = self.inner();
        inner.powered()?;
        let what = super::describe::step(step);
        inner.changes += 1;
        if let Some((at, half)) = inner.cut.filter(|(at, _)| inner.changes == *at) {
            inner.world.execute(step, half)?;
            let disk = inner.disk.clone().unwrap();
            disk.cut_at(1);
            _ = disk.sync_folder(Path::new("/"));
            inner.cut = Some((at, half));
            return Err(Failure::new("Off", "no power"));
        }
        inner.done.push(what.clone());
        if let Some(fail) = inner.fails.iter_mut().find(|(part, times)| *times > 0 && what.contains(part.as_str())) {
            fail.1 -= 1;
            return Err(Failure::new("FileFailed", format!("{what} failed")));
        }
        inner.world.execute(step, false)?;
        let now = inner.world.clone();
        inner.unsettled.push(now);
        Ok(())
    }

    fn check(&mut self, check: &Check) -> Result<(), Failure> {
        let mut inner = self.inner();
        inner.powered()?;
        let bad = |why: String| Failure::new("HealthCheck", why);
        match &check.probe {
            Probe::Unit(name) if inner.world.up.contains(name) => Ok(()),
            Probe::Unit(name) => Err(bad(format!("unit {name} isn't active"))),
            Probe::Objects(all) => match all.iter().find(|id| !inner.world.objects.contains_key(id)) {
                Some(id) => Err(Failure::new("NotReady", format!("{id} isn't there"))),
                None => Ok(()),
            },
            _ => inner.health.pop().unwrap_or(Ok(())).map_err(bad),
        }
    }

    fn is_patient(&self) -> bool {
        self.inner().patient
    }

    fn settle(&mut self) -> Result<(), Failure> {
        let mut inner = self.inner();
        inner.powered()?;
        inner.unsettled = vec![inner.world.clone()];
        Ok(())
    }

    fn usage(&self, _: &[&str]) -> Result<Option<u64>, Failure> {
        Ok(Some(self.inner().used))
    }

    fn repair(&mut self, _: &mut Tracer<'_>) -> Result<(), Failure> {
        Ok(())
    }
}

impl FakeTime {
    pub fn pass(&self, time: Duration) {
        self.0.lock().unwrap().0 += u64::try_from(time.as_millis()).unwrap();
    }

    /// The agent is told to stop when this time is reached.
    pub fn stop_at(&self, at: Option<Duration>) {
        self.0.lock().unwrap().1 = at.map(|at| u64::try_from(at.as_millis()).unwrap());
    }
}

impl Clock for FakeTime {
    fn now(&self) -> Timestamp {
        Timestamp(1_000_000 + i64::try_from(self.0.lock().unwrap().0).unwrap())
    }
}

impl Pause for FakeTime {
    fn stopping(&self) -> bool {
        let state = self.0.lock().unwrap();
        state.1.is_some_and(|at| state.0 >= at)
    }

    fn wait(&self, time: Duration) -> bool {
        self.pass(time);
        !self.stopping()
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.0.lock().unwrap().0)
    }
}
