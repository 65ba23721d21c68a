//! Values with the texts that yaml.v3 gives.

use super::*;

fn list(items: &[&str]) -> Value {
    Value::List(items.iter().map(|item| Value::from(*item)).collect())
}

fn map(entries: &[(&str, Value)]) -> Value {
    Value::Map(entries.iter().map(|(key, value)| (Key::from(*key), value.clone())).collect())
}

#[test]
fn nesting_is_indented_by_four_or_by_what_was_asked() {
    let inner = map(&[("b", list(&["x", "y"])), ("c", map(&[("d", Value::Int(1))]))]);
    let value = map(&[("a", inner.clone()), ("l", Value::List(vec![inner, list(&["z"])]))]);
    assert_eq!(
        encode(&value, 4),
        "a:\n    b:\n        - x\n        - \"y\"\n    c:\n        d: 1\nl:\n    - b:\n        - x\n        - \"y\"\n      c:\n        d: 1\n    - - z\n"
    );
    assert_eq!(
        encode(&value, 2),
        "a:\n  b:\n    - x\n    - \"y\"\n  c:\n    d: 1\nl:\n  - b:\n      - x\n      - \"y\"\n    c:\n      d: 1\n  - - z\n"
    );
}

#[test]
fn empty_collections_and_scalars_are_short() {
    let value = map(&[("a", map(&[])), ("b", Value::List(vec![])), ("c", Value::Null), ("d", Value::from(""))]);
    assert_eq!(encode(&value, 4), "a: {}\nb: []\nc: null\nd: \"\"\n");
    assert_eq!(encode(&map(&[]), 4), "{}\n");
    assert_eq!(encode(&Value::from("x"), 4), "x\n");
}

#[test]
fn strings_that_read_as_something_else_are_in_double_quotes() {
    for text in [
        "true",
        "y",
        "n",
        "yes",
        "Off",
        "8080",
        "0x1F",
        "1e3",
        "null",
        "~",
        ".inf",
        "2024-01-01",
        "190:20:30",
        "0o17",
        "1_000",
        "0b1",
        "+1",
        ".5",
    ] {
        assert_eq!(encode(&Value::from(text), 4), format!("\"{text}\"\n"));
    }
}

#[test]
fn strings_with_indicators_are_in_single_quotes_or_plain() {
    for text in ["@x", "*x", "a #b", "{{ x }}", " a", "a ", "a: b", "a:", "- a", "'a", "#a", "---", "%a", "|", "? a"] {
        assert_eq!(encode(&Value::from(text), 4), format!("'{}'\n", text.replace('\'', "''")));
    }
    for text in ["=", "<<", "?x", "a,b", "é", "a:b", "-a", "a#b", "a'b", "x[1]", "1.2.3", "http://x:80", "漢", "..a"]
    {
        assert_eq!(encode(&Value::from(text), 4), format!("{text}\n"));
    }
}

#[test]
fn unprintable_characters_are_escaped() {
    for (text, written) in [
        ("a\tb", r#""a\tb""#),
        ("😀", r#""\U0001F600""#),
        ("\u{FEFF}a b", r#""\uFEFF\x61\x20\x62""#),
        ("a\u{FEFF}", r#""a\uFEFF""#),
        ("\u{1}\u{7F}\0\u{1B}", r#""\x01\x7F\0\e""#),
        ("a\u{85}b", r#""a\Nb""#),
        ("a\rb", r#""a\rb""#),
        ("a\"\\\t", r#""a\"\\\t""#),
    ] {
        assert_eq!(encode(&Value::from(text), 4), format!("{written}\n"), "{text:?}");
    }
}

#[test]
fn strings_of_several_lines_are_literals() {
    let cases = [
        ("a\nb\n", "k: |\n    a\n    b\n"),
        ("a\nb", "k: |-\n    a\n    b\n"),
        ("a\n\n", "k: |+\n    a\n\n"),
        (" a\nb", "k: |4-\n     a\n    b\n"),
        ("a\n\nb\n", "k: |\n    a\n\n    b\n"),
        ("a \nb", "k: \"a \\nb\"\n"),
        ("a\nb ", "k: \"a\\nb \"\n"),
        ("a\n😀", "k: \"a\\n\\U0001F600\"\n"),
        ("a\n\tb", "k: |-\n    a\n    \tb\n"),
    ];
    for (text, written) in cases {
        assert_eq!(encode(&map(&[("k", Value::from(text))]), 4), written, "{text:?}");
    }
    assert_eq!(encode(&list(&["a\nb"]), 4), "- |-\n  a\n  b\n");
}

#[test]
fn long_keys_and_keys_of_several_lines_have_a_question_mark() {
    let long = "k".repeat(129);
    assert_eq!(encode(&map(&[(&long, Value::Int(1))]), 4), format!("? {long}\n: 1\n"));
    let fits = "k".repeat(128);
    assert_eq!(encode(&map(&[(&fits, Value::Int(1))]), 4), format!("{fits}: 1\n"));
    assert_eq!(encode(&map(&[("a\nb", Value::from("v"))]), 4), "? |-\n    a\n    b\n: v\n");
    assert_eq!(encode(&map(&[("", Value::from("v"))]), 4), "\"\": v\n");
}

#[test]
fn lines_are_never_folded() {
    let long = "word ".repeat(100) + "end";
    assert_eq!(encode(&Value::from(long.as_str()), 4), format!("{long}\n"));
}

#[test]
fn numbers_are_written_as_go_formats_them() {
    for (value, written) in [
        (1.0, "1"),
        (2.5, "2.5"),
        (-0.0, "-0"),
        (123_456.0, "123456"),
        (1_234_567.0, "1.234567e+06"),
        (1e20, "1e+20"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (646_077_020_590_214.0 + 0.25, "6.460770205902142e+14"),
        (f64::INFINITY, ".inf"),
        (f64::NEG_INFINITY, "-.inf"),
        (f64::NAN, ".nan"),
        (5e-324, "5e-324"),
    ] {
        assert_eq!(encode(&Value::Float(value), 4), format!("{written}\n"));
    }
    assert_eq!(encode(&Value::Int(i64::MIN), 4), "-9223372036854775808\n");
    assert_eq!(encode(&Value::Uint(u64::MAX), 4), "18446744073709551615\n");
}

#[test]
fn keys_are_in_natural_order() {
    let keys = ["a10", "a2", "b", "a", "A", "_x", "a-b", "a_b", "aa", "1a", "é", "a02", "Z"];
    let value = map(&keys.map(|key| (key, Value::Null)));
    let written = encode(&value, 4).replace(": null\n", " ");
    assert_eq!(written, "_x 1a A Z a a-b a_b a2 a02 a10 aa b é ");
}

#[test]
fn keys_of_other_types_come_before_strings() {
    let keys = [
        Key::from("a"),
        Key::Null,
        Key::Int(2),
        Key::Bool(true),
        Key::Float(crate::Float(1.5)),
        Key::Bool(false),
        Key::Uint(u64::MAX),
        Key::Int(1),
    ];
    let value = Value::Map(keys.into_iter().map(|key| (key, Value::Int(0))).collect());
    let written = encode(&value, 4).replace(": 0\n", " ");
    assert_eq!(written, "false true 1 1.5 2 18446744073709551615 null a ");
}

#[test]
fn ordered_entries_keep_their_order() {
    let entries =
        [("z".to_owned(), Value::Int(1)), ("a".to_owned(), map(&[("d", Value::Int(1)), ("c", Value::Int(2))]))];
    assert_eq!(
        encode_ordered(entries.iter().map(|(key, value)| (key.as_str(), value)), 4),
        "z: 1\na:\n    c: 2\n    d: 1\n"
    );
    assert_eq!(encode_ordered(std::iter::empty(), 4), "{}\n");
}
