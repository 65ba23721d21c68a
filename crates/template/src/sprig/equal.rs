//! Go's `reflect.DeepEqual`: the same type and the same content. `deepEqual`, `has`, `uniq` and `without` use it.

use std::rc::Rc;

use crate::depth::check_depth;
use crate::function::Meter;
use crate::value::{Map, Value};

use super::arguments::is_nil_list;

/// Compares two values; pays a step for each pair it looks at.
pub(super) fn deep_equal(meter: &mut Meter, left: &Value, right: &Value) -> Result<bool, String> {
    compare(meter, left, right, 0)
}

fn compare(meter: &mut Meter, left: &Value, right: &Value, depth: usize) -> Result<bool, String> {
    check_depth(depth)?;
    meter.steps(1)?;
    Ok(match (left, right) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) | (Value::Int64(a), Value::Int64(b)) => a == b,
        (Value::Uint64(a), Value::Uint64(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Complex(a, b), Value::Complex(c, d)) => a == c && b == d,
        (Value::Str(a), Value::Str(b)) => {
            meter.steps(a.len().min(b.len()) as u64 / 256)?;
            a == b
        }
        (Value::List(a), Value::List(b)) => {
            if a.element != b.element || a.items.len() != b.items.len() || is_nil_list(a) != is_nil_list(b) {
                return Ok(false);
            }
            // One list is equal to itself, even with a NaN inside.
            if Rc::ptr_eq(a, b) {
                return Ok(true);
            }
            return all_equal(meter, a.items.iter().zip(&b.items), depth);
        }
        (Value::Map(a), Value::Map(b)) => return maps_equal(meter, a, b, depth),
        (Value::Struct(a), Value::Struct(b)) => {
            if a.type_name != b.type_name || a.fields.len() != b.fields.len() {
                return Ok(false);
            }
            return all_equal(meter, a.fields.iter().zip(&b.fields).map(|(a, b)| (&a.1, &b.1)), depth);
        }
        (Value::Opaque(a), Value::Opaque(b)) => a == b,
        _ => false,
    })
}

fn maps_equal(meter: &mut Meter, left: &Rc<Map>, right: &Rc<Map>, depth: usize) -> Result<bool, String> {
    if left.kind != right.kind {
        return Ok(false);
    }
    if Rc::ptr_eq(left, right) {
        return Ok(true);
    }
    let (left, right) = (left.entries.borrow(), right.entries.borrow());
    if left.len() != right.len() || !left.keys().eq(right.keys()) {
        return Ok(false);
    }
    all_equal(meter, left.values().zip(right.values()), depth)
}

fn all_equal<'a>(
    meter: &mut Meter,
    pairs: impl Iterator<Item = (&'a Value, &'a Value)>,
    depth: usize,
) -> Result<bool, String> {
    for (left, right) in pairs {
        if !compare(meter, left, right, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}
