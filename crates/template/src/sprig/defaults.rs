//! Defaults, choices and what a value is: `default`, `empty`, `coalesce`, `ternary`, `fail`, `typeOf`, `kindOf`, `deepEqual`.

use crate::function::{Function, Param};
use crate::value::Value;

use super::arguments::{any, fixed, flag, open, text};
use super::equal::deep_equal;

const ANY: Param = Param::Any;
const STR: Param = Param::Str;

pub(super) const FUNCTIONS: &[Function] = &[
    open("default", &[ANY], ANY, |_, args| {
        Ok(args.get(1).filter(|given| !is_empty(given)).unwrap_or(any(args, 0)).clone())
    }),
    fixed("empty", &[ANY], |_, args| Ok(Value::Bool(is_empty(any(args, 0))))),
    open("coalesce", &[], ANY, |_, args| Ok(args.iter().find(|arg| !is_empty(arg)).cloned().unwrap_or(Value::Nil))),
    fixed("ternary", &[ANY, ANY, Param::Bool], |_, args| Ok(any(args, usize::from(!flag(args, 2)?)).clone())),
    fixed("fail", &[STR], |_, args| Err(text(args, 0)?.to_owned())),
    fixed("typeOf", &[ANY], |_, args| Ok(Value::str(any(args, 0).type_name()))),
    fixed("typeIs", &[STR, ANY], |_, args| Ok(Value::Bool(text(args, 0)? == any(args, 1).type_name()))),
    fixed("typeIsLike", &[STR, ANY], |_, args| {
        let (wanted, actual) = (text(args, 0)?, any(args, 1).type_name());
        Ok(Value::Bool(wanted == actual || actual.strip_prefix('*') == Some(wanted)))
    }),
    fixed("kindOf", &[ANY], |_, args| Ok(Value::str(any(args, 0).kind()))),
    fixed("kindIs", &[STR, ANY], |_, args| Ok(Value::Bool(text(args, 0)? == any(args, 1).kind()))),
    fixed("deepEqual", &[ANY, ANY], |meter, args| Ok(Value::Bool(deep_equal(meter, any(args, 0), any(args, 1))?))),
];

/// Sprig's `empty`: zero, false, nothing inside. A struct never is.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Nil => true,
        Value::Bool(flag) => !flag,
        Value::Int(number) | Value::Int64(number) => *number == 0,
        Value::Uint64(number) => *number == 0,
        Value::Float(number) => *number == 0.0,
        Value::Complex(real, imaginary) => *real == 0.0 && *imaginary == 0.0,
        Value::Str(text) => text.is_empty(),
        Value::List(list) => list.items.is_empty(),
        Value::Map(map) => map.entries.borrow().is_empty(),
        Value::Struct(_) => false,
        Value::Opaque(opaque) => opaque.as_int() == Some(0),
    }
}
