//! What a scalar is: yaml.v2's typing of plain and tagged scalars, and yaml.v3's question whether a string may stay plain.

use crate::node::Style;
use crate::number::{self, Number};
use crate::value::Value;

pub(crate) const NULL: &str = "tag:yaml.org,2002:null";
pub(crate) const BOOL: &str = "tag:yaml.org,2002:bool";
pub(crate) const STR: &str = "tag:yaml.org,2002:str";
pub(crate) const INT: &str = "tag:yaml.org,2002:int";
pub(crate) const FLOAT: &str = "tag:yaml.org,2002:float";
pub(crate) const TIMESTAMP: &str = "tag:yaml.org,2002:timestamp";
pub(crate) const BINARY: &str = "tag:yaml.org,2002:binary";
pub(crate) const MERGE: &str = "tag:yaml.org,2002:merge";

/// The text doesn't fit the tag.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mismatch;

/// A scalar's value as yaml.v2 sets it in an `interface{}`.
pub(crate) fn resolve(tag: Option<&str>, style: Style, text: &str) -> Result<Value, Mismatch> {
    let Some(tag) = tag else {
        return Ok(match style {
            Style::Plain => resolve_plain(text),
            _ => Value::String(text.to_owned()),
        });
    };
    let value = match tag {
        STR => return Ok(Value::String(text.to_owned())),
        BINARY => return decode_binary(text).map(Value::String),
        TIMESTAMP if number::is_timestamp(text) => return Ok(Value::String(text.to_owned())),
        NULL | BOOL | INT | FLOAT => resolve_plain(text),
        TIMESTAMP => return Err(Mismatch),
        // A tag that yaml.v2 doesn't know leaves the text as it is.
        _ => return Ok(Value::String(text.to_owned())),
    };
    match (tag, value) {
        (NULL, Value::Null) => Ok(Value::Null),
        (BOOL, value @ Value::Bool(_)) => Ok(value),
        (INT, value @ (Value::Int(_) | Value::Uint(_))) => Ok(value),
        (FLOAT, value @ Value::Float(_)) => Ok(value),
        #[expect(clippy::cast_precision_loss, reason = "Go rounds here too")]
        (FLOAT, Value::Int(value)) => Ok(Value::Float(value as f64)),
        _ => Err(Mismatch),
    }
}

/// A plain scalar without a tag. Dates are strings.
pub(crate) fn resolve_plain(text: &str) -> Value {
    let Some(first) = text.bytes().next() else {
        return Value::Null;
    };
    let value = match first {
        b'~' | b'n' | b'N' if is_null(text) => Some(Value::Null),
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' => {
            parse_bool(text).or_else(|| parse_old_bool(text)).map(Value::Bool)
        }
        b'+' | b'-' | b'.' | b'0'..=b'9' => parse_special_float(text).map(Value::Float).or_else(|| {
            number::parse(text, false).map(|number| match number {
                Number::Int(value) => Value::Int(value),
                Number::Uint(value) => Value::Uint(value),
                Number::Float(value) => Value::Float(value),
            })
        }),
        _ => None,
    };
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// True when yaml.v3 writes the string without quotes for its meaning; its characters may still need some.
pub(crate) fn stays_string(text: &str) -> bool {
    let Some(first) = text.bytes().next() else {
        return false;
    };
    match first {
        b'~' | b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' => {
            !is_null(text) && parse_bool(text).is_none() && parse_old_bool(text).is_none()
        }
        b'+' | b'-' | b'.' | b'0'..=b'9' => {
            parse_special_float(text).is_none()
                && !number::is_timestamp(text)
                && number::parse(text, true).is_none()
                && !number::is_base60(text)
        }
        _ => true,
    }
}

/// The words that YAML 1.1 reads as booleans and YAML 1.2 doesn't.
pub(crate) fn parse_old_bool(text: &str) -> Option<bool> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "~" | "null" | "Null" | "NULL")
}

fn parse_special_float(text: &str) -> Option<f64> {
    match text {
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// Standard base64 with padding; line breaks count for nothing. Bytes that aren't UTF-8 have no place in a [`Value`].
fn decode_binary(text: &str) -> Result<String, Mismatch> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !b"\r\n".contains(byte)).collect();
    if !digits.len().is_multiple_of(4) {
        return Err(Mismatch);
    }
    let padding = digits.iter().rev().take_while(|byte| **byte == b'=').count();
    if padding > 2 {
        return Err(Mismatch);
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3);
    let mut bits = 0u32;
    let mut count = 0;
    for digit in &digits[..digits.len() - padding] {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return Err(Mismatch),
        };
        bits = (bits << 6 | u32::from(value)) & 0xFF_FFFF;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xFF) as u8);
        }
    }
    String::from_utf8(bytes).map_err(|_| Mismatch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_1_1_words_are_booleans_and_nulls() {
        for word in ["y", "Yes", "ON", "true", "TRUE"] {
            assert_eq!(resolve_plain(word), Value::Bool(true), "{word}");
        }
        for word in ["n", "No", "OFF", "False"] {
            assert_eq!(resolve_plain(word), Value::Bool(false), "{word}");
        }
        for word in ["", "~", "null", "NULL"] {
            assert_eq!(resolve_plain(word), Value::Null, "{word:?}");
        }
        for word in ["yEs", "tRue", "nULL", "oN", "2001-01-01", "<<", "="] {
            assert_eq!(resolve_plain(word), Value::from(word), "{word}");
        }
        assert_eq!(resolve_plain("-.INF"), Value::Float(f64::NEG_INFINITY));
    }

    #[test]
    fn a_tag_decides_or_is_refused() {
        let plain = |tag, text| resolve(Some(tag), Style::Plain, text);
        assert_eq!(plain(STR, "1"), Ok(Value::from("1")));
        assert_eq!(plain(FLOAT, "1"), Ok(Value::Float(1.0)));
        assert_eq!(plain(INT, "0x10"), Ok(Value::Int(16)));
        assert_eq!(plain(BOOL, "yes"), Ok(Value::Bool(true)));
        assert_eq!(plain(TIMESTAMP, "2001-01-01"), Ok(Value::from("2001-01-01")));
        assert_eq!(plain(BINARY, "aGk="), Ok(Value::from("hi")));
        assert_eq!(plain("!unknown", "1"), Ok(Value::from("1")));
        for (tag, text) in [(INT, "1.5"), (BOOL, "x"), (NULL, "x"), (TIMESTAMP, "x"), (BINARY, "a")] {
            assert_eq!(plain(tag, text), Err(Mismatch), "{tag} {text}");
        }
    }

    #[test]
    fn quoted_scalars_are_strings() {
        assert_eq!(resolve(None, Style::SingleQuoted, "1"), Ok(Value::from("1")));
        assert_eq!(resolve(None, Style::Literal, "yes"), Ok(Value::from("yes")));
    }
}
