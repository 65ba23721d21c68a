//! Sprig's dictionaries: `map[string]interface {}`, shared and changed in place by `set` and `unset`. Go walks a map in
//! a random order; here `keys` and `values` come sorted by key.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::depth::{check_depth, insert};
use crate::function::{Function, Meter, Param};
use crate::value::{Element, Key, List, Map, Struct, Value};

use super::arguments::{Answer, any, fixed, is_nil_list, map, open, shared_text};
use super::convert::to_text;

const ANY: Param = Param::Any;
const STR: Param = Param::Str;
const DICT: Param = Param::Dict;

pub(super) const FUNCTIONS: &[Function] = &[
    open("dict", &[], ANY, dict),
    fixed("set", &[DICT, STR, ANY], set),
    fixed("unset", &[DICT, STR], |_, args| {
        let Some(map) = map(args, 0)? else { return Ok(Value::dict(BTreeMap::new())) };
        map.entries.borrow_mut().remove(&key(args, 1)?);
        Ok(any(args, 0).clone())
    }),
    fixed("hasKey", &[DICT, STR], |_, args| {
        let key = key(args, 1)?;
        Ok(Value::Bool(map(args, 0)?.is_some_and(|map| map.entries.borrow().contains_key(&key))))
    }),
    open("pluck", &[STR], DICT, |meter, args| {
        let key = key(args, 0)?;
        let mut found = Vec::new();
        for at in 1..args.len() {
            meter.steps(1)?;
            found.extend(map(args, at)?.and_then(|map| map.entries.borrow().get(&key).cloned()));
        }
        Ok(Value::list(found))
    }),
    open("keys", &[], DICT, |meter, args| {
        let mut keys = Vec::new();
        for at in 0..args.len() {
            for (key, _) in entries(meter, args, at)? {
                keys.push(Value::from(&key));
            }
        }
        Ok(Value::List(Rc::new(List { element: Element::Str, items: keys })))
    }),
    fixed("values", &[DICT], |meter, args| Ok(Value::list(entries(meter, args, 0)?.into_values().collect()))),
    open("pick", &[DICT], STR, |meter, args| {
        let mut picked = BTreeMap::new();
        for at in 1..args.len() {
            meter.steps(1)?;
            let key = key(args, at)?;
            if let Some(value) = map(args, 0)?.and_then(|map| map.entries.borrow().get(&key).cloned()) {
                picked.insert(key, value);
            }
        }
        Ok(Value::dict(picked))
    }),
    open("omit", &[DICT], STR, |meter, args| {
        let mut kept = entries(meter, args, 0)?;
        for at in 1..args.len() {
            kept.remove(&key(args, at)?);
        }
        Ok(Value::dict(kept))
    }),
    fixed("deepCopy", &[ANY], |meter, args| match any(args, 0) {
        Value::Nil => Err("reflect: call of reflect.Value.Type on zero Value".to_owned()),
        value => copy(meter, value, 0),
    }),
];

fn key(args: &[Value], at: usize) -> Result<Key, String> {
    Ok(Key::Str(Rc::clone(shared_text(args, at)?)))
}

/// A copy of a map's entries, paid for.
fn entries(meter: &mut Meter, args: &[Value], at: usize) -> Result<BTreeMap<Key, Value>, String> {
    let Some(map) = map(args, at)? else { return Ok(BTreeMap::new()) };
    let entries = map.entries.borrow();
    meter.steps(entries.len() as u64)?;
    Ok(entries.clone())
}

fn dict(meter: &mut Meter, args: &[Value]) -> Answer {
    meter.steps(args.len() as u64)?;
    let mut entries = BTreeMap::new();
    for pair in args.chunks(2) {
        let key = to_text(meter, any(pair, 0))?;
        entries.insert(Key::Str(Rc::from(key)), pair.get(1).cloned().unwrap_or_else(|| Value::str("")));
    }
    Ok(Value::dict(entries))
}

fn set(meter: &mut Meter, args: &[Value]) -> Answer {
    let map = map(args, 0)?.ok_or_else(|| "assignment to entry in nil map".to_owned())?;
    meter.steps(1)?;
    insert(meter, map, key(args, 1)?, any(args, 2).clone())?;
    Ok(any(args, 0).clone())
}

/// Copies lists and maps all the way down. A version keeps its fields to itself in Go, so its copy is empty there too.
fn copy(meter: &mut Meter, value: &Value, depth: usize) -> Answer {
    check_depth(depth)?;
    meter.steps(1)?;
    Ok(match value {
        Value::List(list) if is_nil_list(list) => value.clone(),
        Value::List(list) => {
            let items: Result<_, _> = list.items.iter().map(|item| copy(meter, item, depth + 1)).collect();
            Value::List(Rc::new(List { element: list.element, items: items? }))
        }
        Value::Map(map) => {
            let mut entries = BTreeMap::new();
            for (key, item) in map.entries.borrow().iter() {
                entries.insert(key.clone(), copy(meter, item, depth + 1)?);
            }
            Value::Map(Rc::new(Map { kind: map.kind, entries: RefCell::new(entries) }))
        }
        Value::Struct(data) => {
            let fields: Result<_, _> = data
                .fields
                .iter()
                .map(|(name, item)| Ok::<_, String>((*name, copy(meter, item, depth + 1)?)))
                .collect();
            Value::Struct(Rc::new(Struct { type_name: data.type_name, fields: fields? }))
        }
        Value::Opaque(opaque) => Value::Opaque(Rc::new(opaque.visible_copy())),
        scalar => scalar.clone(),
    })
}
