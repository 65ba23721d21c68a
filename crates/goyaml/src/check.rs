//! What is refused before a text is scanned: its size, and characters that YAML doesn't allow.

use crate::error::{Limits, ParseError};
use crate::scan::Mark;

/// Refuses a text that is too large or holds control characters.
pub(crate) fn check(text: &str, limits: &Limits) -> Result<(), ParseError> {
    check_size(text.len(), limits)?;
    match text.char_indices().find(|(_, char)| !is_allowed(*char)) {
        None => Ok(()),
        Some((index, char)) => {
            let mark = mark_of(&text[..index]);
            if char == '\0' {
                return Err(ParseError::at(mark, "a NUL byte: this isn't a text file")
                    .with_hint("save the file as UTF-8, or keep binary files out of this folder"));
            }
            let message = format!("the control character U+{:04X} is not allowed", u32::from(char));
            Err(ParseError::at(mark, message).with_hint("remove it, or write it as an escape in double quotes"))
        }
    }
}

/// Refuses a text that is too large.
pub(crate) fn check_size(bytes: usize, limits: &Limits) -> Result<(), ParseError> {
    if bytes > limits.bytes {
        let message = format!("the text has {bytes} bytes, and {} is the limit", limits.bytes);
        return Err(ParseError::at(Mark::default(), message));
    }
    Ok(())
}

/// The bytes as text, or where they stop being UTF-8.
pub(crate) fn check_utf8(bytes: &[u8]) -> Result<&str, ParseError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let mark = mark_of(std::str::from_utf8(valid).unwrap_or_default());
        ParseError::at(mark, "these bytes aren't UTF-8: this isn't a text file")
            .with_hint("save the file as UTF-8, or keep binary files out of this folder")
    })
}

fn mark_of(before: &str) -> Mark {
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
    Mark {
        index: before.len(),
        line: u32::try_from(line).unwrap_or(u32::MAX - 1),
        column: u32::try_from(column).unwrap_or(u32::MAX - 1),
    }
}

fn is_allowed(char: char) -> bool {
    matches!(
        char,
        ' '..='~' | '\n' | '\t' | '\r' | '\u{85}' | '\u{A0}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..
    )
}
