//! Words: text that stays one scalar wherever a template writes it. Most of what applications write is one, and then a
//! look at the line is enough to know that it changes no structure.

use std::ops::Range;

/// What YAML 1.1 or 1.2 reads as something other than text.
const RESERVED: [&str; 11] = ["", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n"];

/// What a byte may be part of. Every line of every file is looked at, so a table it is.
const CLASSES: [u8; 256] = classes();

/// A letter or a digit.
const ALNUM: u8 = 1;
/// Part of a word.
const WORD: u8 = 2;
/// Part of a key that needs no quotes.
const KEY: u8 = 4;
/// In no number, date, boolean or null of any version of YAML.
const TEXT: u8 = 8;
/// Means nothing inside quotes.
const QUOTED: u8 = 16;

const fn classes() -> [u8; 256] {
    let mut classes = [TEXT; 256];
    let mut byte = 0u8;
    while byte < 128 {
        let is_alnum = byte.is_ascii_alphanumeric();
        let mut class = 0;
        if is_alnum {
            class |= ALNUM;
        }
        if is_alnum || matches!(byte, b'.' | b'_' | b'-' | b'/' | b':' | b'@' | b'+' | b'=' | b'~' | b'%') {
            class |= WORD;
        }
        if is_alnum || matches!(byte, b'.' | b'_' | b'-' | b'/') {
            class |= KEY;
        }
        if class & WORD != 0 || matches!(byte, b' ' | b',') {
            class |= QUOTED;
        }
        let letter = byte.to_ascii_lowercase();
        if matches!(letter, b'g' | b'h' | b'j' | b'k' | b'm' | b'p' | b'q' | b'v' | b'w')
            || !(is_alnum || matches!(byte, b'.' | b'_' | b'+' | b'-' | b':' | b'~' | b'<' | b'=' | b',' | b' '))
        {
            class |= TEXT;
        }
        classes[byte as usize] = class;
        byte += 1;
    }
    classes
}

fn is(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

/// Whether a text, written plain, can neither end a scalar nor begin another thing.
pub fn is_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    (is(*first, ALNUM) || matches!(first, b'.' | b'/' | b'_'))
        && *last != b':'
        && bytes.iter().all(|byte| is(*byte, WORD))
        && (bytes.iter().any(|byte| is(*byte, ALNUM)) || text == "." || text == "./")
}

/// Whether every reader of YAML takes a plain scalar as text, not as a number, a date, a boolean or nothing.
pub fn reads_as_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.iter().any(|byte| is(*byte, TEXT)) {
        return true;
    }
    match bytes.first() {
        Some(first) if first.is_ascii_alphabetic() || *first == b'_' => {
            !RESERVED.iter().any(|word| text.eq_ignore_ascii_case(word))
        }
        Some(_) => !matches!(text, "~" | "=" | "<<") && !is_number(text) && !is_date(text),
        None => false,
    }
}

/// Whether some reader takes it as a number: `8080`, `1_0.5`, `1e3`, `0x1F`, `.inf`, and `1:30`, which counts in sixties.
fn is_number(text: &str) -> bool {
    // Readers leave these out before they look.
    let written: String = text.chars().filter(|c| !matches!(c, '_' | ',')).map(|c| c.to_ascii_lowercase()).collect();
    let number = written.strip_prefix(['+', '-']).unwrap_or(&written);
    if matches!(number, ".inf" | ".nan") {
        return true;
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = number.strip_prefix(prefix) {
            return !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
        }
    }
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (number, exponent) = number.split_once('e').unwrap_or((number, "0"));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let is_sixtieth = |part: &str| matches!(part.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']);
    !exponent.is_empty()
        && [exponent, first, fraction].into_iter().all(is_digits)
        && !(first.is_empty() && fraction.is_empty())
        && parts.all(is_sixtieth)
}

/// `2001-01-01`, alone or with a time behind it.
fn is_date(text: &str) -> bool {
    let mut parts = text.strip_prefix(['+', '-']).unwrap_or(text).splitn(3, '-');
    let (Some(year), Some(month), Some(rest)) = (parts.next(), parts.next(), parts.next()) else { return false };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (day, time) = rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count());
    year.len() == 4
        && matches!(month.len(), 1 | 2)
        && is_digits(year)
        && is_digits(month)
        && matches!(day.len(), 1 | 2)
        && (time.is_empty() || time.starts_with(['T', 't', ' ']))
}

/// Whether each place of a YAML text is in a line `key: scalar` or `- scalar`, in the scalar, and all of it is a word, and
/// the field may have it: `allows` gets the key, empty for an item, and the scalar without its quotes.
pub fn fits_yaml(text: &str, places: &[Range<usize>], allows: impl Fn(&str, &str) -> bool) -> bool {
    let bytes = text.as_bytes();
    let mut looked_at = 0;
    places.iter().filter(|place| !place.is_empty()).all(|place| {
        if place.start < looked_at {
            return true;
        }
        let start = bytes[..place.start].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let rest = bytes[place.start..].iter().position(|byte| *byte == b'\n');
        let end = rest.map_or(bytes.len(), |newline| place.start + newline);
        looked_at = end;
        line_fits(&text[start..end], place.start - start, &allows)
    })
}

/// Whether a line is `key: scalar` or `- scalar`, and the scalar begins at or before the place.
fn line_fits(line: &str, place: usize, allows: &impl Fn(&str, &str) -> bool) -> bool {
    let bytes = line.as_bytes();
    let spaces = |from: usize| bytes[from..].iter().take_while(|byte| **byte == b' ').count();
    let mut start = spaces(0);
    let mut is_item = false;
    while bytes[start..].starts_with(b"- ") {
        start += 2;
        start += spaces(start);
        is_item = true;
    }
    let key_end = start + bytes[start..].iter().take_while(|byte| is(**byte, KEY)).count();
    let (key, scalar) = match bytes[key_end..].starts_with(b": ") && key_end > start {
        true => (&line[start..key_end], &line[key_end + 2..]),
        // Without a key of its own the item must not be a map.
        false if is_item && !line[start..].contains(": ") => ("", &line[start..]),
        false => return false,
    };
    line.len() - scalar.len() <= place && scalar_fits(scalar) && allows(key, scalar.trim_matches(['"', '\'']))
}

fn scalar_fits(scalar: &str) -> bool {
    for quote in ['"', '\''] {
        if let Some(inner) = scalar.strip_prefix(quote) {
            let inside = |inner: &str| inner.bytes().all(|byte| is(byte, QUOTED));
            return inner.strip_suffix(quote).is_some_and(inside);
        }
    }
    is_word(scalar) && reads_as_text(scalar)
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    #[test]
    fn words_are_what_applications_mostly_write() {
        for word in ["main", "./apps/hello", ".", "https://h/a/b.git", "git@h:a/b", "v1.2", "a-b_c", "1.0", "true"] {
            assert!(is_word(word), "{word}");
        }
        for text in ["", "a b", "a,b", "a: b", "a:", "-", "- a", "---", "...", "#a", "&a", "*a", "!a", "\"", "{", "%a"]
        {
            assert!(!is_word(text), "{text}");
        }
    }

    #[test]
    fn what_some_version_of_yaml_reads_as_another_type_is_no_text() {
        for text in [
            "a",
            "main",
            "1.2.3",
            "./x",
            ".",
            "v1",
            "0xzz/",
            "nullable",
            "a, b",
            "3scale",
            "4x4",
            "1234abc",
            "1-2",
            "0x",
            "0xfeel",
            "1e",
            "1ee3",
            "10.0.0.1:80",
            "8080:80",
            "2024-01-01-beta",
            "2024-001-01",
            "1.2.3-4",
        ] {
            assert!(reads_as_text(text), "{text}");
        }
        for text in [
            "",
            "~",
            "null",
            "True",
            "YES",
            "no",
            "On",
            "y",
            "8080",
            "1.0",
            "1e5",
            "0x1F",
            "0o7",
            "1_000",
            "12:30",
            ".5",
            ".inf",
            "-1",
            "+1",
            "2024-01-01",
            "2024-01-01T00:00:00Z",
            "2024-1-1 1:2:3",
            "0b101",
            "-0x_1f",
            "1e3",
            "1E-3",
            "1_0.5",
            "1.",
            "+.5e+1",
            "-.INF",
            ".NaN",
            "1,000",
            "0_x1F",
            "1:30:59.5",
            "<<",
            "=",
        ] {
            assert!(!reads_as_text(text), "{text}");
        }
    }

    #[test]
    fn a_place_fits_in_the_scalar_of_a_line_only() {
        let fits = |text: &str| {
            let start = text.find("VALUE").unwrap();
            fits_yaml(text, from_ref(&(start..start + 5)), |_, _| true)
        };
        for text in ["a: VALUE\n", "  - VALUE", "- a: x/VALUE", "a.b/c: \"VALUE, x\"", "x: 1\na: 'VALUE'\n"] {
            assert!(fits(text), "{text}");
        }
        for text in
            ["VALUE: a", "{a: VALUE}", "a: [VALUE]", "a: x VALUE", "a: \"VALUE", "# VALUE", "a: !VALUE x", "VALUE"]
        {
            assert!(!fits(text), "{text}");
        }
        assert!(!fits_yaml("a: true\n", from_ref(&(3..7)), |_, _| true));
        assert!(fits_yaml("a: \n", from_ref(&(3..3)), |_, _| true), "nothing was written there");
        assert!(!fits_yaml("- a: \"xyz\"\n", from_ref(&(6..9)), |key, scalar| key != "a" || scalar != "xyz"));
    }
}
