//! What a stream's next state says, from the one before and what was packed. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kedge_hub_types::pack::{PackedEntry, PackedType};
use kedge_hub_types::state::{Move, Package};
use kedge_model::wire::{
    DesiredState, Digest, Entry, Generation, Mode, PackageRef, Packages, PlatformSource, Stream, Timestamp, Tombstone,
};

/// What a state is made from, beside the one before.
#[derive(Clone, Debug)]
pub struct Inputs<'a> {
    pub stream: &'a Stream,
    /// The number that it gets if it says something new.
    pub generation: Generation,
    pub packed: &'a PackedType,
    /// Size of the last confirmed set; none: there is no guard's word yet.
    pub confirmed: Option<u64>,
    /// None: the state before says it.
    pub source: Option<&'a PlatformSource>,
    /// Tombstones that every member has confirmed.
    pub settled: &'a BTreeSet<String>,
    /// How often people asked for a restart, by assignment.
    pub restarts: &'a BTreeMap<String, u64>,
}

/// The next state. Its content decides whether it is issued.
pub fn next(previous: Option<&DesiredState>, inputs: &Inputs<'_>) -> DesiredState {
    let before: BTreeMap<&str, &Entry> = previous
        .map(|state| state.entries.iter().map(|entry| (entry.assignment.as_str(), entry)).collect())
        .unwrap_or_default();
    let entries: Vec<Entry> = inputs
        .packed
        .iter()
        .filter_map(|(assignment, packed)| {
            let mut entry = entry(assignment, packed, before.get(assignment.as_str()).copied())?;
            entry.restart = entry.restart.max(inputs.restarts.get(assignment).copied().unwrap_or_default());
            Some(entry)
        })
        .collect();
    let (removed, unmanaged) = tombstones(previous, &entries, inputs);
    let observes = entries.iter().any(|entry| matches!(entry.mode, Mode::Observe(_)));
    DesiredState {
        stream: inputs.stream.clone(),
        generation: inputs.generation,
        created_at: Timestamp::default(),
        confirmed: inputs.confirmed.unwrap_or(entries.len() as u64),
        removed,
        unmanaged,
        // Who applies our packages has no use for it, and would get a new state with each commit.
        source: match observes {
            true => inputs.source.cloned().or_else(|| previous?.source.clone()),
            false => None,
        },
        entries,
        // The issuer knows whether the ring is held up now.
        turns: false,
        requires: Vec::new(),
    }
}

/// The content of a state as it would be asked for again.
pub fn entries(state: &DesiredState) -> PackedType {
    let packed = |entry: &Entry| match &entry.mode {
        Mode::Apply(packages) => PackedEntry::Apply(Arc::new((**packages).clone())),
        Mode::Observe(observation) => PackedEntry::Observe(Arc::new(observation.clone())),
    };
    state.entries.iter().map(|entry| (entry.assignment.clone(), packed(entry))).collect()
}

/// Whether the state has all the restarts that people asked for.
pub fn is_restarted(state: &DesiredState, restarts: &BTreeMap<String, u64>) -> bool {
    let asked = |entry: &Entry| restarts.get(&entry.assignment).copied().unwrap_or_default();
    restarts.is_empty() || state.entries.iter().all(|entry| entry.restart >= asked(entry))
}

/// What a state says, without its number, its time and whether turns are taken: the same content is not issued again.
pub fn content(state: &DesiredState) -> Result<Digest, serde_json::Error> {
    let bare = DesiredState { generation: Generation(0), created_at: Timestamp(0), turns: false, ..state.clone() };
    Ok(Digest::of(&serde_json::to_vec(&bare)?))
}

/// Every pick that differs between two states.
pub fn moves(previous: Option<&DesiredState>, state: &DesiredState) -> Vec<Move> {
    let before = previous.map(picks).unwrap_or_default();
    let after = picks(state);
    let gone = before.keys().filter(|key| !after.contains_key(*key)).map(|(assignment, package)| Move {
        assignment: (*assignment).to_owned(),
        package: *package,
        to: None,
    });
    let moved =
        after.iter().filter(|(key, pick)| before.get(*key) != Some(*pick)).map(|((assignment, package), pick)| Move {
            assignment: (*assignment).to_owned(),
            package: *package,
            to: Some((*pick).clone()),
        });
    gone.chain(moved).collect()
}

fn picks(state: &DesiredState) -> BTreeMap<(&str, Package), &PackageRef> {
    let mut picks = BTreeMap::new();
    for entry in &state.entries {
        if let Mode::Apply(packages) = &entry.mode {
            picks.insert((entry.assignment.as_str(), Package::Platform), &packages.platform);
            picks.insert((entry.assignment.as_str(), Package::Workload), &packages.workload);
        }
    }
    picks
}

/// None for a quarantined newcomer: there is nothing to keep.
fn entry(assignment: &str, packed: &PackedEntry, before: Option<&Entry>) -> Option<Entry> {
    let mode = match packed {
        PackedEntry::Quarantined => return before.cloned(),
        PackedEntry::Observe(observation) => Mode::Observe((**observation).clone()),
        PackedEntry::Apply(packages) => Mode::Apply(Box::new(match before.map(|entry| &entry.mode) {
            Some(Mode::Apply(before)) => keeping_commits(packages, before),
            _ => (**packages).clone(),
        })),
    };
    let restart = before.map_or(0, |entry| entry.restart);
    Some(Entry { assignment: assignment.to_owned(), mode, restart, requires: Vec::new() })
}

/// The same content of a later commit is the same pick: a commit that changed something else reaches nobody.
fn keeping_commits(packages: &Packages, before: &Packages) -> Packages {
    let same = |new: &PackageRef, old: &PackageRef| {
        new.digest == old.digest && new.repo == old.repo && new.artifacts == old.artifacts
    };
    let mut kept = packages.clone();
    if same(&packages.platform, &before.platform) {
        kept.platform.commit.clone_from(&before.platform.commit);
    }
    if same(&packages.workload, &before.workload) {
        kept.workload.commit.clone_from(&before.workload.commit);
    }
    kept
}

/// What goes, and what is no longer ours. Each stays listed until every member has confirmed it, or until it is desired
/// again.
fn tombstones(
    previous: Option<&DesiredState>,
    entries: &[Entry],
    inputs: &Inputs<'_>,
) -> (Vec<Tombstone>, Vec<Tombstone>) {
    let Some(previous) = previous else { return (Vec::new(), Vec::new()) };
    let now: BTreeMap<&str, bool> =
        entries.iter().map(|entry| (entry.assignment.as_str(), matches!(entry.mode, Mode::Apply(_)))).collect();
    let (mut removed, mut unmanaged) = (BTreeMap::new(), BTreeMap::new());
    let settled = |assignment: &String| inputs.settled.contains(assignment);
    for old in previous.unmanaged.iter().filter(|old| !settled(&old.assignment)) {
        if now.get(old.assignment.as_str()) != Some(&true) {
            unmanaged.insert(old.assignment.clone(), old.since);
        }
    }
    for old in previous.removed.iter().filter(|old| !settled(&old.assignment)) {
        match now.get(old.assignment.as_str()) {
            None => {
                removed.insert(old.assignment.clone(), old.since);
            }
            // It came back as another reconciler's: who hasn't removed it yet mustn't any more.
            Some(false) => {
                unmanaged.insert(old.assignment.clone(), inputs.generation);
            }
            Some(true) => {}
        }
    }
    let ours = previous.entries.iter().filter(|entry| matches!(entry.mode, Mode::Apply(_)));
    for old in ours.map(|entry| &entry.assignment) {
        match now.get(old.as_str()) {
            None => removed.insert(old.clone(), inputs.generation),
            Some(false) => unmanaged.insert(old.clone(), inputs.generation),
            Some(true) => None,
        };
    }
    let listed = |all: BTreeMap<String, Generation>| {
        all.into_iter().map(|(assignment, since)| Tombstone { assignment, since }).collect()
    };
    (listed(removed), listed(unmanaged))
}

#[cfg(test)]
mod tests;
