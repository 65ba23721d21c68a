//! Each misbehavior of the issue, offered to a store; and that honest documents come out the same in any order.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

use kedge_model::wire::{Envelope, Generation, KeyState, Membership, Turn};
use proptest::prelude::*;

use super::*;
use crate::fixture::{self, Agent, SITE, agent, holds, hub, key_set, membership, signing, stream};
use crate::pace::{MAX_STATE, MAX_TURN};

fn store(me: &Agent) -> DocumentStore {
    let mut store = DocumentStore::new(me.id, SITE, hub().keys);
    store.take(hub().member(me)).unwrap();
    store
}

fn listed(store: &DocumentStore) -> Vec<(Name, Version)> {
    store.documents().map(|(name, version, _)| (name.clone(), version)).collect()
}

/// Nothing of it stays, and this is said.
fn refused(store: &mut DocumentStore, envelope: Envelope, why: &Misbehavior) {
    let before = listed(store);
    assert_eq!(store.take(envelope).as_ref(), Err(why));
    assert_eq!(listed(store), before);
}

#[test]
fn what_the_hub_and_the_owners_signed_is_taken() {
    let (me, other) = (agent(1), agent(2));
    let mut store = store(&me);
    assert_eq!(store.take(hub().member(&other)), Ok(Taken::New(Name::Membership(other.id))));
    assert_eq!(store.take(hub().member(&other)), Ok(Taken::Known));
    let state = hub().state(stream("drone"), 3, &[Digest::of(b"shop")]);
    assert_eq!(store.take(state), Ok(Taken::New(Name::State(stream("drone")))));
    assert_eq!(store.take(other.status(1, 4, 1)), Ok(Taken::New(Name::Status(other.id))));
    let by = hub().key.id();
    assert_eq!(store.take(hub().sign(&holds(&other, 1))), Ok(Taken::New(Name::Holds { of: other.id, by })));
    let by = other.key.id();
    assert_eq!(store.take(other.holds(&me, 1)), Ok(Taken::New(Name::Holds { of: me.id, by })));
    assert!(store.may_have(&other.id, &Digest::of(b"shop")));
    assert!(!store.may_have(&other.id, &Digest::of(b"till")));
    assert!(!store.may_have(&agent(3).id, &Digest::of(b"shop")));
}

#[test]
fn forged_documents_and_those_of_others_are_refused() {
    let (me, other, stranger) = (agent(1), agent(2), signing(99));
    let mut store = store(&me);
    store.take(hub().member(&other)).unwrap();
    let mut changed = hub().state(stream("drone"), 3, &[]);
    changed.payload[20] ^= 1;
    refused(&mut store, changed, &Misbehavior::Forged);
    let mut changed = other.status(1, 1, 1);
    *changed.payload.last_mut().unwrap() ^= 1;
    refused(&mut store, changed, &Misbehavior::Forged);
    refused(&mut store, me.status_of(other.id, 1, 1, 1), &Misbehavior::NotTheOwner);
    let elsewhere = Envelope::sign(&membership(&agent(3), 1), &stranger).unwrap();
    refused(&mut store, elsewhere, &Misbehavior::OtherFleet);
    let made_up = Envelope::sign(&membership(&me, 9), &other.key).unwrap();
    refused(&mut store, made_up, &Misbehavior::OtherFleet);
    let mut stolen = other.holds(&me, 1);
    store.take(other.status(1, 1, 1)).unwrap();
    stolen.signatures[0].sig[3] ^= 1;
    refused(&mut store, stolen, &Misbehavior::Forged);
    let unknown = Envelope::sign_bytes("application/vnd.example+json", b"{}".to_vec(), &hub().key);
    assert!(matches!(store.take(unknown), Err(Misbehavior::Unreadable(_))));
    let large = Envelope::sign_bytes(
        <kedge_model::wire::DesiredState as kedge_model::wire::Payload>::TYPE,
        vec![b' '; MAX_STATE + 1],
        &hub().key,
    );
    refused(&mut store, large, &Misbehavior::TooLarge(MAX_STATE + 1, MAX_STATE));
}

#[test]
fn what_is_older_changes_nothing() {
    let (me, other) = (agent(1), agent(2));
    let mut store = store(&me);
    store.take(hub().sign(&membership(&other, 5))).unwrap();
    store.take(hub().state(stream("drone"), 3, &[])).unwrap();
    store.take(other.status(4, 7, 1)).unwrap();
    store.take(hub().sign(&holds(&other, 6))).unwrap();
    let before = listed(&store);
    for older in [
        hub().sign(&membership(&other, 4)),
        hub().state(stream("drone"), 2, &[]),
        other.status(3, 9, 2),
        other.status(4, 6, 1),
        hub().sign(&holds(&other, 5)),
    ] {
        assert_eq!(store.take(older), Ok(Taken::Older));
    }
    assert_eq!(listed(&store), before);
    assert_eq!(store.take(other.status(4, 8, 1)), Ok(Taken::New(Name::Status(other.id))));
}

#[test]
fn a_turn_is_taken_from_the_hub_alone_and_the_later_one_counts() {
    let (me, other, hub) = (agent(1), agent(2), hub());
    let mut store = store(&me);
    assert_eq!(store.take(hub.turn(&other, 3, 20)), Ok(Taken::NotYet), "whose it is isn't known yet");
    store.take(hub.member(&other)).unwrap();
    let turn = |generation| {
        let issued_at = fixture::START;
        Turn { cluster: other.id, stream: stream("drone"), generation: Generation(generation), issued_at, asked: None }
    };
    refused(&mut store, Envelope::sign(&turn(9), &other.key).unwrap(), &Misbehavior::OtherFleet);
    refused(&mut store, Envelope::sign(&turn(9), &me.key).unwrap(), &Misbehavior::OtherFleet);
    let mut stolen = hub.turn(&me, 3, 20);
    stolen.payload = serde_json::to_vec(&turn(3)).unwrap();
    refused(&mut store, stolen, &Misbehavior::Forged);
    let large = Envelope::sign_bytes(<Turn as kedge_model::wire::Payload>::TYPE, vec![b' '; MAX_TURN + 1], &hub.key);
    refused(&mut store, large, &Misbehavior::TooLarge(MAX_TURN + 1, MAX_TURN));

    assert_eq!(store.take(hub.turn(&other, 3, 20)), Ok(Taken::New(Name::Turn(other.id))));
    assert_eq!(store.take(hub.turn(&other, 3, 20)), Ok(Taken::Known));
    assert_eq!(store.take(hub.turn(&other, 9, 10)), Ok(Taken::Older));
    // Another stream counts from one again.
    assert_eq!(store.take(hub.turn(&other, 1, 30)), Ok(Taken::New(Name::Turn(other.id))));
    assert!(store.may_read(&Name::Turn(other.id), &me.id) && !store.may_read(&Name::Turn(other.id), &agent(3).id));
    store.take(hub.sign(&Membership { retired: true, ..membership(&other, 2) })).unwrap();
    assert_eq!(store.version(&Name::Turn(other.id)), None);
    refused(&mut store, hub.turn(&other, 2, 40), &Misbehavior::NotAMember(other.id));
}

#[test]
fn a_document_of_a_newer_version_is_passed_over_without_blame() {
    let mut store = store(&agent(1));
    let newer = Envelope::sign_bytes("application/vnd.kedge.song.v1+json", b"{}".to_vec(), &agent(2).key);
    assert_eq!(store.take(newer), Ok(Taken::NotYet));
}

#[test]
fn a_state_of_another_stream_is_only_a_relays() {
    let (me, other) = (agent(1), agent(2));
    let mut store = store(&me);
    let state = hub().state(stream("press"), 1, &[Digest::of(b"press")]);
    refused(&mut store, state.clone(), &Misbehavior::OtherStream("prod/press/all".to_owned()));
    store.take(hub().sign(&Membership { relay: true, ..membership(&me, 2) })).unwrap();
    assert_eq!(store.take(state.clone()), Ok(Taken::NotYet));
    store.take(hub().sign(&Membership { stream: stream("press"), ..membership(&other, 1) })).unwrap();
    assert_eq!(store.take(state), Ok(Taken::New(Name::State(stream("press")))));
    assert!(store.may_have(&other.id, &Digest::of(b"press")));
    assert!(store.may_have(&me.id, &Digest::of(b"press")));
    assert!(store.may_read(&Name::State(stream("press")), &other.id));
    // The other moves on: nobody follows it any more.
    store.take(hub().member(&agent(3))).unwrap();
    assert!(!store.may_read(&Name::State(stream("press")), &agent(3).id));
    store.take(hub().sign(&membership(&other, 2))).unwrap();
    assert_eq!(store.version(&Name::State(stream("press"))), None);
}

#[test]
fn a_clone_is_refused_and_a_later_epoch_ends_it() {
    let (me, other) = (agent(1), agent(2));
    let mut store = store(&me);
    store.take(hub().member(&other)).unwrap();
    store.take(other.status(4, 7, 1)).unwrap();
    refused(&mut store, other.status(4, 9, 2), &Misbehavior::Clone(other.id));
    assert_eq!(store.take(other.status(5, 1, 2)), Ok(Taken::New(Name::Status(other.id))));
}

#[test]
fn who_left_or_was_retired_is_gone_with_all_it_wrote() {
    let (me, other) = (agent(1), agent(2));
    for gone in [
        Membership { retired: true, ..membership(&other, 2) },
        Membership { site: Some("hamburg".to_owned()), ..membership(&other, 2) },
    ] {
        let mut store = store(&me);
        store.take(hub().member(&other)).unwrap();
        store.take(other.status(1, 1, 1)).unwrap();
        store.take(other.holds(&me, 1)).unwrap();
        store.take(hub().sign(&gone)).unwrap();
        assert!(store.is_gone(&other.id) && store.member(&other.id).is_none());
        assert_eq!(store.documents().count(), 2);
        let why = if gone.retired { Misbehavior::NotAMember(other.id) } else { Misbehavior::OtherSite(other.id) };
        refused(&mut store, other.status(2, 1, 1), &why);
        refused(&mut store, other.holds(&me, 2), &why);
        assert_eq!(store.take(hub().member(&other)), Ok(Taken::Older));
        // A stranger's end is no news.
        let mut fresh = DocumentStore::new(me.id, SITE, hub().keys);
        refused(&mut fresh, hub().sign(&gone), &why);
    }
}

#[test]
fn key_sets_are_followed_step_by_step_and_kept_for_those_behind() {
    let (first, next) = (hub().key, signing(61_000));
    let second = key_set(2, &[(&first, KeyState::Active), (&next, KeyState::Announced)]);
    let third = key_set(3, &[(&first, KeyState::Retired), (&next, KeyState::Active)]);
    let chain = [Envelope::sign(&second, &first).unwrap(), Envelope::sign(&third, &first).unwrap()];
    let mut behind = store(&agent(1));
    assert_eq!(behind.take(chain[1].clone()), Ok(Taken::NotYet));
    let early = Envelope::sign(&membership(&agent(2), 1), &next).unwrap();
    refused(&mut behind, early.clone(), &Misbehavior::OtherFleet);
    assert_eq!(behind.take(chain[0].clone()), Ok(Taken::New(Name::Keys(2))));
    refused(&mut behind, early.clone(), &Misbehavior::OtherFleet);
    let usurped = Envelope::sign(&key_set(3, &[(&next, KeyState::Active)]), &next).unwrap();
    refused(&mut behind, usurped, &Misbehavior::OtherFleet);
    assert_eq!(behind.take(chain[1].clone()), Ok(Taken::New(Name::Keys(3))));
    assert_eq!(behind.take(early), Ok(Taken::New(Name::Membership(agent(2).id))));

    // Who joined with the third set keeps the older ones for others, if the fleet's keys signed them.
    let mut ahead = DocumentStore::new(agent(3).id, SITE, third);
    assert_eq!(ahead.take(chain[1].clone()), Ok(Taken::New(Name::Keys(3))));
    assert_eq!(ahead.take(chain[0].clone()), Ok(Taken::New(Name::Keys(2))));
    assert_eq!(ahead.keys().version, 3);
    let made_up = Envelope::sign(&key_set(1, &[(&signing(5), KeyState::Active)]), &signing(5)).unwrap();
    assert_eq!(ahead.take(made_up), Ok(Taken::Older));
    assert_eq!(ahead.lacking(&agent(1).id, &[(Name::Keys(1), Version(1, 0))]), [Name::Keys(2), Name::Keys(3)]);
}

#[test]
fn the_hub_is_one_writer_of_holds_whichever_key_signs() {
    let (me, next) = (agent(1), signing(61_000));
    let mut store = store(&me);
    store.take(hub().sign(&holds(&me, 1))).unwrap();
    let second = key_set(2, &[(&hub().key, KeyState::Retired), (&next, KeyState::Active)]);
    store.take(Envelope::sign(&second, &hub().key).unwrap()).unwrap();
    let later = Envelope::sign(&holds(&me, 2), &next).unwrap();
    assert_eq!(store.take(later), Ok(Taken::New(Name::Holds { of: me.id, by: next.id() })));
    assert_eq!(store.version(&Name::Holds { of: me.id, by: hub().key.id() }), None);
    assert_eq!(store.take(hub().sign(&holds(&me, 1))), Ok(Taken::Older));
}

#[test]
fn holds_of_an_agent_are_judged_by_the_key_that_they_name() {
    let (me, other) = (agent(1), agent(2));
    let mut store = store(&me);
    store.take(hub().member(&other)).unwrap();
    assert_eq!(store.take(other.holds(&me, 1)), Ok(Taken::NotYet));
    let mut document = serde_json::to_value(holds(&me, 1)).unwrap();
    document["key"] = serde_json::to_value(other.key.public()).unwrap();
    let bytes = serde_json::to_vec(&document).unwrap();
    let kind = <kedge_model::wire::HoldDocument as kedge_model::wire::Payload>::TYPE;
    let named = Envelope::sign_bytes(kind, bytes.clone(), &other.key);
    refused(&mut store, Envelope::sign_bytes(kind, bytes, &signing(77)), &Misbehavior::NotTheOwner);
    assert_eq!(store.take(named), Ok(Taken::New(Name::Holds { of: me.id, by: other.key.id() })));
}

#[test]
fn signs_of_life_count_only_of_members_and_by_themselves() {
    let (me, other) = (agent(1), agent(2));
    let mut store = store(&me);
    assert_eq!(store.check_presence(&other.presence(1)), Ok(None));
    store.take(hub().member(&other)).unwrap();
    assert!(store.check_presence(&other.presence(1)).unwrap().is_some());
    let mut forged = other.presence(2);
    forged.payload[30] ^= 1;
    assert!(store.check_presence(&forged).is_err());
}

#[test]
fn a_full_store_takes_no_more_of_others_but_its_own() {
    let me = agent(1);
    let mut store = DocumentStore::new(me.id, SITE, hub().keys);
    store.bytes = MAX_BYTES;
    refused(&mut store, hub().member(&agent(2)), &Misbehavior::Full);
    assert_eq!(store.take(hub().member(&me)), Ok(Taken::New(Name::Membership(me.id))));
    assert_eq!(store.take(hub().turn(&me, 1, 1)), Ok(Taken::New(Name::Turn(me.id))));
}

#[test]
fn the_bytes_are_counted_as_documents_come_and_go() {
    let (me, other) = (agent(1), agent(2));
    let mut store = store(&me);
    let before = store.bytes();
    store.take(hub().member(&other)).unwrap();
    store.take(other.status(1, 1, 1)).unwrap();
    store.take(other.status(2, 1, 1)).unwrap();
    let whole: usize = store.documents().map(|(_, _, envelope)| weight(envelope)).sum();
    assert_eq!(store.bytes(), whole);
    store.take(hub().sign(&Membership { retired: true, ..membership(&other, 2) })).unwrap();
    assert!(store.bytes() > before);
    assert_eq!(store.bytes(), store.documents().map(|(_, _, envelope)| weight(envelope)).sum::<usize>());
}

/// Honest documents of a small site, and one that moved away.
fn honest() -> Vec<Envelope> {
    let (hub, agents) = (hub(), [agent(1), agent(2), agent(3)]);
    let next = signing(61_000);
    let second = key_set(2, &[(&hub.key, KeyState::Active), (&next, KeyState::Announced)]);
    let third = key_set(3, &[(&hub.key, KeyState::Retired), (&next, KeyState::Active)]);
    let mut all = vec![Envelope::sign(&second, &hub.key).unwrap(), Envelope::sign(&third, &hub.key).unwrap()];
    all.push(Envelope::sign(&Membership { relay: true, ..membership(&agents[0], 2) }, &next).unwrap());
    for agent in &agents {
        all.extend([hub.member(agent), agent.status(1, 1, 1), agent.status(1, 2, 1), agent.status(2, 1, 3)]);
        all.extend([hub.turn(agent, 2, 10), hub.turn(agent, 1, 20)]);
        all.extend([hub.sign(&holds(agent, 1)), hub.sign(&holds(agent, 2)), agents[0].holds(agent, 3)]);
    }
    all.push(hub.sign(&Membership { stream: stream("press"), ..membership(&agents[1], 2) }));
    all.push(hub.sign(&Membership { site: None, ..membership(&agents[2], 3) }));
    for generation in 1..3 {
        all.extend([hub.state(stream("drone"), generation, &[]), hub.state(stream("press"), generation, &[])]);
    }
    all
}

/// Offers everything until nothing is new.
fn settle(store: &mut DocumentStore, documents: &[Envelope]) {
    for _ in 0..10 {
        let mut new = false;
        for envelope in documents {
            new |= matches!(store.take(envelope.clone()), Ok(Taken::New(_)));
        }
        if !new {
            return;
        }
    }
    panic!("the shelf never settles");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_order_and_repetition_gives_the_same_store(
        documents in Just(honest()).prop_shuffle(), again in prop::collection::vec(0_usize..36, 0..20)
    ) {
        let mut straight = store(&agent(1));
        settle(&mut straight, &honest());
        let mut mixed = store(&agent(1));
        for index in again {
            let _ = mixed.take(documents[index % documents.len()].clone());
        }
        settle(&mut mixed, &documents);
        prop_assert_eq!(listed(&mixed), listed(&straight));
        prop_assert_eq!(mixed.digest(&agent(2).id), straight.digest(&agent(2).id));
    }

    #[test]
    fn a_changed_byte_anywhere_is_never_taken(which in 0_usize..36, place in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let documents = honest();
        let mut envelope = documents[which % documents.len()].clone();
        let place = place.index(envelope.payload.len());
        envelope.payload[place] ^= 1 << bit;
        let mut store = store(&agent(1));
        settle(&mut store, &documents);
        let before = listed(&store);
        prop_assert!(!matches!(store.take(envelope), Ok(Taken::New(_))));
        prop_assert_eq!(listed(&store), before);
    }

    #[test]
    fn any_payload_of_any_type_is_refused_without_harm(
        kind in 0_usize..6, bytes in prop::collection::vec(any::<u8>(), 0..200), own in any::<bool>()
    ) {
        let kinds = honest().iter().map(|envelope| envelope.payload_type.clone()).collect::<BTreeSet<_>>();
        let kind = kinds.iter().nth(kind % kinds.len()).unwrap().clone();
        let key = if own { agent(2).key } else { fixture::hub().key };
        let mut store = store(&agent(1));
        store.take(hub().member(&agent(2))).unwrap();
        let before = listed(&store);
        let _ = store.take(Envelope::sign_bytes(&kind, bytes, &key));
        prop_assert_eq!(listed(&store), before);
    }
}
