//! What streams hold, from what they held and the rollouts in them.

use kedge_hub_types::testing::{observed, packed_type};
use kedge_rollout::{Cause, Item, Lane, Rollout, RolloutId};
use proptest::prelude::*;

use super::*;
use crate::rollout::head::Occasion;
use crate::rollout::testing::{at, content, key_of, policy};

const RINGS: [&str; 3] = ["one", "two", "three"];

fn stream(ring: &str) -> Stream {
    Stream::new("dev", "drone", ring)
}

fn moving(id: u64, change: Change, states: [RingState; 3], before: &PackedEntry) -> Running {
    let item = Item {
        cluster_type: "drone".to_owned(),
        assignment: "a".to_owned(),
        workload: "a".to_owned(),
        removes: change.removes(),
    };
    let cause = Cause::default();
    let rules = Arc::new(policy(&RINGS));
    let mut rollout = Rollout::new(RolloutId(id), "dev", Lane::Platform, cause, rules, Arc::from([item]), Timestamp(0));
    rollout.rings.iter_mut().zip(states).for_each(|(ring, state)| ring.state = state);
    let mut running = Running::new(rollout, vec![change]);
    for ring in RINGS {
        let place = ("drone".to_owned(), "a".to_owned());
        running.before.entry(ring.to_owned()).or_default().insert(place, Held::of(Some(before)));
    }
    running
}

fn composed(
    held: &BTreeMap<Stream, Arc<PackedType>>,
    rings: &[&str],
    head: Option<&Head>,
    rollouts: &[&Running],
) -> Composed {
    let rings: Vec<String> = rings.iter().map(|ring| (*ring).to_owned()).collect();
    compose(&Inputs {
        environment: "dev",
        rings: &rings,
        held,
        head,
        rollouts,
        pinned: &Pinned::new(),
        now: Timestamp(0),
    })
}

fn everywhere(entry: &PackedEntry) -> BTreeMap<Stream, Arc<PackedType>> {
    RINGS.map(|ring| (stream(ring), Arc::new(packed_type(&[("a", entry.clone())])))).into()
}

#[test]
fn a_ring_holds_the_new_content_once_it_began_and_the_old_one_after_it_went_back() {
    let (old, new) = (content("p1", "w1"), content("p2", "w1"));
    let PackedEntry::Apply(packages) = &new else { panic!() };
    let held = everywhere(&old);
    let states = [RingState::Passed, RingState::Rolling, RingState::Waiting];
    let running = moving(1, Change::platform(packages), states, &old);
    let there = composed(&held, &RINGS, None, &[&running]);
    let keys: Vec<_> = RINGS.map(|ring| key_of(&there.streams[&stream(ring)]["a"])).into();
    assert_eq!(keys, [key_of(&new), key_of(&new), key_of(&old)]);
    assert_eq!(there.keys.len(), 2);
    assert!(Arc::ptr_eq(&there.streams[&stream("three")], &held[&stream("three")]), "nothing is copied");
    let states = [RingState::Returned, RingState::Returned, RingState::Waiting];
    let back = composed(&there.streams, &RINGS, None, &[&moving(1, Change::platform(packages), states, &old)]);
    for ring in RINGS {
        assert_eq!(key_of(&back.streams[&stream(ring)]["a"]), key_of(&old));
    }
}

#[test]
fn a_new_ring_begins_with_what_the_one_after_it_has_proven() {
    let (old, new) = (content("p1", "w1"), content("p2", "w1"));
    let PackedEntry::Apply(packages) = &new else { panic!() };
    let mut held = everywhere(&new);
    held.remove(&stream("two"));
    let states = [RingState::Passed, RingState::Waiting, RingState::Rolling];
    let running = moving(1, Change::platform(packages), states, &old);
    let rings = ["one", "two", "three", "four"];
    let there = composed(&held, &rings, None, &[&running]);
    // It is in the rollout and waits there; the other one isn't, and what rolls next to it hasn't passed.
    assert_eq!(key_of(&there.streams[&stream("two")]["a"]), key_of(&old));
    assert_eq!(key_of(&there.streams[&stream("four")]["a"]), key_of(&old));
    let before: BTreeMap<_, _> = [(stream(Stream::ALL), Arc::new(packed_type(&[("a", old.clone())])))].into();
    let there = composed(&before, &rings, None, &[]);
    assert_eq!(there.streams.len(), 5);
    assert!(there.streams.values().all(|entries| key_of(&entries["a"]) == key_of(&old)));
}

#[test]
fn other_reconcilers_assignments_are_at_the_head_and_ours_are_not() {
    let (old, new) = (content("p1", "w1"), content("p2", "w1"));
    let head = Head::new(&at("c2", &[("drone", &[("a", new), ("b", observed("2"))])]), &Occasion::default());
    let mut held = everywhere(&old);
    held.insert(
        stream("one"),
        Arc::new(packed_type(&[("a", old.clone()), ("b", observed("1")), ("c", observed("1"))])),
    );
    let there = composed(&held, &RINGS, Some(&head), &[]);
    for ring in RINGS {
        let entries = &there.streams[&stream(ring)];
        assert_eq!((key_of(&entries["a"]), key_of(&entries["b"])), (key_of(&old), key_of(&observed("2"))));
        assert_eq!(entries.len(), 2);
    }
}

fn states() -> impl Strategy<Value = RingState> {
    prop::sample::select(vec![
        RingState::Waiting,
        RingState::Rolling,
        RingState::Passed,
        RingState::Stopped,
        RingState::Returned,
    ])
}

proptest! {
    /// What was composed is composed again: a hub that dies and looks again issues nothing new.
    #[test]
    fn composing_twice_is_composing_once(one in prop::array::uniform3(states()), two in prop::array::uniform3(states())) {
        let old = content("p1", "w1");
        let (PackedEntry::Apply(platform), PackedEntry::Apply(workload)) = (content("p2", "w1"), content("p1", "w2")) else {
            unreachable!()
        };
        let first = moving(1, Change::platform(&platform), one, &old);
        let second = moving(2, Change::workload(&workload), two, &old);
        let there = composed(&everywhere(&old), &RINGS, None, &[&first, &second]);
        let again = composed(&there.streams, &RINGS, None, &[&first, &second]);
        prop_assert_eq!(&there.streams, &again.streams);
        for (ring, (one, two)) in RINGS.into_iter().zip(one.into_iter().zip(two)) {
            let PackedEntry::Apply(held) = &there.streams[&stream(ring)]["a"] else { unreachable!() };
            prop_assert_eq!(held.platform.digest == platform.platform.digest, one.is_new());
            prop_assert_eq!(held.workload.digest == workload.workload.digest, two.is_new());
        }
    }
}
