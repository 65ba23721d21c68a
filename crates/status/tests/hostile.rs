//! Bytes that nobody meant: every reader's input is changed, cut and made to lie. Nothing may panic through, hang or grow.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

use std::io::{Read as _, Write as _};

use kedge_model::wire::{Digest, Envelope, Generation, PackagesKey, SigningKey, Timestamp};
use kedge_status::{Condition, Limits, Nonce, PAYLOAD_TYPE, ReadError, Report, StatusDocument, read};
use proptest::prelude::*;

fn key() -> SigningKey {
    SigningKey::from_seed(&[1; 32]).unwrap()
}

/// A document with some history.
fn payload(rounds: i64) -> Vec<u8> {
    let mut document = StatusDocument::new(key().public(), 1, Nonce([7; 16])).as_actor([9; 16]);
    for round in 0..rounds {
        let running = PackagesKey::of_observed(&Digest::of(&round.to_le_bytes()));
        let report = Report {
            desired: Some(running),
            generation: Generation(1),
            running: Some(running),
            version: None,
            condition: Condition::Converging,
            since: Timestamp(round),
            observed_at: Timestamp(round),
            drift: None,
            clock: 0,
        };
        document.set_report(&format!("assignment-{}", round % 20), &report).unwrap();
    }
    document.seal(&key(), Timestamp(1), None).unwrap().payload
}

/// The header with its length, and the inflated rest.
fn split(payload: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let length = u32::from_be_bytes(payload[..4].try_into().unwrap()) as usize;
    let mut body = Vec::new();
    flate2::read::DeflateDecoder::new(&payload[4 + length..]).read_to_end(&mut body).unwrap();
    (payload[..4 + length].to_vec(), body)
}

/// Automerge's bytes.
fn document(payload: &[u8]) -> Vec<u8> {
    let (_, body) = split(payload);
    let events = u32::from_be_bytes(body[..4].try_into().unwrap()) as usize;
    body[4 + events..].to_vec()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn sign(payload: Vec<u8>) -> Envelope {
    Envelope::sign_bytes(PAYLOAD_TYPE, payload, &key())
}

/// The chunk with a checksum that fits: what a hostile owner would send.
fn with_checksum(mut document: Vec<u8>) -> Vec<u8> {
    if document.len() < 10 {
        return document;
    }
    let digest = Digest::of(&document[8..]);
    document[4..8].copy_from_slice(&digest.as_bytes()[..4]);
    document
}

fn try_document(payload: &[u8], document: Vec<u8>) -> Result<(), ReadError> {
    let (mut whole, body) = split(payload);
    let events = u32::from_be_bytes(body[..4].try_into().unwrap()) as usize;
    let body = [body[..4 + events].to_vec(), with_checksum(document)].concat();
    whole.extend(deflate(&body));
    read(&sign(whole), &Limits::default()).map(|_| ())
}

fn leb(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push((number as u8 & 0x7f) | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A chunk with these columns of changes and of operations.
fn chunk(changes: &[(u64, Vec<u8>)], operations: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut body = vec![1, 16];
    body.extend([9; 16]);
    body.push(0);
    for columns in [changes, operations] {
        leb(columns.len() as u64, &mut body);
        for (number, data) in columns {
            leb(*number, &mut body);
            leb(data.len() as u64, &mut body);
        }
    }
    for (_, data) in changes.iter().chain(operations) {
        body.extend(data);
    }
    let mut out = vec![0x85, 0x6f, 0x4a, 0x83, 0, 0, 0, 0, 0];
    leb(body.len() as u64, &mut out);
    out.extend(body);
    out
}

#[test]
fn a_run_of_a_billion_operations_is_refused_before_it_is_made() {
    let payload = payload(1);
    let mut run = Vec::new();
    leb(1_000_000_000, &mut run);
    run.push(1);
    let refused = |changes: &[(u64, Vec<u8>)], operations: &[(u64, Vec<u8>)]| {
        matches!(try_document(&payload, chunk(changes, operations)), Err(ReadError::Guard(_)))
    };
    for number in [0x00, 0x01, 0x02, 0x03, 0x04, 0x13, 0x15, 0x42, 0x56, 0x70] {
        assert!(refused(&[], &[(number, run.clone())]), "operations {number:#x}");
        assert!(refused(&[(number, run.clone())], &[]), "changes {number:#x}");
    }
    let nulls = [vec![0], run.clone()].concat();
    assert!(refused(&[], &[(0x15, nulls)]));
    let booleans = run[..run.len() - 1].to_vec();
    assert!(refused(&[], &[(0x34, booleans)]));
}

#[test]
fn changes_that_claim_more_operations_than_there_are_are_refused() {
    let payload = payload(1);
    // A thousand changes on nothing, each claiming ten thousand operations: 10, then differences of zero.
    let mut last_operations = vec![0x7f];
    leb(10_000, &mut last_operations);
    leb(900, &mut last_operations);
    last_operations.push(0);
    let mut counts = Vec::new();
    leb(901, &mut counts);
    counts.push(0);
    let columns = [(0x13, last_operations), (0x40, counts)];
    assert!(matches!(try_document(&payload, chunk(&columns, &[])), Err(ReadError::Guard(_))));
}

#[test]
fn a_deflate_bomb_is_refused_before_it_is_inflated() {
    let bomb = deflate(&vec![0; 100 << 20]);
    assert!(bomb.len() < 200 << 10);
    let payload = payload(1);
    let (mut whole, _) = split(&payload);
    whole.extend(&bomb);
    assert!(matches!(read(&sign(whole), &Limits::default()), Err(ReadError::Payload(_))));
    // As a column of a document, and as a compressed change.
    let tried = try_document(&payload, chunk(&[], &[(0x57 | 8, bomb.clone())]));
    assert!(matches!(tried, Err(ReadError::Guard(_))));
    let mut change = vec![0x85, 0x6f, 0x4a, 0x83, 0, 0, 0, 0, 2];
    leb(bomb.len() as u64, &mut change);
    change.extend(bomb);
    assert!(matches!(try_document(&payload, change), Err(ReadError::Guard(_))));
}

#[test]
fn a_payload_over_the_limit_is_refused_unread() {
    let big = sign(vec![0; 256 * 1024 + 1]);
    assert!(matches!(read(&big, &Limits::default()), Err(ReadError::TooLarge { .. })));
}

#[test]
fn two_columns_of_one_name_are_refused() {
    let columns = [(0x13, vec![1, 1]), (0x13, vec![1, 1])];
    assert!(matches!(try_document(&payload(1), chunk(&columns, &[])), Err(ReadError::Guard(_))));
}

fn quiet<T>(work: impl FnOnce() -> T) -> T {
    // Automerge's own panics are expected here; the default hook would print thousands of them.
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    work()
}

fn cases() -> u32 {
    std::env::var("KEDGE_FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn a_document_with_changed_bytes_is_read_or_refused(
        rounds in prop_oneof![Just(1_i64), Just(5), Just(60)],
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let payload = payload(rounds);
        let mut document = document(&payload);
        for (index, byte) in changes {
            let at = index.index(document.len());
            document[at] = byte;
        }
        if let Some(cut) = cut {
            document.truncate(cut.index(document.len()));
        }
        let _ = quiet(|| try_document(&payload, document));
    }

    #[test]
    fn a_flipped_bit_is_read_or_refused(bit in any::<prop::sample::Index>(), rounds in 1..30_i64) {
        let payload = payload(rounds);
        let mut document = document(&payload);
        let bit = bit.index(document.len() * 8);
        document[bit / 8] ^= 1 << (bit % 8);
        let _ = quiet(|| try_document(&payload, document));
    }

    #[test]
    fn any_payload_is_read_or_refused(payload in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(quiet(|| read(&sign(payload), &Limits::default())).is_err());
    }

    #[test]
    fn any_columns_are_read_or_refused(
        changes in prop::collection::btree_map(0..0x80_u64, prop::collection::vec(any::<u8>(), 0..20), 0..9),
        operations in prop::collection::btree_map(0..0x90_u64, prop::collection::vec(any::<u8>(), 0..20), 0..9),
    ) {
        let list = |columns: std::collections::BTreeMap<u64, Vec<u8>>| columns.into_iter().collect::<Vec<_>>();
        let document = chunk(&list(changes), &list(operations));
        let _ = quiet(|| try_document(&payload(1), document));
    }

    #[test]
    fn any_body_is_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..400)) {
        let (mut whole, _) = split(&payload(1));
        whole.extend(deflate(&body));
        let _ = quiet(|| read(&sign(whole), &Limits::default()));
    }

    #[test]
    fn a_truncated_payload_is_refused(at in any::<prop::sample::Index>()) {
        let whole = payload(10);
        let cut = whole[..at.index(whole.len())].to_vec();
        prop_assert!(quiet(|| read(&sign(cut), &Limits::default())).is_err());
    }
}
