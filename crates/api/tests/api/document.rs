//! Documents that a schema describes: with every field, or with those alone that are required.

use serde_json::{Map, Value, json};
use utoipa::ToSchema;

/// Which fields a document has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    All,
    Required,
}

/// A document of a type.
pub fn of<T: ToSchema>(named: &Map<String, Value>, fields: Fields) -> Value {
    document(&serde_json::to_value(T::schema()).unwrap(), named, fields)
}

/// Adds a type, and those that it names, by name.
pub fn describe<T: ToSchema>(named: &mut Map<String, Value>) {
    let mut schemas = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut schemas);
    named.extend(schemas.into_iter().map(|(name, schema)| (name, serde_json::to_value(schema).unwrap())));
}

fn document(schema: &Value, named: &Map<String, Value>, fields: Fields) -> Value {
    if let Some(to) = schema["$ref"].as_str() {
        let name = to.rsplit('/').next().unwrap();
        return document(named.get(name).unwrap_or_else(|| panic!("{name} isn't described")), named, fields);
    }
    if let Some(parts) = schema["allOf"].as_array() {
        let mut whole = Map::new();
        for part in parts {
            match document(part, named, fields) {
                Value::Object(fields) => whole.extend(fields),
                other => panic!("a part that is no object: {other}"),
            }
        }
        return Value::Object(whole);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let one = choices.iter().find(|choice| choice["type"] != "null").unwrap();
        return document(one, named, fields);
    }
    if let Some(words) = schema["enum"].as_array() {
        return words[0].clone();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().find(|kind| *kind != "null").and_then(Value::as_str),
        kind => kind.as_str(),
    };
    match kind {
        Some("object") => object(schema, named, fields),
        Some("array") => json!([document(&schema["items"], named, fields)]),
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        _ => json!("x"),
    }
}

fn object(schema: &Value, named: &Map<String, Value>, fields: Fields) -> Value {
    let mut made = Map::new();
    if schema["additionalProperties"].is_object() {
        made.insert("key".to_owned(), document(&schema["additionalProperties"], named, fields));
    }
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        if fields == Fields::All || required.iter().any(|one| one == name) {
            made.insert(name.clone(), document(field, named, fields));
        }
    }
    Value::Object(made)
}
