//! Sprig's regular expression functions. Patterns are Go's; what panics in Go is an error here.

use regex::Captures;

use crate::function::{Function, Meter, Param};
use crate::value::{Element, Value};

use super::arguments::{Answer, fixed, give, give_strings, int, nil_list, text};
use super::case::{DIGIT, LETTER};
use super::pattern::Pattern;

const STR: Param = Param::Str;

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("regexMatch", &[STR, STR], |meter, args| {
        let (pattern, text) = (text(args, 0)?, text(args, 1)?);
        charge(meter, pattern, text)?;
        Ok(Value::Bool(Pattern::compile(pattern).is_ok_and(|pattern| pattern.regex.is_match(text))))
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

/// Compiling and matching are linear in the pattern and the text.
fn charge(meter: &mut Meter, pattern: &str, text: &str) -> Result<(), String> {
    meter.steps(16 + pattern.len() as u64 + text.len() as u64 / 16)
}

fn prepare<'a>(meter: &mut Meter, args: &'a [Value]) -> Result<(Pattern, &'a str), String> {
    let (pattern, text) = (text(args, 0)?, text(args, 1)?);
    charge(meter, pattern, text)?;
    Ok((Pattern::require(pattern)?, text))
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
        let before = out.len();
        out.push_str(&source[last..whole.start()]);
        if template {
            expand(&mut out, replacement, &captures, &pattern.names);
        } else {
            out.push_str(replacement);
        }
        last = whole.end();
        meter.bytes((out.len() - before) as u64)?;
    }
    meter.bytes((source.len() - last) as u64)?;
    out.push_str(&source[last..]);
    Ok(Value::str(out))
}

fn expand(out: &mut String, template: &str, captures: &Captures<'_>, names: &[Option<String>]) {
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            out.push('$');
            rest = after;
            continue;
        }
        let Some((name, after)) = reference(after) else {
            out.push('$');
            rest = after;
            continue;
        };
        out.push_str(lookup(name, captures, names));
        rest = after;
    }
    out.push_str(rest);
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
