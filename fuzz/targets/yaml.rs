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
        // What we write, we can read; but for what yaml.v3, whose bytes these are, writes and can't read itself: lines of which the
        // first begins with a tab.
        let written = encode(&value, 4);
        let read = decode(&written);
        let is_theirs = |why: &dyn std::fmt::Display| why.to_string().contains("tab is used for indentation");
        assert!(
            read.as_ref().err().is_none_or(|why| is_theirs(why)),
            "written from {text:?} and unreadable: {written:?}"
        );
    }
});
