//! `eq` and its kin: basic kinds only, and never across kinds.

use crate::context::Data;
use crate::item::{Basic, Item};
use crate::printer::excerpt;
use crate::value::{Opaque, Value};

const BAD_TYPE: &str = "invalid type for comparison";

/// Whether the first equals any of the others.
pub(super) fn equal<'v>(items: &[Item<'v>], data: &Data<'v>) -> Result<bool, String> {
    let Some((first, others)) = items.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Err("missing argument for comparison".to_owned());
    };
    for other in others {
        if equal_pair(first, other, data)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn equal_pair<'v>(first: &Item<'v>, other: &Item<'v>, data: &Data<'v>) -> Result<bool, String> {
    match (first.basic(), other.basic()) {
        (Some(Basic::Int(int)), Some(Basic::Uint(uint))) | (Some(Basic::Uint(uint)), Some(Basic::Int(int))) => {
            Ok(u64::try_from(int) == Ok(uint))
        }
        (Some(a), Some(b)) if std::mem::discriminant(&a) == std::mem::discriminant(&b) => Ok(a == b),
        (None, None) => equal_other(first, other, data),
        _ if first.is_nothing() || other.is_nothing() => Ok(false),
        _ => Err(incompatible(first, other)),
    }
}

fn incompatible(first: &Item<'_>, other: &Item<'_>) -> String {
    format!("incompatible types for comparison: {} and {}", first.inner_type(), other.inner_type())
}

fn equal_other<'v>(first: &Item<'v>, other: &Item<'v>, data: &Data<'v>) -> Result<bool, String> {
    if first.is_nothing() || other.is_nothing() {
        return Ok(first.is_nothing() == other.is_nothing());
    }
    if first.kind() != other.kind() {
        let (first_type, other_type) = (first.inner_type(), other.inner_type());
        let first = excerpt("%s", &first.clone().into_value(data));
        let other = excerpt("%v", &other.clone().into_value(data));
        return Err(format!("non-comparable types {first}: {first_type}, {other_type}: {other}"));
    }
    let values = (first.clone().into_value(data), other.clone().into_value(data));
    if let (Value::Opaque(a), Value::Opaque(b)) = &values {
        return Ok(match (&**a, &**b) {
            // Versions are pointers in Go.
            (Opaque::Version(_), Opaque::Version(_)) => std::rc::Rc::ptr_eq(a, b),
            (a, b) => a == b,
        });
    }
    Err(format!("non-comparable type {}: {}", excerpt("%s", &values.1), other.inner_type()))
}

pub(super) fn less(items: &[Item<'_>]) -> Result<bool, String> {
    let [first, other] = items else {
        return Err(BAD_TYPE.to_owned());
    };
    match (first.basic(), other.basic()) {
        (None, _) | (_, None) => Err(BAD_TYPE.to_owned()),
        (Some(Basic::Int(a)), Some(Basic::Int(b))) => Ok(a < b),
        (Some(Basic::Uint(a)), Some(Basic::Uint(b))) => Ok(a < b),
        (Some(Basic::Float(a)), Some(Basic::Float(b))) => Ok(a < b),
        (Some(Basic::Text(a)), Some(Basic::Text(b))) => Ok(a < b),
        (Some(Basic::Int(a)), Some(Basic::Uint(b))) => Ok(u64::try_from(a).map_or(true, |a| a < b)),
        (Some(Basic::Uint(a)), Some(Basic::Int(b))) => Ok(u64::try_from(b).is_ok_and(|b| a < b)),
        (Some(a), Some(b)) if std::mem::discriminant(&a) == std::mem::discriminant(&b) => Err(BAD_TYPE.to_owned()),
        _ => Err(incompatible(first, other)),
    }
}

pub(super) fn less_or_equal<'v>(items: &[Item<'v>], data: &Data<'v>) -> Result<bool, String> {
    Ok(less(items)? || equal(items, data)?)
}
