//! Sprig's regular expression functions. Patterns are Go's; what panics in Go is an error here.

use regex::Captures;

use crate::function::{Function, Meter, Param};
use crate::value::{Element, Value};

use super::arguments::{Answer, fixed, give, give_strings, int, nil_list, text};
use super::case::{DIGIT, LETTER};
use super::pattern::{Pattern, Translation, panic_text};

const STR: Param = Param::Str;

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("regexMatch", &[STR, STR], |meter, args| {
        let (pattern, text) = (text(args, 0)?, text(args, 1)?);
        charge_reading(meter, pattern)?;
        let Ok(translation) = Translation::read(pattern) else { return Ok(Value::Bool(false)) };
        charge_matching(meter, &translation, text)?;
        Ok(Value::Bool(translation.compile().is_ok_and(|pattern| pattern.regex.is_match(text))))
    }),
    fixed("regexFindAll", &[STR, STR, Param::Int], find_all),
    fixed("regexFind", &[STR, STR], |meter, args| {
        let (pattern, text) = prepare(meter, args)?;
        give(meter, pattern.regex.find(text).map_or("", |found| found.as_str()))
    }),
    fixed("regexReplaceAll", &[STR, STR, STR], |meter, args| replace_all(meter, args, true)),
    fixed("regexReplaceAllLiteral", &[STR, STR, STR], |meter, args| replace_all(meter, args, false)),
    fixed("regexSplit", &[STR, STR, Param::Int], split),
];

/// A Unicode class is looked up in tables, and is larger than it looks.
const UNICODE_CLASS: u64 = 64;

fn charge_reading(meter: &mut Meter, pattern: &str) -> Result<(), String> {
    let classes = pattern.matches(r"\p").count() + pattern.matches(r"\P").count();
    meter.steps(16 + pattern.len() as u64 + UNICODE_CLASS * classes as u64)
}

/// Compiling is linear in the pattern with its repetitions written out; matching is linear in that and in the text.
fn charge_matching(meter: &mut Meter, translation: &Translation<'_>, text: &str) -> Result<(), String> {
    let weight = translation.weight(UNICODE_CLASS);
    meter.steps((weight / 4).saturating_add((text.len() as u64 / 16).saturating_mul(1 + weight / 256)))
}

fn prepare<'a>(meter: &mut Meter, args: &'a [Value]) -> Result<(Pattern, &'a str), String> {
    let (pattern, text) = (text(args, 0)?, text(args, 1)?);
    charge_reading(meter, pattern)?;
    let translation = Translation::read(pattern).map_err(|reason| panic_text(pattern, &reason))?;
    charge_matching(meter, &translation, text)?;
    Ok((translation.compile().map_err(|reason| panic_text(pattern, &reason))?, text))
}

/// At most `limit` matches; all when it is negative.
fn limited(limit: i64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

fn find_all(meter: &mut Meter, args: &[Value]) -> Answer {
    let (pattern, text) = prepare(meter, args)?;
    let found: Vec<&str> =
        pattern.regex.find_iter(text).take(limited(int(args, 2)?)).map(|found| found.as_str()).collect();
    if found.is_empty() { Ok(nil_list(Element::Str)) } else { give_strings(meter, found) }
}

/// Replaces every match; in the replacement `$1`, `${1}` and `$name` stand for groups when it is a template.
fn replace_all(meter: &mut Meter, args: &[Value], template: bool) -> Answer {
    let (pattern, source) = prepare(meter, args)?;
    let replacement = text(args, 2)?;
    let mut out = String::with_capacity(source.len());
    let mut last = 0;
    for captures in pattern.regex.captures_iter(source) {
        let Some(whole) = captures.get(0) else { continue };
        push(meter, &mut out, &source[last..whole.start()])?;
        if template {
            expand(meter, &mut out, replacement, &captures, &pattern.names)?;
        } else {
            push(meter, &mut out, replacement)?;
        }
        last = whole.end();
    }
    push(meter, &mut out, &source[last..])?;
    Ok(Value::str(out))
}

/// Adds text that is paid for first: a short replacement can name a long match many times.
fn push(meter: &mut Meter, out: &mut String, text: &str) -> Result<(), String> {
    meter.bytes(text.len() as u64)?;
    out.push_str(text);
    Ok(())
}

fn expand(
    meter: &mut Meter,
    out: &mut String,
    template: &str,
    captures: &Captures<'_>,
    names: &[Option<String>],
) -> Result<(), String> {
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        push(meter, out, before)?;
        let (text, after) = match (after.strip_prefix('$'), reference(after)) {
            (Some(after), _) => ("$", after),
            (None, Some((name, after))) => (lookup(name, captures, names), after),
            (None, None) => ("$", after),
        };
        push(meter, out, text)?;
        rest = after;
    }
    push(meter, out, rest)
}

/// The name after a dollar sign, in braces or as long as it goes.
fn reference(text: &str) -> Option<(&str, &str)> {
    let (braced, body) = match text.strip_prefix('{') {
        Some(body) => (true, body),
        None => (false, text),
    };
    let word = |c: char| c == '_' || LETTER.has(c) || DIGIT.has(c);
    let (name, rest) = body.split_at(body.find(|c| !word(c)).unwrap_or(body.len()));
    let rest = if braced { rest.strip_prefix('}')? } else { rest };
    (!name.is_empty()).then_some((name, rest))
}

fn lookup<'t>(name: &str, captures: &Captures<'t>, names: &[Option<String>]) -> &'t str {
    let group = |at: usize| captures.get(at).map(|found| found.as_str());
    // A number without a leading zero; Go stops counting at a hundred million and then takes it for a name.
    let number = name.bytes().all(|byte| byte.is_ascii_digit()) && (name.len() == 1 || !name.starts_with('0'));
    if number && let Some(at) = name.parse::<usize>().ok().filter(|&at| at < 1_000_000_000) {
        return group(at).unwrap_or("");
    }
    names
        .iter()
        .enumerate()
        .find_map(|(at, known)| if known.as_deref() == Some(name) { group(at) } else { None })
        .unwrap_or("")
}

/// Go's `Regexp.Split`.
fn split(meter: &mut Meter, args: &[Value]) -> Answer {
    let (pattern, text) = prepare(meter, args)?;
    let limit = int(args, 2)?;
    if limit == 0 {
        return Ok(nil_list(Element::Str));
    }
    if text.is_empty() && !self::text(args, 0)?.is_empty() {
        return give_strings(meter, vec![""]);
    }
    let (mut start, mut end) = (0, 0);
    let mut parts = Vec::new();
    for found in pattern.regex.find_iter(text).take(limited(limit)) {
        if limit > 0 && parts.len() as i64 == limit - 1 {
            break;
        }
        end = found.start();
        if found.end() != 0 {
            parts.push(&text[start..end]);
        }
        start = found.end();
    }
    if end != text.len() {
        parts.push(&text[start..]);
    }
    give_strings(meter, parts)
}
