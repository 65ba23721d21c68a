//! Other people's text on the way to a screen: names and sentences of agents, tenants and commits. What moves a cursor, hides, or
//! turns the order of the letters around it is replaced; a table's cell is cut. The page, the API's commands and the CLI use it.

use std::borrow::Cow;

/// Stands where something can't be shown.
pub const REPLACEMENT: char = '\u{fffd}';

/// Without what a terminal or a browser would act on, or wouldn't show. Line breaks and tabs stay.
pub fn shown(text: &str) -> Cow<'_, str> {
    let hides = |c: char| is_hidden(c) && !matches!(c, '\n' | '\t');
    // Most text is plain: one look at the bytes is enough.
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t'));
    match !plain && text.contains(hides) {
        true => Cow::Owned(text.replace(hides, "\u{fffd}")),
        false => Cow::Borrowed(text),
    }
}

/// The same on one line, at most so many letters; a longer one ends with `…`.
pub fn cell(text: &str, most: usize) -> String {
    let line: String = text.chars().take(most + 1).map(|c| if is_hidden(c) { REPLACEMENT } else { c }).collect();
    match line.char_indices().nth(most) {
        None => line,
        Some(_) => line.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Controls, line separators, format characters (Unicode's Cf), what is empty to look at, and private use.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
            | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
            | '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{e0fff}' | '\u{f0000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_or_reorders_is_replaced() {
        for c in ['\0', '\u{1b}', '\r', '\u{9b}', '\u{ad}', '\u{200b}', '\u{202e}', '\u{2066}', '\u{feff}', '\u{e000}']
        {
            assert_eq!(shown(&format!("a{c}b")), "a\u{fffd}b", "{c:?}");
        }
        for text in ["", "plain", "a\n\tb", "Grüße, Welt! 日本 😀"] {
            assert!(matches!(shown(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn a_cell_is_one_short_line() {
        assert_eq!(cell("a\nb\u{1b}", 10), "a\u{fffd}b\u{fffd}");
        assert_eq!(cell(&"é".repeat(253), 5), "éééé…");
        assert_eq!(cell("exact", 5), "exact");
    }
}
