//! `yaml.v3.Marshal`: what `toYaml` and the configuration writers print, byte for byte.

mod analyze;
mod order;
mod write;

use std::collections::BTreeMap;

use crate::value::{Key, Value};
use order::{less, less_text, sorted};
use write::{Parent, Writer};

/// The value as yaml.v3 writes it, with the newline at its end. `indent` is 4 for `Marshal`, or what `SetIndent` was given.
pub fn encode(value: &Value, indent: usize) -> String {
    let mut writer = Writer::new(indent);
    write_value(&mut writer, value, Parent::Document);
    writer.finish()
}

/// The same for the entries of a `map[string]interface{}`, in whatever order they come.
pub fn encode_map<'a>(entries: impl Iterator<Item = (&'a str, &'a Value)>, indent: usize) -> String {
    encode_ordered(sorted(entries.collect(), less_text).into_iter(), indent)
}

/// The same for a map whose entries keep their order, as the fields of a Go struct do.
pub fn encode_ordered<'a>(entries: impl Iterator<Item = (&'a str, &'a Value)>, indent: usize) -> String {
    let mut writer = Writer::new(indent);
    let mut entries = entries.peekable();
    if entries.peek().is_none() {
        writer.empty("{}");
        return writer.finish();
    }
    let outer = writer.enter(Parent::Document);
    for (key, value) in entries {
        writer.next_line();
        let simple = writer.string_key(key);
        writer.colon(simple);
        write_value(&mut writer, value, Parent::Map);
    }
    writer.leave(outer);
    writer.finish()
}

fn write_value(writer: &mut Writer, value: &Value, parent: Parent) {
    match value {
        Value::Null => writer.plain("null"),
        Value::Bool(value) => writer.plain(if *value { "true" } else { "false" }),
        Value::Int(value) => writer.plain(&value.to_string()),
        Value::Uint(value) => writer.plain(&value.to_string()),
        Value::Float(value) => writer.plain(&format_float(*value)),
        Value::String(text) => writer.string(text, parent),
        Value::List(items) if items.is_empty() => writer.empty("[]"),
        Value::List(items) => {
            let outer = writer.enter(parent);
            for item in items {
                writer.next_line();
                writer.dash();
                write_value(writer, item, Parent::List);
            }
            writer.leave(outer);
        }
        Value::Map(map) if map.is_empty() => writer.empty("{}"),
        Value::Map(map) => write_map(writer, map, parent),
    }
}

fn write_map(writer: &mut Writer, map: &BTreeMap<Key, Value>, parent: Parent) {
    let outer = writer.enter(parent);
    for (key, value) in sorted(map.iter().collect(), less) {
        writer.next_line();
        let simple = match key {
            Key::String(text) => writer.string_key(text),
            Key::Null => writer.plain_key("null"),
            Key::Bool(value) => writer.plain_key(if *value { "true" } else { "false" }),
            Key::Int(value) => writer.plain_key(&value.to_string()),
            Key::Uint(value) => writer.plain_key(&value.to_string()),
            Key::Float(value) => writer.plain_key(&format_float(value.0)),
        };
        writer.colon(simple);
        // Go finds nothing under NaN when it looks the value up, and writes null.
        let lost = matches!(key, Key::Float(number) if number.0.is_nan());
        write_value(writer, if lost { &Value::Null } else { value }, Parent::Map);
    }
    writer.leave(outer);
}

/// Go's `FormatFloat(value, 'g', -1, 64)`, with YAML's names for what isn't finite.
fn format_float(value: f64) -> String {
    if value.is_nan() {
        return ".nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    // Rust's `{:e}` has the shortest digits too: `-1.25e-7`.
    let mut scientific = format!("{value:e}");
    let length = scientific.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit);
    // Halfway between two texts of that length Go takes the even digit, as rounding does.
    let rounded = format!("{value:.*e}", length.count().saturating_sub(1));
    if rounded.parse() == Ok(value) {
        scientific = rounded;
    }
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        // So few digits before the point never lie halfway.
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests;
