//! Sprig's conversions between Go types: to int64, to float64, to text. Almost every other module of this folder
//! calls them.

use crate::depth::check_depth;
use crate::function::{Function, Meter, Param};
use crate::number;
use crate::value::{Key, List, Value};

use super::arguments::{Answer, any, fixed, give, give_strings, text};

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("atoi", &[Param::Str], |_, args| Ok(Value::Int(parse_int(text(args, 0)?, 10).unwrap_or_else(|best| best)))),
    fixed("int64", &[Param::Any], |_, args| Ok(Value::Int64(to_int64(any(args, 0))))),
    fixed("int", &[Param::Any], |_, args| Ok(Value::Int(to_int64(any(args, 0))))),
    fixed("float64", &[Param::Any], |_, args| Ok(Value::Float(to_float64(any(args, 0))))),
    fixed("toDecimal", &[Param::Any], to_decimal),
    fixed("toString", &[Param::Any], |meter, args| {
        let text = to_text(meter, any(args, 0))?;
        give(meter, text)
    }),
    fixed("toStrings", &[Param::Any], |meter, args| {
        let items = to_texts(meter, any(args, 0))?;
        give_strings(meter, items)
    }),
];

/// Go's `strconv.ParseInt` with an explicit base and 64 bits. Beside its error Go gives a number too: 0, or the nearest
/// one for what is out of range; that is the error here.
pub(super) fn parse_int(text: &str, radix: u32) -> Result<i64, i64> {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(0);
    }
    let mut number: i64 = 0;
    for digit in digits.chars().filter_map(|c| c.to_digit(radix)) {
        let digit = i64::from(digit);
        let next = number
            .checked_mul(i64::from(radix))
            .and_then(|n| if negative { n.checked_sub(digit) } else { n.checked_add(digit) });
        number = next.ok_or(if negative { i64::MIN } else { i64::MAX })?;
    }
    Ok(number)
}

/// Sprig's `toInt64`: what can't be read is 0.
pub(super) fn to_int64(value: &Value) -> i64 {
    match value {
        Value::Str(text) => parse_int(text, 10).unwrap_or(0),
        Value::Bool(flag) => i64::from(*flag),
        Value::Int(number) | Value::Int64(number) => *number,
        Value::Uint64(number) => i64::try_from(*number).unwrap_or(i64::MAX),
        Value::Float(number) => truncate(*number),
        Value::Opaque(opaque) => opaque.as_int().unwrap_or(0),
        Value::Nil | Value::Complex(..) | Value::List(_) | Value::Map(_) | Value::Struct(_) => 0,
    }
}

/// Go's conversion of a float to an int64 on the machines that Kalypso runs on: out of range is the smallest int64.
fn truncate(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}

/// Go's `strconv.ParseFloat`: a constant, or an infinity or NaN in words.
fn parse_float(text: &str) -> Option<f64> {
    let (sign, word) = match text.strip_prefix(['+', '-']) {
        Some(word) => (if text.starts_with('-') { -1.0 } else { 1.0 }, word),
        None => (1.0, text),
    };
    if word.eq_ignore_ascii_case("inf") || word.eq_ignore_ascii_case("infinity") {
        return Some(sign * f64::INFINITY);
    }
    if text.eq_ignore_ascii_case("nan") {
        return Some(f64::NAN);
    }
    number::parse_float(text)
}

/// Sprig's `toFloat64`: what can't be read is 0.
pub(super) fn to_float64(value: &Value) -> f64 {
    match value {
        Value::Str(text) => parse_float(text).unwrap_or(0.0),
        Value::Bool(flag) => f64::from(u8::from(*flag)),
        Value::Int(number) | Value::Int64(number) => *number as f64,
        Value::Uint64(number) => *number as f64,
        Value::Float(number) => *number,
        Value::Opaque(opaque) => opaque.as_int().unwrap_or(0) as f64,
        Value::Nil | Value::Complex(..) | Value::List(_) | Value::Map(_) | Value::Struct(_) => 0.0,
    }
}

/// Sprig's `strval`: a string as it is, everything else as Go prints it.
pub(super) fn to_text(meter: &mut Meter, value: &Value) -> Result<String, String> {
    weigh(meter, value, 0)?;
    Ok(match value {
        Value::Str(text) => text.to_string(),
        value => super::print(value),
    })
}

/// Sprig's `strslice`: the items of a list without nils, or the one value.
pub(super) fn to_texts(meter: &mut Meter, value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::Nil => Ok(Vec::new()),
        Value::List(list) => {
            meter.steps(list.items.len() as u64)?;
            list.items.iter().filter(|item| !matches!(item, Value::Nil)).map(|item| to_text(meter, item)).collect()
        }
        other => Ok(vec![to_text(meter, other)?]),
    }
}

fn to_decimal(meter: &mut Meter, args: &[Value]) -> Answer {
    let text = to_text(meter, any(args, 0))?;
    Ok(Value::Int64(parse_int(&text, 8).unwrap_or(0)))
}

/// Pays for printing a value before it is printed: lists that hold a list twice, twenty times over, print as megabytes.
pub(super) fn weigh(meter: &mut Meter, value: &Value, depth: usize) -> Result<(), String> {
    check_depth(depth)?;
    match value {
        Value::Str(text) => meter.bytes(text.len() as u64),
        Value::List(list) => weigh_list(meter, list, depth),
        Value::Map(map) => {
            meter.bytes(5)?;
            for (key, item) in map.entries.borrow().iter() {
                meter.bytes(if let Key::Str(text) = key { text.len() as u64 + 2 } else { 6 })?;
                weigh(meter, item, depth + 1)?;
            }
            Ok(())
        }
        Value::Struct(data) => data.fields.iter().try_for_each(|(_, item)| weigh(meter, item, depth + 1)),
        _ => meter.bytes(8),
    }
}

fn weigh_list(meter: &mut Meter, list: &List, depth: usize) -> Result<(), String> {
    meter.bytes(list.items.len() as u64 + 2)?;
    list.items.iter().try_for_each(|item| weigh(meter, item, depth + 1))
}
