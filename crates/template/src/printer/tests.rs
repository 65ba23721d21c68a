//! Layouts and values with the texts that Go's fmt gives.

use super::text::duration_text;
use super::*;

fn sprintf(layout: &str, values: &[Value]) -> String {
    sprintf_within(layout, values, LARGEST_TEXT).expect("a short text")
}

#[test]
fn flags_width_and_precision_are_gos() {
    let int = |n| vec![Value::Int(n)];
    for (layout, values, text) in [
        ("%05d|", int(42), "00042|"),
        ("%-5d|", int(42), "42   |"),
        ("%+d", int(5), "+5"),
        ("%x %[1]X %[1]o %[1]b %#[1]x", int(255), "ff FF 377 11111111 0xff"),
        ("%c%[1]q%[1]U", int(65), "A'A'U+0041"),
        ("%6.2f|", vec![Value::Float(2.71499)], "  2.71|"),
        ("%08.3f", vec![Value::Float(-2.5121)], "-002.512"),
        ("%#g", vec![Value::Float(1.0)], "1.00000"),
        ("%q", vec![Value::str("a\"b")], "\"a\\\"b\""),
        ("%.2s|%5s", vec![Value::str("héllo"), Value::str("é")], "hé|    é"),
        ("% x", vec![Value::str("hi")], "68 69"),
        ("%*d", vec![Value::Int(5), Value::Int(42)], "   42"),
        ("%v %d", vec![Value::Nil, Value::Nil], "<nil> %!d(<nil>)"),
    ] {
        assert_eq!(sprintf(layout, &values), text, "{layout}");
    }
}

#[test]
fn mistakes_stand_in_the_text_as_go_writes_them() {
    for (layout, values, text) in [
        ("%d", vec![Value::str("a")], "%!d(string=a)"),
        ("%d", vec![], "%!d(MISSING)"),
        ("x", vec![Value::Int(1)], "x%!(EXTRA int=1)"),
        ("%", vec![], "%!(NOVERB)"),
        ("%[3]d", vec![Value::Int(1)], "%!d(BADINDEX)"),
        ("%*d", vec![Value::str("a"), Value::Int(1)], "%!(BADWIDTH)1"),
        ("%.*d", vec![Value::Int(-1), Value::Int(1)], "%!(BADPREC)1"),
    ] {
        assert_eq!(sprintf(layout, &values), text, "{layout}");
    }
}

#[test]
fn collections_print_sorted_and_nested() {
    let list = Value::list(vec![Value::str("a"), Value::Int(1), Value::Nil]);
    let map = Value::map(
        MapKind::AnyAny,
        [(Key::Str("b".into()), Value::Float(2.0)), (Key::Str("a".into()), list)].into_iter().collect(),
    );
    assert_eq!(sprint(std::slice::from_ref(&map)), "map[a:[a 1 <nil>] b:2]");
    assert_eq!(
        sprintf("%#v", &[map]),
        "map[interface {}]interface {}{\"a\":[]interface {}{\"a\", 1, interface {}(nil)}, \"b\":2}"
    );
}

#[test]
fn spaces_stand_between_operands_that_are_no_strings() {
    let values = [Value::Int(1), Value::Int(2), Value::str("a"), Value::str("b"), Value::Int(3)];
    assert_eq!(sprint(&values), "1 2ab3");
    assert_eq!(sprintln_within(&values, 100).as_deref(), Some("1 2 a b 3\n"));
}

#[test]
fn padding_ends_at_the_limit() {
    let layout = "%1000000[1]d".repeat(1000);
    assert_eq!(sprintf_within(&layout, &[Value::Int(1)], 1 << 20), None);
}

#[test]
fn durations_read_as_go_writes_them() {
    assert_eq!(duration_text(0), "0s");
    assert_eq!(duration_text(1_500), "1.5µs");
    assert_eq!(duration_text(-3_723_500_000_000), "-1h2m3.5s");
}
