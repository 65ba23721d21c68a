//! What the next state says: entries, tombstones, picks.

use kedge_hub_types::testing::{observed, ours, ours_at, packed_type, source};

use super::*;
use proptest::prelude::*;

fn stream() -> Stream {
    Stream::new("dev", "drone", Stream::ALL)
}

fn step_settled(previous: Option<&DesiredState>, entries: &[(&str, PackedEntry)], settled: &[&str]) -> DesiredState {
    let generation = Generation(previous.map_or(0, |state| state.generation.0) + 1);
    let settled = settled.iter().map(|name| (*name).to_owned()).collect();
    let inputs = Inputs {
        stream: &stream(),
        generation,
        packed: &packed_type(entries),
        confirmed: None,
        source: Some(&source("c1")),
        settled: &settled,
        restarts: &BTreeMap::new(),
    };
    next(previous, &inputs)
}

fn step(previous: Option<&DesiredState>, entries: &[(&str, PackedEntry)]) -> DesiredState {
    step_settled(previous, entries, &[])
}

fn names(tombstones: &[Tombstone]) -> Vec<(&str, u64)> {
    tombstones.iter().map(|tombstone| (tombstone.assignment.as_str(), tombstone.since.0)).collect()
}

#[test]
fn what_is_gone_is_listed_until_every_member_confirmed_it() {
    let first = step(None, &[("a", ours("1")), ("b", ours("1"))]);
    assert!(first.removed.is_empty());
    let second = step(Some(&first), &[("a", ours("1"))]);
    assert_eq!(names(&second.removed), [("b", 2)]);
    let third = step(Some(&second), &[("a", ours("2"))]);
    assert_eq!(names(&third.removed), [("b", 2)]);
    let fourth = step_settled(Some(&third), &[("a", ours("2"))], &["b"]);
    assert!(fourth.removed.is_empty());
}

#[test]
fn what_comes_back_is_no_longer_removed() {
    let first = step(None, &[("a", ours("1"))]);
    let second = step(Some(&first), &[]);
    let third = step(Some(&second), &[("a", ours("1"))]);
    assert!(third.removed.is_empty() && third.unmanaged.is_empty());
}

#[test]
fn what_moves_to_another_reconciler_is_unmanaged_and_kept() {
    let first = step(None, &[("a", ours("1"))]);
    let second = step(Some(&first), &[("a", observed("1"))]);
    assert_eq!((names(&second.unmanaged), second.removed.len()), (vec![("a", 2)], 0));
    // And stays so when it vanishes there too: it isn't ours to remove.
    let third = step(Some(&second), &[]);
    assert_eq!((names(&third.unmanaged), third.removed.len()), (vec![("a", 2)], 0));
    let fourth = step(Some(&third), &[("a", ours("1"))]);
    assert!(fourth.unmanaged.is_empty());
}

#[test]
fn what_comes_back_as_anothers_must_not_be_removed_any_more() {
    let first = step(None, &[("a", ours("1"))]);
    let second = step(Some(&first), &[]);
    let third = step(Some(&second), &[("a", observed("1"))]);
    assert_eq!((names(&third.unmanaged), third.removed.len()), (vec![("a", 3)], 0));
}

#[test]
fn an_observed_assignment_that_vanishes_leaves_nothing_to_remove() {
    let first = step(None, &[("a", observed("1"))]);
    let second = step(Some(&first), &[]);
    assert!(second.removed.is_empty() && second.unmanaged.is_empty());
}

#[test]
fn a_quarantined_assignment_keeps_its_entry_and_a_new_one_has_none() {
    let first = step(None, &[("a", ours("1")), ("b", observed("1"))]);
    let quarantined =
        [("a", PackedEntry::Quarantined), ("b", PackedEntry::Quarantined), ("c", PackedEntry::Quarantined)];
    let second = step(Some(&first), &quarantined);
    assert_eq!(second.entries, first.entries);
    assert_eq!(content(&second).unwrap(), content(&first).unwrap());
}

#[test]
fn the_same_content_of_a_later_commit_is_no_news() {
    let first = step(None, &[("a", ours_at("1", "c1"))]);
    let second = step(Some(&first), &[("a", ours_at("1", "c2"))]);
    assert_eq!(content(&first).unwrap(), content(&second).unwrap());
    assert!(moves(Some(&first), &second).is_empty());
    let third = step(Some(&second), &[("a", ours_at("2", "c3"))]);
    assert_ne!(content(&first).unwrap(), content(&third).unwrap());
    assert_eq!(moves(Some(&second), &third).len(), 2);
}

#[test]
fn only_observed_clusters_are_told_the_platforms_commit() {
    let first = step(None, &[("a", ours("1"))]);
    assert_eq!(first.source, None);
    let second = step(Some(&first), &[("a", ours("1")), ("b", observed("1"))]);
    assert_eq!(second.source, Some(source("c1")));
}

fn any_entry() -> impl Strategy<Value = Option<u8>> {
    proptest::option::of(0..6_u8)
}

proptest! {
    /// Whatever happens, something that ran as ours is desired, removed or unmanaged until it is confirmed.
    #[test]
    fn nothing_that_was_ours_is_ever_forgotten(
        steps in proptest::collection::vec(proptest::collection::vec(any_entry(), 4), 1..12),
    ) {
        let mut previous: Option<DesiredState> = None;
        let mut ran = BTreeSet::new();
        for wanted in steps {
            let entries: Vec<(String, PackedEntry)> = wanted
                .iter()
                .enumerate()
                .filter_map(|(number, choice)| {
                    let entry = match (*choice)? {
                        0 => PackedEntry::Quarantined,
                        1 | 2 => observed(&number.to_string()),
                        other => ours(&other.to_string()),
                    };
                    Some((format!("a{number}"), entry))
                })
                .collect();
            let borrowed: Vec<(&str, PackedEntry)> = entries.iter().map(|(name, entry)| (name.as_str(), entry.clone())).collect();
            let state = step(previous.as_ref(), &borrowed);
            let applied: BTreeSet<&str> = state.entries.iter().filter(|entry| matches!(entry.mode, Mode::Apply(_))).map(|entry| entry.assignment.as_str()).collect();
            let removed: BTreeSet<&str> = state.removed.iter().map(|tombstone| tombstone.assignment.as_str()).collect();
            let unmanaged: BTreeSet<&str> = state.unmanaged.iter().map(|tombstone| tombstone.assignment.as_str()).collect();
            ran.extend(applied.iter().map(|name| (*name).to_owned()));
            for name in &ran {
                let places = [&applied, &removed, &unmanaged].iter().filter(|place| place.contains(name.as_str())).count();
                prop_assert_eq!(places, 1, "{} in {:?}", name, state);
            }
            let desired: BTreeSet<&str> = state.entries.iter().map(|entry| entry.assignment.as_str()).collect();
            prop_assert!(removed.is_disjoint(&desired));
            prop_assert!(state.entries.is_sorted_by_key(|entry| &entry.assignment));
            previous = Some(state);
        }
    }
}
