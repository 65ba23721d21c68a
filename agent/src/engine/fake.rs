//! A host made of maps, for tests: it fails, does half of a step, and loses its power where a test says so.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use kedge_durable::Disk;
use kedge_durable::fake::FakeDisk;
use kedge_model::wire::{Digest, Timestamp};

use super::Pause;
use crate::apply::{DebPlan, DebWish, Host};
use crate::clock::Clock;
use crate::goal::{Check, Owner, Probe};
use crate::observed::{DebState, Observed, PathState, Subjects, UnitState};
use crate::record::{DebOriginal, Failure};
use crate::step::{DebInstall, DebRemove, DebsStep, Step};
use crate::trace::Tracer;

/// Everything that a host is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct World {
    pub paths: BTreeMap<String, PathState>,
    pub debs: BTreeMap<String, DebState>,
    pub enabled: BTreeSet<String>,
    pub up: BTreeSet<String>,
    pub users: BTreeSet<String>,
    /// Units that never get up.
    pub starting: BTreeSet<String>,
    /// Somebody else's deb needs `lib`.
    pub lib_needed: bool,
}

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
}

/// A wall clock and a pause that only go on when somebody waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct FakeTime(Arc<Mutex<(u64, Option<u64>)>>);

impl World {
    pub fn file(content: &str) -> PathState {
        PathState::File { content: Digest::of(content.as_bytes()), size: 1, owner: Owner::root(), mode: 0o644 }
    }

    /// What is only here, or otherwise than there.
    pub fn against(&self, other: &World) -> String {
        let lines = |world: &World| -> BTreeSet<String> {
            let paths = world.paths.iter().map(|one| format!("{one:?}"));
            let debs = world.debs.iter().map(|one| format!("{one:?}"));
            let sets = format!("{:?} {:?} {:?}", world.enabled, world.up, world.users);
            paths.chain(debs).chain([sets]).collect()
        };
        format!("{:#?}", lines(self).difference(&lines(other)).collect::<Vec<_>>())
    }

    fn knows(&self, unit: &str) -> bool {
        let stem = unit.split('.').next().unwrap();
        let file = self.paths.get(&format!("/etc/systemd/system/{unit}"));
        matches!(file, Some(PathState::File { .. })) || self.debs.contains_key(stem)
    }

    fn path(&self, path: &str) -> PathState {
        self.paths.get(path).cloned().unwrap_or(PathState::Absent)
    }

    fn look(&self, subjects: &Subjects) -> Observed {
        let unit = |name: &String| UnitState {
            known: self.knows(name),
            enabled: self.enabled.contains(name),
            active: match self.up.contains(name) {
                true if self.starting.contains(name) => "activating",
                true => "active",
                false => "inactive",
            }
            .to_owned(),
            ..UnitState::default()
        };
        Observed {
            paths: subjects.paths.iter().map(|path| (path.clone(), self.path(path))).collect(),
            debs: subjects.debs.iter().filter_map(|name| Some((name.clone(), self.debs.get(name)?.clone()))).collect(),
            units: subjects.units.iter().map(|name| (name.clone(), unit(name))).collect(),
            users: subjects.users.iter().map(|name| (name.clone(), self.users.contains(name))).collect(),
        }
    }

    fn with_parent(&self, path: &str) -> Result<(), Failure> {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let is = matches!(self.path(parent), PathState::Folder { .. });
        if is || parent.is_empty() { Ok(()) } else { Err(Failure::new("FileFailed", format!("no folder {parent}"))) }
    }

    /// A step, wholly or by half; twice is once.
    pub fn execute(&mut self, step: &Step, half: bool) -> Result<(), Failure> {
        if half && !matches!(step, Step::Debs(_)) {
            return Ok(());
        }
        let unit_exists = |world: &World, name: &str| match world.knows(name) {
            true => Ok(()),
            false => Err(Failure::new("UnitFailed", format!("no unit {name}"))),
        };
        match step {
            Step::AddUser { name } => _ = self.users.insert(name.clone()),
            Step::RemoveUser { name } => _ = self.users.remove(name),
            Step::MakeFolder { path, owner, mode } => {
                self.with_parent(path)?;
                self.paths.insert(path.clone(), PathState::Folder { owner: owner.clone(), mode: *mode });
            }
            Step::RemoveFolder { path } => {
                let inside = format!("{path}/");
                if !self.paths.keys().any(|other| other.starts_with(&inside)) {
                    self.paths.remove(path);
                }
            }
            Step::PutFile { path, content, owner, mode } => {
                self.with_parent(path)?;
                let file = PathState::File { content: *content, size: 1, owner: owner.clone(), mode: *mode };
                self.paths.insert(path.clone(), file);
            }
            Step::PutLink { path, target, owner } => {
                self.with_parent(path)?;
                let link = PathState::Link { target: target.clone(), owner: owner.clone() };
                self.paths.insert(path.clone(), link);
            }
            Step::RemovePath { path } => _ = self.paths.remove(path),
            Step::Debs(step) => self.change_debs(step, half),
            Step::ReloadUnits => {}
            Step::EnableUnit { name } => {
                unit_exists(self, name)?;
                self.enabled.insert(name.clone());
            }
            Step::DisableUnit { name } => _ = self.enabled.remove(name),
            Step::StartUnit { name } | Step::RestartUnit { name } => {
                unit_exists(self, name)?;
                self.up.insert(name.clone());
            }
            Step::StopUnit { name } => _ = self.up.remove(name),
        }
        Ok(())
    }

    /// A deb ships `/usr/share/NAME` and a unit, which its scripts enable and start when it is new.
    fn change_debs(&mut self, step: &DebsStep, half: bool) {
        let part = |count: usize| if half { count / 2 } else { count };
        for deb in step.remove.iter().take(part(step.remove.len())) {
            if self.debs.remove(&deb.name).is_some() {
                self.paths.remove(&format!("/usr/share/{}", deb.name));
                self.enabled.remove(&format!("{}.service", deb.name));
                self.up.remove(&format!("{}.service", deb.name));
            }
        }
        for deb in step.install.iter().take(part(step.install.len())) {
            let new = !self.debs.contains_key(&deb.name);
            let state = self.debs.entry(deb.name.clone()).or_default();
            if state.version.as_ref() != Some(&deb.version) {
                *state = DebState { version: Some(deb.version.clone()), whole: true, auto: deb.auto, ..state.clone() };
                self.paths.insert(format!("/usr/share/{}", deb.name), World::file(&deb.version));
            }
            if new {
                self.enabled.insert(format!("{}.service", deb.name));
                self.up.insert(format!("{}.service", deb.name));
            }
        }
        for (names, held) in [(&step.hold, true), (&step.unhold, false)] {
            for name in names.iter().filter(|_| !half) {
                if let Some(deb) = self.debs.get_mut(name) {
                    deb.held = held;
                }
            }
        }
    }

    /// `app` needs `lib`.
    pub fn prepare_debs(&self, wish: &DebWish) -> DebPlan {
        let mut plan = DebPlan::default();
        let mut wanted: Vec<(String, Option<String>, bool, bool)> = Vec::new();
        for deb in &wish.want {
            wanted.push((deb.name.clone(), Some(deb.version.clone()), false, true));
            if deb.name == "app" && !self.debs.contains_key("lib") {
                wanted.push(("lib".to_owned(), Some("1".to_owned()), true, false));
            }
        }
        for (name, original) in &wish.give_back {
            wanted.push((name.clone(), original.state.version.clone(), original.state.auto, original.state.held));
        }
        for (name, version, auto, held) in wanted {
            let now = self.debs.get(&name).cloned();
            let before = now.clone().unwrap_or_default();
            if before.version == version && (before.held == held || version.is_none()) {
                continue;
            }
            let archive = |version: &String| Digest::of(format!("{name} {version}").as_bytes());
            let install = |version: &String, auto| DebInstall {
                name: name.clone(),
                architecture: "all".to_owned(),
                version: version.clone(),
                archive: archive(version),
                auto,
            };
            let remove = || DebRemove { name: name.clone(), purge: true };
            if before.version != version {
                match &version {
                    Some(version) => plan.forward.install.push(install(version, auto)),
                    None => plan.forward.remove.push(remove()),
                }
                match &before.version {
                    Some(version) => plan.back.install.push(install(version, before.auto)),
                    None => plan.back.remove.push(remove()),
                }
            }
            if version.is_some() {
                if held { &mut plan.forward.hold } else { &mut plan.forward.unhold }.push(name.clone());
            }
            if before.version.is_some() {
                if before.held { &mut plan.back.hold } else { &mut plan.back.unhold }.push(name.clone());
            }
            let original =
                DebOriginal { archive: before.version.as_ref().map(archive), state: before, ..DebOriginal::default() };
            plan.originals.insert(name, original);
        }
        plan
    }
}

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
            return Err(Failure::new("AptRefused", "other would be removed, which nobody asked for"));
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

    fn check(&mut self, check: &Check) -> Result<(), String> {
        let mut inner = self.inner();
        inner.powered().map_err(|failure| failure.message)?;
        if let Probe::Unit(name) = &check.probe {
            return if inner.world.up.contains(name) { Ok(()) } else { Err(format!("unit {name} isn't active")) };
        }
        inner.health.pop().unwrap_or(Ok(()))
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
