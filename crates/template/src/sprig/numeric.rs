//! Sprig's arithmetic: everything becomes int64 first, overflow wraps as in Go, and rounding uses Go's own power of ten.

use crate::function::{Function, Meter, Param};
use crate::value::Value;

use super::arguments::{Answer, any, fixed, int, ints, open};
use super::convert::{to_float64, to_int64};

const ANY: Param = Param::Any;
const DIVIDE_BY_ZERO: &str = "runtime error: integer divide by zero";

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("add1", &[ANY], |_, args| Ok(Value::Int64(to_int64(any(args, 0)).wrapping_add(1)))),
    open("add", &[], ANY, |_, args| fold(0, args, i64::wrapping_add)),
    fixed("sub", &[ANY, ANY], |_, args| Ok(Value::Int64(to_int64(any(args, 0)).wrapping_sub(to_int64(any(args, 1)))))),
    fixed("div", &[ANY, ANY], |_, args| divide(args, i64::wrapping_div)),
    fixed("mod", &[ANY, ANY], |_, args| divide(args, i64::wrapping_rem)),
    open("mul", &[ANY], ANY, |_, args| fold(1, args, i64::wrapping_mul)),
    open("biggest", &[ANY], ANY, |_, args| pick(args, i64::max)),
    open("max", &[ANY], ANY, |_, args| pick(args, i64::max)),
    open("min", &[ANY], ANY, |_, args| pick(args, i64::min)),
    fixed("ceil", &[ANY], |_, args| Ok(Value::Float(to_float64(any(args, 0)).ceil()))),
    fixed("floor", &[ANY], |_, args| Ok(Value::Float(to_float64(any(args, 0)).floor()))),
    open("round", &[ANY, Param::Int], Param::Float, round),
    fixed("until", &[Param::Int], until),
    fixed("untilStep", &[Param::Int, Param::Int, Param::Int], until_step),
];

fn fold(start: i64, args: &[Value], operation: fn(i64, i64) -> i64) -> Answer {
    Ok(Value::Int64(args.iter().map(to_int64).fold(start, operation)))
}

fn pick(args: &[Value], choose: fn(i64, i64) -> i64) -> Answer {
    Ok(Value::Int64(args.iter().map(to_int64).reduce(choose).unwrap_or(0)))
}

fn divide(args: &[Value], operation: fn(i64, i64) -> i64) -> Answer {
    match to_int64(any(args, 1)) {
        0 => Err(DIVIDE_BY_ZERO.to_owned()),
        divisor => Ok(Value::Int64(operation(to_int64(any(args, 0)), divisor))),
    }
}

fn round(_: &mut Meter, args: &[Value]) -> Answer {
    let round_on = args.get(2).map_or(0.5, to_float64);
    let power = power_of_ten(int(args, 1)?);
    let digit = power * to_float64(any(args, 0));
    // For an infinity Go's fraction is NaN, ours must not become 0.
    let fraction = if digit.is_finite() { digit.fract() } else { f64::NAN };
    let rounded = if fraction >= round_on { digit.ceil() } else { digit.floor() };
    Ok(Value::Float(rounded / power))
}

/// Go's `math.Pow(10, n)`: repeated squaring of the fraction, whose last bit differs from the C library's for some n.
fn power_of_ten(exponent: i64) -> f64 {
    match exponent {
        0 => return 1.0,
        1 => return 10.0,
        _ => {}
    }
    let (mut result, mut result_exponent) = (1.0_f64, 0_i64);
    let (mut base, mut base_exponent) = (0.625_f64, 4_i64);
    // Go takes the exponent through a float64.
    let mut left = (exponent as f64).abs() as i64;
    while left != 0 {
        if !(-4096..=4096).contains(&base_exponent) {
            result_exponent += base_exponent;
            break;
        }
        if left & 1 == 1 {
            result *= base;
            result_exponent += base_exponent;
        }
        base *= base;
        base_exponent <<= 1;
        if base < 0.5 {
            base += base;
            base_exponent -= 1;
        }
        left >>= 1;
    }
    if exponent < 0 {
        result = 1.0 / result;
        result_exponent = -result_exponent;
    }
    scale(result, result_exponent)
}

/// `number * 2^exponent` for a number near 1, with one rounding only.
fn scale(number: f64, exponent: i64) -> f64 {
    let power = |n: i64| f64::from_bits(((n + 1023) as u64) << 52);
    match exponent {
        1025.. => f64::INFINITY,
        1000..=1024 => number * power(1000) * power(exponent - 1000),
        -1000..=999 => number * power(exponent),
        -1200..=-1001 => number * power(exponent + 1000) * power(-1000),
        _ => 0.0,
    }
}

fn until(meter: &mut Meter, args: &[Value]) -> Answer {
    let count = int(args, 0)?;
    steps(meter, 0, count, if count < 0 { -1 } else { 1 })
}

fn until_step(meter: &mut Meter, args: &[Value]) -> Answer {
    steps(meter, int(args, 0)?, int(args, 1)?, int(args, 2)?)
}

fn steps(meter: &mut Meter, start: i64, stop: i64, step: i64) -> Answer {
    let runs = if stop < start { step < 0 } else { step > 0 };
    if !runs {
        return Ok(ints(std::iter::empty()));
    }
    let count = start.abs_diff(stop).div_ceil(step.unsigned_abs());
    meter.steps(count)?;
    // Go's loop wraps around when the last step leaves the range and then never ends; ours stops there.
    Ok(ints(std::iter::successors((count > 0).then_some(start), move |at| {
        let next = at.checked_add(step)?;
        (if step > 0 { next < stop } else { next > stop }).then_some(next)
    })))
}
