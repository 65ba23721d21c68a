//! Go's string literals, written and read: `%q`, template constants, error texts. The lexer, parser and printer use it.

use std::sync::LazyLock;

use regex::Regex;

/// What Go counts as printable, beyond ASCII: letters, marks, numbers, punctuation, symbols.
static PRINTABLE: LazyLock<Regex> = LazyLock::new(|| constant(r"^[\p{L}\p{M}\p{N}\p{P}\p{S}]$"));
static LETTER_OR_DIGIT: LazyLock<Regex> = LazyLock::new(|| constant(r"^[\p{L}\p{Nd}]$"));

/// A pattern of ours, which is valid or a fault of the program.
#[allow(clippy::expect_used, reason = "a constant pattern")]
pub(crate) fn constant(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is valid")
}

/// Go's `unicode.IsPrint`.
pub(crate) fn is_print(c: char) -> bool {
    if c.is_ascii() {
        return (' '..='~').contains(&c);
    }
    PRINTABLE.is_match(c.encode_utf8(&mut [0; 4]))
}

/// `_`, a letter or a decimal digit of any script.
pub(crate) fn is_alphanumeric(c: char) -> bool {
    if c.is_ascii() {
        return c == '_' || c.is_ascii_alphanumeric();
    }
    LETTER_OR_DIGIT.is_match(c.encode_utf8(&mut [0; 4]))
}

/// A Go string literal in double quotes.
pub(crate) fn quote(text: &str) -> String {
    quote_with(text, '"', false)
}

/// The same with every character beyond ASCII escaped.
pub(crate) fn quote_ascii(text: &str) -> String {
    quote_with(text, '"', true)
}

/// A Go character literal.
pub(crate) fn quote_char(c: char, ascii: bool) -> String {
    quote_with(c.encode_utf8(&mut [0; 4]), '\'', ascii)
}

fn quote_with(text: &str, mark: char, ascii: bool) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(mark);
    for c in text.chars() {
        escape(&mut out, c, mark, ascii);
    }
    out.push(mark);
    out
}

fn escape(out: &mut String, c: char, mark: char, ascii: bool) {
    match c {
        '\\' => out.push_str("\\\\"),
        c if c == mark => {
            out.push('\\');
            out.push(c);
        }
        c if is_print(c) && (c.is_ascii() || !ascii) => out.push(c),
        '\x07' => out.push_str("\\a"),
        '\x08' => out.push_str("\\b"),
        '\x0c' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\x0b' => out.push_str("\\v"),
        c if c < ' ' || c == '\x7f' => out.push_str(&format!("\\x{:02x}", u32::from(c))),
        c if u32::from(c) < 0x10000 => out.push_str(&format!("\\u{:04x}", u32::from(c))),
        c => out.push_str(&format!("\\U{:08x}", u32::from(c))),
    }
}

/// Whether the text can stand between backquotes on one line.
pub(crate) fn can_backquote(text: &str) -> bool {
    text.chars().all(|c| c != '\u{feff}' && c != '`' && c != '\x7f' && (c >= ' ' || c == '\t'))
}

/// Reads a literal with its quotes, `"…"` or `` `…` ``. A byte that isn't UTF-8 (`\xff`) becomes U+FFFD.
pub(crate) fn unquote(literal: &str) -> Option<String> {
    let mark = literal.chars().next()?;
    let inner = literal.get(1..literal.len().checked_sub(1)?)?;
    if literal.len() < 2 || !literal.ends_with(mark) {
        return None;
    }
    if mark == '`' {
        return (!inner.contains('`')).then(|| inner.replace('\r', ""));
    }
    if inner.contains('\n') {
        return None;
    }
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while !rest.is_empty() {
        let (unit, tail) = unquote_char(rest, mark)?;
        match unit {
            Unit::Byte(byte) => bytes.push(byte),
            Unit::Char(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        rest = tail;
    }
    Some(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(broken) => String::from_utf8_lossy(broken.as_bytes()).into_owned(),
    })
}

/// What one escape or character of a literal stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Byte(u8),
    Char(char),
}

/// Reads the first character of a literal's inside and returns the rest.
pub(crate) fn unquote_char(text: &str, mark: char) -> Option<(Unit, &str)> {
    let mut chars = text.chars();
    let first = chars.next()?;
    if first == mark {
        return None;
    }
    if first != '\\' {
        return Some((Unit::Char(first), chars.as_str()));
    }
    let kind = chars.next()?;
    let rest = chars.as_str();
    let simple = |c: char| Some((Unit::Char(c), rest));
    match kind {
        'a' => simple('\x07'),
        'b' => simple('\x08'),
        'f' => simple('\x0c'),
        'n' => simple('\n'),
        'r' => simple('\r'),
        't' => simple('\t'),
        'v' => simple('\x0b'),
        '\\' => simple('\\'),
        '\'' | '"' => (kind == mark).then_some((Unit::Char(kind), rest)),
        'x' => {
            let (value, rest) = digits(rest, 2, 16)?;
            Some((Unit::Byte(u8::try_from(value).ok()?), rest))
        }
        'u' | 'U' => {
            let (value, rest) = digits(rest, if kind == 'u' { 4 } else { 8 }, 16)?;
            Some((Unit::Char(char::from_u32(value)?), rest))
        }
        '0'..='7' => {
            let (value, rest) = digits(text.get(1..)?, 3, 8)?;
            Some((Unit::Byte(u8::try_from(value).ok()?), rest))
        }
        _ => None,
    }
}

fn digits(text: &str, count: usize, radix: u32) -> Option<(u32, &str)> {
    let head = text.get(..count)?;
    if !head.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    Some((u32::from_str_radix(head, radix).ok()?, &text[count..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_written_as_go_writes_them() {
        assert_eq!(quote("a\"b\\\n\u{7}\u{1}é\u{200b}"), "\"a\\\"b\\\\\\n\\a\\x01é\\u200b\"");
        assert_eq!(quote_ascii("é😀"), "\"\\u00e9\\U0001f600\"");
        assert_eq!(quote_char('\'', false), "'\\''");
        assert!(can_backquote("a\tb"));
        assert!(!can_backquote("a\nb"));
    }

    #[test]
    fn literals_are_read_as_go_reads_them() {
        assert_eq!(unquote(r#""a\tb\u00e9\x41\101""#).as_deref(), Some("a\tbéAA"));
        assert_eq!(unquote("`a\\n\r`").as_deref(), Some("a\\n"));
        assert_eq!(unquote(r#""\'""#), None);
        assert_eq!(unquote(r#""\ud800""#), None);
        assert_eq!(unquote(r#""\xff""#).as_deref(), Some("\u{fffd}"));
    }
}
