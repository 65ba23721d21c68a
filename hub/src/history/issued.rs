//! What a new desired state changes, as entries: one for each assignment that it says something else of. Pure.

use std::collections::{BTreeMap, BTreeSet};

use kedge_hub_types::history::what::{Change, What};
use kedge_hub_types::history::{Entry, Place};
use kedge_model::wire::{DesiredState, Mode, PackageRef};

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
    let gone = |change: Change| {
        let generation = after.generation.0;
        What::Issued { generation, change, version: None, platform: None, workload: None, packages: None }
    };
    let here: BTreeSet<&str> = after.entries.iter().map(|entry| entry.assignment.as_str()).collect();
    for tomb in after.unmanaged.iter().filter(|tomb| tomb.since == after.generation) {
        told.push(tell(after, &tomb.assignment, gone(Change::Unmanaged)));
    }
    // What another reconciler had leaves no tombstone.
    for name in old.keys().filter(|name| !here.contains(*name)) {
        told.push(tell(after, name, gone(Change::Removed)));
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

#[cfg(test)]
mod tests {
    use kedge_model::wire::{Generation, Stream};

    use super::*;
    use crate::state::plan;
    use kedge_hub_types::pack::PackedEntry;
    use kedge_hub_types::testing::{observed, ours_at, packed_type, source};

    fn step(
        before: Option<&DesiredState>,
        entries: &[(&str, PackedEntry)],
        restarts: &[(&str, u64)],
    ) -> (DesiredState, Vec<String>) {
        let inputs = plan::Inputs {
            stream: &Stream::new("dev", "drone", "canary"),
            generation: Generation(before.map_or(0, |state| state.generation.0) + 1),
            packed: &packed_type(entries),
            confirmed: None,
            source: Some(&source("c1")),
            settled: &BTreeSet::new(),
            restarts: &restarts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
        };
        let state = plan::next(before, &inputs);
        let told = issued(before, &state);
        let said = |entry: &Entry| {
            let name = if entry.place.assignment.is_empty() { "-" } else { &entry.place.assignment };
            format!("{} {name} {}", entry.what.event(), entry.commit.as_deref().unwrap_or("-"))
        };
        let said = told.iter().map(said).collect();
        (state, said)
    }

    #[test]
    fn a_state_tells_what_it_changes_by_assignment_and_nothing_else() {
        let both = [("a", ours_at("1", "c1")), ("b", observed("1"))];
        let (first, said) = step(None, &both, &[]);
        assert_eq!(said, ["added drone/a c1", "added drone/b -"]);
        let (second, said) = step(Some(&first), &[("a", ours_at("2", "c2")), ("b", observed("1"))], &[]);
        assert_eq!(said, ["changed drone/a c2"]);
        let (third, said) = step(Some(&second), &[("a", ours_at("2", "c2")), ("b", observed("1"))], &[("a", 1)]);
        assert_eq!(said, ["restarted drone/a -"]);
        let (fourth, said) = step(Some(&third), &[("a", observed("2"))], &[]);
        assert_eq!(said, ["changed drone/a -", "unmanaged drone/a -", "removed drone/b -"]);
        let again = DesiredState { generation: Generation(9), ..fourth.clone() };
        assert_eq!(issued(Some(&fourth), &again)[0].what.event(), "reissued");
    }
}
