//! Where an object was written: repository, commit, file, line. Carried by every object and every problem.

use std::fmt::{self, Write as _};
use std::sync::Arc;

/// So many digits of a commit are what people compare.
const COMMIT_DIGITS: usize = 10;

/// A repository at a commit, or a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// The repository's URL, or the folder as the user named it.
    pub repo: String,
    /// `branch@sha1:commit`, `sha1:commit`, or none for a plain folder.
    pub revision: Option<String>,
}

/// A place in a file of a source. Lines and columns count from 1; 0 means that the whole file is meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    pub source: Arc<Source>,
    /// The path inside the source, with `/`.
    pub file: Arc<str>,
    pub line: u32,
    pub column: u32,
}

impl Origin {
    /// The same file, another place.
    #[must_use]
    pub fn at(&self, line: u32, column: u32) -> Origin {
        Origin { source: Arc::clone(&self.source), file: Arc::clone(&self.file), line, column }
    }
}

impl Source {
    /// `repo at main@1e8f01513f`: short enough for a line of text, exact enough to find the commit again.
    pub fn short(&self) -> String {
        let repo = Plain(&self.repo);
        match self.revision.as_deref().map(|revision| (revision, revision.rsplit_once("sha1:"))) {
            Some((_, Some((name, commit)))) => {
                format!("{repo} at {}{}", Plain(name), Plain(commit.get(..COMMIT_DIGITS).unwrap_or(commit)))
            }
            Some((revision, None)) => format!("{repo} at {}", Plain(revision)),
            None => repo.to_string(),
        }
    }

    /// Somewhere else than on this machine, or a commit: a file's path alone doesn't lead there.
    pub fn is_elsewhere(&self) -> bool {
        self.revision.is_some() || self.repo.contains("://")
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.revision {
            Some(revision) => write!(f, "{} ({})", Plain(&self.repo), Plain(revision)),
            None => write!(f, "{}", Plain(&self.repo)),
        }
    }
}

/// Other people's names: a line break in one would look like a line of ours, and a terminal acts on some characters.
struct Plain<'a>(&'a str);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(is_hidden) {
            let (before, from) = rest.split_at(at);
            f.write_str(before)?;
            let mut chars = from.chars();
            chars.next().into_iter().flat_map(char::escape_default).try_for_each(|c| f.write_char(c))?;
            rest = chars.as_str();
        }
        f.write_str(rest)
    }
}

/// Controls, line breaks, and what changes the order of the text around it.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `file:line`, what an editor understands. The source is shown apart, where it matters.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = Plain(&self.file);
        match (self.line, self.column) {
            (0, _) => write!(f, "{file}"),
            (line, 0) => write!(f, "{file}:{line}"),
            (line, column) => write!(f, "{file}:{line}:{column}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(repo: &str, revision: Option<&str>) -> Source {
        Source { repo: repo.to_owned(), revision: revision.map(str::to_owned) }
    }

    #[test]
    fn a_source_is_shortened_to_ten_digits_of_its_commit() {
        let commit = "1e8f01513f0a1b2c3d4e5f60718293a4b5c6d7e8";
        for (revision, shown) in [
            (Some(format!("main@sha1:{commit}")), "https://h/x at main@1e8f01513f"),
            (Some(format!("sha1:{commit}")), "https://h/x at 1e8f01513f"),
            (Some("sha1:0a1b".to_owned()), "https://h/x at 0a1b"),
            (Some("sha1:ééééééé".to_owned()), "https://h/x at ééééé"),
            (Some("sha1:aéééééé".to_owned()), "https://h/x at aéééééé"),
            (Some("v1".to_owned()), "https://h/x at v1"),
            (None, "https://h/x"),
        ] {
            assert_eq!(source("https://h/x", revision.as_deref()).short(), shown);
        }
    }

    #[test]
    fn a_folder_of_this_machine_is_not_elsewhere() {
        assert!(!source("./platform", None).is_elsewhere());
        assert!(source("./platform", Some("main@sha1:0a")).is_elsewhere());
        assert!(source("https://h/x", None).is_elsewhere());
    }

    #[test]
    fn characters_that_hide_or_break_a_line_are_escaped() {
        let file = "a\nerror[X]: y\u{1b}[2J\u{202e}lmay\u{2028}\u{200f}é 日本\\.yaml";
        let origin = Origin { source: Arc::new(source("r\r", Some("b\u{7f}"))), file: file.into(), line: 2, column: 1 };
        assert_eq!(origin.to_string(), "a\\nerror[X]: y\\u{1b}[2J\\u{202e}lmay\\u{2028}\\u{200f}é 日本\\.yaml:2:1");
        assert_eq!(origin.source.to_string(), "r\\r (b\\u{7f})");
        assert_eq!(origin.source.short(), "r\\r at b\\u{7f}");
    }
}
