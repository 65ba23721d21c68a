//! Members of the fleet that misbehave: refused, shown, left alone for a while; and nothing of it stays.

use super::*;
use crate::fixture::START;
use crate::pace::{DROPPED_FIRST, DROPPED_MOST, MAX_LIES, MESSAGES_PER_MINUTE};

fn give(envelopes: Vec<Envelope>) -> Message {
    Message { give: envelopes, ..Message::default() }
}

fn met() -> (Node, Agent) {
    let other = agent(2);
    let mut node = hub().node(&agent(1));
    node.put(hub().member(&other)).unwrap();
    node.found(other.id, START);
    (node, other)
}

fn at(millis: i64) -> Timestamp {
    after(START, millis)
}

#[test]
fn a_liar_is_dropped_longer_each_time_and_shown_with_what_it_did() {
    let (mut node, other) = met();
    let mut forged = hub().member(&agent(3));
    forged.payload[10] ^= 1;
    let (mut now, mut length) = (START, DROPPED_FIRST);
    for _ in 0..12 {
        let (answer, actions) = node.heard(other.id, give(vec![forged.clone()]), now);
        assert_eq!(answer, None);
        assert_eq!(actions, [Action::Dropped { peer: other.id, why: Misbehavior::Forged }]);
        assert_eq!(node.heard(other.id, Message::default(), after(now, 1)), (None, Vec::new()));
        assert!(!node.tick(after(now, 2)).iter().any(|action| matches!(action, Action::Send { .. })));
        now = after(now, length);
        length = (length * 2).min(DROPPED_MOST);
        node.tick(now);
        assert!(node.heard(other.id, Message::default(), now).0.is_some());
        now = after(now, 61_000);
    }
    let view = node.peers().next().unwrap();
    assert_eq!(view.misbehaviors.len(), MAX_LIES);
    assert_eq!(view.misbehaviors[0].what, "the signature does not fit the content");
    assert_eq!(node.store().documents().count(), 2);
    node.lost(other.id);
    assert_eq!(node.peers().next().map(|view| view.misbehaviors.len()), Some(MAX_LIES), "remembered");
}

#[test]
fn an_answer_full_of_lies_is_no_better_than_a_request() {
    let (mut node, other) = met();
    let sent = node.tick(at(1_000));
    assert!(sent.iter().any(|action| matches!(action, Action::Send { to, .. } if *to == other.id)));
    let actions = node.answered(other.id, give(vec![other.status_of(agent(1).id, 9, 9, 9)]), at(1_001));
    assert_eq!(actions, [Action::Dropped { peer: other.id, why: Misbehavior::NotTheOwner }]);
}

#[test]
fn an_answer_that_nobody_asked_for_is_nothing() {
    let (mut node, other) = met();
    assert!(node.answered(other.id, give(vec![hub().member(&agent(3))]), START).is_empty());
    assert_eq!(node.store().documents().count(), 2);
}

#[test]
fn who_says_a_digest_back_does_not_look_as_if_it_had_the_same() {
    let (mut node, other) = met();
    let asked = node.tick(at(1_000)).into_iter().find_map(|action| match action {
        Action::Send { message, .. } => Some(message),
        _ => None,
    });
    let echo = Message { digest: asked.unwrap().digest, ..Message::default() };
    node.answered(other.id, echo, at(1_001));
    assert!(!node.peers().next().unwrap().in_step);
    let honest = Message { digest: node.store().digest_of(&other.id), ..Message::default() };
    node.heard(other.id, honest, at(1_002));
    assert!(node.peers().next().unwrap().in_step);
}

#[test]
fn who_never_stops_talking_is_dropped() {
    let (mut node, other) = met();
    for _ in 0..MESSAGES_PER_MINUTE {
        assert!(node.heard(other.id, Message::default(), START).0.is_some());
    }
    let (_, actions) = node.heard(other.id, Message::default(), START);
    assert_eq!(actions, [Action::Dropped { peer: other.id, why: Misbehavior::TooMany }]);
}

#[test]
fn a_clone_is_told_of_and_its_carrier_is_not_blamed() {
    let (mut node, carrier) = met();
    let twin = agent(3);
    node.put(hub().member(&twin)).unwrap();
    node.put(twin.status(4, 1, 1)).unwrap();
    let (answer, actions) = node.heard(carrier.id, give(vec![twin.status(4, 2, 2)]), START);
    assert!(answer.is_some());
    assert_eq!(actions, [Action::Dropped { peer: twin.id, why: Misbehavior::Clone(twin.id) }]);
    // Once is enough, and what was there stays.
    let (answer, actions) = node.heard(carrier.id, give(vec![twin.status(4, 3, 2)]), at(1));
    assert!(answer.is_some() && actions.is_empty());
    assert_eq!(node.store().version(&Name::Status(twin.id)), Some(Version(4, 1)));
    // Also when it is my own.
    let me = agent(1);
    node.put(me.status(1, 1, 1)).unwrap();
    let (_, actions) = node.heard(carrier.id, give(vec![me.status(1, 1, 2)]), at(2));
    assert_eq!(actions, [Action::Dropped { peer: me.id, why: Misbehavior::Clone(me.id) }]);
}

#[test]
fn a_retired_peer_hears_that_it_is_and_nothing_else() {
    let (mut node, other) = met();
    let retired = hub().sign(&Membership { retired: true, ..membership(&other, 2) });
    node.put(retired.clone()).unwrap();
    let question = Message { keys: 1, want: vec![Name::Membership(agent(1).id)], ..give(vec![other.status(1, 1, 1)]) };
    let (answer, actions) = node.heard(other.id, question, START);
    assert_eq!(answer, Some(Message { keys: 1, ..give(vec![retired]) }));
    assert!(actions.is_empty());
    assert_eq!(node.store().documents().count(), 2);
    assert!(!node.tick(at(1_000)).iter().any(|action| matches!(action, Action::Send { .. })));
}

#[test]
fn a_stranger_learns_nothing_but_who_one_is() {
    let (mut node, other) = met();
    let stranger = agent(9);
    node.put(hub().state(stream("drone"), 1, &[])).unwrap();
    let all = [Name::Membership(other.id), Name::State(stream("drone")), Name::Membership(agent(1).id)];
    let (answer, _) = node.heard(stranger.id, Message { want: all.to_vec(), ..Message::default() }, START);
    let answer = answer.unwrap();
    assert_eq!(answer.give, [hub().member(&agent(1))]);
    let (answer, _) = node.heard(stranger.id, Message::default(), START);
    let names: Vec<Name> = answer.unwrap().have.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [Name::Keys(1), Name::Membership(agent(1).id)]);
}

#[test]
fn a_liar_about_the_hub_is_outweighed_by_ones_own_word() {
    let (mut node, other) = met();
    let third = agent(3);
    node.put(hub().member(&third)).unwrap();
    node.found(third.id, START);
    node.heard(third.id, Message::default(), START);
    let claim = Message { reachable: vec![(third.id, 0)], ..Message::default() };
    node.heard(other.id, claim, at(1));
    assert_eq!(node.uplink(), None, "it said itself that it doesn't");
    let endless = Message { reach: Some(u64::MAX), reachable: vec![(third.id, u64::MAX)], ..Message::default() };
    node.heard(other.id, endless, at(100_000));
    assert_eq!(node.uplink(), None);
}

#[test]
fn what_the_driver_saw_counts_too() {
    let (mut node, other) = met();
    let why = Misbehavior::WrongBytes("sha256:00".to_owned());
    assert_eq!(node.accuse(other.id, why.clone(), START), [Action::Dropped { peer: other.id, why }]);
    assert_eq!(node.heard(other.id, Message::default(), at(1)), (None, Vec::new()));
}
