//! The values that yaml.v2 decodes into, shared by the decoder, the encoder and the template engine.

use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A value as gopkg.in/yaml.v2 decodes it into an `interface{}`.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    /// Above `i64::MAX`.
    Uint(u64),
    Float(f64),
    String(String),
    List(Vec<Value>),
    Map(BTreeMap<Key, Value>),
}

/// A scalar key of a map. Maps and lists as keys are refused, as yaml.v2 does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(Float),
    String(String),
}

/// A float that can be a key.
#[derive(Clone, Copy, Debug)]
pub struct Float(pub f64);

impl Value {
    /// True for a map or a list, the two shapes that a configuration value may parse into.
    pub fn is_collection(&self) -> bool {
        matches!(self, Value::List(_) | Value::Map(_))
    }

    /// The value under a string key of a map.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Value::Map(map) => map.get(&Key::String(key.to_owned())),
            _ => None,
        }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The scalar as a key; the value itself comes back when it is a map or a list.
    pub fn into_key(self) -> Result<Key, Value> {
        match self {
            Value::Null => Ok(Key::Null),
            Value::Bool(value) => Ok(Key::Bool(value)),
            Value::Int(value) => Ok(Key::Int(value)),
            Value::Uint(value) => Ok(Key::Uint(value)),
            Value::Float(value) => Ok(Key::Float(Float(value))),
            Value::String(value) => Ok(Key::String(value)),
            other => Err(other),
        }
    }
}

impl From<Key> for Value {
    fn from(key: Key) -> Value {
        match key {
            Key::Null => Value::Null,
            Key::Bool(value) => Value::Bool(value),
            Key::Int(value) => Value::Int(value),
            Key::Uint(value) => Value::Uint(value),
            Key::Float(Float(value)) => Value::Float(value),
            Key::String(value) => Value::String(value),
        }
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Key {
        Key::String(text.to_owned())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::String(text.to_owned())
    }
}

impl PartialEq for Float {
    fn eq(&self, other: &Float) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Float {}

impl PartialOrd for Float {
    fn partial_cmp(&self, other: &Float) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Float {
    fn cmp(&self, other: &Float) -> Ordering {
        // Adding zero makes -0 and 0 one key, as they are in Go.
        (self.0 + 0.0).total_cmp(&(other.0 + 0.0))
    }
}
