//! A status document: the whole envelope, and a header, events and document of a stranger's choice that its owner signed.

#![no_main]

use std::sync::LazyLock;

use kedge_model::wire::{ClusterId, Envelope, SigningKey};
use kedge_status::{Limits, PAYLOAD_TYPE, header, read, read_all};
use libfuzzer_sys::fuzz_target;

static KEY: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::from_seed(&[7; 32]).expect("a key from a seed"));

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits::default();
    if let Ok(envelope) = Envelope::from_json(bytes) {
        _ = read(&envelope, &limits);
    }
    for payload in [bytes.to_vec(), with_header(bytes)] {
        let envelope = Envelope::sign_bytes(PAYLOAD_TYPE, payload, &KEY);
        _ = header(&envelope, &limits);
        _ = read(&envelope, &limits);
        _ = read_all(&[&envelope, &envelope], &limits);
    }
});

/// The bytes behind a right header.
fn with_header(rest: &[u8]) -> Vec<u8> {
    let (key, cluster) = (KEY.public(), ClusterId::of_public_key(KEY.public().as_bytes()));
    let head = serde_json::json!({
        "cluster": cluster, "key": key, "epoch": 1, "nonce": "00000000000000000000000000000000", "writtenAt": 1790000000000_u64,
    })
    .to_string();
    let mut payload = (head.len() as u32).to_be_bytes().to_vec();
    payload.extend_from_slice(head.as_bytes());
    payload.extend_from_slice(rest);
    payload
}
