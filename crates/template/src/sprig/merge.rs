//! `merge` and `mergeOverwrite`: sprig hands them to the library mergo, in the version that Kalypso is built with, whose
//! corner cases (types that differ, lists, empty values) are kept here.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::depth::{check_depth, insert};
use crate::function::{Function, Meter, Param};
use crate::value::{Key, Map, MapKind, Opaque, Value};

use super::arguments::{Answer, map, open};

const DICT: Param = Param::Dict;

pub(super) const FUNCTIONS: &[Function] = &[
    open("merge", &[DICT], DICT, |meter, args| merge_all(meter, args, false)),
    open("mergeOverwrite", &[DICT], DICT, |meter, args| merge_all(meter, args, true)),
];

/// Why a merge stops.
enum Stop {
    /// mergo's own error, which sprig swallows: the result is an empty string.
    Swallowed,
    /// A panic in Go, or our budget.
    Failed(String),
}

impl From<String> for Stop {
    fn from(reason: String) -> Stop {
        Stop::Failed(reason)
    }
}

fn merge_all(meter: &mut Meter, args: &[Value], overwrite: bool) -> Answer {
    // A nil destination becomes a map with the first source.
    let target = match map(args, 0)? {
        Some(map) => Rc::clone(map),
        None => Rc::new(Map { kind: MapKind::StringAny, entries: RefCell::new(BTreeMap::new()) }),
    };
    for at in 1..args.len() {
        let Some(source) = map(args, at)? else { continue };
        match merge(meter, &target, source, overwrite, 0) {
            Ok(()) => {}
            Err(Stop::Swallowed) => return Ok(Value::str("")),
            Err(Stop::Failed(reason)) => return Err(reason),
        }
    }
    Ok(Value::Map(target))
}

fn merge(meter: &mut Meter, target: &Rc<Map>, source: &Rc<Map>, overwrite: bool, depth: usize) -> Result<(), Stop> {
    check_depth(depth)?;
    // Taken out first: the two may be one map.
    let entries = source.entries.borrow().clone();
    meter.steps(entries.len() as u64)?;
    for (key, item) in entries {
        if source.kind == MapKind::AnyAny && target.kind != MapKind::AnyAny {
            let reason = "reflect.Value.MapIndex: value of type interface {} is not assignable to type string";
            return Err(Stop::Failed(reason.to_owned()));
        }
        let old = target.entries.borrow().get(&key).cloned();
        merge_item(meter, target, source.kind, (key, item), old, overwrite, depth)?;
    }
    Ok(())
}

fn merge_item(
    meter: &mut Meter,
    target: &Rc<Map>,
    source_kind: MapKind,
    (key, item): (Key, Value),
    old: Option<Value>,
    overwrite: bool,
    depth: usize,
) -> Result<(), Stop> {
    match &item {
        Value::Nil => {
            if overwrite {
                store(meter, target, source_kind, key, Value::Nil)?;
            }
            return Ok(());
        }
        Value::Map(_) | Value::Struct(_) => merge_nested(meter, old.as_ref(), &item, overwrite, depth)?,
        Value::Opaque(opaque) if opaque.as_int().is_none() => {
            merge_nested(meter, old.as_ref(), &item, overwrite, depth)?;
        }
        Value::List(list) => {
            if old.is_some() && target.kind == MapKind::StringString {
                return Err(Stop::Failed("reflect: call of reflect.Value.IsNil on string Value".to_owned()));
            }
            if target.kind == MapKind::StringString {
                let list_type = Value::List(Rc::clone(list)).type_name();
                return Err(Stop::Failed(format!(
                    "reflect.Value.SetMapIndex: value of type {list_type} is not assignable to type string"
                )));
            }
            if overwrite {
                store(meter, target, source_kind, key.clone(), item.clone())?;
            }
        }
        _ => {}
    }
    let kept = old.as_ref().is_some_and(|old| !is_blank(old));
    if kept && matches!(item, Value::Map(_) | Value::List(_)) {
        return Ok(());
    }
    if overwrite || !kept {
        store(meter, target, source_kind, key, item)?;
    }
    Ok(())
}

/// What happens to a value that is there already when a map, a struct or a pointer comes onto it.
fn merge_nested(
    meter: &mut Meter,
    old: Option<&Value>,
    item: &Value,
    overwrite: bool,
    depth: usize,
) -> Result<(), Stop> {
    match (old, item) {
        (Some(Value::Map(old)), Value::Map(item)) => merge(meter, old, item, overwrite, depth + 1),
        (Some(Value::Map(_)), _) if overwrite => {
            Err(Stop::Failed("reflect: reflect.Value.Set using unaddressable value".to_owned()))
        }
        (Some(Value::Opaque(old)), item) if matches!(**old, Opaque::Version(_)) => {
            let pointer = matches!(item, Value::Opaque(item) if matches!(**item, Opaque::Version(_)));
            if overwrite || pointer { Ok(()) } else { Err(Stop::Swallowed) }
        }
        _ => Ok(()),
    }
}

fn store(meter: &mut Meter, target: &Rc<Map>, source_kind: MapKind, key: Key, item: Value) -> Result<(), Stop> {
    if target.kind == MapKind::StringString && source_kind != MapKind::StringString {
        let reason = "reflect.Value.SetMapIndex: value of type interface {} is not assignable to type string";
        return Err(Stop::Failed(reason.to_owned()));
    }
    Ok(insert(meter, target, key, item)?)
}

/// mergo's idea of an empty value: a struct and a complex number never are.
fn is_blank(value: &Value) -> bool {
    !matches!(value, Value::Complex(..)) && super::defaults::is_empty(value)
}
