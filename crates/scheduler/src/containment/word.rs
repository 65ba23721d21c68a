//! Words: text that stays one scalar wherever a template writes it. Most of what applications write is one, and then a
//! look at the line is enough to know that it changes no structure.

use std::ops::Range;

/// Letters that are in no number, date, boolean or null of any version of YAML.
const PLAIN_LETTERS: &[u8] = b"ghjkmpqvwGHJKMPQVW";

/// What YAML 1.1 or 1.2 reads as something other than text, in lower case.
const RESERVED: [&str; 11] = ["", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n"];

/// Whether a text, written plain, can neither end a scalar nor begin another thing.
pub fn is_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-/:@+=~%".contains(byte);
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            (first.is_ascii_alphanumeric() || matches!(first, b'.' | b'/' | b'_'))
                && *last != b':'
                && bytes.iter().all(fits)
                && (bytes.iter().any(u8::is_ascii_alphanumeric) || text == "." || text == "./")
        }
        _ => false,
    }
}

/// Whether every reader of YAML takes a plain scalar as text, not as a number, a date, a boolean or nothing.
pub fn reads_as_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    let odd =
        |byte: &u8| PLAIN_LETTERS.contains(byte) || !(byte.is_ascii_alphanumeric() || b"._+-:~<=, ".contains(byte));
    if bytes.iter().any(odd) || text == "." {
        return true;
    }
    match bytes.first() {
        Some(first) if first.is_ascii_alphabetic() || *first == b'_' => {
            !RESERVED.iter().any(|word| text.eq_ignore_ascii_case(word))
        }
        // `1.2.3` is no number and no date.
        Some(_) => bytes.iter().filter(|byte| **byte == b'.').count() > 1 && !bytes.contains(&b':'),
        None => false,
    }
}

/// Whether each place of a YAML text is in a line `key: scalar` or `- scalar`, in the scalar, and all of it is a word, and
/// the field may have it: `allows` gets the key, empty for an item, and the scalar without its quotes.
pub fn fits_yaml(text: &str, places: &[Range<usize>], allows: impl Fn(&str, &str) -> bool) -> bool {
    let mut looked_at = 0;
    places.iter().filter(|place| !place.is_empty()).all(|place| {
        if place.start < looked_at {
            return true;
        }
        let (before, after) = (&text[..place.start], &text[place.start..]);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let end = place.start + after.find('\n').unwrap_or(after.len());
        looked_at = end;
        line_fits(&text[start..end], place.start - start, &allows)
    })
}

/// Whether a line is `key: scalar` or `- scalar`, and the scalar begins at or before the place.
fn line_fits(line: &str, place: usize, allows: &impl Fn(&str, &str) -> bool) -> bool {
    let mut rest = line.trim_start_matches(' ');
    let mut is_item = false;
    while let Some(inner) = rest.strip_prefix("- ") {
        rest = inner.trim_start_matches(' ');
        is_item = true;
    }
    let is_key =
        |key: &str| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte));
    let (key, scalar) = match rest.split_once(": ") {
        Some((key, scalar)) if is_key(key) => (key, scalar),
        Some(_) => return false,
        None if is_item => ("", rest),
        None => return false,
    };
    let bare = scalar.trim_matches(['"', '\'']);
    line.len() - scalar.len() <= place && scalar_fits(scalar) && allows(key, bare)
}

fn scalar_fits(scalar: &str) -> bool {
    for quote in ['"', '\''] {
        if let Some(inner) = scalar.strip_prefix(quote) {
            let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@+=~% ,".contains(&byte);
            return inner.strip_suffix(quote).is_some_and(|inner| inner.bytes().all(inside));
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
        for text in ["a", "main", "1.2.3", "./x", ".", "v1", "0xzz/", "nullable", "a, b"] {
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
