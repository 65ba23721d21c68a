//! One mistake in the file: where, what, and the way out, as a person reads it.

use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// Bytes of the text.
    pub span: Range<usize>,
    pub message: String,
    /// The way out; empty when the message says it.
    pub hint: String,
}

/// Longer lines are cut: nobody reads them, and a terminal is small.
const MAX_LINE: usize = 160;

impl Problem {
    /// `agent.toml:3:1: error: …`, the line with a mark below, and the way out.
    pub(super) fn render(&self, file: &str, text: &str) -> String {
        let start = text.floor_char_boundary(self.span.start);
        let begin = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let finish = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let end = text.floor_char_boundary(self.span.end).clamp(start, finish);
        let (number, column) = (text[..begin].matches('\n').count() + 1, text[begin..start].chars().count() + 1);
        let mut out = format!("{file}:{number}:{column}: error: {}\n", self.message);
        // Control characters of a file must not reach a terminal.
        let visible = |c: char| if c.is_control() { ' ' } else { c };
        let line: String = text[begin..finish].trim_end().chars().map(visible).take(MAX_LINE).collect();
        if !line.is_empty() && column <= MAX_LINE {
            let width = text[start..end].trim_end().chars().count().clamp(1, MAX_LINE - column + 1);
            out.push_str(&format!("  | {line}\n  | {}{}\n", " ".repeat(column - 1), "^".repeat(width)));
        }
        if !self.hint.is_empty() {
            out.push_str(&format!("  = {}\n", self.hint));
        }
        out
    }
}

/// The known word that is nearest to a mistyped one: it has nearly the same letters.
pub(super) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let letters = |text: &str| {
        let mut letters: Vec<char> = text.chars().take(64).collect();
        letters.sort_unstable();
        letters
    };
    let far = |name: &str| {
        let (mine, its) = (letters(word), letters(name));
        let shared = mine.iter().filter(|c| its.contains(c)).count();
        mine.len().max(its.len()) - shared.min(its.len())
    };
    let (distance, near) = known.iter().map(|name| (far(name), *name)).min()?;
    (distance <= (word.chars().count() / 3).clamp(1, 3)).then_some(near)
}
