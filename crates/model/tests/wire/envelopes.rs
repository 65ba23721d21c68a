//! Signatures: whose are believed, and for which bytes.

use kedge_model::wire::envelope::MAX_SIGNATURES;
use kedge_model::wire::*;
use proptest::prelude::*;

use crate::any;

fn key(number: u8) -> SigningKey {
    SigningKey::from_seed(&[number; 32]).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_signed_opens_with_its_key_only(membership in any::membership()) {
        let envelope = Envelope::sign(&membership, &key(1)).unwrap();
        let again = Envelope::from_json(&envelope.to_json().unwrap()).unwrap();
        prop_assert_eq!(&again, &envelope);
        prop_assert_eq!(again.open::<Membership>(&[key(2).public(), key(1).public()]).unwrap(), membership);
        let refused = again.open::<Membership>(&[key(2).public()]);
        prop_assert!(matches!(refused, Err(EnvelopeError::Untrusted(_))));
    }

    #[test]
    fn one_changed_bit_is_a_forgery(membership in any::membership(), at in any::<prop::sample::Index>(), bit in 0..8_u32) {
        let mut envelope = Envelope::sign(&membership, &key(1)).unwrap();
        let at = at.index(envelope.payload.len());
        envelope.payload[at] ^= 1 << bit;
        let refused = envelope.open::<Membership>(&[key(1).public()]);
        prop_assert!(matches!(refused, Err(EnvelopeError::Forged(_))));
    }

    #[test]
    fn a_changed_signature_is_a_forgery(at in 0..64_usize, bit in 0..8_u32) {
        let mut envelope = Envelope::sign_bytes("t", b"bytes".to_vec(), &key(1));
        envelope.signatures[0].sig[at] ^= 1 << bit;
        prop_assert!(matches!(envelope.verify("t", &[key(1).public()]), Err(EnvelopeError::Forged(_))));
    }
}

#[test]
fn a_turn_is_the_hubs_for_one_cluster_one_stream_and_states_up_to_one() {
    let (mine, other) = (ClusterId::of_public_key(&[1; 32]), ClusterId::of_public_key(&[2; 32]));
    let stream = Stream::new("prod", "drone", "first");
    let turn =
        Turn { cluster: mine, stream: stream.clone(), generation: Generation(4), issued_at: Timestamp(1), asked: None };
    let envelope = Envelope::sign(&turn, &key(1)).unwrap();
    assert_eq!(envelope.open::<Turn>(&[key(1).public()]).unwrap(), turn);
    assert!(matches!(envelope.open::<Turn>(&[key(2).public()]), Err(EnvelopeError::Untrusted(_))));
    let state = |stream: &Stream, generation| DesiredState {
        stream: stream.clone(),
        generation: Generation(generation),
        created_at: Timestamp(1),
        confirmed: 0,
        entries: Vec::new(),
        removed: Vec::new(),
        unmanaged: Vec::new(),
        source: None,
        turns: true,
        requires: Vec::new(),
    };
    assert!(turn.admits(&mine, &state(&stream, 4)) && turn.admits(&mine, &state(&stream, 3)));
    assert!(!turn.admits(&mine, &state(&stream, 5)));
    assert!(!turn.admits(&other, &state(&stream, 4)));
    assert!(!turn.admits(&mine, &state(&Stream::new("prod", "drone", "rest"), 4)));
}

#[test]
fn one_message_can_not_pass_for_another() {
    let state = Envelope::sign_bytes(DesiredState::TYPE, b"{}".to_vec(), &key(1));
    assert!(matches!(state.open::<Membership>(&[key(1).public()]), Err(EnvelopeError::Type { .. })));
    let mut renamed = state;
    renamed.payload_type = Membership::TYPE.to_owned();
    assert!(matches!(renamed.open::<Membership>(&[key(1).public()]), Err(EnvelopeError::Forged(_))));
}

#[test]
fn lengths_are_part_of_what_is_signed() {
    // Without the lengths, a type and a payload could trade bytes.
    let envelope = Envelope::sign_bytes("ab", b"c d".to_vec(), &key(1));
    let moved = Envelope { payload_type: "ab c".to_owned(), payload: b"d".to_vec(), ..envelope };
    assert!(moved.verify("ab c", &[key(1).public()]).is_err());
}

#[test]
fn more_signatures_than_anybody_needs_are_refused_unchecked() {
    let mut envelope = Envelope::sign_bytes("t", b"bytes".to_vec(), &key(1));
    let one = envelope.signatures[0].clone();
    envelope.signatures = vec![one; MAX_SIGNATURES + 1];
    assert!(matches!(envelope.verify("t", &[key(1).public()]), Err(EnvelopeError::TooMany(_))));
}

#[test]
fn a_good_signature_beside_a_foreign_one_is_enough() {
    let mut envelope = Envelope::sign_bytes("t", b"bytes".to_vec(), &key(1));
    let other = Envelope::sign_bytes("t", b"bytes".to_vec(), &key(2));
    envelope.signatures.insert(0, other.signatures[0].clone());
    assert!(envelope.verify("t", &[key(1).public()]).is_ok());
    assert!(envelope.verify("t", &[key(2).public()]).is_ok());
    assert!(envelope.verify("t", &[]).is_err());
}

#[test]
fn an_unsigned_envelope_is_refused() {
    let mut envelope = Envelope::sign_bytes("t", b"bytes".to_vec(), &key(1));
    envelope.signatures.clear();
    assert!(matches!(envelope.verify("t", &[key(1).public()]), Err(EnvelopeError::Untrusted(_))));
}
