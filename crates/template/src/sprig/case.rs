//! Letters and cases: upper, lower, title and the naming styles. Go maps one character to one character, so Rust's
//! full mappings (`ß` to `SS`) don't apply here.

use std::sync::LazyLock;

use regex::Regex;

use crate::function::{Function, Param};
use crate::quote::constant;

use super::arguments::{Code, fixed, give, text};
use super::words;

const fn on_text(name: &'static str, call: Code) -> Function {
    fixed(name, &[Param::Str], call)
}

pub(super) const FUNCTIONS: &[Function] = &[
    on_text("upper", |meter, args| give(meter, text(args, 0)?.chars().map(to_upper).collect::<String>())),
    on_text("lower", |meter, args| give(meter, text(args, 0)?.chars().map(to_lower).collect::<String>())),
    on_text("title", |meter, args| give(meter, title(text(args, 0)?))),
    on_text("untitle", |meter, args| give(meter, untitle(text(args, 0)?))),
    on_text("swapcase", |meter, args| give(meter, swap_case(text(args, 0)?))),
    on_text("camelcase", |meter, args| give(meter, camel_case(text(args, 0)?))),
    on_text("snakecase", |meter, args| give(meter, words::connect(text(args, 0)?, '_'))),
    on_text("kebabcase", |meter, args| give(meter, words::connect(text(args, 0)?, '-'))),
    on_text("initials", |meter, args| give(meter, initials(text(args, 0)?))),
    on_text("nospace", |meter, args| give(meter, without_space(text(args, 0)?))),
];

/// A Unicode general category, looked up in the tables of the regex crate.
pub(super) struct Category(LazyLock<Regex>);

pub(super) static UPPER: Category = Category(LazyLock::new(|| constant(r"\p{Lu}")));
static LOWER: Category = Category(LazyLock::new(|| constant(r"\p{Ll}")));
static TITLE: Category = Category(LazyLock::new(|| constant(r"\p{Lt}")));
pub(super) static LETTER: Category = Category(LazyLock::new(|| constant(r"\p{L}")));
pub(super) static DIGIT: Category = Category(LazyLock::new(|| constant(r"\p{Nd}")));
pub(super) static NUMBER: Category = Category(LazyLock::new(|| constant(r"\p{N}")));
pub(super) static PUNCTUATION: Category = Category(LazyLock::new(|| constant(r"\p{P}")));

impl Category {
    pub(super) fn has(&self, c: char) -> bool {
        self.0.is_match(c.encode_utf8(&mut [0; 4]))
    }
}

fn only(mut mapped: impl Iterator<Item = char>, original: char) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(single), None) => single,
        _ => original,
    }
}

/// Go's `unicode.ToUpper`. The Greek letters with an iota below have a capital of their own.
pub(super) fn to_upper(c: char) -> char {
    let shift = match c {
        '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => 8,
        '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => 9,
        _ => return only(c.to_uppercase(), c),
    };
    char::from_u32(u32::from(c) + shift).unwrap_or(c)
}

/// Go's `unicode.ToLower`.
pub(super) fn to_lower(c: char) -> char {
    if c == '\u{130}' { 'i' } else { only(c.to_lowercase(), c) }
}

/// Go's `unicode.ToTitle`: the capital, but for the letters that have a title form or none.
fn to_title(c: char) -> char {
    match c {
        '\u{1c4}'..='\u{1c6}' => '\u{1c5}',
        '\u{1c7}'..='\u{1c9}' => '\u{1c8}',
        '\u{1ca}'..='\u{1cc}' => '\u{1cb}',
        '\u{1f1}'..='\u{1f3}' => '\u{1f2}',
        '\u{10d0}'..='\u{10fa}' | '\u{10fd}'..='\u{10ff}' => c,
        _ => to_upper(c),
    }
}

/// Go's `strings.Title`: letters, digits and underscores make words.
fn title(text: &str) -> String {
    let mut previous = ' ';
    text.chars()
        .map(|c| {
            let starts = separates(previous);
            previous = c;
            if starts { to_title(c) } else { c }
        })
        .collect()
}

fn separates(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_alphanumeric() && c != '_';
    }
    !LETTER.has(c) && !DIGIT.has(c) && c.is_whitespace()
}

fn untitle(text: &str) -> String {
    let mut starts = true;
    text.chars()
        .map(|c| {
            let first = starts && !c.is_whitespace();
            starts = c.is_whitespace();
            if first { to_lower(c) } else { c }
        })
        .collect()
}

/// A small letter at the start of a word becomes its title form, others their capital.
fn swap_case(text: &str) -> String {
    let mut after_space = true;
    text.chars()
        .map(|c| {
            if UPPER.has(c) || TITLE.has(c) {
                after_space = false;
                to_lower(c)
            } else if LOWER.has(c) {
                if std::mem::replace(&mut after_space, false) { to_title(c) } else { to_upper(c) }
            } else {
                after_space = c.is_whitespace();
                c
            }
        })
        .collect()
}

/// `some_words` to `SomeWords`, as the version of xstrings that Kalypso is built with does it.
fn camel_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    let mut current = None;
    for c in chars.by_ref() {
        if !words::is_connector(c) {
            current = Some(to_upper(c));
            break;
        }
        out.push(c);
        current = Some(c);
    }
    let Some(mut last) = current else { return out };
    if chars.as_str().is_empty() {
        out.push(last);
        return out;
    }
    for c in chars {
        let before = std::mem::replace(&mut last, c);
        match (words::is_connector(c), words::is_connector(before)) {
            (true, true) => out.push(before),
            (_, true) => last = to_upper(c),
            _ => out.push(before),
        }
    }
    out.push(last);
    out
}

/// Bytes, not characters, are what this function and the next one look at in sprig: each becomes a character of its own.
fn initials(text: &str) -> String {
    let mut after_gap = true;
    text.bytes()
        .map(char::from)
        .filter(|c| {
            let gap = c.is_whitespace();
            let first = after_gap && !gap;
            after_gap = gap;
            first
        })
        .collect()
}

fn without_space(text: &str) -> String {
    if text.bytes().any(|byte| char::from(byte).is_whitespace()) {
        text.bytes().map(char::from).filter(|c| !c.is_whitespace()).collect()
    } else {
        text.to_owned()
    }
}
