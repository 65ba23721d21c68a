//! Results of other reconcilers: kept over cuts, and what they come to.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

use std::path::Path;

use super::*;
use kedge_durable::fake::{FakeDisk, Power, every_cut, every_failure};
use kedge_model::wire::{Digest, Entry, Generation, Stream};

const NOON: Timestamp = Timestamp(1_790_000_000_000);
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn external(disk: &FakeDisk) -> External {
    External::on(Arc::new(disk.clone()), &Paths::below(Path::new("/root")))
}

fn state(expected: Option<&str>) -> DesiredState {
    let observation =
        Observation { objects: Vec::new(), expected_commit: expected.map(str::to_owned), content: Digest::of(b"x") };
    let entry =
        Entry { assignment: "plc-line".to_owned(), mode: Mode::Observe(observation), restart: 0, requires: Vec::new() };
    DesiredState {
        stream: Stream::new("prod", "plant", "all"),
        generation: Generation(3),
        created_at: NOON,
        confirmed: 1,
        entries: vec![entry],
        removed: Vec::new(),
        unmanaged: Vec::new(),
        source: None,
        turns: false,
        requires: Vec::new(),
    }
}

/// Condition, drift, and whether it runs what is desired.
fn told(expected: Option<&str>, results: &BTreeMap<String, Reported>) -> (Condition, Option<String>, bool) {
    let told = assignment_statuses(&state(expected), results, &Sightings::new(), Timestamp(1));
    let [Told::AssignmentStatus { desired, running, condition, drift, .. }] = told.as_slice() else {
        panic!("{told:?}")
    };
    (condition.clone(), drift.clone(), running.is_some() && running == desired)
}

fn reported(revision: &str, ok: bool) -> BTreeMap<String, Reported> {
    let disk = FakeDisk::new();
    let external = external(&disk);
    external.put("plc-line", revision, ok, if ok { "" } else { "task 4 failed" }, NOON).unwrap();
    external.read().unwrap()
}

#[test]
fn nothing_reported_is_unknown() {
    assert_eq!(told(Some(COMMIT), &BTreeMap::new()), (Condition::Unknown, None, false));
}

#[test]
fn the_expected_revision_is_converged_in_each_spelling() {
    for revision in [COMMIT, "0123456", &format!("prod@sha1:{COMMIT}"), &format!("prod/{COMMIT}")] {
        assert_eq!(told(Some(COMMIT), &reported(revision, true)), (Condition::Converged, None, true), "{revision}");
    }
    assert_eq!(told(None, &reported("whatever", true)), (Condition::Converged, None, true));
}

#[test]
fn another_revision_is_converging_with_both_named() {
    for revision in ["012345", "fedcba9876", "main@sha1:"] {
        let (condition, drift, runs) = told(Some(COMMIT), &reported(revision, true));
        assert_eq!((condition, runs), (Condition::Converging, false), "{revision}");
        let expected = format!("the reconciler is at {revision}, and {COMMIT} is expected");
        assert_eq!(drift.unwrap(), expected);
    }
    let (condition, drift, _) = told(Some(COMMIT), &reported("fedcba9876", false));
    assert_eq!(condition, Condition::Converging);
    assert!(drift.unwrap().starts_with("the reconciler failed at fedcba9876"));
}

#[test]
fn a_failure_says_what_was_reported_and_what_still_runs() {
    let disk = FakeDisk::new();
    let external = external(&disk);
    external.put("plc-line", COMMIT, true, "", NOON).unwrap();
    external.put("plc-line", COMMIT, false, "task 4 failed", NOON).unwrap();
    let failed = Condition::Failed { reason: "Reported".to_owned(), message: "task 4 failed".to_owned() };
    assert_eq!(told(Some(COMMIT), &external.read().unwrap()), (failed, None, true));
    let (condition, _, runs) = told(Some("ffffffffff"), &reported("ffffffffff", false));
    assert!(matches!(condition, Condition::Failed { .. }) && !runs);
}

#[test]
fn what_is_seen_counts_before_what_was_said_unless_it_is_hidden() {
    let sighting = |condition| Sighting {
        condition,
        drift: None,
        version: Some("dev@sha1:1".to_owned()),
        reached: false,
        since: Some(Timestamp(NOON.0 + 5)),
    };
    let said = reported(COMMIT, true);
    let condition = |seen: Option<Sighting>| {
        let seen = Sightings::from([("plc-line".to_owned(), seen)]);
        let mut told = assignment_statuses(&state(Some(COMMIT)), &said, &seen, NOON);
        told.pop().map(|told| match told {
            Told::AssignmentStatus { condition, at, .. } => (condition, at),
            told => panic!("{told:?}"),
        })
    };
    assert_eq!(condition(Some(sighting(Condition::Converging))), Some((Condition::Converging, NOON)));
    assert_eq!(condition(Some(sighting(Condition::Unknown))), Some((Condition::Converged, NOON)));
    assert_eq!(condition(None), None, "what was told before stays until something is seen");
}

#[test]
fn what_can_not_be_a_name_or_a_revision_is_refused() {
    let external = external(&FakeDisk::new());
    assert!(matches!(external.put("", "1", true, "", NOON), Err(ExternalError::Name(_))));
    assert!(matches!(external.put("a", " ", true, "", NOON), Err(ExternalError::Revision)));
    assert!(matches!(external.put("a", "x\u{1b}[1m", true, "", NOON), Err(ExternalError::Revision)));
    assert!(external.read().unwrap().is_empty());
}

#[test]
fn a_cut_leaves_the_result_before_or_after() {
    every_cut(
        |disk| external(disk).put("a", "1", true, "", NOON).unwrap(),
        |disk| External::on(disk, &Paths::below(Path::new("/root"))).put("a", "2", false, "no", NOON),
        |disk, power| {
            let found = external(disk).read().unwrap().remove("a").unwrap();
            let new = (found.revision == "2", found.ok, &*found.message) == (true, false, "no");
            assert!(new || (power == Power::Cut && found.revision == "1" && found.ok), "{found:?}");
            assert_eq!(found.last_ok.as_deref(), Some("1"));
        },
    );
}

#[test]
fn a_full_disk_leaves_the_result_before_or_after() {
    every_failure(
        io::ErrorKind::StorageFull,
        |disk| external(disk).put("a", "1", true, "", NOON).unwrap(),
        |disk| External::on(disk, &Paths::below(Path::new("/root"))).put("a", "2", true, "", NOON),
        |disk, done| {
            let found = external(disk).read().unwrap().remove("a").unwrap().revision;
            assert!(found == "2" || (!done && found == "1"), "{found}");
            external(disk).put("a", "3", true, "", NOON).unwrap();
        },
    );
}
