//! From what the environment's branch holds to what it should hold: which files to write, which to delete, and which
//! stay because nobody may say that they are gone. Pure; the CLI does it to a folder, the hub to a commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::files::{Files, PROMOTED_COMMIT, README, README_TEXT};
use crate::schedule::Schedule;

/// A file that is there, as far as the plan needs to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Existing {
    /// A README of a top-level folder, with its text: ours has our sentence.
    Readme(String),
    Other,
}

/// What to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputPlan {
    /// Path and text of every file of ours, whether it is there already or not.
    pub write: BTreeMap<String, Arc<str>>,
    /// Files of ours that are gone.
    pub delete: BTreeSet<String>,
    pub kept: Vec<Kept>,
}

/// A folder that would have gone, and why it stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub folder: String,
    pub reason: String,
}

/// Files of ours are recognised by the layout alone: a folder with our README, and in its folders files of our names.
/// `read` gives the text of a file that exists; it is asked only where the name of a folder leaves open whose it was.
pub fn plan_output(
    existing: &BTreeMap<String, Existing>,
    schedule: &Schedule,
    read: &dyn Fn(&str) -> Option<String>,
) -> OutputPlan {
    let mut plan = OutputPlan { write: schedule.files().collect(), ..OutputPlan::default() };
    let ours: BTreeSet<&str> = existing
        .iter()
        .filter_map(|(path, file)| match file {
            Existing::Readme(text) if text == README_TEXT => path.strip_suffix(README)?.strip_suffix('/'),
            _ => None,
        })
        .collect();
    let quarantined: BTreeSet<String> = schedule.quarantined().map(|(id, _)| id.to_string()).collect();
    let mut kept: BTreeMap<String, String> = BTreeMap::new();
    for path in existing.keys().filter(|path| !plan.write.contains_key(*path)) {
        let Some(folder) = folder_of_ours(path, &ours, schedule) else { continue };
        match reason_to_keep(&folder, &quarantined, schedule, read) {
            Some(reason) => {
                kept.insert(folder, reason);
            }
            None => {
                plan.delete.insert(path.clone());
            }
        }
    }
    // While targets of a cluster type that is gone stay, so does its README.
    let lived_in: BTreeSet<String> =
        kept.keys().filter_map(|folder| folder.split('/').next()).map(|name| format!("{name}/{README}")).collect();
    plan.delete.retain(|path| !lived_in.contains(path));
    plan.kept = kept.into_iter().map(|(folder, reason)| Kept { folder, reason }).collect();
    plan
}

/// The folder of an assignment or of a cluster type, when the file is one of ours.
fn folder_of_ours(path: &str, ours: &BTreeSet<&str>, schedule: &Schedule) -> Option<String> {
    if path == PROMOTED_COMMIT {
        return None;
    }
    let mut parts = path.split('/');
    let cluster_type = parts.next().filter(|name| ours.contains(name) || schedule.cluster_types.contains(*name))?;
    match (parts.next()?, parts.next(), parts.next()) {
        (README, None, None) => ours.contains(cluster_type).then(|| cluster_type.to_owned()),
        (target, Some(file), None) if Files::NAMES.contains(&file) => Some(format!("{cluster_type}/{target}")),
        _ => None,
    }
}

fn reason_to_keep(
    folder: &str,
    quarantined: &BTreeSet<String>,
    schedule: &Schedule,
    read: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    if quarantined.contains(folder) {
        return Some("quarantined, so what is published stays".to_owned());
    }
    if let Some(failing) = schedule.failing.iter().find(|failing| failing.registration.is_none()) {
        return Some(format!("an input of the platform failed to load: {}", failing.problem.message));
    }
    if schedule.cluster_types.is_empty() {
        return Some("the environment has no ClusterType, which is probably a mistake".to_owned());
    }
    if schedule.targets_elsewhere {
        return Some(format!("no workload has a target in environment {}", schedule.environment));
    }
    let target = folder.split('/').nth(1)?;
    if schedule.disputed.targets.contains(target)
        || workload_names(target).any(|name| schedule.disputed.workloads.contains(name))
    {
        return Some(
            "the name is claimed more than once, and what is published stays until that is settled".to_owned(),
        );
    }
    let failing = schedule.failing.iter().find(|failing| failing.registration.is_some())?;
    (!is_gone(folder, target, schedule, read)).then(|| {
        let name = failing.registration.as_deref().unwrap_or_default();
        format!("application `{name}`, which may own it, failed to load: {}", failing.problem.message)
    })
}

/// While an application fails to load: whether a target surely belonged to a workload that was read, and is gone for
/// good. `a-b-c` may be `b-c` of `a` or `c` of `a-b`; then what was published under it has to name the one and not
/// the other.
fn is_gone(folder: &str, target: &str, schedule: &Schedule, read: &dyn Fn(&str) -> Option<String>) -> bool {
    let (known, unknown): (Vec<&str>, Vec<&str>) =
        workload_names(target).partition(|name| schedule.workloads.contains(*name));
    if known.is_empty() || unknown.is_empty() {
        return unknown.is_empty();
    }
    let texts: Vec<String> = Files::NAMES.iter().filter_map(|name| read(&format!("{folder}/{name}"))).collect();
    let named = |name: &&str| texts.iter().any(|text| has_word(text, name));
    known.iter().any(named) && !unknown.iter().any(named)
}

/// Every name that the workload of a target can have.
fn workload_names(target: &str) -> impl Iterator<Item = &str> {
    target
        .match_indices('-')
        .map(|(at, _)| &target[..at])
        .filter(|name| !name.is_empty() && name.len() + 1 < target.len())
}

/// Whether a text has the name by itself, not as a part of a longer one.
fn has_word(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + name.len()..].chars().next());
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}
