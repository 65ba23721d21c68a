//! What a change would do: two schedules side by side, by assignment, configuration key and file. `diff` compares, `plan`
//! also knows what publishing would keep. Called by the CLI's and the hub's plans.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kedge_goyaml::Value;
use kedge_model::{AssignmentId, Problem};

use crate::files::README;
use crate::output::{Existing, Kept, plan_output};
use crate::schedule::{Assignment, Outcome, Schedule};

/// Everything that differs from one schedule to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    pub changes: Vec<AssignmentChange>,
    pub cluster_types_added: Vec<Arc<str>>,
    pub cluster_types_removed: Vec<Arc<str>>,
    /// `(old, new)` when the promoted commit differs.
    pub promoted_commit: Option<(Option<String>, Option<String>)>,
    /// How many assignments and cluster types there are on either side: what the changes are a part of.
    pub assignments: usize,
    pub cluster_types: usize,
    /// What is missing on the new side only because something failed to load, so it stays.
    pub kept: Vec<Kept>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AssignmentChange {
    pub id: AssignmentId,
    pub change: Change,
    pub keys: Vec<KeyChange>,
    pub files: Vec<FileChange>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Added,
    Changed,
    Removed,
    /// Can't be rendered any more (or is new and can't be): keeps what is published.
    Quarantined(Vec<Problem>),
    /// Could not be rendered before and can be now.
    Released,
}

#[derive(Clone, Debug, PartialEq)]
pub struct KeyChange {
    pub key: Arc<str>,
    pub old: Option<Arc<Value>>,
    pub new: Option<Arc<Value>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    pub name: &'static str,
    pub old: Option<Arc<str>>,
    pub new: Option<Arc<str>>,
}

/// From `old` to `new`.
pub fn diff(old: &Schedule, new: &Schedule) -> Plan {
    let ids: BTreeSet<&AssignmentId> = old.assignments.keys().chain(new.assignments.keys()).collect();
    let types: BTreeSet<&Arc<str>> = old.cluster_types.iter().chain(&new.cluster_types).collect();
    Plan {
        assignments: ids.len(),
        cluster_types: types.len(),
        cluster_types_added: new.cluster_types.difference(&old.cluster_types).cloned().collect(),
        cluster_types_removed: old.cluster_types.difference(&new.cluster_types).cloned().collect(),
        promoted_commit: (old.promoted_commit != new.promoted_commit)
            .then(|| (old.promoted_commit.clone(), new.promoted_commit.clone())),
        changes: ids
            .into_iter()
            .filter_map(|id| compare(id, old.assignments.get(id), new.assignments.get(id)))
            .collect(),
        kept: Vec::new(),
    }
}

/// From `old`, which is published, to `new`, as publishing would do it.
pub fn plan(old: &Schedule, new: &Schedule) -> Plan {
    let mut plan = diff(old, new);
    if !new.failing.is_empty() {
        plan.kept = kept(old, new);
    }
    let folders: BTreeSet<&str> = plan.kept.iter().map(|kept| kept.folder.as_str()).collect();
    let kept_types: BTreeSet<&str> = folders.iter().filter_map(|folder| folder.split('/').next()).collect();
    plan.changes.retain(|change| change.change != Change::Removed || !folders.contains(change.id.to_string().as_str()));
    plan.cluster_types_removed.retain(|name| !kept_types.contains(&**name));
    for change in &mut plan.changes {
        // What is quarantined keeps its files.
        if matches!(change.change, Change::Quarantined(_)) {
            change.files.clear();
        }
    }
    plan
}

/// What would be kept if the old side were published.
fn kept(old: &Schedule, new: &Schedule) -> Vec<Kept> {
    let published: BTreeMap<String, Arc<str>> = old.files().collect();
    let existing: BTreeMap<String, Existing> = published
        .iter()
        .map(|(path, text)| {
            let is_readme = path.strip_suffix(README).is_some_and(|folder| folder.matches('/').count() == 1);
            let file = if is_readme { Existing::Readme(text.as_ref().to_owned()) } else { Existing::Other };
            (path.clone(), file)
        })
        .collect();
    // Quarantined assignments are changes of their own.
    let assigned: BTreeSet<String> = new.assignments.keys().map(ToString::to_string).collect();
    let read = |path: &str| published.get(path).map(|text| text.as_ref().to_owned());
    plan_output(&existing, new, &read).kept.into_iter().filter(|kept| !assigned.contains(&kept.folder)).collect()
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
            && self.cluster_types_added.is_empty()
            && self.cluster_types_removed.is_empty()
            && self.promoted_commit.is_none()
    }

    /// "3 of 41 assignments on 2 of 5 cluster types"
    pub fn summary(&self) -> String {
        let touched: BTreeSet<&Arc<str>> = self.changes.iter().map(|change| &change.id.cluster_type).collect();
        format!(
            "{} of {} {} on {} of {} {}",
            self.changes.len(),
            self.assignments,
            plural(self.assignments, "assignment"),
            touched.len(),
            self.cluster_types,
            plural(self.cluster_types, "cluster type"),
        )
    }
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { format!("{noun}s") }
}

fn compare(
    id: &AssignmentId,
    old: Option<&Arc<Assignment>>,
    new: Option<&Arc<Assignment>>,
) -> Option<AssignmentChange> {
    let change = match (old.map(|a| &a.outcome), new.map(|a| &a.outcome)) {
        (None, None) => return None,
        (None, Some(Outcome::Rendered(_))) => Change::Added,
        (Some(_), None) => Change::Removed,
        (Some(Outcome::Quarantined(before)), Some(Outcome::Quarantined(after))) if before == after => return None,
        (_, Some(Outcome::Quarantined(reasons))) => Change::Quarantined(reasons.clone()),
        (Some(Outcome::Quarantined(_)), Some(Outcome::Rendered(_))) => Change::Released,
        (Some(Outcome::Rendered(before)), Some(Outcome::Rendered(after))) if before == after => return None,
        (Some(Outcome::Rendered(_)), Some(Outcome::Rendered(_))) => Change::Changed,
    };
    let keys = match change {
        Change::Removed => Vec::new(),
        _ => keys(old, new),
    };
    Some(AssignmentChange { id: id.clone(), change, keys, files: files(old, new) })
}

fn keys(old: Option<&Arc<Assignment>>, new: Option<&Arc<Assignment>>) -> Vec<KeyChange> {
    let values = |side: Option<&Arc<Assignment>>| side.map(|a| a.configuration.values.clone()).unwrap_or_default();
    let (old, new) = (values(old), values(new));
    let names: BTreeSet<&Arc<str>> = old.keys().chain(new.keys()).collect();
    names
        .into_iter()
        .filter(|key| old.get(*key) != new.get(*key))
        .map(|key| KeyChange { key: Arc::clone(key), old: old.get(key).cloned(), new: new.get(key).cloned() })
        .collect()
}

fn files(old: Option<&Arc<Assignment>>, new: Option<&Arc<Assignment>>) -> Vec<FileChange> {
    crate::files::Files::NAMES
        .into_iter()
        .filter_map(|name| {
            let text = |side: Option<&Arc<Assignment>>| {
                side?.files()?.iter().find(|(file, _)| *file == name).map(|(_, text)| Arc::clone(text))
            };
            let (old, new) = (text(old), text(new));
            (old != new).then_some(FileChange { name, old, new })
        })
        .collect()
}
