//! What is wrong in a configuration file: where, what, and the way out, as a person reads it.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

/// One thing that is wrong or odd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Bytes of the text.
    pub span: Range<usize>,
    pub message: String,
    /// The way out; empty when the message says it.
    pub hint: String,
    /// A warning lets the hub start.
    pub warning: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("the configuration file {path} can't be read")]
    Read { path: PathBuf, source: std::io::Error },
    /// Everything that is wrong, at once.
    #[error("{report}")]
    Invalid { report: String },
}

/// Longer lines are cut: nobody reads them, and a terminal is small.
const MAX_LINE: usize = 160;

impl ConfigProblem {
    /// `hub.toml:3:1: error: …`, the line with a mark below, and the way out.
    pub fn render(&self, file: &str, text: &str) -> String {
        let start = floor(text, self.span.start);
        let end = floor(text, self.span.end).max(start);
        let begin = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let finish = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let number = text[..begin].matches('\n').count() + 1;
        let column = text[begin..start].chars().count() + 1;
        let kind = if self.warning { "warning" } else { "error" };
        let mut out = format!("{file}:{number}:{column}: {kind}: {}\n", self.message);
        let line: String = text[begin..finish].trim_end().chars().map(visible).take(MAX_LINE).collect();
        if !line.is_empty() {
            let width = text[start..end.min(finish)].trim_end().chars().count().max(1);
            let room = MAX_LINE.saturating_sub(column - 1).max(1);
            let mark = format!("{}{}", " ".repeat((column - 1).min(MAX_LINE)), "^".repeat(width.min(room)));
            out.push_str(&format!("  | {line}\n  | {mark}\n"));
        }
        if !self.hint.is_empty() {
            out.push_str(&format!("  = {}\n", self.hint));
        }
        out
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Control characters of a file must not reach a terminal; a tab is as wide as the mark takes it.
fn visible(c: char) -> char {
    if c == '\t' {
        ' '
    } else if c.is_control() {
        '\u{fffd}'
    } else {
        c
    }
}

fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The known word that is nearest to a mistyped one, if any is near.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|name| (distance(word, name), name))
        .filter(|(far, _)| *far <= limit)
        .min()
        .map(|(_, name)| name)
}

/// Levenshtein's distance, where two neighbours that changed places count once.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for (i, from) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, to) in b.iter().enumerate() {
            let mut best = (rows[i][j] + usize::from(from != to)).min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *from == b[j - 1] && a[i - 1] == *to {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}
