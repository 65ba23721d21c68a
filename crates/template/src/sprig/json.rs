//! `toJson` and `toPrettyJson`, written as Go's encoding/json writes. A YAML map inside a value, for which Go gives up and
//! sprig prints nothing, is written with its keys as text.

use std::collections::BTreeMap;

use crate::depth::check_depth;
use crate::float::format_float;
use crate::function::{Function, Meter, Param};
use crate::value::{Key, Map, Opaque, Value};

use super::arguments::{Answer, any, fixed, is_nil_list};

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("toJson", &[Param::Any], |meter, args| encode(meter, any(args, 0), None)),
    fixed("toPrettyJson", &[Param::Any], |meter, args| encode(meter, any(args, 0), Some("  "))),
];

/// The text so far. Everything written is paid for, because a value that holds a list twice, many times over, is short
/// in memory and long on paper.
struct Writer<'m> {
    meter: &'m mut Meter,
    out: String,
    indent: Option<&'static str>,
    depth: usize,
}

/// Why nothing can be written.
enum Stop {
    /// Go's encoder refuses the value; sprig prints nothing.
    Unsupported,
    Failed(String),
}

impl From<String> for Stop {
    fn from(reason: String) -> Stop {
        Stop::Failed(reason)
    }
}

fn encode(meter: &mut Meter, value: &Value, indent: Option<&'static str>) -> Answer {
    let mut writer = Writer { meter, out: String::new(), indent, depth: 0 };
    match writer.value(value) {
        Ok(()) => Ok(Value::str(writer.out)),
        Err(Stop::Unsupported) => Ok(Value::str("")),
        Err(Stop::Failed(reason)) => Err(reason),
    }
}

impl Writer<'_> {
    fn raw(&mut self, text: &str) -> Result<(), Stop> {
        self.meter.bytes(text.len() as u64)?;
        self.out.push_str(text);
        Ok(())
    }

    fn value(&mut self, value: &Value) -> Result<(), Stop> {
        match value {
            Value::Nil => self.raw("null"),
            Value::Bool(flag) => self.raw(if *flag { "true" } else { "false" }),
            Value::Int(number) | Value::Int64(number) => self.raw(&number.to_string()),
            Value::Uint64(number) => self.raw(&number.to_string()),
            Value::Float(number) => self.raw(&float_text(*number)?),
            Value::Complex(..) => Err(Stop::Unsupported),
            Value::Str(text) => self.string(text),
            Value::List(list) if is_nil_list(list) => self.raw("null"),
            Value::List(list) => self.block('[', ']', list.items.iter(), |writer, item| writer.value(item)),
            Value::Map(map) => self.block('{', '}', texts(map).iter(), |writer, (key, item)| writer.pair(key, item)),
            Value::Struct(data) => {
                self.block('{', '}', data.fields.iter(), |writer, (name, item)| writer.pair(name, item))
            }
            Value::Opaque(opaque) => match &**opaque {
                Opaque::Time(time) => {
                    let text = time.json().ok_or(Stop::Unsupported)?;
                    self.string(&text)
                }
                other => match other.as_int() {
                    Some(number) => self.raw(&number.to_string()),
                    None => self.string(&super::print(value)),
                },
            },
        }
    }

    fn pair(&mut self, key: &str, item: &Value) -> Result<(), Stop> {
        self.string(key)?;
        self.raw(if self.indent.is_some() { ": " } else { ":" })?;
        self.value(item)
    }

    fn block<T>(
        &mut self,
        open: char,
        close: char,
        items: impl ExactSizeIterator<Item = T>,
        write: impl Fn(&mut Self, T) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        check_depth(self.depth)?;
        self.raw(open.encode_utf8(&mut [0; 4]))?;
        let empty = items.len() == 0;
        self.depth += 1;
        for (at, item) in items.enumerate() {
            if at > 0 {
                self.raw(",")?;
            }
            self.line()?;
            write(self, item)?;
        }
        self.depth -= 1;
        if !empty {
            self.line()?;
        }
        self.raw(close.encode_utf8(&mut [0; 4]))
    }

    fn line(&mut self) -> Result<(), Stop> {
        let Some(indent) = self.indent else { return Ok(()) };
        self.raw("\n")?;
        (0..self.depth).try_for_each(|_| self.raw(indent))
    }

    /// A string with what HTML could misread escaped, too.
    fn string(&mut self, text: &str) -> Result<(), Stop> {
        self.raw("\"")?;
        let mut plain = 0;
        for (at, c) in text.char_indices() {
            let escaped = match c {
                '"' => "\\\"".to_owned(),
                '\\' => "\\\\".to_owned(),
                '\n' => "\\n".to_owned(),
                '\r' => "\\r".to_owned(),
                '\t' => "\\t".to_owned(),
                '\u{8}' => "\\b".to_owned(),
                '\u{c}' => "\\f".to_owned(),
                // Mostly a byte that isn't UTF-8, which Go writes like this.
                char::REPLACEMENT_CHARACTER => "\\ufffd".to_owned(),
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => format!("\\u{:04x}", u32::from(c)),
                _ => continue,
            };
            self.raw(&text[plain..at])?;
            self.raw(&escaped)?;
            plain = at + c.len_utf8();
        }
        self.raw(&text[plain..])?;
        self.raw("\"")
    }
}

/// The entries by the text of their keys, sorted by it.
fn texts(map: &Map) -> BTreeMap<String, Value> {
    let text = |key: &Key| match key {
        Key::Str(text) => text.to_string(),
        Key::Nil => "null".to_owned(),
        Key::Bool(flag) => flag.to_string(),
        Key::Int(number) => number.to_string(),
        Key::Uint(number) => number.to_string(),
        Key::Float(number) => super::print(&Value::Float(number.0)),
    };
    map.entries.borrow().iter().map(|(key, item)| (text(key), item.clone())).collect()
}

/// Plain digits from 1e-6 up to 1e21, an exponent without leading zeros outside.
fn float_text(number: f64) -> Result<String, Stop> {
    if !number.is_finite() {
        return Err(Stop::Unsupported);
    }
    let size = number.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return Ok(format_float(number, 'f', None));
    }
    let text = format_float(number, 'e', None);
    Ok(match text.split_once("e-0") {
        Some((digits, exponent)) => format!("{digits}e-{exponent}"),
        None => text,
    })
}
