//! YAML of a stranger: as nodes with their lines, and as values the way Go reads them.

#![no_main]

use kedge_goyaml::{Key, Limits, Value, decode, encode, node};
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
        // What we write, we can read; but for what yaml.v3, whose bytes these are, writes and can't read itself.
        let written = encode(&value, 4);
        let read = decode(&written);
        assert!(
            read.is_ok() || yaml_v3_loses(&value),
            "written from {text:?} and unreadable ({read:?}): {written:?}"
        );
    }
});

/// Whether a text of several lines begins with white space somewhere: yaml.v3 then counts the indentation of its block from the wrong
/// column, and stumbles over a tab.
fn yaml_v3_loses(value: &Value) -> bool {
    let lost = |text: &str| text.contains(is_break) && text.starts_with(|c| c == ' ' || c == '\t' || is_break(c));
    match value {
        Value::String(text) => lost(text),
        Value::List(items) => items.iter().any(yaml_v3_loses),
        Value::Map(map) => {
            map.iter().any(|(key, value)| matches!(key, Key::String(text) if lost(text)) || yaml_v3_loses(value))
        }
        _ => false,
    }
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}
