//! An event of a forge: headers and body of a stranger, and the same body with the right signature.

#![no_main]

use http::{HeaderMap, HeaderValue};
use kedge_hub::git::webhook;
use libfuzzer_sys::fuzz_target;
use ring::hmac;

const SECRET: &[u8] = b"what both sides know";

fuzz_target!(|bytes: &[u8]| {
    let (first, body) = bytes.split_at(bytes.len().min(80));
    if let Ok(value) = HeaderValue::from_bytes(first) {
        for name in ["x-hub-signature-256", "x-gitea-signature"] {
            assert!(webhook::parse(&HeaderMap::from_iter([(name.parse().expect("a name"), value.clone())]), body, SECRET).is_err());
        }
    }
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET), bytes);
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let value = HeaderValue::from_str(&hex).expect("hexadecimal digits");
    _ = webhook::parse(&HeaderMap::from_iter([("x-gitea-signature".parse().expect("a name"), value)]), bytes, SECRET);
});
