//! The host's state itself: what each step does to it, twice as once, and what its debs bring.

use std::collections::{BTreeMap, BTreeSet};

use kedge_model::wire::Digest;

use crate::goal::{ObjectGoal, ObjectId, Owner};
use crate::observed::{Account, DebState, ObjectState, Observed, PathState, Subjects, UnitState, UserState};
use crate::plan::debs::{DebPlan, DebWish};
use crate::record::{DebOriginal, Failure};
use crate::step::{DebInstall, DebRemove, DebsStep, Step};

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
    pub objects: BTreeMap<ObjectId, Digest>,
}

impl World {
    pub fn file(content: &str) -> PathState {
        PathState::File { content: Digest::of(content.as_bytes()), size: 1, owner: Owner::root(), mode: 0o644 }
    }

    /// What is only here, or otherwise than there.
    pub fn against(&self, other: &World) -> String {
        let lines = |world: &World| -> BTreeSet<String> {
            let paths = world.paths.iter().map(|one| format!("{one:?}"));
            let debs = world.debs.iter().map(|one| format!("{one:?}"));
            let sets = format!("{:?} {:?} {:?} {:?}", world.enabled, world.up, world.users, world.objects);
            paths.chain(debs).chain([sets]).collect()
        };
        format!("{:#?}", lines(self).difference(&lines(other)).collect::<Vec<_>>())
    }

    fn knows(&self, unit: &str) -> bool {
        let stem = unit.split('.').next().unwrap();
        let file = self.paths.get(&format!("/etc/systemd/system/{unit}"));
        matches!(file, Some(PathState::File { .. })) || self.debs.contains_key(stem)
    }

    pub(super) fn path(&self, path: &str) -> PathState {
        self.paths.get(path).cloned().unwrap_or(PathState::Absent)
    }

    pub(super) fn look(&self, subjects: &Subjects) -> Observed {
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
            users: subjects.users.iter().map(|name| (name.clone(), self.user(name))).collect(),
            objects: subjects.objects.iter().map(|(id, goal)| (id.clone(), self.object(goal))).collect(),
        }
    }

    fn user(&self, name: &str) -> UserState {
        let account = || Account { uid: 998, comment: String::new() };
        let is_there = self.users.contains(name);
        UserState { account: is_there.then(account), has_group: is_there }
    }

    fn object(&self, goal: &ObjectGoal) -> ObjectState {
        match self.objects.get(&goal.id) {
            None => ObjectState::Absent,
            Some(content) if *content == goal.content => ObjectState::AsApplied,
            Some(_) => ObjectState::Differs("was edited".to_owned()),
        }
    }

    fn with_parent(&self, path: &str) -> Result<(), Failure> {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let is = matches!(self.path(parent), PathState::Folder { .. });
        if is || parent.is_empty() { Ok(()) } else { Err(Failure::new("FileFailed", format!("no folder {parent}"))) }
    }

    /// A step, wholly or by half; twice is once.
    pub fn execute(&mut self, step: &Step, half: bool) -> Result<(), Failure> {
        if half && !matches!(step, Step::Debs(_) | Step::PutObjects { .. } | Step::RemoveObjects { .. }) {
            return Ok(());
        }
        let part = |count: usize| if half { count / 2 } else { count };
        let unit_exists = |world: &World, name: &str| match world.knows(name) {
            true => Ok(()),
            false => Err(Failure::new("UnitFailed", format!("no unit {name}"))),
        };
        match step {
            Step::AddUser { name, .. } => _ = self.users.insert(name.clone()),
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
            Step::PutObjects { objects } => {
                let put = objects.iter().take(part(objects.len()));
                self.objects.extend(put.map(|object| (object.id.clone(), object.content)));
            }
            Step::RemoveObjects { objects } => {
                objects.iter().take(part(objects.len())).for_each(|object| _ = self.objects.remove(&object.id));
            }
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
