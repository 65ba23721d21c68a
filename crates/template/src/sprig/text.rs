//! Sprig's plain string functions: trimming, searching, replacing, splitting, joining, indenting, quoting.

use std::collections::HashSet;
use std::rc::Rc;

use crate::function::{Function, Meter, Param};
use crate::quote;
use crate::value::{Key, MapKind, Value};

use super::arguments::{Answer, any, fixed, give, give_strings, int, open, repair, text};
use super::convert::{to_text, to_texts};

const STR: Param = Param::Str;
const INT: Param = Param::Int;

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("hello", &[], |_, _| Ok(Value::str("Hello!"))),
    fixed("trim", &[STR], |meter, args| give(meter, text(args, 0)?.trim())),
    fixed("trimall", &[STR, STR], trim_all),
    fixed("trimAll", &[STR, STR], trim_all),
    fixed("trimSuffix", &[STR, STR], |meter, args| {
        let whole = text(args, 1)?;
        give(meter, whole.strip_suffix(text(args, 0)?).unwrap_or(whole))
    }),
    fixed("trimPrefix", &[STR, STR], |meter, args| {
        let whole = text(args, 1)?;
        give(meter, whole.strip_prefix(text(args, 0)?).unwrap_or(whole))
    }),
    fixed("contains", &[STR, STR], |_, args| Ok(Value::Bool(text(args, 1)?.contains(text(args, 0)?)))),
    fixed("hasPrefix", &[STR, STR], |_, args| Ok(Value::Bool(text(args, 1)?.starts_with(text(args, 0)?)))),
    fixed("hasSuffix", &[STR, STR], |_, args| Ok(Value::Bool(text(args, 1)?.ends_with(text(args, 0)?)))),
    fixed("repeat", &[INT, STR], repeat),
    fixed("trunc", &[INT, STR], truncate),
    fixed("substr", &[INT, INT, STR], substring),
    fixed("replace", &[STR, STR, STR], |meter, args| {
        let replaced = replace(meter, text(args, 2)?, text(args, 0)?, text(args, 1)?)?;
        Ok(Value::str(replaced))
    }),
    fixed("plural", &[STR, STR, INT], |_, args| {
        Ok(Value::str(if int(args, 2)? == 1 { text(args, 0)? } else { text(args, 1)? }))
    }),
    fixed("indent", &[INT, STR], |meter, args| Ok(Value::str(indent(meter, args)?))),
    fixed("nindent", &[INT, STR], |meter, args| {
        let indented = indent(meter, args)?;
        meter.bytes(1)?;
        Ok(Value::str(format!("\n{indented}")))
    }),
    open("quote", &[], Param::Any, |meter, args| spaced(meter, args, quote::quote)),
    open("squote", &[], Param::Any, |meter, args| spaced(meter, args, |text| format!("'{text}'"))),
    open("cat", &[], Param::Any, |meter, args| spaced(meter, args, str::to_owned)),
    fixed("join", &[STR, Param::Any], join),
    fixed("sortAlpha", &[Param::Any], sort_alpha),
    fixed("split", &[STR, STR], |meter, args| {
        let parts = split(meter, text(args, 1)?, text(args, 0)?, -1)?;
        numbered(meter, parts)
    }),
    fixed("splitn", &[STR, INT, STR], |meter, args| {
        let parts = split(meter, text(args, 2)?, text(args, 0)?, int(args, 1)?)?;
        numbered(meter, parts)
    }),
    fixed("splitList", &[STR, STR], |meter, args| {
        let parts = split(meter, text(args, 1)?, text(args, 0)?, -1)?;
        give_strings(meter, parts)
    }),
];

fn trim_all(meter: &mut Meter, args: &[Value]) -> Answer {
    let cutset: HashSet<char> = text(args, 0)?.chars().collect();
    give(meter, text(args, 1)?.trim_matches(|c| cutset.contains(&c)))
}

fn repeat(meter: &mut Meter, args: &[Value]) -> Answer {
    let (count, text) = (int(args, 0)?, text(args, 1)?);
    let count = usize::try_from(count).map_err(|_| "strings: negative Repeat count".to_owned())?;
    meter.bytes((text.len() as u64).saturating_mul(count as u64))?;
    Ok(Value::str(if text.is_empty() { String::new() } else { text.repeat(count) }))
}

fn truncate(meter: &mut Meter, args: &[Value]) -> Answer {
    let (count, text) = (int(args, 0)?, text(args, 1)?);
    let Ok(count) = usize::try_from(count) else {
        return Err(format!("runtime error: slice bounds out of range [:{count}]"));
    };
    match text.as_bytes().get(..count) {
        Some(head) => give(meter, repair(head)),
        None => give(meter, text),
    }
}

/// Go's `s[start:end]` on bytes, with Go's words for what is out of range.
fn cut(text: &str, start: i64, end: i64) -> Result<String, String> {
    let length = text.len() as i64;
    if end < 0 {
        return Err(format!("runtime error: slice bounds out of range [:{end}]"));
    }
    if end > length {
        return Err(format!("runtime error: slice bounds out of range [:{end}] with length {length}"));
    }
    if start > end {
        return Err(format!("runtime error: slice bounds out of range [{start}:{end}]"));
    }
    Ok(repair(&text.as_bytes()[start as usize..end as usize]))
}

fn substring(meter: &mut Meter, args: &[Value]) -> Answer {
    let (start, end, text) = (int(args, 0)?, int(args, 1)?, text(args, 2)?);
    let length = text.len() as i64;
    let part = if start < 0 {
        cut(text, 0, end)?
    } else if end < 0 || end > length {
        cut(text, start, length)?
    } else {
        cut(text, start, end)?
    };
    give(meter, part)
}

/// Go's `strings.Replace` of all: an empty `old` is found before and after every character.
fn replace(meter: &mut Meter, source: &str, old: &str, new: &str) -> Result<String, String> {
    let matches = if old.is_empty() { source.chars().count() + 1 } else { source.matches(old).count() };
    meter.bytes((matches as u64).saturating_mul(new.len() as u64).saturating_add(source.len() as u64))?;
    Ok(source.replace(old, new))
}

fn indent(meter: &mut Meter, args: &[Value]) -> Result<String, String> {
    let (spaces, text) = (int(args, 0)?, text(args, 1)?);
    let spaces = usize::try_from(spaces).map_err(|_| "strings: negative Repeat count".to_owned())?;
    let lines = text.bytes().filter(|&byte| byte == b'\n').count() + 1;
    let length = lines.saturating_mul(spaces).saturating_add(text.len());
    meter.bytes(length as u64)?;
    let pad = " ".repeat(spaces);
    let mut out = String::with_capacity(length);
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            out.push('\n');
        }
        out.push_str(&pad);
        out.push_str(line);
    }
    Ok(out)
}

fn spaced(meter: &mut Meter, args: &[Value], dress: fn(&str) -> String) -> Answer {
    let texts: Result<Vec<String>, String> =
        args.iter().filter(|arg| !matches!(arg, Value::Nil)).map(|arg| Ok(dress(&to_text(meter, arg)?))).collect();
    give(meter, texts?.join(" "))
}

fn join(meter: &mut Meter, args: &[Value]) -> Answer {
    let separator = text(args, 0)?;
    let items = to_texts(meter, any(args, 1))?;
    meter.bytes((items.len() as u64).saturating_mul(separator.len() as u64))?;
    give(meter, items.join(separator))
}

fn sort_alpha(meter: &mut Meter, args: &[Value]) -> Answer {
    let value = any(args, 0);
    if !matches!(value, Value::List(_)) {
        let text = to_text(meter, value)?;
        return give_strings(meter, vec![text]);
    }
    let mut items = to_texts(meter, value)?;
    items.sort_unstable();
    give_strings(meter, items)
}

/// Go's `strings.SplitN`: at most `limit` parts, all of them when it is negative, none when it is 0.
pub(super) fn split<'a>(
    meter: &mut Meter,
    whole: &'a str,
    separator: &str,
    limit: i64,
) -> Result<Vec<&'a str>, String> {
    let limit = if limit < 0 { usize::MAX } else { usize::try_from(limit).unwrap_or(usize::MAX) };
    let parts = if separator.is_empty() { whole.chars().count() } else { whole.matches(separator).count() + 1 };
    meter.steps(parts.min(limit) as u64)?;
    if !separator.is_empty() {
        return Ok(whole.splitn(limit, separator).collect());
    }
    let mut items = Vec::new();
    let mut rest = whole;
    while let Some(first) = rest.chars().next().filter(|_| items.len() < limit) {
        let size = if items.len() + 1 == limit { rest.len() } else { first.len_utf8() };
        let (head, tail) = rest.split_at(size);
        items.push(head);
        rest = tail;
    }
    Ok(items)
}

/// `map[string]string{"_0": …, "_1": …}`
fn numbered(meter: &mut Meter, parts: Vec<&str>) -> Answer {
    meter.bytes(parts.iter().map(|part| part.len() as u64).sum())?;
    let entries =
        parts.iter().enumerate().map(|(at, part)| (Key::Str(Rc::from(format!("_{at}"))), Value::str(part))).collect();
    Ok(Value::map(MapKind::StringString, entries))
}
