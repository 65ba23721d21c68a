//! A YAML tree as the JSON that kubectl would send: scalars typed as `sigs.k8s.io/yaml` types them, keys as texts, in sorted order.

use kedge_goyaml::{Node, NodeValue, Value as Scalar};
use serde_json::{Map, Number, Value};

use super::document::wrong;
use crate::record::Failure;

/// So many lines of the file are before the text that the tree was read from.
pub(super) fn of(node: &Node, file: &str, before: u32) -> Result<Value, Failure> {
    let refuse = |node: &Node, why: &str| wrong(file, before + node.line, why);
    match &node.value {
        NodeValue::List(items) => {
            items.iter().map(|item| of(item, file, before)).collect::<Result<_, _>>().map(Value::Array)
        }
        NodeValue::Map(entries) => {
            let mut map = Map::new();
            for (key, value) in entries {
                let name = key_of(key).ok_or_else(|| refuse(key, "a key of a map can't be null"))?;
                let value = of(value, file, before)?;
                if map.insert(name.clone(), value).is_some() {
                    return Err(refuse(key, &format!("the key `{}` stands twice in this map", name.escape_debug())));
                }
            }
            Ok(Value::Object(map))
        }
        NodeValue::Scalar { .. } => match node.resolve() {
            Some(scalar) => {
                value_of(scalar).ok_or_else(|| refuse(node, "infinity and `.nan` have no place in an object"))
            }
            None => Ok(Value::Null),
        },
    }
}

fn value_of(scalar: Scalar) -> Option<Value> {
    Some(match scalar {
        Scalar::Bool(value) => Value::from(value),
        Scalar::Int(value) => Value::from(value),
        Scalar::Uint(value) => Value::from(value),
        Scalar::Float(value) => Value::Number(number(value)?),
        Scalar::String(text) => Value::String(text),
        Scalar::Null | Scalar::List(_) | Scalar::Map(_) => Value::Null,
    })
}

/// Up to here each whole number is itself as a float.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Go writes a whole float as an integer, and the server takes `1.0` for no integer.
fn number(value: f64) -> Option<Number> {
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and far below 2^63")]
    match value.fract() == 0.0 && value.abs() <= EXACT {
        true => Some(Number::from(value as i64)),
        false => Number::from_f64(value),
    }
}

/// A key is a text, also where it looks like something else. `yes`, `on`, `n` and the like stay as they were written.
fn key_of(key: &Node) -> Option<String> {
    let text = key.text().unwrap_or_default();
    Some(match key.resolve()? {
        Scalar::Null => return None,
        Scalar::Bool(value) if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") => {
            value.to_string()
        }
        Scalar::Int(value) => value.to_string(),
        Scalar::Uint(value) => value.to_string(),
        Scalar::String(text) => text,
        Scalar::Bool(_) | Scalar::Float(_) | Scalar::List(_) | Scalar::Map(_) => text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use kedge_goyaml::{Limits, node};
    use proptest::prelude::*;

    use super::*;

    fn json(text: &str) -> Result<String, String> {
        let tree = &node::parse(text, &Limits::default()).unwrap()[0];
        of(tree, "x.yaml", 10).map(|value| value.to_string()).map_err(|failure| failure.message)
    }

    #[test]
    fn scalars_are_what_kubectl_makes_of_them() {
        for (text, expected) in [
            (
                "{b: 1, a: yes, c: 'yes', d: on, e: ~, f: 0777, g: 0x10}",
                r#"{"a":true,"b":1,"c":"yes","d":true,"e":null,"f":511,"g":16}"#,
            ),
            (
                "[1.0, 1.5, 1e3, 18446744073709551615, -9223372036854775808, 1e300]",
                "[1,1.5,1000,18446744073709551615,-9223372036854775808,1e+300]",
            ),
            (
                "[2001-01-01, 1:30, '1', !!str 1, !!binary aGk=, 10Gi, 1_000]",
                r#"["2001-01-01","1:30","1","1","hi","10Gi",1000]"#,
            ),
            (
                "{8080: a, true: b, on: c, y: d, 1.5: e, 0x10: f}",
                r#"{"1.5":"e","16":"f","8080":"a","on":"c","true":"b","y":"d"}"#,
            ),
            ("a: |\n  one\n  two\n", r#"{"a":"one\ntwo\n"}"#),
            ("a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}\n", r#"{"a":{"b":1},"c":{"b":1},"d":{"b":1,"e":2}}"#),
        ] {
            assert_eq!(json(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_has_no_place_in_json_is_named_with_its_line() {
        assert_eq!(json("a: 1\nb: .inf\n").unwrap_err(), "x.yaml:12: infinity and `.nan` have no place in an object");
        assert!(json("1: a\n0x1: c\n").unwrap_err().contains("the key `1` stands twice"));
        assert!(json("~: a\n").unwrap_err().contains("can't be null"));
    }

    proptest! {
        #[test]
        fn any_tree_is_json_again(text in "[-{}\\[\\]:,.0-9a-z~'\" \n]{0,60}") {
            for tree in node::parse(&text, &Limits::default()).unwrap_or_default() {
                if let Ok(value) = of(&tree, "x", 0) {
                    let bytes = serde_json::to_vec(&value).unwrap();
                    prop_assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), value);
                }
            }
        }
    }
}
