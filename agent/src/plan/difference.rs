//! What differs on the host from what was applied, in sentences that a person reads: drift.

use std::path::Path;

use super::link_target;
use super::units::{is_triggered, is_up};
use crate::goal::{Goal, ObjectId, OnDrift, Owner};
use crate::observed::{DebState, ObjectState, Observed, PathState, UnitState};

/// More sentences than this are only counted.
const MAX_SENTENCES: usize = 5;

fn has_account(observed: &Observed, user: &str) -> bool {
    observed.users.get(user).is_some_and(|state| state.account.is_some())
}

/// Empty: everything is as it should be.
pub fn differences(goal: &Goal, observed: &Observed, objects: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let path = |path: &str| observed.paths.get(path).cloned().unwrap_or(PathState::Absent);
    if let Some(user) = goal.user.as_ref().filter(|user| !has_account(observed, user)) {
        all.push(format!("user {user} was removed"));
    }
    for folder in &goal.folders {
        let found = match path(&folder.path) {
            PathState::Absent => Some("was deleted".to_owned()),
            PathState::Folder { owner, mode } => attributes(&owner, mode, &folder.owner, folder.mode),
            _ => Some("isn't a folder any more".to_owned()),
        };
        all.extend(found.map(|what| format!("{} {what}", folder.path)));
    }
    for file in &goal.files {
        let found = match path(&file.path) {
            PathState::Absent => Some("was deleted".to_owned()),
            PathState::File { content, .. } if content != file.content => Some("was edited".to_owned()),
            PathState::File { owner, mode, .. } => attributes(&owner, mode, &file.owner, file.mode),
            _ => Some("isn't a file any more".to_owned()),
        };
        all.extend(found.map(|what| format!("{} {what}", file.path)));
    }
    for artifact in &goal.artifacts {
        let found = match path(&artifact.path) {
            PathState::Absent => Some("was deleted".to_owned()),
            PathState::Link { target, .. } if target == link_target(objects, &artifact.content) => None,
            _ => Some("doesn't lead to its artifact any more".to_owned()),
        };
        all.extend(found.map(|what| format!("{} {what}", artifact.path)));
    }
    for deb in &goal.debs {
        let state = observed.debs.get(&deb.name).cloned().unwrap_or_default();
        all.extend(deb_difference(&deb.name, &deb.version, &state));
    }
    for unit in &goal.units {
        let state = observed.units.get(&unit.name).cloned().unwrap_or_default();
        all.extend(unit_difference(goal, &unit.name, unit.enabled, unit.running, &state));
    }
    all.extend(super::foreign::differences(goal, observed));
    for object in goal.objects.iter().filter(|object| object.drift != OnDrift::Ignore) {
        let found = match observed.objects.get(&object.id) {
            Some(ObjectState::Absent) => "was deleted",
            Some(ObjectState::Differs(what)) => what,
            Some(ObjectState::AsApplied) | None => continue,
        };
        all.push(format!("{} {found}", object.id));
    }
    all
}

/// How many of the differences are of objects whose own word is to tell of it only.
pub fn only_told(goal: &Goal, observed: &Observed) -> usize {
    let differs =
        |id: &ObjectId| matches!(observed.objects.get(id), Some(ObjectState::Absent | ObjectState::Differs(_)));
    goal.objects.iter().filter(|object| object.drift == OnDrift::Report && differs(&object.id)).count()
}

/// One text of several sentences.
pub fn sentence(differences: &[String]) -> String {
    let mut text = differences.iter().take(MAX_SENTENCES).cloned().collect::<Vec<_>>().join("; ");
    if differences.len() > MAX_SENTENCES {
        text.push_str(&format!("; and {} more", differences.len() - MAX_SENTENCES));
    }
    text
}

fn attributes(owner: &Owner, mode: u32, wanted: &Owner, wanted_mode: u32) -> Option<String> {
    if mode != wanted_mode {
        return Some(format!("has mode {mode:04o} instead of {wanted_mode:04o}"));
    }
    (*wanted != Owner::default() && owner != wanted)
        .then(|| format!("belongs to {}:{} instead of {}:{}", owner.user, owner.group, wanted.user, wanted.group))
}

fn deb_difference(name: &str, wanted: &str, now: &DebState) -> Option<String> {
    match &now.version {
        _ if now.config_only => Some(format!("deb {name} was removed")),
        None => Some(format!("deb {name} was removed")),
        Some(version) if version != wanted => Some(format!("deb {name} is {version} instead of {wanted}")),
        Some(_) if !now.whole => Some(format!("deb {name} isn't completely installed")),
        Some(_) => None,
    }
}

fn unit_difference(goal: &Goal, name: &str, enabled: bool, running: bool, now: &UnitState) -> Vec<String> {
    let mut all = Vec::new();
    if now.masked && (enabled || running) {
        all.push(format!("unit {name} was masked"));
    } else if !now.known && (enabled || running) {
        all.push(format!("unit {name} is gone"));
    } else if enabled && !now.enabled && !now.is_static {
        all.push(format!("unit {name} was disabled"));
    } else if !enabled && now.enabled {
        all.push(format!("unit {name} was enabled"));
    }
    match (running, is_up(now)) {
        (true, false) if now.active == "failed" => all.push(format!("unit {name} failed")),
        (true, false) => all.push(format!("unit {name} was stopped")),
        (false, true) if !is_triggered(goal, name) => all.push(format!("unit {name} was started")),
        _ => {}
    }
    all
}
