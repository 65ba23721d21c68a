//! What a new desired state changes, as entries: one for each assignment that it says something else of. Pure.

use std::collections::BTreeMap;

use kedge_model::wire::{DesiredState, Mode, PackageRef};

use super::what::{Change, What};
use super::{Entry, Place};

/// The difference to the state before.
pub fn issued(before: Option<&DesiredState>, after: &DesiredState) -> Vec<Entry> {
    let old: BTreeMap<&str, &kedge_model::wire::Entry> =
        before.iter().flat_map(|state| &state.entries).map(|entry| (entry.assignment.as_str(), entry)).collect();
    let mut told = Vec::new();
    for entry in &after.entries {
        let was = old.get(entry.assignment.as_str()).copied();
        let change = match was {
            None => Change::Added,
            Some(was) if was.packages_key() != entry.packages_key() => Change::Changed,
            Some(was) if was.restart < entry.restart => Change::Restarted,
            Some(_) => continue,
        };
        let moved = |pick: fn(&kedge_model::wire::Packages) -> &PackageRef| -> Option<String> {
            let Mode::Apply(packages) = &entry.mode else { return None };
            let same = match was.map(|was| &was.mode) {
                Some(Mode::Apply(was)) => pick(was).digest == pick(packages).digest,
                _ => false,
            };
            (!same).then(|| pick(packages).commit.clone())
        };
        let (platform, workload) = (moved(|packages| &packages.platform), moved(|packages| &packages.workload));
        let (version, expected) = match &entry.mode {
            Mode::Apply(packages) => (packages.version.clone(), None),
            Mode::Observe(observation) => (None, observation.expected_commit.clone()),
        };
        // Who adds an assignment is the platform; who changes it is whoever's package moved.
        let commit = match change {
            Change::Added => platform.clone().or_else(|| workload.clone()),
            _ => workload.clone().or_else(|| platform.clone()),
        };
        let commit = commit.or(expected).unwrap_or_default();
        let (generation, packages) = (after.generation.0, Some(entry.packages_key()));
        let what = What::Issued { generation, change, version, platform, workload, packages };
        told.push(tell(after, &entry.assignment, what).commit(&commit));
    }
    let tombs = [(&after.removed, Change::Removed), (&after.unmanaged, Change::Unmanaged)];
    for (tombs, change) in tombs {
        for tomb in tombs.iter().filter(|tomb| tomb.since == after.generation) {
            let generation = after.generation.0;
            let what =
                What::Issued { generation, change, version: None, platform: None, workload: None, packages: None };
            told.push(tell(after, &tomb.assignment, what));
        }
    }
    if told.is_empty() {
        let what = What::Reissued { generation: after.generation.0, assignments: after.entries.len() as u64 };
        told.push(Entry::new(after.created_at, Place::stream(&after.stream), what));
    }
    told
}

fn tell(state: &DesiredState, assignment: &str, what: What) -> Entry {
    Entry::new(state.created_at, Place::stream(&state.stream).target(assignment), what)
}
