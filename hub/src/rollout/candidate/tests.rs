//! What begins, waits or is dropped, from a head, rings and the rollouts under way.

use kedge_hub_types::testing::packed_type;
use kedge_model::wire::Timestamp;
use kedge_rollout::{Cause, RingState, Rollout};

use super::*;
use crate::rollout::head::Occasion;
use crate::rollout::testing::{at, content, policy, source_lane};

fn head(entries: &[(&str, PackedEntry)]) -> Head {
    Head::new(&at("c2", &[("drone", entries)]), &Occasion::default())
}

fn found(head: &Head, rings: &[(&str, &[(&str, PackedEntry)])], whole: &[&str]) -> BTreeMap<Lane, Vec<Difference>> {
    let names: Vec<String> = rings.iter().map(|(name, _)| (*name).to_owned()).collect();
    let held = rings.iter().map(|(name, entries)| (Stream::new("dev", "drone", name), Arc::new(packed_type(entries))));
    differences(&Comparison {
        environment: "dev",
        rings: &names,
        held: &held.collect(),
        head,
        known: &BTreeMap::new(),
        adopts: false,
        whole: &whole.iter().map(|name| ("drone".to_owned(), (*name).to_owned())).collect(),
    })
}

fn running(id: u64, lane: &Lane, name: &str, change: Change, states: [RingState; 2]) -> Running {
    let item = Item {
        cluster_type: "drone".to_owned(),
        assignment: name.to_owned(),
        workload: name.to_owned(),
        removes: change.removes(),
    };
    let cause = Cause::default();
    let rules = Arc::new(policy(&["canary", "rest"]));
    let mut rollout = Rollout::new(RolloutId(id), "dev", lane.clone(), cause, rules, Arc::from([item]), Timestamp(0));
    rollout.rings.iter_mut().zip(states).for_each(|(ring, state)| ring.state = state);
    Running::new(rollout, vec![change])
}

fn rings_named() -> [String; 2] {
    ["canary", "rest"].map(str::to_owned)
}

#[test]
fn each_part_that_any_ring_lacks_is_a_difference_of_its_own_lane() {
    let head = head(&[("a", content("p2", "w2"))]);
    let found =
        found(&head, &[("canary", &[("a", content("p2", "w1"))]), ("rest", &[("a", content("p1", "w2"))])], &[]);
    assert_eq!(found.keys().collect::<Vec<_>>(), [&Lane::Platform, &source_lane()]);
    assert!(found[&Lane::Platform][0].change.workload.is_none());
    assert!(found[&source_lane()][0].change.platform.is_none());
}

#[test]
fn a_newcomer_or_a_whole_one_is_the_platforms_in_both_parts() {
    let head = head(&[("a", content("p2", "w2"))]);
    for (rings, whole) in [
        ([("canary", &[("a", content("p2", "w2"))][..]), ("rest", &[][..])], &[][..]),
        ([("canary", &[("a", content("p2", "w1"))][..]), ("rest", &[("a", content("p2", "w1"))][..])], &["a"][..]),
    ] {
        let found = found(&head, &rings, whole);
        assert_eq!(found.keys().collect::<Vec<_>>(), [&Lane::Platform]);
        let change = &found[&Lane::Platform][0].change;
        assert!(change.platform.is_some() && change.workload.is_some());
    }
}

#[test]
fn what_is_quarantined_or_alike_is_no_difference_and_what_is_gone_is_one() {
    let head = head(&[("a", content("p1", "w1")), ("b", PackedEntry::Quarantined)]);
    let ring = [("a", content("p1", "w1")), ("b", content("p1", "w1")), ("c", content("p1", "w1"))];
    let found = found(&head, &[("canary", &ring)], &[]);
    assert_eq!(found[&Lane::Platform].len(), 1);
    assert_eq!(
        (found[&Lane::Platform][0].item.assignment.as_str(), found[&Lane::Platform][0].item.removes),
        ("c", true)
    );
}

#[test]
fn unrelated_content_begins_beside_what_is_under_way_and_related_content_waits_or_takes_over() {
    let PackedEntry::Apply(packages) = content("p2", "w1") else { panic!() };
    let old = [("a", content("p1", "w1")), ("b", content("p1", "w1"))];
    let rings: [(&str, &[_]); 2] = [("canary", &old), ("rest", &old)];
    let far = running(7, &Lane::Platform, "a", Change::platform(&packages), [RingState::Passed, RingState::Rolling]);
    let near = running(7, &Lane::Platform, "a", Change::platform(&packages), [RingState::Rolling, RingState::Waiting]);

    let unrelated = head(&[("a", content("p2", "w1")), ("b", content("p2", "w1"))]);
    let differences = &found(&unrelated, &rings, &[])[&Lane::Platform];
    let decided = decide(&Lane::Platform, differences, &[&far], &unrelated, &rings_named(), |_| false);
    let Decision::Begin { differences, supersedes } = decided else { panic!("{decided:?}") };
    assert_eq!((differences[0].item.assignment.as_str(), differences.len(), supersedes.len()), ("b", 1, 0));

    let related = head(&[("a", content("p3", "w1")), ("b", content("p1", "w1"))]);
    let differences = &found(&related, &rings, &[])[&Lane::Platform];
    let decided = decide(&Lane::Platform, differences, &[&far], &related, &rings_named(), |_| false);
    assert!(matches!(decided, Decision::Wait { behind: RolloutId(7), .. }), "{decided:?}");
    let decided = decide(&Lane::Platform, differences, &[&near], &related, &rings_named(), |_| false);
    assert!(matches!(&decided, Decision::Begin { supersedes, .. } if *supersedes == [RolloutId(7)]), "{decided:?}");
    assert_eq!(decide(&Lane::Platform, differences, &[], &related, &rings_named(), |_| true), Decision::Nothing);

    let taken_back = head(&[("a", content("p1", "w1")), ("b", content("p1", "w1"))]);
    let decided = decide(&Lane::Platform, &[], &[&near], &taken_back, &rings_named(), |_| false);
    assert!(matches!(&decided, Decision::Drop(dropped) if dropped[0].0 == RolloutId(7)), "{decided:?}");
}
