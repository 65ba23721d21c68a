//! `index` and `len`.

use std::rc::Rc;

use crate::context::{Data, Part};
use crate::item::{Inner, Item};
use crate::value::{Element, Key, MapKind, Opaque, OrderedFloat, Value};

pub(super) fn length<'v>(item: Item<'v>, data: &Data<'v>) -> Result<Item<'v>, String> {
    let count = match &item.inner {
        Inner::Nothing if item.boxed => return Err("len of nil pointer".to_owned()),
        Inner::Nothing => return Err("reflect: call of reflect.Value.Type on zero Value".to_owned()),
        Inner::Text(text) => text.len(),
        Inner::Value(Value::Str(text)) => text.len(),
        Inner::Value(Value::List(list)) => list.items.len(),
        Inner::Value(Value::Map(map)) => map.entries.borrow().len(),
        Inner::Part(part) => match data.texts(*part) {
            Some(texts) => texts.len(),
            None => match data.part(*part) {
                Value::Map(map) => map.entries.borrow().len(),
                _ => 0,
            },
        },
        _ => return Err(format!("len of type {}", item.inner_type())),
    };
    Ok(Item::value(Value::Int(i64::try_from(count).unwrap_or(i64::MAX))))
}

pub(super) fn index<'v>(items: Vec<Item<'v>>, data: &Data<'v>) -> Result<Item<'v>, String> {
    let mut items = items.into_iter();
    let mut item = items.next().unwrap_or(Item::NOTHING).unboxed();
    if item.is_nothing() {
        return Err("index of untyped nil".to_owned());
    }
    for key in items {
        if item.is_nothing() {
            return Err("index of nil pointer".to_owned());
        }
        item = match &item.inner {
            Inner::Part(part) => entry(*part, &key, data)?,
            Inner::Value(Value::Map(map)) if map.kind == MapKind::AnyAny => {
                let found = dynamic_key(&key)?.and_then(|key| map.entries.borrow().get(&key).cloned());
                Item::boxed(found.unwrap_or(Value::Nil))
            }
            Inner::Value(Value::Map(map)) => {
                let found = map.entries.borrow().get(&Key::Str(Rc::from(string_key(&key)?))).cloned();
                if map.kind == MapKind::StringString {
                    Item::value(found.unwrap_or_else(|| Value::str("")))
                } else {
                    Item::boxed(found.unwrap_or(Value::Nil))
                }
            }
            Inner::Value(Value::List(list)) => {
                let at = position(&key, list.items.len())?;
                let Some(found) = list.items.get(at) else {
                    return Err("reflect: slice index out of range".to_owned());
                };
                match list.element {
                    Element::Any => Item::boxed(found.clone()),
                    _ => Item::value(found.clone()),
                }
            }
            _ => match item.text() {
                Some(text) => {
                    let at = position(&key, text.len())?;
                    let Some(byte) = text.as_bytes().get(at) else {
                        return Err("reflect: string index out of range".to_owned());
                    };
                    Item::value(Value::Opaque(Rc::new(Opaque::Byte(*byte))))
                }
                None => return Err(format!("can't index item of type {}", item.inner_type())),
            },
        };
    }
    Ok(item)
}

fn entry<'v>(part: Part, key: &Item<'v>, data: &Data<'v>) -> Result<Item<'v>, String> {
    let found = data.entry(part, string_key(key)?);
    Ok(found.unwrap_or(match part {
        Part::Config => Item::boxed(Value::Nil),
        Part::Labels | Part::Manifests => Item::plain(Inner::Text("")),
    }))
}

fn string_key<'k>(key: &'k Item<'_>) -> Result<&'k str, String> {
    match key.text() {
        Some(text) => Ok(text),
        None if key.is_nothing() => Err("value is nil; should be of type string".to_owned()),
        None => Err(format!("value has type {}; should be string", key.inner_type())),
    }
}

/// A key of `map[interface {}]interface {}`; `None` for one that YAML never makes.
fn dynamic_key(key: &Item<'_>) -> Result<Option<Key>, String> {
    Ok(match &key.inner {
        Inner::Nothing => Some(Key::Nil),
        Inner::Text(text) => Some(Key::Str(Rc::from(*text))),
        Inner::Value(value) => match value {
            Value::Bool(truth) => Some(Key::Bool(*truth)),
            Value::Int(int) => Some(Key::Int(*int)),
            Value::Uint64(int) => Some(Key::Uint(*int)),
            Value::Float(float) => Some(Key::Float(OrderedFloat(*float))),
            Value::Str(text) => Some(Key::Str(text.clone())),
            Value::List(_) | Value::Map(_) | Value::Struct(_) => return Err(unhashable(key)),
            _ => None,
        },
        Inner::Root | Inner::Part(_) => return Err(unhashable(key)),
    })
}

fn unhashable(key: &Item<'_>) -> String {
    format!("runtime error: hash of unhashable type {}", key.inner_type())
}

fn position(key: &Item<'_>, length: usize) -> Result<usize, String> {
    let at = match &key.inner {
        Inner::Nothing => return Err("cannot index slice/array with nil".to_owned()),
        Inner::Value(Value::Int(int) | Value::Int64(int)) => *int,
        Inner::Value(Value::Uint64(int)) => int.cast_signed(),
        Inner::Value(Value::Opaque(opaque)) => opaque.as_int().ok_or_else(|| wrong_key(key))?,
        _ => return Err(wrong_key(key)),
    };
    usize::try_from(at).ok().filter(|&at| at <= length).ok_or_else(|| format!("index out of range: {at}"))
}

fn wrong_key(key: &Item<'_>) -> String {
    format!("cannot index slice/array with type {}", key.inner_type())
}
