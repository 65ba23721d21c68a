//! Rust source as names and signs with their lines. Comments, strings and characters are left out: nothing in them is a path.

/// A name, or one other character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    pub text: &'a str,
    pub line: usize,
}

/// All tokens of a file. What isn't valid Rust gives some tokens too: the compiler is who complains.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let (mut at, mut line, mut found) = (0, 1, Vec::new());
    while let Some(&byte) = bytes.get(at) {
        let rest = &text[at..];
        let length = match byte {
            b'/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            b'/' if rest.starts_with("/*") => block_comment(rest),
            b'"' => quoted(rest),
            b'\'' => character(rest),
            _ if raw_string(rest).is_some() => raw_string(rest).unwrap_or(1),
            _ if is_name(byte) => {
                let length = rest.bytes().take_while(|byte| is_name(*byte)).count();
                found.push(Token { text: &rest[..length], line });
                length
            }
            _ if byte.is_ascii_whitespace() => 1,
            _ => {
                let length = rest.chars().next().map_or(1, char::len_utf8);
                found.push(Token { text: &rest[..length], line });
                length
            }
        };
        line += rest.as_bytes()[..length].iter().filter(|byte| **byte == b'\n').count();
        at += length;
    }
    found
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if here.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
        } else {
            at += 1;
        }
        if depth == 0 {
            break;
        }
    }
    at.min(rest.len())
}

fn quoted(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// `'a'` is a character, `'a` is a lifetime: only its sign is passed over.
fn character(rest: &str) -> usize {
    let mut letters = rest.char_indices().skip(1);
    match (letters.next(), letters.next()) {
        (Some((_, '\\')), Some(_)) => rest[3..].find('\'').map_or(1, |end| 3 + end + 1),
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// `r"…"`, `r#"…"#`, `br"…"`; a raw name such as `r#type` is none.
fn raw_string(rest: &str) -> Option<usize> {
    let begin = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = begin.bytes().take_while(|byte| *byte == b'#').count();
    let inside = begin[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = inside.find(&end).map_or(inside.len(), |at| at + end.len());
    Some(rest.len() - inside.len() + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_is_left() {
        let text = "a // crate::b\n/* c /* d */ \n */ e \"f \\\" g\" r#\"h \" i\"# 'j' '\\'' <'k> b\"l\" m";
        let names: Vec<(&str, usize)> = tokens(text).into_iter().map(|token| (token.text, token.line)).collect();
        let expected = [("a", 1), ("e", 3), ("<", 3), ("k", 3), (">", 3), ("b", 3), ("m", 3)];
        assert_eq!(names, expected);
    }
}
