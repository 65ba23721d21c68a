//! Composed values and places for programs, as JSON. Used by the CLI and by the hub.

use kedge_goyaml::{Key, Value};
use kedge_model::Origin;
use serde_json::Value as Json;

/// A composed value for programs. JSON has no infinity and no keys but text; both become text.
pub fn value_to_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(number) => Json::from(*number),
        Value::Uint(number) => Json::from(*number),
        Value::Float(number) => {
            serde_json::Number::from_f64(*number).map_or_else(|| Json::String(number.to_string()), Json::Number)
        }
        Value::String(text) => Json::String(text.clone()),
        Value::List(items) => Json::Array(items.iter().map(value_to_json).collect()),
        Value::Map(map) => map
            .iter()
            .map(|(key, value)| (key_text(key), value_to_json(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

fn key_text(key: &Key) -> String {
    match Value::from(key.clone()) {
        Value::String(text) => text,
        other => kedge_goyaml::encode(&other, 4).trim_end().to_owned(),
    }
}

/// A value in one line: text in quotes, structures as JSON, which YAML reads too.
pub fn value_in_line(value: &Value) -> String {
    value_to_json(value).to_string()
}

pub fn origin_to_json(origin: &Origin) -> Json {
    serde_json::json!({
        "repo": origin.source.repo,
        "revision": origin.source.revision,
        "file": &*origin.file,
        "line": (origin.line > 0).then_some(origin.line),
        "column": (origin.column > 0).then_some(origin.column),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_json_cannot_hold_become_text() {
        let value = Value::Map([(Key::Int(1), Value::Float(f64::INFINITY))].into());
        assert_eq!(value_in_line(&value), r#"{"1":"inf"}"#);
    }
}
