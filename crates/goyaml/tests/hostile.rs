//! What must hold for every input: nothing panics, the two readers agree, and what is written is read back.

use std::collections::BTreeMap;

use kedge_goyaml::{Float, Key, Limits, Value, decode, encode, node};
use proptest::prelude::*;

/// Pieces that mean something in YAML, so that random texts of them get deep into the parser.
const PIECES: &[&str] = &[
    ":",
    "#",
    "-",
    "?",
    "[",
    "]",
    "{",
    "}",
    ",",
    "&",
    "*",
    "!",
    "|",
    ">",
    "'",
    "\"",
    "%",
    "@",
    "`",
    " ",
    "  ",
    "\t",
    "\n",
    "\n ",
    "\n  ",
    "\r",
    "\r\n",
    "0",
    "9",
    "_",
    ".",
    "e",
    "a",
    "yes",
    "null",
    "~",
    ".inf",
    "<<",
    "\\",
    "\\x4",
    "\\u12",
    "\\U0010FFFF",
    "é",
    "😀",
    "\u{FEFF}",
    "\u{85}",
    "\u{2028}",
    "\0",
    "\u{1}",
    ": ",
    "- ",
    " #",
    "---",
    "...",
    "&a ",
    "*a",
    "!!str ",
    "!!binary ",
    "!<x> ",
    "!%41 ",
    "|2-\n",
    ">+\n",
    "%YAML 1.1\n",
    "%TAG !a! b\n",
    "<<: *a\n",
    "{{ .X }}",
];

fn pieces() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..60).prop_map(|pieces| pieces.concat())
}

/// Lines that begin with a letter and don't end in a space; yaml.v3 itself can't write all others so that they come back.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(
            &["", "yes", "1", "0x1F", "~", "2001-01-01", "- a", "a: b", "{x}", "'", "\"", "0o-7", "1:2"][..]
        )
        .prop_map(str::to_owned),
        "[ -~é漢😀\t\u{1}\u{7f}]{0,12}",
        "[a-z]([ -~é]{0,6}[!-~])?(\n[a-z]([ -~]{0,6}[!-~])?){0,3}\n?",
    ]
}

fn key() -> impl Strategy<Value = Key> {
    prop_oneof![
        1 => Just(Key::Null),
        1 => any::<bool>().prop_map(Key::Bool),
        1 => any::<i64>().prop_map(Key::Int),
        1 => (0..1000i32).prop_map(|half| Key::Float(Float(f64::from(half) + 0.5))),
        6 => text().prop_filter("a merge key", |text| text != "<<").prop_map(Key::String),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        (u64::MAX / 2 + 1..).prop_map(Value::Uint),
        (0..1000i32).prop_map(|half| Value::Float(f64::from(half) + 0.5)),
        text().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::List),
            prop::collection::btree_map(key(), inner, 0..5).prop_map(Value::Map),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn random_yaml_never_panics(text in pieces()) {
        let _ = decode(&text);
        let _ = node::parse(&text, &Limits::default());
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&String::from_utf8_lossy(&bytes));
        let _ = node::parse_bytes(&bytes, &Limits::default());
    }

    #[test]
    fn any_text_is_written_as_yaml_of_one_value(text in "\\PC*") {
        let map = Value::Map(BTreeMap::from([(Key::String(text.clone()), Value::String(text))]));
        prop_assert!(encode(&map, 4).ends_with('\n'));
    }

    #[test]
    fn nesting_of_any_kind_and_depth_never_overflows(
        pieces in prop::collection::vec(prop::sample::select(&["[", "{", "- ", "? ", "a: ", "{a: ", "&x ", "!t ", "\n "][..]), 1..5),
        count in 1..5000usize,
    ) {
        let text = pieces.concat().repeat(count);
        let _ = decode(&text);
        let _ = node::parse(&text, &Limits::default());
    }

    #[test]
    fn both_readers_agree(text in pieces()) {
        if let Ok(documents) = node::parse(&text, &Limits::default())
            && documents.len() == 1
            && let Ok(value) = decode(&text)
            && value != Value::Null
        {
            // As texts, because NaN is not equal to itself.
            prop_assert_eq!(encode(&documents[0].to_value(), 4), encode(&value, 4));
        }
    }

    #[test]
    fn what_is_written_is_read_back(value in value(), indent in 2..9usize) {
        let written = encode(&value, indent);
        prop_assert_eq!(decode(&written), Ok(value), "{}", written);
    }
}
