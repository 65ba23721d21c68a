//! YAML of a stranger: as nodes with their lines, and as values the way Go reads them.

#![no_main]

use kedge_goyaml::{Limits, decode, encode, node};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(documents) = node::parse_bytes(bytes, &Limits::default()) {
        for document in &documents {
            _ = document.to_value();
            _ = document.resolve();
        }
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(value) = decode(text) {
        // What we write, we can read.
        let written = encode(&value, 4);
        assert!(decode(&written).is_ok(), "written from {text:?} and unreadable: {written:?}");
    }
});
