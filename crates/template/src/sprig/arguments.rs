//! How the functions of this folder read their arguments and charge for what they give. The engine has converted the
//! arguments to the declared types; a mismatch is an error, never a guess.

use std::rc::Rc;

use crate::function::{Function, Meter, Param};
use crate::value::{Element, List, Map, MapKind, Opaque, Value};

use super::time::Time;

/// What Go's `reflect` says when a method is called on the type of nil.
pub(super) const NIL_DEREFERENCE: &str = "runtime error: invalid memory address or nil pointer dereference";

pub(super) type Answer = Result<Value, String>;
pub(super) type Code = fn(&mut Meter, &[Value]) -> Answer;

/// A function with a fixed number of parameters.
pub(super) const fn fixed(name: &'static str, params: &'static [Param], call: Code) -> Function {
    Function { name, params, variadic: None, call }
}

/// A function that takes any number of further arguments.
pub(super) const fn open(name: &'static str, params: &'static [Param], rest: Param, call: Code) -> Function {
    Function { name, params, variadic: Some(rest), call }
}

fn mismatch(at: usize, wanted: &str) -> String {
    format!("argument {} isn't {wanted}", at + 1)
}

pub(super) fn any(args: &[Value], at: usize) -> &Value {
    args.get(at).unwrap_or(&Value::Nil)
}

pub(super) fn text(args: &[Value], at: usize) -> Result<&str, String> {
    shared_text(args, at).map(|text| &**text)
}

pub(super) fn shared_text(args: &[Value], at: usize) -> Result<&Rc<str>, String> {
    match any(args, at) {
        Value::Str(text) => Ok(text),
        _ => Err(mismatch(at, "a string")),
    }
}

pub(super) fn int(args: &[Value], at: usize) -> Result<i64, String> {
    match any(args, at) {
        Value::Int(number) | Value::Int64(number) => Ok(*number),
        _ => Err(mismatch(at, "an int")),
    }
}

pub(super) fn flag(args: &[Value], at: usize) -> Result<bool, String> {
    match any(args, at) {
        Value::Bool(flag) => Ok(*flag),
        _ => Err(mismatch(at, "a bool")),
    }
}

/// A map; a nil one is `None`, which reads as an empty map.
pub(super) fn map(args: &[Value], at: usize) -> Result<Option<&Rc<Map>>, String> {
    match any(args, at) {
        Value::Map(map) if map.kind == MapKind::StringAny => Ok(Some(map)),
        Value::Nil => Ok(None),
        _ => Err(mismatch(at, "a map[string]interface {}")),
    }
}

pub(super) fn time(args: &[Value], at: usize) -> Result<&Time, String> {
    if let Value::Opaque(opaque) = any(args, at)
        && let Opaque::Time(time) = &**opaque
    {
        return Ok(time);
    }
    Err(mismatch(at, "a time.Time"))
}

/// A finished string, paid for.
pub(super) fn give(meter: &mut Meter, text: impl AsRef<str>) -> Answer {
    meter.bytes(text.as_ref().len() as u64)?;
    Ok(Value::str(text))
}

/// A finished `[]string`, paid for.
pub(super) fn give_strings<T: AsRef<str>>(meter: &mut Meter, items: Vec<T>) -> Answer {
    meter.steps(items.len() as u64)?;
    meter.bytes(items.iter().map(|item| item.as_ref().len() as u64).sum())?;
    Ok(Value::strings(items))
}

/// A `[]int`.
pub(super) fn ints(items: impl Iterator<Item = i64>) -> Value {
    Value::List(Rc::new(List { element: Element::Int, items: items.map(Value::Int).collect() }))
}

thread_local! {
    static NO_LIST: Rc<List> = Rc::new(List { element: Element::Any, items: Vec::new() });
    static NO_STRINGS: Rc<List> = Rc::new(List { element: Element::Str, items: Vec::new() });
}

/// Go's nil slice: an empty list, but `null` in JSON and not equal to an empty one. It is told by its identity.
pub(super) fn nil_list(element: Element) -> Value {
    let nil = if element == Element::Str { &NO_STRINGS } else { &NO_LIST };
    Value::List(nil.with(Rc::clone))
}

pub(super) fn is_nil_list(list: &Rc<List>) -> bool {
    [&NO_LIST, &NO_STRINGS].into_iter().any(|nil| nil.with(|nil| Rc::ptr_eq(nil, list)))
}

/// A string of bytes that may be cut inside a character. Each byte that isn't UTF-8 becomes U+FFFD, as Go's JSON
/// encoder does with it; Kalypso's own output goes through that encoder before it reaches Git.
pub(super) fn repair(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    out
}
