//! What is to be done, for states, memberships, records and holds of every kind.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

use kedge_model::wire::{ClusterId, Generation, Observation, Packages, Sequence, Stream, Tombstone};

use super::*;
use crate::engine::tests::packages;
use crate::record::{Failure, Running};

const NOW: Timestamp = Timestamp(10_000_000);

fn entry(name: &str, packages: Packages) -> Entry {
    Entry { assignment: name.to_owned(), mode: Mode::Apply(Box::new(packages)), restart: 0, requires: Vec::new() }
}

fn stream() -> Stream {
    Stream::new("prod", "line", "all")
}

fn state(entries: Vec<Entry>) -> DesiredState {
    DesiredState {
        stream: stream(),
        generation: Generation(3),
        created_at: NOW,
        confirmed: entries.len() as u64,
        entries,
        removed: Vec::new(),
        unmanaged: Vec::new(),
        source: None,
        turns: false,
        requires: Vec::new(),
    }
}

fn membership() -> Membership {
    Membership {
        cluster: ClusterId::of_public_key(&[7; 32]),
        name: "box".to_owned(),
        stream: stream(),
        labels: Default::default(),
        site: None,
        sequence: Sequence(1),
        issued_at: NOW,
        remove: Vec::new(),
        unmanage: Vec::new(),
        relay: false,
        retired: false,
        requires: Vec::new(),
    }
}

fn running(name: &str, version: &str) -> (String, Record) {
    let packages = packages(version);
    let running = Running {
        key: packages.key(),
        packages,
        generation: Generation(1),
        restart: 0,
        since: NOW,
        goal: Default::default(),
        original: Default::default(),
    };
    (name.to_owned(), Record { assignment: name.to_owned(), running: Some(running), ..Record::default() })
}

fn attempt(version: &str, passes: bool, tries: u32) -> Option<FailedAttempt> {
    let failure = Failure { passes, ..Failure::new("Network", "no route") };
    Some(FailedAttempt { key: packages(version).key(), restart: 0, failure, at: NOW, tries })
}

fn tasks(state: &DesiredState, records: &[(String, Record)], held: &[&str], now: Timestamp) -> Vec<Task> {
    let records = records.iter().cloned().collect();
    let held = held.iter().map(|name| (*name).to_owned()).collect();
    tasks_for(Some(state), &membership(), &records, &held, now, Destination::Host)
}

fn stone(name: &str) -> Tombstone {
    Tombstone { assignment: name.to_owned(), since: Generation(2) }
}

fn keep(name: &str) -> Task {
    Task::Keep { assignment: name.to_owned() }
}

#[test]
fn new_and_changed_are_applied_the_same_is_kept_and_absence_never_deletes() {
    let wanted = [entry("new", packages("1")), entry("changed", packages("2")), entry("same", packages("1"))];
    let records = [running("changed", "1"), running("same", "1"), running("absent", "1")];
    let found = tasks(&state(wanted.to_vec()), &records, &[], NOW);
    let [new, changed, _] = wanted;
    assert_eq!(found, [Task::Apply(new), Task::Apply(changed), keep("same"), keep("absent")]);
}

#[test]
fn a_raised_counter_and_other_parameters_are_applied() {
    let mut restarted = entry("w", packages("1"));
    restarted.restart = 1;
    let mut other = packages("1");
    other.parameters.timeout_seconds += 1;
    for entry in [restarted, entry("w", other)] {
        let found = tasks(&state(vec![entry.clone()]), &[running("w", "1")], &[], NOW);
        assert_eq!(found, [Task::Apply(entry)]);
    }
}

#[test]
fn failed_digests_are_tried_again_only_for_new_content_a_command_or_a_cause_that_passes() {
    let mut record = running("w", "1");
    record.1.failed = attempt("2", false, 1);
    let later = Timestamp(NOW.0 + 100 * LONGEST_WAIT_MS);
    let two = state(vec![entry("w", packages("2"))]);
    assert_eq!(tasks(&two, &[record.clone()], &[], later), [keep("w")]);
    let three = entry("w", packages("3"));
    assert_eq!(tasks(&state(vec![three.clone()]), &[record.clone()], &[], NOW), [Task::Apply(three)]);
    let mut restarted = entry("w", packages("2"));
    restarted.restart = 1;
    assert_eq!(tasks(&state(vec![restarted.clone()]), &[record.clone()], &[], NOW), [Task::Apply(restarted)]);
    record.1.failed = attempt("2", true, 1);
    let [Task::Waiting { until, .. }] = tasks(&two, &[record.clone()], &[], NOW)[..] else { panic!() };
    assert!(until.0 >= NOW.0 + FIRST_WAIT_MS && until.0 <= NOW.0 + FIRST_WAIT_MS * 5 / 4);
    assert!(matches!(tasks(&two, &[record.clone()], &[], until)[..], [Task::Apply(_)]));
    assert!(matches!(tasks(&two, &[record], &[], Timestamp(0))[..], [Task::Apply(_)]), "a clock that went back");
}

#[test]
fn the_wait_doubles_to_an_hour_and_differs_between_assignments() {
    let wait = |name: &str, tries| due(name, &attempt("1", true, tries).unwrap()).0 - NOW.0;
    for tries in 1..40 {
        let least = (FIRST_WAIT_MS << (tries - 1).min(20)).min(LONGEST_WAIT_MS);
        assert!((least..=least * 5 / 4).contains(&wait("w", tries)), "{tries}");
    }
    assert_eq!(wait("w", 3), wait("w", 3));
    assert_ne!(wait("w", 3), wait("x", 3));
}

#[test]
fn removed_unmanaged_and_moved_are_done_unless_an_entry_says_otherwise() {
    let mut state = state(vec![entry("back", packages("1"))]);
    state.removed = vec![stone("gone"), stone("back"), stone("never-ran")];
    state.unmanaged = vec![stone("theirs")];
    let names = ["gone", "back", "theirs", "moved", "left", "stays", "more", "again", "still"];
    let records: Vec<_> = names.map(|name| running(name, "1")).to_vec();
    let mut member = membership();
    member.remove = vec!["moved".to_owned()];
    member.unmanage = vec!["left".to_owned()];
    let found =
        tasks_for(Some(&state), &member, &records.into_iter().collect(), &BTreeSet::new(), NOW, Destination::Host);
    let forget = |name: &str| Task::Forget { assignment: name.to_owned() };
    let remove = |name: &str| Task::Remove { assignment: name.to_owned() };
    assert_eq!(found[..5], [forget("left"), forget("theirs"), remove("gone"), remove("moved"), keep("back")]);
    assert!(found[5..].iter().all(|task| matches!(task, Task::Keep { .. })));
}

#[test]
fn most_of_what_runs_goes_only_when_the_confirmed_set_is_as_small() {
    let records = [running("a", "1"), running("b", "1"), running("c", "1")];
    let mut state = state(vec![entry("a", packages("1"))]);
    state.removed = vec![stone("b"), stone("c")];
    state.confirmed = 3;
    let found = tasks(&state, &records, &[], NOW);
    assert!(found.iter().all(|task| !matches!(task, Task::Remove { .. })));
    assert!(found.iter().any(|task| matches!(task, Task::MassRemoval { assignments, .. } if assignments.len() == 2)));
    state.confirmed = 1;
    let found = tasks(&state, &records, &[], NOW);
    assert_eq!(found.iter().filter(|task| matches!(task, Task::Remove { .. })).count(), 2);
}

#[test]
fn held_assignments_are_neither_changed_nor_removed() {
    let mut state = state(vec![entry("w", packages("2")), entry("x", packages("1")), entry("y", packages("1"))]);
    state.removed = vec![stone("z")];
    let records = [running("w", "1"), running("x", "1"), running("y", "1"), running("z", "1")];
    let found = tasks(&state, &records, &["w", "z"], NOW);
    let held = |name: &str| Task::Held { assignment: name.to_owned() };
    assert_eq!(found, [held("z"), held("w"), keep("x"), keep("y")]);
}

#[test]
fn a_removal_that_failed_waits() {
    let mut state = state(vec![entry("x", packages("1"))]);
    state.removed = vec![stone("w")];
    let mut record = running("w", "1");
    record.1.upkeep = attempt("1", false, 1);
    let found = tasks(&state, &[record.clone(), running("x", "1")], &[], NOW);
    assert!(matches!(found[0], Task::Waiting { .. }));
    let later = Timestamp(NOW.0 + LONGEST_WAIT_MS);
    assert!(matches!(tasks(&state, &[record, running("x", "1")], &[], later)[0], Task::Remove { .. }));
}

#[test]
fn what_this_agent_cannot_do_is_said() {
    let mut kubernetes = packages("1");
    kubernetes.parameters.to = Destination::Kubernetes;
    let mut new = entry("new", packages("1"));
    new.requires = vec!["teleport".to_owned()];
    let observe = Observation { objects: Vec::new(), expected_commit: None, content: Digest::of(b"x") };
    let observed = Entry { mode: Mode::Observe(observe), ..entry("flux", packages("1")) };
    let found = tasks(&state(vec![entry("k", kubernetes), new, observed.clone()]), &[running("flux", "1")], &[], NOW);
    assert_eq!(found[0], Task::Forget { assignment: "flux".to_owned() }, "no longer ours");
    assert!(matches!(&found[1], Task::Unsupported { why, .. } if why.contains("Kubernetes")));
    assert!(matches!(&found[2], Task::Unsupported { why, .. } if why.contains("teleport")));
    assert_eq!(found[3], Task::Observe(observed));
}

#[test]
fn a_retired_cluster_and_another_streams_state_change_nothing() {
    let records: BTreeMap<_, _> = [running("w", "1")].into();
    let mut state = state(vec![entry("w", packages("2"))]);
    let mut member = membership();
    member.retired = true;
    assert_eq!(tasks_for(Some(&state), &member, &records, &BTreeSet::new(), NOW, Destination::Host), [keep("w")]);
    state.stream = Stream::new("prod", "other", "all");
    assert_eq!(tasks_for(Some(&state), &membership(), &records, &BTreeSet::new(), NOW, Destination::Host), [keep("w")]);
    assert_eq!(tasks_for(None, &membership(), &records, &BTreeSet::new(), NOW, Destination::Host), [keep("w")]);
}

#[test]
fn what_an_older_agent_judged_is_judged_again_once() {
    let state = state(vec![entry("a", packages("1"))]);
    let (name, mut record) = running("a", "1");
    assert_eq!(tasks(&state, &[(name.clone(), record.clone())], &[], NOW), [keep("a")]);
    // As it wrote it.
    let goal = serde_json::from_str(r#"{"user": "hello"}"#).unwrap();
    record.running.as_mut().unwrap().goal = goal;
    let old = (name.clone(), record.clone());
    assert_eq!(tasks(&state, std::slice::from_ref(&old), &[], NOW), [Task::Apply(state.entries[0].clone())]);
    assert_eq!(tasks(&state, &[old], &["a"], NOW), [Task::Held { assignment: "a".to_owned() }]);
    // Refused by the new rules: told, and not again and again.
    record.failed = attempt("1", false, 1);
    assert_eq!(tasks(&state, &[(name, record)], &[], NOW), [keep("a")]);
}
