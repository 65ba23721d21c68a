//! ConfigMaps, ConfigSchemas and CapabilityMaps.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;

use super::each;
use crate::decode::fields::{Fields, Value};
use crate::decode::metadata::labels;
use crate::decode::notes::{Notes, Spot};
use crate::decode::selector::{self, Unknown};
use crate::kinds::{CapabilityMap, CapabilityRule, ConfigMap, ConfigSchema, ConfigValue};

/// The scheduler gives a target these itself.
const RESERVED: [&str; 2] = ["workload", "workspace"];

pub(super) fn config_map(top: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<ConfigMap> {
    top.written("binaryData");
    let immutable = top.take("immutable").map_or(Some(false), |value| value.flag(notes));
    let data = match top.take("data") {
        Some(value) => {
            let values: Vec<Option<(String, ConfigValue)>> = value
                .pairs(notes)?
                .iter()
                .map(|pair| Some((pair.key.to_owned(), ConfigValue { text: pair.text(notes)?, line: pair.line() })))
                .collect();
            values.into_iter().collect()
        }
        None => Some(BTreeMap::new()),
    };
    immutable.and(Some(ConfigMap { data: data? }))
}

pub(super) fn config_schema(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<ConfigSchema> {
    let value = fields.need("schema", notes, "add `schema: |` with a JSON Schema")?;
    Some(ConfigSchema { schema: json_text(&value, notes)? })
}

/// A text that must be JSON. The error stands on the line of the file where the JSON ends to be one.
pub(super) fn json_text(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<String> {
    let text = value.text(notes)?;
    let Err(error) = serde_json::from_str::<IgnoredAny>(&text) else { return Some(text) };
    let spot = json_spot(value, &text, &error, notes);
    let message = format!("`{}` of {} isn't JSON: {}", value.path, notes.subject, without_place(&error));
    notes.error(spot, "SchemaNotJson", message).hint =
        Some("a schema is JSON as text, also inside YAML: quote its keys and strings".to_owned());
    None
}

/// Text of a block stands in the file as it is, only indented; anything else is shown from its beginning.
fn json_spot(value: &Value<'_>, text: &str, error: &serde_json::Error, notes: &Notes<'_>) -> Spot {
    let line = value.node.content_line as usize + error.line().saturating_sub(1);
    let inside = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    match notes.line(line).and_then(|whole| whole.strip_suffix(inside)) {
        Some(indentation) if indentation.trim().is_empty() => {
            Spot { line, column: indentation.chars().count() + error.column().max(1), width: 1 }
        }
        _ => value.spot(),
    }
}

/// serde_json counts lines inside the text, which would only confuse.
fn without_place(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.split(" at line ").next().unwrap_or_default().to_owned()
}

pub(super) fn capability_map(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<CapabilityMap> {
    let value = fields.need("rules", notes, "add `rules:`, each with `when` and `add`")?;
    Some(CapabilityMap { rules: each(Some(value), notes, rule)? })
}

fn rule(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<CapabilityRule> {
    let mut fields = value.fields(notes)?;
    let when = match fields.written("when") {
        Some(value) => selector::read(&value, Unknown::Refuse, notes),
        None => fields.need("when", notes, "select targets with `when`; `when: {}` matches all of them").and(None),
    };
    let add = fields.need("add", notes, "say which labels they get: `add: {gpu: \"true\"}`").and_then(|value| {
        let labels = labels(&value, notes)?;
        for pair in value.pairs(notes).unwrap_or_default() {
            if RESERVED.contains(&pair.key) {
                let why = "can't be added: a target has this label from its registration";
                pair.refuse(notes, "ReservedLabel", why, Some("choose another label"));
            }
        }
        Some(labels)
    });
    fields.finish(notes);
    Some(CapabilityRule { when: when?, add: add?, line: value.line() })
}
