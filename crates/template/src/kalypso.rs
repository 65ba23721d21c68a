//! The four functions that Kalypso adds to sprig: `toYaml`, `stringify`, `hash`, `unquote`.

mod hash;

use std::collections::BTreeMap;

use kedge_goyaml::Value as Yaml;

use crate::function::{Function, Meter, Param};
use crate::value::{Element, Key, Opaque, Struct, Value};

/// Kalypso writes YAML with yaml.v3's own indent.
const INDENT: usize = 4;

pub(crate) static FUNCTIONS: [Function; 4] = [
    Function { name: "toYaml", params: &[Param::Any], variadic: None, call: to_yaml },
    Function { name: "stringify", params: &[Param::Dict], variadic: None, call: stringify },
    Function { name: "hash", params: &[Param::Any], variadic: None, call: hash::hash },
    Function { name: "unquote", params: &[Param::Str], variadic: None, call: unquote },
];

fn to_yaml(_: &mut Meter, arguments: &[Value]) -> Result<Value, String> {
    let text = match arguments.first() {
        Some(Value::Struct(data)) => encode_struct(data)?,
        Some(value) => encode(&yaml(value)?),
        None => String::new(),
    };
    Ok(Value::str(text))
}

fn encode(value: &Yaml) -> String {
    let mut text = kedge_goyaml::encode(value, INDENT);
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

/// yaml.v3 writes a struct's fields in their order, in lower case.
fn encode_struct(data: &Struct) -> Result<String, String> {
    let fields = data.fields.iter().map(|(name, value)| Ok((name.to_lowercase(), yaml(value)?)));
    let fields = fields.collect::<Result<Vec<_>, String>>()?;
    Ok(kedge_goyaml::encode_ordered(&fields, INDENT).trim_end_matches('\n').to_owned())
}

/// The composed configuration itself, when no template has changed it.
pub(crate) fn config_to_yaml(config: &dyn crate::context::Config) -> String {
    let entries = config.entries().map(|(key, value)| (kedge_goyaml::Key::String(key.to_owned()), value.clone()));
    encode(&Yaml::Map(entries.collect()))
}

fn stringify(_: &mut Meter, arguments: &[Value]) -> Result<Value, String> {
    let Some(Value::Map(map)) = arguments.first() else {
        return Ok(Value::str("{}"));
    };
    let mut entries = BTreeMap::new();
    for (key, value) in map.entries.borrow().iter() {
        let value = match value {
            Value::List(list) if list.element == Element::Any => Yaml::String(encode(&yaml(value)?) + "\n"),
            value => yaml(value)?,
        };
        entries.insert(yaml_key(key), value);
    }
    Ok(Value::str(encode(&Yaml::Map(entries))))
}

fn unquote(_: &mut Meter, arguments: &[Value]) -> Result<Value, String> {
    let Some(Value::Str(text)) = arguments.first() else {
        return Ok(Value::str(""));
    };
    Ok(Value::str(text.trim().trim_matches('"').trim_matches('\'')))
}

/// A value as the YAML writer takes it.
fn yaml(value: &Value) -> Result<Yaml, String> {
    Ok(match value {
        Value::Nil => Yaml::Null,
        Value::Bool(truth) => Yaml::Bool(*truth),
        Value::Int(int) | Value::Int64(int) => Yaml::Int(*int),
        Value::Uint64(int) => i64::try_from(*int).map_or(Yaml::Uint(*int), Yaml::Int),
        Value::Float(float) => Yaml::Float(*float),
        Value::Complex(..) => return Err("cannot marshal type: complex128".to_owned()),
        Value::Str(text) => Yaml::String(text.to_string()),
        Value::List(list) => Yaml::List(list.items.iter().map(yaml).collect::<Result<_, _>>()?),
        Value::Map(map) => Yaml::Map(
            map.entries
                .borrow()
                .iter()
                .map(|(key, value)| Ok((yaml_key(key), yaml(value)?)))
                .collect::<Result<_, String>>()?,
        ),
        Value::Struct(data) => Yaml::Map(
            data.fields
                .iter()
                .map(|(name, value)| Ok((kedge_goyaml::Key::String(name.to_lowercase()), yaml(value)?)))
                .collect::<Result<_, String>>()?,
        ),
        Value::Opaque(opaque) => match &**opaque {
            Opaque::Byte(byte) => Yaml::Int(i64::from(*byte)),
            Opaque::Version(_) => Yaml::Map(BTreeMap::new()),
            opaque => Yaml::String(crate::printer::opaque_text(opaque)),
        },
    })
}

fn yaml_key(key: &Key) -> kedge_goyaml::Key {
    use kedge_goyaml::Key as Yaml;
    match key {
        Key::Nil => Yaml::Null,
        Key::Bool(truth) => Yaml::Bool(*truth),
        Key::Int(int) => Yaml::Int(*int),
        Key::Uint(int) => Yaml::Uint(*int),
        Key::Float(float) => Yaml::Float(kedge_goyaml::Float(float.0)),
        Key::Str(text) => Yaml::String(text.to_string()),
    }
}
