//! The four functions that Kalypso adds to sprig: `toYaml`, `stringify`, `hash`, `unquote`.

mod hash;

use std::collections::BTreeMap;

use kedge_goyaml::Value as Yaml;

use crate::depth::check_depth;
use crate::function::{Function, Meter, Param};
use crate::printer::opaque_text;
use crate::value::{Element, Key, Opaque, Struct, Value};

/// Kalypso writes YAML with yaml.v3's own indent.
const INDENT: usize = 4;

/// As yaml.v3 writes a time.
const TIMESTAMP: &str = "2006-01-02T15:04:05.999999999Z07:00";

pub(crate) static FUNCTIONS: [Function; 4] = [
    Function { name: "toYaml", params: &[Param::Any], variadic: None, call: to_yaml },
    Function { name: "stringify", params: &[Param::Dict], variadic: None, call: stringify },
    Function { name: "hash", params: &[Param::Any], variadic: None, call: hash::hash },
    Function { name: "unquote", params: &[Param::Str], variadic: None, call: unquote },
];

fn to_yaml(meter: &mut Meter, arguments: &[Value]) -> Result<Value, String> {
    if let Some(Value::Opaque(opaque)) = arguments.first()
        && let Opaque::Time(time) = &**opaque
    {
        return Ok(Value::str(time.format(TIMESTAMP)));
    }
    let text = match arguments.first() {
        Some(Value::Struct(data)) => encode_struct(meter, data)?,
        Some(value) => encode(&yaml(meter, value, 0)?),
        None => String::new(),
    };
    Ok(Value::str(text))
}

fn encode(value: &Yaml) -> String {
    without_newline(kedge_goyaml::encode(value, INDENT))
}

fn without_newline(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

/// yaml.v3 writes a struct's fields in their order, in lower case.
fn encode_struct(meter: &mut Meter, data: &Struct) -> Result<String, String> {
    let fields = data.fields.iter().map(|(name, value)| Ok((name.to_lowercase(), yaml(meter, value, 1)?)));
    let fields = fields.collect::<Result<Vec<_>, String>>()?;
    let fields = fields.iter().map(|(name, value)| (name.as_str(), value));
    Ok(without_newline(kedge_goyaml::encode_ordered(fields, INDENT)))
}

/// The composed configuration itself, when no template has changed it.
pub(crate) fn config_to_yaml(config: &dyn crate::context::Config) -> String {
    without_newline(kedge_goyaml::encode_map(config.entries(), INDENT))
}

fn stringify(meter: &mut Meter, arguments: &[Value]) -> Result<Value, String> {
    let Some(Value::Map(map)) = arguments.first() else {
        return Ok(Value::str("{}"));
    };
    let mut entries = BTreeMap::new();
    for (key, value) in map.entries.borrow().iter() {
        let value = match value {
            Value::List(list) if list.element == Element::Any => Yaml::String(encode(&yaml(meter, value, 0)?) + "\n"),
            value => yaml(meter, value, 1)?,
        };
        entries.insert(yaml_key(meter, key)?, value);
    }
    Ok(Value::str(encode(&Yaml::Map(entries))))
}

fn unquote(_: &mut Meter, arguments: &[Value]) -> Result<Value, String> {
    let Some(Value::Str(text)) = arguments.first() else {
        return Ok(Value::str(""));
    };
    Ok(Value::str(text.trim().trim_matches('"').trim_matches('\'')))
}

/// A value as the YAML writer takes it. Every line that it will be is paid for with its indentation, because a value that
/// holds a text many times is small in memory and large on paper.
fn yaml(meter: &mut Meter, value: &Value, depth: usize) -> Result<Yaml, String> {
    check_depth(depth)?;
    let (bytes, breaks) = match value {
        Value::Str(text) => (text.len(), text.matches('\n').count()),
        _ => (1, 0),
    };
    meter.bytes((bytes + (breaks + 1) * depth * INDENT) as u64)?;
    Ok(match value {
        Value::Nil => Yaml::Null,
        Value::Bool(truth) => Yaml::Bool(*truth),
        Value::Int(int) | Value::Int64(int) => Yaml::Int(*int),
        Value::Uint64(int) => i64::try_from(*int).map_or(Yaml::Uint(*int), Yaml::Int),
        Value::Float(float) => Yaml::Float(*float),
        Value::Complex(..) => return Err("cannot marshal type: complex128".to_owned()),
        Value::Str(text) => Yaml::String(text.to_string()),
        Value::List(list) => {
            Yaml::List(list.items.iter().map(|item| yaml(meter, item, depth + 1)).collect::<Result<_, _>>()?)
        }
        Value::Map(map) => Yaml::Map(
            map.entries
                .borrow()
                .iter()
                .map(|(key, value)| Ok((yaml_key(meter, key)?, yaml(meter, value, depth + 1)?)))
                .collect::<Result<_, String>>()?,
        ),
        Value::Struct(data) => Yaml::Map(
            data.fields
                .iter()
                .map(|(name, value)| {
                    Ok((kedge_goyaml::Key::String(name.to_lowercase()), yaml(meter, value, depth + 1)?))
                })
                .collect::<Result<_, String>>()?,
        ),
        Value::Opaque(opaque) => match &**opaque {
            Opaque::Byte(byte) => Yaml::Int(i64::from(*byte)),
            Opaque::Month(int) | Opaque::Weekday(int) => Yaml::Int(*int),
            Opaque::Version(_) => Yaml::Map(BTreeMap::new()),
            Opaque::Duration(_) => Yaml::String(opaque_text(opaque)),
            // yaml.v3 writes it without quotes, which none of the writer's values is.
            Opaque::Time(_) => return Err("a time inside a map or a list has no YAML here: format it first".to_owned()),
        },
    })
}

fn yaml_key(meter: &mut Meter, key: &Key) -> Result<kedge_goyaml::Key, String> {
    use kedge_goyaml::Key as Yaml;
    Ok(match key {
        Key::Nil => Yaml::Null,
        Key::Bool(truth) => Yaml::Bool(*truth),
        Key::Int(int) => Yaml::Int(*int),
        Key::Uint(int) => Yaml::Uint(*int),
        Key::Float(float) => Yaml::Float(kedge_goyaml::Float(float.0)),
        Key::Str(text) => {
            meter.bytes(text.len() as u64)?;
            Yaml::String(text.to_string())
        }
    })
}
