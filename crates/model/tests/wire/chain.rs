//! Key sets: an agent that was away for months follows the chain, and nothing but the chain.

use kedge_model::wire::*;

fn key(number: u8) -> SigningKey {
    SigningKey::from_seed(&[number; 32]).unwrap()
}

fn set(version: u64, keys: &[(u8, KeyState)]) -> KeySet {
    let keys = keys.iter().map(|(number, state)| {
        let public = key(*number).public();
        Key { id: public.id(), public, state: *state }
    });
    KeySet { version, created_at: Timestamp(0), keys: keys.collect(), authorities: vec!["PEM".to_owned()] }
}

fn signed(set: &KeySet, by: u8) -> Envelope {
    Envelope::sign(set, &key(by)).unwrap()
}

use KeyState::{Active, Announced, Retired};

#[test]
fn a_chain_is_followed_step_by_step() {
    let first = KeySet::first(&signed(&set(1, &[(1, Active)]), 1)).unwrap();
    let second = first.follow(&signed(&set(2, &[(1, Active), (2, Announced)]), 1)).unwrap();
    let third = second.follow(&signed(&set(3, &[(1, Retired), (2, Active)]), 1)).unwrap();
    let fourth = third.follow(&signed(&set(4, &[(2, Active)]), 2)).unwrap();
    assert_eq!(fourth.trusted(), [key(2).public()]);
    assert_eq!(third.trusted().len(), 2);
}

#[test]
fn an_announced_key_signs_nothing_yet() {
    let second = set(2, &[(1, Active), (2, Announced)]);
    assert!(!second.trusted().contains(&key(2).public()));
    let early = second.follow(&signed(&set(3, &[(2, Active)]), 2));
    assert!(matches!(early, Err(KeySetError::Envelope(EnvelopeError::Untrusted(_)))));
}

#[test]
fn a_retired_key_signs_no_further_set() {
    let third = set(3, &[(1, Retired), (2, Active)]);
    assert!(third.follow(&signed(&set(4, &[(1, Active)]), 1)).is_err());
}

#[test]
fn a_gap_or_a_step_back_is_refused() {
    let first = set(1, &[(1, Active)]);
    for version in [0, 1, 3, u64::MAX] {
        let refused = first.follow(&signed(&set(version, &[(1, Active)]), 1));
        assert!(matches!(refused, Err(KeySetError::Gap { known: 1, .. })), "{version}");
    }
}

#[test]
fn the_last_version_there_can_be_has_no_successor() {
    let last = set(u64::MAX, &[(1, Active)]);
    assert!(matches!(last.follow(&signed(&set(0, &[(1, Active)]), 1)), Err(KeySetError::Gap { .. })));
}

#[test]
fn a_first_set_must_be_signed_by_its_own_active_key() {
    assert!(KeySet::first(&signed(&set(1, &[(1, Active)]), 2)).is_err());
    assert!(KeySet::first(&signed(&set(1, &[(1, Announced)]), 1)).is_err());
    assert!(KeySet::first(&signed(&set(1, &[(1, Retired)]), 1)).is_err());
}

#[test]
fn a_key_under_another_ones_id_is_refused() {
    let mut lying = set(1, &[(1, Active), (2, Active)]);
    lying.keys[1].id = key(3).id();
    assert!(matches!(KeySet::first(&signed(&lying, 1)), Err(KeySetError::WrongId(1))));
}

#[test]
fn a_set_without_an_active_key_is_refused() {
    let first = set(1, &[(1, Active)]);
    let refused = first.follow(&signed(&set(2, &[(1, Retired), (2, Announced)]), 1));
    assert!(matches!(refused, Err(KeySetError::NoKey(2))));
}
