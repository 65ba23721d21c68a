//! JSON Schemas that composed configuration must satisfy, compiled once. Top-level text that Go would read as a number
//! is one first, as Kalypso does; `true` and `false` count as booleans where the schema asks for one.

use std::sync::Arc;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{Draft, JsonType, Validator};
use kedge_goyaml::{Key, Value};
use kedge_model::{Labels, Object, Origin, Spec};

use crate::compose::Values;

mod cost;

/// Annotation of a ConfigSchema that only warns.
const ENFORCE: &str = "kedge.dev/enforce";

/// A ConfigSchema object that applies by its labels.
#[derive(Debug)]
pub struct Labelled {
    pub name: Arc<str>,
    pub labels: Labels,
    pub origin: Origin,
    pub warns: bool,
    pub schema: Compiled,
}

/// A schema ready to validate, or the reason why it never will.
#[derive(Debug)]
pub struct Compiled {
    validator: Result<Validator, String>,
}

/// One thing that a configuration breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The top-level key, when it is about one.
    pub key: Option<String>,
    pub text: String,
}

impl Labelled {
    pub fn of(object: &Object) -> Option<Labelled> {
        let Spec::ConfigSchema(spec) = &object.spec else { return None };
        Some(Labelled {
            name: Arc::from(object.meta.name.as_str()),
            labels: object.meta.labels.clone(),
            origin: object.origin.clone(),
            warns: object.meta.annotations.get(ENFORCE).is_some_and(|value| value == "warn"),
            schema: Compiled::new(&spec.schema),
        })
    }
}

impl Compiled {
    pub fn new(text: &str) -> Compiled {
        Compiled { validator: compile(text) }
    }

    /// Why it can't validate anything.
    pub fn fault(&self) -> Option<&str> {
        self.validator.as_ref().err().map(String::as_str)
    }

    /// What the values break; empty when they don't, and when the schema has a fault of its own.
    pub fn violations(&self, values: &Values) -> Vec<Violation> {
        let Ok(validator) = &self.validator else { return Vec::new() };
        let mut instance = match instance(values) {
            Ok(instance) => instance,
            Err(violation) => return vec![violation],
        };
        for key in booleans_asked_for(validator, &instance) {
            if let Some(value) = instance.get_mut(&key) {
                *value = serde_json::Value::Bool(*value == "true");
            }
        }
        validator.iter_errors(&instance).map(|error| Violation::of(&error)).collect()
    }
}

/// Without a draft in `$schema` it is draft 7 that also knows the boolean `exclusiveMinimum` of draft 4: Kalypso's
/// validator takes such mixtures. References to other documents aren't followed.
fn compile(text: &str) -> Result<Validator, String> {
    let mut schema: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("it isn't JSON: {error}"))?;
    let draft = schema.get("$schema").and_then(serde_json::Value::as_str).filter(|uri| uri.contains("draft"));
    let options = if draft.is_some() {
        jsonschema::options()
    } else {
        modernise(&mut schema);
        jsonschema::options().with_draft(Draft::Draft7)
    };
    cost::check(&schema)?;
    options.build(&schema).map_err(|error| match error.to_string() {
        text if text.contains("resolve-") => "it refers to another document, and those aren't fetched".to_owned(),
        text => text,
    })
}

/// Draft 4 says `minimum: 5, exclusiveMinimum: true` where later ones say `exclusiveMinimum: 5`.
fn modernise(schema: &mut serde_json::Value) {
    match schema {
        serde_json::Value::Array(items) => items.iter_mut().for_each(modernise),
        serde_json::Value::Object(fields) => {
            for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
                match fields.get(exclusive).and_then(serde_json::Value::as_bool) {
                    Some(true) => match fields.remove(bound) {
                        Some(limit) => drop(fields.insert(exclusive.to_owned(), limit)),
                        None => drop(fields.remove(exclusive)),
                    },
                    Some(false) => drop(fields.remove(exclusive)),
                    None => {}
                }
            }
            let data = ["enum", "const", "default", "examples"];
            fields.iter_mut().filter(|(key, _)| !data.contains(&key.as_str())).for_each(|(_, field)| modernise(field));
        }
        _ => {}
    }
}

fn instance(values: &Values) -> Result<serde_json::Value, Violation> {
    let mut object = serde_json::Map::new();
    for (key, value) in values {
        let json = match &**value {
            Value::String(text) => match number(text) {
                Some(Number::Int(int)) => int.into(),
                Some(Number::Float(float)) => float_json(float).ok_or_else(|| Violation {
                    key: Some(key.to_string()),
                    text: format!("`{key}` is `{text}`, which reads as a number that JSON can't hold"),
                })?,
                None => text.as_str().into(),
            },
            structure => json(structure),
        };
        object.insert(key.to_string(), json);
    }
    Ok(object.into())
}

pub fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(bool) => (*bool).into(),
        Value::Int(int) => (*int).into(),
        Value::Uint(uint) => (*uint).into(),
        Value::Float(float) => float_json(*float).unwrap_or(serde_json::Value::Null),
        Value::String(text) => text.as_str().into(),
        Value::List(items) => items.iter().map(json).collect(),
        Value::Map(entries) => entries.iter().map(|(key, value)| (key_text(key), json(value))).collect(),
    }
}

/// A key as JSON has it: always text.
pub fn key_text(key: &Key) -> String {
    match key {
        Key::Null => "null".to_owned(),
        Key::Bool(bool) => bool.to_string(),
        Key::Int(int) => int.to_string(),
        Key::Uint(uint) => uint.to_string(),
        Key::Float(float) => float.0.to_string(),
        Key::String(text) => text.clone(),
    }
}

/// A float without a fraction is an integer to JSON Schema; written as one it is to every draft.
fn float_json(float: f64) -> Option<serde_json::Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if float.fract() == 0.0 && float.abs() <= EXACT {
        #[allow(clippy::cast_possible_truncation, reason = "whole and within 53 bits")]
        return Some((float as i64).into());
    }
    serde_json::Number::from_f64(float).map(Into::into)
}

enum Number {
    Int(i64),
    Float(f64),
}

/// `strconv.Atoi`, else `strconv.ParseFloat`.
fn number(text: &str) -> Option<Number> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && let Ok(int) = text.parse()
    {
        return Some(Number::Int(int));
    }
    parse_float(text).map(Number::Float)
}

fn parse_float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let lower = unsigned.to_ascii_lowercase();
    if matches!(lower.as_str(), "inf" | "infinity") {
        return Some(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    if lower == "nan" && unsigned.len() == text.len() {
        return Some(f64::NAN);
    }
    if lower.starts_with("0x") {
        return hex_float(&lower).map(|value| if text.starts_with('-') { -value } else { value });
    }
    // Rust reads no underscores; Go takes one between digits.
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') || !underscores_separate_digits(unsigned) {
        return None;
    }
    let value: f64 = text.replace('_', "").parse().ok()?;
    value.is_finite().then_some(value)
}

fn underscores_separate_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'_')
        .all(|(at, _)| at > 0 && bytes[at - 1].is_ascii_digit() && bytes.get(at + 1).is_some_and(u8::is_ascii_digit))
}

/// `0x1.8p4`: the exponent is required, which is why `0x1F` stays text.
fn hex_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.strip_prefix("0x")?.split_once('p')?;
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut value = 0.0f64;
    let mut scale = exponent;
    for digit in whole.chars() {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    for digit in fraction.chars() {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
        scale = scale.checked_sub(4)?;
    }
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let value = value * 2.0f64.powi(scale);
    value.is_finite().then_some(value)
}

/// Top-level keys whose text is a boolean and whose schema asked for one.
fn booleans_asked_for(validator: &Validator, instance: &serde_json::Value) -> Vec<String> {
    validator
        .iter_errors(instance)
        .filter(|error| match error.kind() {
            ValidationErrorKind::Type { kind: TypeKind::Single(wanted) } => *wanted == JsonType::Boolean,
            ValidationErrorKind::Type { kind: TypeKind::Multiple(wanted) } => wanted.contains(JsonType::Boolean),
            _ => false,
        })
        .filter_map(|error| error.instance_path().as_str().strip_prefix('/').map(unescape))
        .filter(|key| instance.get(key).is_some_and(|value| value == "true" || value == "false"))
        .collect()
}

/// JSON Pointer's two escapes.
fn unescape(pointer: &str) -> String {
    pointer.replace("~1", "/").replace("~0", "~")
}

impl Violation {
    fn of(error: &jsonschema::ValidationError<'_>) -> Violation {
        let path = error.instance_path().as_str().trim_start_matches('/');
        match path.split('/').next().filter(|key| !key.is_empty()) {
            None => Violation { key: None, text: error.to_string() },
            Some(key) => Violation { key: Some(unescape(key)), text: format!("`{}`: {error}", unescape(path)) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::interpret;

    fn values(pairs: &[(&str, &str)]) -> Values {
        pairs.iter().map(|(key, text)| (Arc::from(*key), Arc::new(interpret(text)))).collect()
    }

    fn violations(schema: &str, pairs: &[(&str, &str)]) -> Vec<String> {
        Compiled::new(schema).violations(&values(pairs)).into_iter().map(|violation| violation.text).collect()
    }

    fn property(kind: &str) -> String {
        format!(r#"{{"properties": {{"K": {{"type": "{kind}"}}}}}}"#)
    }

    #[test]
    fn text_that_reads_as_a_number_is_one() {
        for text in ["8080", "1_000", "1e5", "0777", "-5", "+3", "1.", ".5", "0x1p4"] {
            assert_eq!(violations(&property("number"), &[("K", text)]), Vec::<String>::new(), "{text}");
            assert_eq!(violations(&property("string"), &[("K", text)]).len(), 1, "{text}");
        }
        for text in ["0x1F", "1__0", "_1", "1_", "1e", "e5", ".", "1e999", "", "0x"] {
            assert_eq!(violations(&property("string"), &[("K", text)]), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn infinity_is_a_number_that_json_cannot_hold() {
        for text in ["inf", "-Inf", "Infinity", "nan"] {
            let found = violations("{}", &[("K", text)]);
            assert_eq!(found, [format!("`K` is `{text}`, which reads as a number that JSON can't hold")]);
        }
    }

    #[test]
    fn true_and_false_are_booleans_where_the_schema_asks() {
        assert!(violations(&property("boolean"), &[("K", "true")]).is_empty());
        assert!(violations(&property("string"), &[("K", "true")]).is_empty());
        assert_eq!(violations(&property("boolean"), &[("K", "yes")]).len(), 1);
    }

    #[test]
    fn a_missing_value_is_named() {
        assert_eq!(violations(r#"{"required": ["REGION"]}"#, &[]), [r#""REGION" is a required property"#]);
    }

    #[test]
    fn schemas_of_draft_4_and_of_later_ones_are_both_understood() {
        let old = r#"{"properties": {"K": {"minimum": 5, "exclusiveMinimum": true}}}"#;
        let new = r#"{"properties": {"K": {"exclusiveMinimum": 5}}}"#;
        let both = r#"{"properties": {"K": {"minimum": 5, "exclusiveMinimum": true, "not": {"const": 5}}}}"#;
        for schema in [old, new] {
            assert_eq!(violations(schema, &[("K", "5")]).len(), 1, "{schema}");
            assert!(violations(schema, &[("K", "6")]).is_empty(), "{schema}");
        }
        assert_eq!(violations(both, &[("K", "5")]).len(), 2);
    }

    #[test]
    fn structures_are_validated_inside() {
        let schema = r#"{"properties": {"K": {"properties": {"port": {"type": "integer"}}}}}"#;
        assert!(violations(schema, &[("K", "{port: 1}")]).is_empty());
        assert_eq!(violations(schema, &[("K", "{port: x}")]).len(), 1);
    }

    #[test]
    fn a_schema_that_is_not_json_says_so() {
        assert!(Compiled::new("type: object").fault().unwrap().starts_with("it isn't JSON"));
    }

    #[test]
    fn a_reference_to_the_network_is_not_followed() {
        let schema = Compiled::new(r#"{"$ref": "https://example.com/s.json"}"#);
        assert_eq!(schema.fault(), Some("it refers to another document, and those aren't fetched"));
    }
}
