//! Sprig's list functions. A list is never changed in place; each function gives a new one.

use std::rc::Rc;

use crate::function::{Function, Meter, Param};
use crate::value::{Element, List, Value};

use super::arguments::{Answer, NIL_DEREFERENCE, any, fixed, nil_list, open};
use super::convert::to_int64;
use super::defaults::is_empty;
use super::equal::deep_equal;

const ANY: Param = Param::Any;

pub(super) const FUNCTIONS: &[Function] = &[
    open("list", &[], ANY, list),
    open("tuple", &[], ANY, list),
    fixed("append", &[ANY, ANY], push),
    fixed("push", &[ANY, ANY], push),
    fixed("prepend", &[ANY, ANY], |meter, args| {
        let old = items(meter, any(args, 0), "Cannot prepend on type")?;
        Ok(Value::list(std::iter::once(any(args, 1)).chain(old).cloned().collect()))
    }),
    fixed("first", &[ANY], |_, args| {
        Ok(elements(any(args, 0), "Cannot find first on type")?.first().cloned().unwrap_or(Value::Nil))
    }),
    fixed("last", &[ANY], |_, args| {
        Ok(elements(any(args, 0), "Cannot find last on type")?.last().cloned().unwrap_or(Value::Nil))
    }),
    fixed("rest", &[ANY], |meter, args| {
        let all = items(meter, any(args, 0), "Cannot find rest on type")?;
        Ok(all.get(1..).map_or_else(|| nil_list(Element::Any), |rest| Value::list(rest.to_vec())))
    }),
    fixed("initial", &[ANY], |meter, args| {
        let all = items(meter, any(args, 0), "Cannot find initial on type")?;
        Ok(all.split_last().map_or_else(|| nil_list(Element::Any), |(_, initial)| Value::list(initial.to_vec())))
    }),
    fixed("reverse", &[ANY], |meter, args| {
        Ok(Value::list(items(meter, any(args, 0), "Cannot find reverse on type")?.iter().rev().cloned().collect()))
    }),
    fixed("compact", &[ANY], |meter, args| {
        let all = items(meter, any(args, 0), "Cannot compact on type")?;
        Ok(Value::list(all.iter().filter(|item| !is_empty(item)).cloned().collect()))
    }),
    fixed("uniq", &[ANY], |meter, args| {
        let mut kept: Vec<Value> = Vec::new();
        for item in elements(any(args, 0), "Cannot find uniq on type")? {
            if !holds(meter, &kept, item)? {
                kept.push(item.clone());
            }
        }
        Ok(Value::list(kept))
    }),
    open("without", &[ANY], ANY, |meter, args| {
        let omitted = args.get(1..).unwrap_or_default();
        let mut kept = Vec::new();
        for item in elements(any(args, 0), "Cannot find without on type")? {
            if !holds(meter, omitted, item)? {
                kept.push(item.clone());
            }
        }
        Ok(Value::list(kept))
    }),
    fixed("has", &[ANY, ANY], |meter, args| match any(args, 1) {
        Value::Nil => Ok(Value::Bool(false)),
        list => Ok(Value::Bool(holds(meter, elements(list, "Cannot find has on type")?, any(args, 0))?)),
    }),
    open("slice", &[ANY], ANY, slice),
    open("concat", &[], ANY, |meter, args| {
        let mut all = Vec::new();
        for list in args {
            if !matches!(list, Value::Nil | Value::List(_)) {
                return Err(format!("Cannot concat type {} as list", list.kind()));
            }
            all.extend_from_slice(items(meter, list, "")?);
        }
        Ok(if all.is_empty() { nil_list(Element::Any) } else { Value::list(all) })
    }),
];

/// The items of a list, or Go's panic for everything else.
fn elements<'a>(value: &'a Value, complaint: &str) -> Result<&'a [Value], String> {
    match value {
        Value::List(list) => Ok(&list.items),
        Value::Nil => Err(NIL_DEREFERENCE.to_owned()),
        other => Err(format!("{complaint} {}", other.kind())),
    }
}

/// The items of a list that is about to be copied, paid for.
fn items<'a>(meter: &mut Meter, value: &'a Value, complaint: &str) -> Result<&'a [Value], String> {
    let items = elements(value, complaint)?;
    meter.steps(items.len() as u64)?;
    Ok(items)
}

fn list(meter: &mut Meter, args: &[Value]) -> Answer {
    meter.steps(args.len() as u64)?;
    Ok(Value::list(args.to_vec()))
}

fn push(meter: &mut Meter, args: &[Value]) -> Answer {
    let old = items(meter, any(args, 0), "Cannot push on type")?;
    Ok(Value::list(old.iter().chain(std::iter::once(any(args, 1))).cloned().collect()))
}

fn holds(meter: &mut Meter, haystack: &[Value], needle: &Value) -> Result<bool, String> {
    for item in haystack {
        if deep_equal(meter, needle, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Keeps the type of the list; an empty list gives nil.
fn slice(meter: &mut Meter, args: &[Value]) -> Answer {
    let list = match any(args, 0) {
        Value::List(list) => list,
        Value::Nil => return Err(NIL_DEREFERENCE.to_owned()),
        other => return Err(format!("list should be type of slice or array but {}", other.kind())),
    };
    if list.items.is_empty() {
        return Ok(Value::Nil);
    }
    let start = args.get(1).map_or(0, to_int64);
    let end = args.get(2).map_or(list.items.len() as i64, to_int64);
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let part = range
        .and_then(|(start, end)| list.items.get(start..end))
        .ok_or_else(|| "reflect.Value.Slice: slice index out of bounds".to_owned())?;
    meter.steps(part.len() as u64)?;
    Ok(Value::List(Rc::new(List { element: list.element, items: part.to_vec() })))
}
