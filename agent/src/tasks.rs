//! What each assignment of this cluster needs now, from the desired state, the membership, the records and the holds. Pure: the loop
//! calls it whenever one of them changed or a wait is over, and hands the tasks on.

use std::collections::{BTreeMap, BTreeSet};

use kedge_model::kinds::Destination;
use kedge_model::wire::{DesiredState, Digest, Entry, Membership, Mode, PackagesKey, Timestamp};

use crate::record::{FailedAttempt, Phase, Record};

/// In the order in which they are to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Stop managing it; everything stays.
    Forget {
        assignment: String,
    },
    Remove {
        assignment: String,
    },
    Apply(Entry),
    /// Nothing to do now; its record tells the truth.
    Keep {
        assignment: String,
    },
    /// Another reconciler's: its reports tell the truth.
    Observe(Entry),
    /// A person said not to touch it.
    Held {
        assignment: String,
    },
    /// It failed for a cause that passes: not before this time.
    Waiting {
        assignment: String,
        until: Timestamp,
    },
    /// What this agent can't do, and why.
    Unsupported {
        entry: Entry,
        why: String,
    },
    /// Most of what runs here would go, and nobody confirmed that: nothing is removed.
    MassRemoval {
        assignments: Vec<String>,
        message: String,
    },
}

/// Words of `requires` that this agent understands.
pub const FEATURES: [&str; 0] = [];
/// A cause that passes is tried again after this…
const FIRST_WAIT_MS: i64 = 30_000;
/// …then after twice as long, up to this.
const LONGEST_WAIT_MS: i64 = 3_600_000;

/// `state` is none before the first one of the membership's stream was accepted.
pub fn tasks_for(
    state: Option<&DesiredState>,
    membership: &Membership,
    records: &BTreeMap<String, Record>,
    held: &BTreeSet<String>,
    now: Timestamp,
    place: Destination,
) -> Vec<Task> {
    let keep = |assignment: &String| Task::Keep { assignment: assignment.clone() };
    if membership.retired {
        return records.keys().map(keep).collect();
    }
    let state = state.filter(|state| state.stream == membership.stream);
    let entries: BTreeMap<&str, &Entry> =
        state.iter().flat_map(|state| &state.entries).map(|entry| (entry.assignment.as_str(), entry)).collect();
    let observed = |name: &str| entries.get(name).is_some_and(|entry| matches!(entry.mode, Mode::Observe(_)));
    let applied = |name: &str| entries.get(name).is_some_and(|entry| matches!(entry.mode, Mode::Apply(_)));
    let named = |listed: &mut dyn Iterator<Item = &str>| -> BTreeSet<String> {
        listed.filter(|name| records.contains_key(*name) && !applied(name)).map(str::to_owned).collect()
    };
    // An entry that became another reconciler's to apply is no longer ours either.
    let unmanaged = state.iter().flat_map(|state| &state.unmanaged).map(|stone| stone.assignment.as_str());
    let others = entries.keys().copied().filter(|name| observed(name));
    let forget = named(&mut unmanaged.chain(membership.unmanage.iter().map(String::as_str)).chain(others));
    let removed = state.iter().flat_map(|state| &state.removed).map(|stone| stone.assignment.as_str());
    let mut remove = named(&mut removed.chain(membership.remove.iter().map(String::as_str)));
    remove.retain(|name| !forget.contains(name));

    let mut tasks: Vec<Task> = forget.iter().map(|name| Task::Forget { assignment: name.clone() }).collect();
    if let Some(message) = mass_removal(state, records, &remove) {
        tasks.extend(remove.iter().map(keep));
        tasks.push(Task::MassRemoval { assignments: remove.iter().cloned().collect(), message });
    } else {
        tasks.extend(remove.iter().map(|name| removal(name, records, held, now)));
    }
    for entry in state.iter().flat_map(|state| &state.entries) {
        tasks.push(task(entry, state, records.get(&entry.assignment), held, now, place));
    }
    // Absence never deletes.
    let told =
        |name: &&String| !entries.contains_key(name.as_str()) && !forget.contains(*name) && !remove.contains(*name);
    tasks.extend(records.keys().filter(told).map(keep));
    tasks
}

/// When a failed attempt may be made again: the later, the more often it failed, and not at the same moment for all.
pub fn due(assignment: &str, attempt: &FailedAttempt) -> Timestamp {
    let doubled = FIRST_WAIT_MS << attempt.tries.saturating_sub(1).min(16);
    let wait = doubled.min(LONGEST_WAIT_MS);
    let spread = i64::from(Digest::of(assignment.as_bytes()).as_bytes()[0]);
    Timestamp(attempt.at.0.saturating_add(wait + wait / 1024 * spread))
}

/// The time to wait for; none: now. A clock that went back doesn't make anybody wait longer.
pub fn wait(assignment: &str, attempt: &FailedAttempt, now: Timestamp) -> Option<Timestamp> {
    let until = due(assignment, attempt);
    (now < until && now >= attempt.at).then_some(until)
}

fn task(
    entry: &Entry,
    state: Option<&DesiredState>,
    record: Option<&Record>,
    held: &BTreeSet<String>,
    now: Timestamp,
    place: Destination,
) -> Task {
    let assignment = entry.assignment.clone();
    let required = state.iter().flat_map(|state| &state.requires).chain(&entry.requires);
    let unknown: Vec<&str> = required.map(String::as_str).filter(|word| !FEATURES.contains(word)).collect();
    if !unknown.is_empty() {
        let why = format!("this agent doesn't know {}; a newer kedge-agent is needed", unknown.join(", "));
        return Task::Unsupported { entry: entry.clone(), why };
    }
    let Mode::Apply(packages) = &entry.mode else {
        return Task::Observe(entry.clone());
    };
    if packages.parameters.to != place {
        let why = match place {
            Destination::Host => "it is delivered to Kubernetes, and this is a plain host",
            Destination::Kubernetes => "it is delivered to plain hosts, and this is a Kubernetes cluster",
        };
        return Task::Unsupported { entry: entry.clone(), why: why.to_owned() };
    }
    let wanted = (packages.key(), entry.restart);
    if let Some(transaction) = record.and_then(|record| record.transaction.as_ref()) {
        // On a cluster a change waits for its health beside others, and gives way to what is wanted by now.
        let other = transaction.wanted.as_ref().is_some_and(|one| (one.key, one.restart) != wanted);
        let gives_way = place == Destination::Kubernetes && transaction.phase == Phase::Health;
        return if other && gives_way && !held.contains(&assignment) {
            Task::Apply(entry.clone())
        } else {
            Task::Keep { assignment }
        };
    }
    let running = record.and_then(|record| record.running.as_ref());
    let failed = record.and_then(|record| record.failed.as_ref()).filter(|one| same(one, wanted));
    let runs =
        running.is_some_and(|running| (running.key, running.restart) == wanted && running.packages == **packages);
    // Rules that were tightened since hold for what runs too.
    let judged = place != Destination::Host || running.is_some_and(|running| running.goal.judged.is_current());
    match failed {
        _ if held.contains(&assignment) => Task::Held { assignment },
        Some(failed) if !failed.failure.passes => Task::Keep { assignment },
        Some(failed) => match wait(&assignment, failed, now) {
            Some(until) => Task::Waiting { assignment, until },
            None => Task::Apply(entry.clone()),
        },
        None if runs && judged => Task::Keep { assignment },
        None => Task::Apply(entry.clone()),
    }
}

fn same(attempt: &FailedAttempt, wanted: (PackagesKey, u64)) -> bool {
    (attempt.key, attempt.restart) == wanted
}

fn removal(name: &str, records: &BTreeMap<String, Record>, held: &BTreeSet<String>, now: Timestamp) -> Task {
    let assignment = name.to_owned();
    let upkeep = records.get(name).and_then(|record| record.upkeep.as_ref());
    match upkeep.and_then(|failed| wait(name, failed, now)) {
        _ if held.contains(name) => Task::Held { assignment },
        Some(until) => Task::Waiting { assignment, until },
        None => Task::Remove { assignment },
    }
}

/// More than half of what runs may go only if the set that a person confirmed is as small as the new one. Without a state it is a
/// move's own list, and a move is a person's word.
fn mass_removal(
    state: Option<&DesiredState>,
    records: &BTreeMap<String, Record>,
    remove: &BTreeSet<String>,
) -> Option<String> {
    let state = state?;
    let runs = |name: &String| records.get(name).is_some_and(|record| record.running.is_some());
    let (running, going) =
        (records.keys().filter(|name| runs(name)).count(), remove.iter().filter(|name| runs(name)).count());
    let entries = u64::try_from(state.entries.len()).unwrap_or(u64::MAX);
    (going * 2 > running && entries.saturating_mul(2) < state.confirmed).then(|| {
        format!(
            "{going} of {running} assignments would be removed here, and the set that was confirmed last has {}, the new one \
             {entries}: nothing is removed until a person confirms it (kedge publish confirm)",
            state.confirmed
        )
    })
}

#[cfg(test)]
mod tests;
