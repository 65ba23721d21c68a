//! Texts with the values that yaml.v2 gives.

use super::*;
use crate::encode::encode;

/// The value of a text, printed on one line by way of the encoder.
fn shown(text: &str) -> String {
    match decode(text) {
        Ok(value) => encode(&value, 2),
        Err(error) => format!("{error}"),
    }
}

fn string(text: &str) -> Value {
    Value::from(text)
}

#[test]
fn what_is_a_map_or_a_list_is_what_yaml_v2_says() {
    for text in ["a: b", "a:", "- a", "{a: b}", "[a]", "? a", "- ", "[a]]", "{\"a\":1}", "a: b # c"] {
        assert!(decode(text).is_ok_and(|value| value.is_collection()), "{text}");
    }
    for text in
        ["", "a", "a:b", "8080", "http://x:80/y", "# c", "false", "~", "2024-01-01", "-a", "?x", "'a: b'", "a - b"]
    {
        assert!(decode(text).is_ok_and(|value| !value.is_collection()), "{text}");
    }
    for text in ["{{ .X }}", "@x", "a: b: c", "[a", "{a", "a: 'b", "\ta: b", "*x", "[a]: b\n- c", "%x", "{a?b}"] {
        assert!(decode(text).is_err(), "{text}");
    }
}

#[test]
fn a_map_or_list_as_key_is_refused() {
    assert!(matches!(decode("{{ .X }}"), Err(DecodeError::InvalidKey { line: 1, kind: "map" })));
    assert!(matches!(decode("? [a]\n: b"), Err(DecodeError::InvalidKey { kind: "list", .. })));
}

#[test]
fn an_empty_bracket_cannot_be_a_key_and_ends_the_document() {
    // Both are what yaml.v2 does.
    assert_eq!(decode("[]: x"), Ok(Value::List(vec![])));
    assert!(decode("- {}: a").is_err());
}

#[test]
fn values_are_typed_by_yaml_1_1() {
    let text = "[yes, 2.50, 0777, 0o17, 08, 1_000, .inf, 2001-01-01, ~, '1', 18446744073709551615]";
    let expected = vec![
        Value::Bool(true),
        Value::Float(2.5),
        Value::Int(511),
        Value::Int(15),
        Value::Float(8.0),
        Value::Int(1000),
        Value::Float(f64::INFINITY),
        string("2001-01-01"),
        Value::Null,
        string("1"),
        Value::Uint(u64::MAX),
    ];
    assert_eq!(decode(text), Ok(Value::List(expected)));
}

#[test]
fn a_key_that_only_yaml_1_1_reads_as_boolean_stays_as_written() {
    let Ok(Value::Map(map)) = decode("{y: 1, No: 2, ON: 3, true: 4, 5: 5, ~: 6, 1.5: 7, &a off: 8}") else {
        panic!("not a map");
    };
    for key in ["y", "No", "ON", "off"] {
        assert!(map.contains_key(&Key::from(key)), "{key}");
    }
    for key in [Key::Bool(true), Key::Int(5), Key::Null, Key::Float(crate::Float(1.5))] {
        assert!(map.contains_key(&key), "{key:?}");
    }
    assert_eq!(map.len(), 8);
}

#[test]
fn the_later_of_two_equal_keys_wins() {
    assert_eq!(shown("a: 1\na: 2"), "a: 2\n");
}

#[test]
fn only_the_first_document_counts() {
    assert_eq!(shown("a: 1\n---\n[broken"), "a: 1\n");
    assert_eq!(shown("a: 1\n...\n\"broken"), "a: 1\n");
    assert_eq!(decode("---\n---\na"), Ok(Value::Null));
}

#[test]
fn merge_keys_are_expanded_where_they_stand() {
    assert_eq!(shown("a: 1\n<<: {a: 2, b: 3}\nb: 4"), "a: 2\nb: 4\n");
    assert_eq!(shown("<<: [{a: 1}, {a: 2, b: 2}]"), "a: 1\nb: 2\n");
    assert_eq!(shown("x: &x {a: 1}\ny:\n  <<: *x\n  b: 2"), "x:\n  a: 1\n\"y\":\n  a: 1\n  b: 2\n");
    assert!(matches!(decode("<<: a"), Err(DecodeError::Merge { line: 1 })));
    assert_eq!(shown("'<<': a"), "<<: a\n");
}

#[test]
fn block_scalars_keep_or_lose_their_last_newlines() {
    assert_eq!(decode("|\n a\n b\n\n"), Ok(string("a\nb\n")));
    assert_eq!(decode("|-\n a\n"), Ok(string("a")));
    assert_eq!(decode("|+\n a\n\n"), Ok(string("a\n\n")));
    assert_eq!(decode("|\n a"), Ok(string("a")));
    assert_eq!(decode(">\n a\n b\n\n  c\n d\n"), Ok(string("a b\n\n c\nd\n")));
    assert_eq!(decode("|2\n   a\n"), Ok(string(" a\n")));
}

#[test]
fn quoted_scalars_fold_and_escape() {
    assert_eq!(decode("'a''b\n  c\n\n  d'"), Ok(string("a'b c\nd")));
    assert_eq!(decode(r#""\x41\u00e9\U0001F600\t\'\"\\""#), Ok(string("Aé😀\t'\"\\")));
    assert_eq!(decode("\"a\\\n  b\""), Ok(string("ab")));
    assert!(decode(r#""\/""#).is_err());
    assert!(decode("\"\\").is_err());
    assert!(decode(r#""\UFFFFFFFF""#).is_err());
}

#[test]
fn tags_are_obeyed() {
    assert_eq!(decode("!!str 1"), Ok(string("1")));
    assert_eq!(decode("!!str"), Ok(string("")));
    assert_eq!(decode("! 1"), Ok(string("1")));
    assert_eq!(decode("!x 1"), Ok(string("1")));
    assert_eq!(decode("!!binary aGk="), Ok(string("hi")));
    assert_eq!(decode("%TAG !e! tag:yaml.org,2002:\n---\n!e!float 1"), Ok(Value::Float(1.0)));
    assert!(matches!(decode("!!int x"), Err(DecodeError::Tag { line: 1, .. })));
    assert!(matches!(decode("!!binary gIGC"), Err(DecodeError::Tag { .. })));
}

#[test]
fn a_cycle_of_aliases_is_refused() {
    assert!(matches!(decode("&a [*a]"), Err(DecodeError::Cycle { line: 1 })));
    assert!(matches!(decode("&a\n<<: *a"), Err(DecodeError::Cycle { line: 2 })));
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    assert_eq!(decode(&text), Err(DecodeError::Aliases));
    let long = format!("a: &a {}\nb: [{}]", "x".repeat(1 << 20), "*a,".repeat(1000));
    assert_eq!(decode(&long), Err(DecodeError::Aliases));
}

#[test]
fn deep_nesting_is_refused_at_a_hundred_levels() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(decode(&nested(100)).is_ok());
    assert!(decode(&nested(101)).is_err());
    assert!(decode(&"[".repeat(10_000)).is_err());
    assert!(decode(&"- ".repeat(10_000)).is_err());
    assert!(decode(&"? ".repeat(10_000)).is_err());
    assert!(decode(&"{a: ".repeat(10_000)).is_err());
    // Aliases don't get around it.
    let mut text = String::from("- &a0 [x]\n");
    for level in 1..150 {
        text.push_str(&format!("- &a{level} [*a{}]\n", level - 1));
    }
    assert!(matches!(decode(&text), Err(DecodeError::Depth { limit: 100, .. })));
}
