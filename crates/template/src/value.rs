//! Values that know their Go type, because `index`, `slice`, printing, comparing and error texts depend on it.
//! Lists are never changed in place; maps are shared and changed in place, as `set` and `unset` do in Go.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A value as a template sees it. The variants are Go's types.
#[derive(Clone, Debug)]
pub enum Value {
    /// A nil interface: a missing key, `nil`.
    Nil,
    Bool(bool),
    /// `int`
    Int(i64),
    /// `int64`: what sprig's arithmetic gives.
    Int64(i64),
    /// `uint64`: a YAML integer above the largest int.
    Uint64(u64),
    /// `float64`
    Float(f64),
    /// `complex128`
    Complex(f64, f64),
    Str(Rc<str>),
    List(Rc<List>),
    Map(Rc<Map>),
    /// The context that every template gets: a Go struct, whose fields are fixed.
    Struct(Rc<Struct>),
    /// A value of one of sprig's own types: time, duration, version.
    Opaque(Rc<Opaque>),
}

/// A slice and its element type: `[]interface {}`, `[]string`, `[]int`.
#[derive(Clone, Debug)]
pub struct List {
    pub element: Element,
    pub items: Vec<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    Any,
    Str,
    Int,
}

/// A map and its Go type.
#[derive(Debug)]
pub struct Map {
    pub kind: MapKind,
    pub entries: RefCell<BTreeMap<Key, Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// `map[string]interface {}`: sprig's dict, the composed configuration.
    StringAny,
    /// `map[string]string`: labels, manifests.
    StringString,
    /// `map[interface {}]interface {}`: a YAML map inside a configuration value.
    AnyAny,
}

/// A map's key. The order of the variants is the order in which Go prints keys of mixed types.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Nil,
    Str(Rc<str>),
    Uint(u64),
    Int(i64),
    /// A float's bits, ordered as the number.
    Float(OrderedFloat),
    Bool(bool),
}

/// A float that can be a key.
#[derive(Clone, Copy, Debug)]
pub struct OrderedFloat(pub f64);

/// A Go struct: its type's name and its fields in order.
#[derive(Debug)]
pub struct Struct {
    pub type_name: &'static str,
    pub fields: Vec<(&'static str, Value)>,
}

/// What sprig makes that is neither a plain value nor a collection.
#[derive(Clone, Debug, PartialEq)]
pub enum Opaque {
    /// `time.Duration`, in nanoseconds.
    Duration(i64),
    /// `uint8`: what `index` gives of a string.
    Byte(u8),
    /// `time.Month`, from 1.
    Month(i64),
    /// `time.Weekday`, from 0 for Sunday.
    Weekday(i64),
    /// `time.Time`
    Time(crate::sprig::time::Time),
    /// `*semver.Version`
    Version(Version),
}

/// A semantic version, as `semver` gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub major: u64,
    pub minor: u64,
    pub patch: u64,
    pub prerelease: String,
    pub metadata: String,
    /// The text that it was read from.
    pub original: String,
}

impl Drop for Map {
    /// Takes apart what only this map holds without recursion: a chain of maps can be longer than the stack.
    fn drop(&mut self) {
        let mut left: Vec<Value> = std::mem::take(self.entries.get_mut()).into_values().collect();
        while let Some(value) = left.pop() {
            match value {
                Value::List(mut list) => {
                    left.extend(
                        Rc::get_mut(&mut list).map(|list| std::mem::take(&mut list.items)).into_iter().flatten(),
                    );
                }
                Value::Map(mut map) => {
                    let entries = Rc::get_mut(&mut map).map(|map| std::mem::take(map.entries.get_mut()));
                    left.extend(entries.into_iter().flat_map(BTreeMap::into_values));
                }
                Value::Struct(mut data) => {
                    let fields = Rc::get_mut(&mut data).map(|data| std::mem::take(&mut data.fields));
                    left.extend(fields.into_iter().flatten().map(|(_, field)| field));
                }
                _ => {}
            }
        }
    }
}

impl PartialEq for OrderedFloat {
    fn eq(&self, other: &OrderedFloat) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for OrderedFloat {}

impl PartialOrd for OrderedFloat {
    fn partial_cmp(&self, other: &OrderedFloat) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OrderedFloat {
    fn cmp(&self, other: &OrderedFloat) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl From<&Key> for Value {
    fn from(key: &Key) -> Value {
        match key {
            Key::Nil => Value::Nil,
            Key::Bool(truth) => Value::Bool(*truth),
            Key::Int(int) => Value::Int(*int),
            Key::Uint(int) => Value::Uint64(*int),
            Key::Float(float) => Value::Float(float.0),
            Key::Str(text) => Value::Str(text.clone()),
        }
    }
}

impl Value {
    pub fn str(text: impl AsRef<str>) -> Value {
        Value::Str(Rc::from(text.as_ref()))
    }

    pub fn list(items: Vec<Value>) -> Value {
        Value::List(Rc::new(List { element: Element::Any, items }))
    }

    pub fn strings(items: impl IntoIterator<Item = impl AsRef<str>>) -> Value {
        let items = items.into_iter().map(Value::str).collect();
        Value::List(Rc::new(List { element: Element::Str, items }))
    }

    pub fn map(kind: MapKind, entries: BTreeMap<Key, Value>) -> Value {
        Value::Map(Rc::new(Map { kind, entries: RefCell::new(entries) }))
    }

    /// `map[string]interface {}`, what `dict` gives.
    pub fn dict(entries: BTreeMap<Key, Value>) -> Value {
        Value::map(MapKind::StringAny, entries)
    }

    /// Whether both are one and the same list or map.
    pub fn is_same(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::List(a), Value::List(b)) => Rc::ptr_eq(a, b),
            (Value::Map(a), Value::Map(b)) => Rc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// Go's reflect kind, as `kindOf` says it.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Nil => "invalid",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Int64(_) => "int64",
            Value::Uint64(_) => "uint64",
            Value::Float(_) => "float64",
            Value::Complex(..) => "complex128",
            Value::Str(_) => "string",
            Value::List(_) => "slice",
            Value::Map(_) => "map",
            Value::Struct(_) => "struct",
            Value::Opaque(opaque) => match **opaque {
                Opaque::Duration(_) => "int64",
                Opaque::Byte(_) => "uint8",
                Opaque::Month(_) | Opaque::Weekday(_) => "int",
                Opaque::Time(_) => "struct",
                Opaque::Version(_) => "ptr",
            },
        }
    }

    /// Go's type, as `%T` and `typeOf` say it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Nil => "<nil>",
            Value::List(list) => match list.element {
                Element::Any => "[]interface {}",
                Element::Str => "[]string",
                Element::Int => "[]int",
            },
            Value::Map(map) => match map.kind {
                MapKind::StringAny => "map[string]interface {}",
                MapKind::StringString => "map[string]string",
                MapKind::AnyAny => "map[interface {}]interface {}",
            },
            Value::Struct(data) => data.type_name,
            Value::Opaque(opaque) => match **opaque {
                Opaque::Duration(_) => "time.Duration",
                Opaque::Byte(_) => "uint8",
                Opaque::Month(_) => "time.Month",
                Opaque::Weekday(_) => "time.Weekday",
                Opaque::Time(_) => "time.Time",
                Opaque::Version(_) => "*semver.Version",
            },
            scalar => scalar.kind(),
        }
    }
}
