//! Bounds what functions build: how deep and how large, circles included.

use crate::function::Meter;
use crate::value::{Element, MapKind, Value};

/// Deeper values can't be made: everything that walks a value recurses.
const MAX_VALUE_DEPTH: usize = 100;

/// Charges for a value's size and refuses one that is too deep, a circle included.
pub(super) fn bound_depth(meter: &mut Meter, value: &Value) -> Result<(), String> {
    let mut seen = 0;
    let fits = measure(meter, value, MAX_VALUE_DEPTH, &mut seen)?;
    meter.steps(seen / 8)?;
    if fits {
        return Ok(());
    }
    // A map that holds itself would never be freed.
    if let Value::Map(map) = value {
        map.entries.borrow_mut().clear();
    }
    Err(format!("the value would be nested deeper than {MAX_VALUE_DEPTH} levels"))
}

fn measure(meter: &mut Meter, value: &Value, depth: usize, seen: &mut u64) -> Result<bool, String> {
    let mut nested = |value: &Value| match value {
        Value::List(_) | Value::Map(_) if depth == 0 => Ok(false),
        Value::List(_) | Value::Map(_) => measure(meter, value, depth - 1, seen),
        _ => Ok(true),
    };
    match value {
        Value::List(list) if list.element != Element::Any => *seen += list.items.len() as u64,
        Value::List(list) => {
            for item in &list.items {
                if !nested(item)? {
                    return Ok(false);
                }
            }
            *seen += list.items.len() as u64;
        }
        Value::Map(map) if map.kind != MapKind::StringString => {
            let entries = map.entries.borrow();
            for item in entries.values() {
                if !nested(item)? {
                    return Ok(false);
                }
            }
            *seen += entries.len() as u64;
        }
        _ => {}
    }
    if *seen > 8 * 1024 {
        meter.steps(*seen / 8)?;
        *seen = 0;
    }
    Ok(true)
}
