//! Character classes and escapes of Go's regular expressions.

use regex::Regex;

use super::{consumed, problem};

/// A class that no character is in.
pub(super) const NOTHING: &str = r"[^\x{0}-\x{10FFFF}]";

const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// One character, escaped where it has to be.
pub(super) fn literal(c: char) -> String {
    regex::escape(c.encode_utf8(&mut [0; 4]))
}

/// A character by its number; none for half of a surrogate pair, which no text holds.
pub(super) fn code_point(code: u32) -> Option<String> {
    char::from_u32(code).map(|_| format!(r"\x{{{code:X}}}"))
}

/// `[…]`: the class as the regex crate reads it, and what follows it.
pub(super) fn bracket(text: &str) -> Result<(String, &str), String> {
    let mut rest = &text[1..];
    let mut out = String::from("[");
    if let Some(after) = rest.strip_prefix('^') {
        out.push('^');
        rest = after;
    }
    let mut first = true;
    let mut any = false;
    while first || !rest.starts_with(']') {
        first = false;
        if let Some((class, after)) = posix(rest)? {
            out.push_str(&class);
            rest = after;
            any = true;
            continue;
        }
        if let Some((class, after)) = named_escape(rest)? {
            out.push_str(&class);
            rest = after;
            any = true;
            continue;
        }
        let start = rest;
        let (low, after) = class_char(rest, text)?;
        let mut high = low;
        rest = after;
        if rest.len() >= 2 && rest.starts_with('-') && !rest[1..].starts_with(']') {
            (high, rest) = class_char(&rest[1..], text)?;
            if high < low {
                return Err(problem("invalid character class range", consumed(start, rest)));
            }
        }
        any |= push_range(&mut out, low, high);
    }
    if !any {
        // Nothing but surrogates inside.
        let all = if out == "[^" { r"[\x{0}-\x{10FFFF}]" } else { NOTHING };
        return Ok((all.to_owned(), &rest[1..]));
    }
    out.push(']');
    Ok((out, &rest[1..]))
}

fn push_range(out: &mut String, low: u32, high: u32) -> bool {
    let low = if (0xd800..0xe000).contains(&low) { 0xe000 } else { low };
    let high = if (0xd800..0xe000).contains(&high) { 0xd7ff } else { high };
    if low > high {
        return false;
    }
    out.push_str(&format!(r"\x{{{low:X}}}-\x{{{high:X}}}"));
    true
}

fn class_char<'p>(text: &'p str, whole: &str) -> Result<(u32, &'p str), String> {
    match text.chars().next() {
        None => Err(problem("missing closing ]", whole)),
        Some('\\') => escaped(text),
        Some(c) => Ok((u32::from(c), &text[c.len_utf8()..])),
    }
}

/// `[:alpha:]` inside a class.
fn posix(text: &str) -> Result<Option<(String, &str)>, String> {
    let Some(end) = text.strip_prefix("[:").and_then(|inner| inner.find(":]")) else { return Ok(None) };
    let (class, rest) = text.split_at(end + 4);
    let name = &class[2..class.len() - 2];
    if POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
        return Ok(Some((class.to_owned(), rest)));
    }
    Err(problem("invalid character class range", class))
}

/// `\d`, `\pL`, `\p{Greek}` and their like; nothing when the text begins otherwise.
pub(super) fn named_escape(text: &str) -> Result<Option<(String, &str)>, String> {
    let class = match text.as_bytes().get(..2) {
        Some(br"\d") => "[0-9]",
        Some(br"\D") => "[^0-9]",
        Some(br"\s") => r"[\t\n\f\r ]",
        Some(br"\S") => r"[^\t\n\f\r ]",
        Some(br"\w") => "[0-9A-Za-z_]",
        Some(br"\W") => "[^0-9A-Za-z_]",
        Some(br"\p" | br"\P") => return unicode(text).map(Some),
        _ => return Ok(None),
    };
    Ok(Some((class.to_owned(), &text[2..])))
}

fn unicode(text: &str) -> Result<(String, &str), String> {
    let after = &text[2..];
    let refuse = |part: &str| Err(problem("invalid character class range", part));
    let (name, rest) = match after.chars().next() {
        // Go decodes an empty text as a replacement character and finds no class of that name.
        None => return refuse(text),
        Some('{') => match after.find('}') {
            Some(end) => (&after[1..end], &after[end + 1..]),
            None => return refuse(text),
        },
        Some(c) => after.split_at(c.len_utf8()),
    };
    let (negated, name) = match name.strip_prefix('^') {
        Some(name) => (true, name),
        None => (false, name),
    };
    let letter = if text.starts_with(r"\P") != negated { 'P' } else { 'p' };
    let class = format!(r"\{letter}{{{name}}}");
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !plain || Regex::new(&class).is_err() {
        return refuse(consumed(text, rest));
    }
    Ok((class, rest))
}

/// A backslash and what makes one character with it.
pub(super) fn escaped(text: &str) -> Result<(u32, &str), String> {
    let mut chars = text[1..].chars();
    let Some(c) = chars.next() else {
        return Err(problem("trailing backslash at end of expression", ""));
    };
    let rest = chars.as_str();
    let simple = |code: u32| Ok((code, rest));
    match c {
        'a' => simple(7),
        'f' => simple(12),
        'n' => simple(10),
        'r' => simple(13),
        't' => simple(9),
        'v' => simple(11),
        '0' => Ok(octal(text)),
        '1'..='7' if rest.starts_with(|c: char| c.is_digit(8)) => Ok(octal(text)),
        'x' => hexadecimal(text, rest),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => simple(u32::from(c)),
        _ => Err(problem("invalid escape sequence", consumed(text, rest))),
    }
}

/// Up to three octal digits after the backslash.
fn octal(text: &str) -> (u32, &str) {
    let digits = text[1..].bytes().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
    let (digits, rest) = text[1..].split_at(digits);
    (u32::from_str_radix(digits, 8).unwrap_or(0), rest)
}

fn hexadecimal<'p>(text: &'p str, rest: &'p str) -> Result<(u32, &'p str), String> {
    let refuse = |rest: &str| Err(problem("invalid escape sequence", consumed(text, rest)));
    let mut chars = rest.chars();
    match chars.next() {
        None => refuse(rest),
        Some('{') => {
            let mut code = 0;
            let mut count = 0;
            while let Some(c) = chars.next() {
                match c.to_digit(16) {
                    _ if c == '}' && count > 0 => return Ok((code, chars.as_str())),
                    Some(digit) if code * 16 + digit <= 0x10ffff => code = code * 16 + digit,
                    _ => return refuse(chars.as_str()),
                }
                count += 1;
            }
            refuse("")
        }
        Some(high) => {
            // Go reads both characters before it looks at them.
            let low = chars.next();
            match (high.to_digit(16), low.and_then(|low| low.to_digit(16))) {
                (Some(high), Some(low)) => Ok((high * 16 + low, chars.as_str())),
                _ => refuse(chars.as_str()),
            }
        }
    }
}
