//! Sprig's date functions that don't read the clock. Given something that isn't a time, sprig takes the current one;
//! here that is an error, because the result would differ each time.

use std::rc::Rc;

use crate::function::{Function, Meter, Param};
use crate::value::{Opaque, Value};

use super::arguments::{Answer, any, fixed, give, text, time};
use super::time::{Time, load, parse, parse_duration};

const ANY: Param = Param::Any;
const STR: Param = Param::Str;
const DAY: &str = "2006-01-02";

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("date", &[STR, ANY], |meter, args| show(meter, text(args, 0)?, any(args, 1), "Local")),
    fixed("dateInZone", &[STR, ANY, STR], in_zone),
    fixed("date_in_zone", &[STR, ANY, STR], in_zone),
    fixed("htmlDate", &[ANY], |meter, args| show(meter, DAY, any(args, 0), "Local")),
    fixed("htmlDateInZone", &[ANY, STR], |meter, args| show(meter, DAY, any(args, 0), text(args, 1)?)),
    fixed("dateModify", &[STR, Param::Time], modify),
    fixed("date_modify", &[STR, Param::Time], modify),
    fixed("toDate", &[STR, STR], |_, args| Ok(wrap(parse(text(args, 0)?, text(args, 1)?).unwrap_or_else(Time::zero)))),
    fixed("unixEpoch", &[Param::Time], |_, args| Ok(Value::str(time(args, 0)?.seconds.to_string()))),
];

fn wrap(time: Time) -> Value {
    Value::Opaque(Rc::new(Opaque::Time(time)))
}

fn in_zone(meter: &mut Meter, args: &[Value]) -> Answer {
    show(meter, text(args, 0)?, any(args, 1), text(args, 2)?)
}

fn modify(_: &mut Meter, args: &[Value]) -> Answer {
    let time = time(args, 1)?;
    Ok(wrap(parse_duration(text(args, 0)?).map_or_else(|| time.clone(), |nanoseconds| time.add(nanoseconds))))
}

fn show(meter: &mut Meter, layout: &str, value: &Value, zone: &str) -> Answer {
    let time = match value {
        Value::Int(seconds) | Value::Int64(seconds) => Time::from_unix(*seconds),
        other => time(std::slice::from_ref(other), 0).cloned().map_err(|_| {
            let kind = other.type_name();
            format!("{kind} isn't a time, and the current time, which sprig would take, differs each time")
        })?,
    };
    give(meter, time.format_in(layout, &load(zone)))
}
