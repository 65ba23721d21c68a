//! The methods of sprig's own types that templates can call: `(semver "1.2.3").Compare $other`, `$date.Year`. The engine
//! checks their arguments as it does for functions; the receiver is the first value that the code gets.

use std::rc::Rc;

use crate::function::{Function, Meter, Param};
use crate::printer::opaque_text;
use crate::value::{Opaque, Value, Version};

use super::arguments::{Answer, Code, NIL_DEREFERENCE, any, fixed, give, int, text, time};
use super::semver::order;

const TIME: &[Param] = &[Param::Time];
const VERSION: &[Param] = &[Param::Version];

static OF_VERSION: &[Function] = &[
    plain("Major", |_, args| number(version(args, 0)?.major)),
    plain("Minor", |_, args| number(version(args, 0)?.minor)),
    plain("Patch", |_, args| number(version(args, 0)?.patch)),
    plain("Prerelease", |meter, args| give(meter, &version(args, 0)?.prerelease)),
    plain("Metadata", |meter, args| give(meter, &version(args, 0)?.metadata)),
    plain("Original", |meter, args| give(meter, &version(args, 0)?.original)),
    plain("String", show),
    fixed("Compare", VERSION, |_, args| Ok(Value::Int(order(version(args, 0)?, version(args, 1)?) as i64))),
    fixed("Equal", VERSION, |_, args| Ok(Value::Bool(order(version(args, 0)?, version(args, 1)?).is_eq()))),
    fixed("GreaterThan", VERSION, |_, args| Ok(Value::Bool(order(version(args, 0)?, version(args, 1)?).is_gt()))),
    fixed("LessThan", VERSION, |_, args| Ok(Value::Bool(order(version(args, 0)?, version(args, 1)?).is_lt()))),
];

static OF_TIME: &[Function] = &[
    plain("Year", |_, args| Ok(Value::Int(time(args, 0)?.fields().year))),
    plain("Month", |_, args| wrap(Opaque::Month(time(args, 0)?.fields().month))),
    plain("Day", |_, args| Ok(Value::Int(time(args, 0)?.fields().day))),
    plain("YearDay", |_, args| Ok(Value::Int(time(args, 0)?.fields().year_day))),
    plain("Weekday", |_, args| wrap(Opaque::Weekday(time(args, 0)?.fields().weekday))),
    plain("Hour", |_, args| Ok(Value::Int(time(args, 0)?.fields().hour))),
    plain("Minute", |_, args| Ok(Value::Int(time(args, 0)?.fields().minute))),
    plain("Second", |_, args| Ok(Value::Int(time(args, 0)?.fields().second))),
    plain("Nanosecond", |_, args| Ok(Value::Int(time(args, 0)?.nanoseconds.into()))),
    plain("Unix", |_, args| Ok(Value::Int64(time(args, 0)?.unix(1)))),
    plain("UnixMilli", |_, args| Ok(Value::Int64(time(args, 0)?.unix(1_000)))),
    plain("UnixMicro", |_, args| Ok(Value::Int64(time(args, 0)?.unix(1_000_000)))),
    plain("UnixNano", |_, args| Ok(Value::Int64(time(args, 0)?.unix(1_000_000_000)))),
    plain("IsZero", |_, args| Ok(Value::Bool(time(args, 0)?.is_zero()))),
    plain("UTC", |_, args| wrap(Opaque::Time(time(args, 0)?.in_utc()))),
    plain("Local", |_, args| wrap(Opaque::Time(time(args, 0)?.in_local()))),
    plain("String", show),
    fixed("Format", &[Param::Str], |meter, args| give(meter, time(args, 0)?.format(text(args, 1)?))),
    fixed("Add", &[Param::Duration], |_, args| wrap(Opaque::Time(time(args, 0)?.add(duration(args, 1)?)))),
    fixed("AddDate", &[Param::Int, Param::Int, Param::Int], |_, args| {
        wrap(Opaque::Time(time(args, 0)?.add_date(int(args, 1)?, int(args, 2)?, int(args, 3)?)))
    }),
    fixed("Sub", TIME, |_, args| wrap(Opaque::Duration(time(args, 0)?.since(time(args, 1)?)))),
    fixed("After", TIME, |_, args| Ok(Value::Bool(time(args, 0)?.order(time(args, 1)?).is_gt()))),
    fixed("Before", TIME, |_, args| Ok(Value::Bool(time(args, 0)?.order(time(args, 1)?).is_lt()))),
    fixed("Equal", TIME, |_, args| Ok(Value::Bool(time(args, 0)?.order(time(args, 1)?).is_eq()))),
    fixed("Compare", TIME, |_, args| Ok(Value::Int(time(args, 0)?.order(time(args, 1)?) as i64))),
];

static OF_DURATION: &[Function] = &[
    plain("Nanoseconds", |_, args| Ok(Value::Int64(duration(args, 0)?))),
    plain("Microseconds", |_, args| Ok(Value::Int64(duration(args, 0)? / 1_000))),
    plain("Milliseconds", |_, args| Ok(Value::Int64(duration(args, 0)? / 1_000_000))),
    plain("Seconds", |_, args| Ok(units(duration(args, 0)?, 1_000_000_000))),
    plain("Minutes", |_, args| Ok(units(duration(args, 0)?, 60_000_000_000))),
    plain("Hours", |_, args| Ok(units(duration(args, 0)?, 3_600_000_000_000))),
    plain("Abs", |_, args| wrap(Opaque::Duration(duration(args, 0)?.saturating_abs()))),
    plain("String", show),
];

static OF_NAMES: &[Function] = &[plain("String", show)];

/// The method of this name, if the type has it.
pub(crate) fn find(receiver: &Opaque, name: &str) -> Option<&'static Function> {
    let methods = match receiver {
        Opaque::Version(_) => OF_VERSION,
        Opaque::Time(_) => OF_TIME,
        Opaque::Duration(_) => OF_DURATION,
        Opaque::Month(_) | Opaque::Weekday(_) => OF_NAMES,
        Opaque::Byte(_) => &[],
    };
    methods.iter().find(|method| method.name == name)
}

const fn plain(name: &'static str, call: Code) -> Function {
    fixed(name, &[], call)
}

fn wrap(opaque: Opaque) -> Answer {
    Ok(Value::Opaque(Rc::new(opaque)))
}

fn number(part: u64) -> Answer {
    Ok(Value::Int64(part.cast_signed()))
}

fn show(meter: &mut Meter, args: &[Value]) -> Answer {
    match any(args, 0) {
        Value::Opaque(opaque) => give(meter, opaque_text(opaque)),
        _ => Err(NIL_DEREFERENCE.to_owned()),
    }
}

fn version(args: &[Value], at: usize) -> Result<&Version, String> {
    if let Value::Opaque(opaque) = any(args, at)
        && let Opaque::Version(version) = &**opaque
    {
        return Ok(version);
    }
    Err(NIL_DEREFERENCE.to_owned())
}

fn duration(args: &[Value], at: usize) -> Result<i64, String> {
    if let Value::Opaque(opaque) = any(args, at)
        && let Opaque::Duration(nanoseconds) = **opaque
    {
        return Ok(nanoseconds);
    }
    Err(NIL_DEREFERENCE.to_owned())
}

/// Whole units first, as Go adds them up.
fn units(nanoseconds: i64, unit: i64) -> Value {
    Value::Float((nanoseconds / unit) as f64 + (nanoseconds % unit) as f64 / unit as f64)
}
