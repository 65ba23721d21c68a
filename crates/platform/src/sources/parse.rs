//! The text of a sources file as entries, with every error at once and its line.

use std::path::Path;
use std::sync::Arc;

use kedge_goyaml::node::{self, Node};
use kedge_goyaml::{Limits, ParseError};
use kedge_model::{Excerpt, Origin, Problem, Source};

use super::SourceEntry;
use crate::repositories::RepoKey;

/// Where a reader stands: collects what is wrong.
struct Reader<'a> {
    lines: Vec<&'a str>,
    file: Origin,
    problems: Vec<Problem>,
}

const FILE_KEYS: [&str; 1] = ["sources"];
const ENTRY_KEYS: [&str; 4] = ["repo", "branch", "commit", "path"];

pub(super) fn entries(bytes: &[u8], file: &str, base: &Path) -> Result<Vec<SourceEntry>, Vec<Problem>> {
    let text = String::from_utf8_lossy(bytes);
    let source = Arc::new(Source { repo: file.to_owned(), revision: None });
    let origin = Origin { source, file: file.into(), line: 0, column: 0 };
    let mut reader = Reader { lines: text.lines().collect(), file: origin, problems: Vec::new() };
    let documents = match node::parse_bytes(bytes, &Limits::default()) {
        Ok(documents) => documents,
        Err(error) => return Err(vec![reader.syntax(error)]),
    };
    let entries = match documents.as_slice() {
        [] => {
            reader.whole("the file is empty: it has no `sources`");
            Vec::new()
        }
        [document] => reader.file(document, base),
        [_, second, ..] => {
            reader.fail(second, "there is a second document; a sources file has one");
            Vec::new()
        }
    };
    match reader.problems.is_empty() {
        true => Ok(entries),
        false => Err(reader.problems),
    }
}

impl Reader<'_> {
    fn file(&mut self, document: &Node, base: &Path) -> Vec<SourceEntry> {
        let Some(fields) = document.entries() else {
            self.fail(document, "the file must be a map with the key `sources`");
            return Vec::new();
        };
        self.unknown(fields, &FILE_KEYS, "a sources file");
        let Some(list) = document.get("sources") else {
            self.fail(document, "the key `sources` is missing");
            return Vec::new();
        };
        // Nothing behind `sources:` means that nothing is found, which is a wish like any other.
        let items = match list.items() {
            Some(items) => items,
            None if list.is_null() => &[],
            None => {
                self.fail(list, "`sources` must be a list");
                &[]
            }
        };
        let mut entries: Vec<SourceEntry> = Vec::new();
        for item in items {
            let Some(entry) = self.entry(item, base) else { continue };
            match entries.iter().find(|other| same(other, &entry)) {
                Some(other) => {
                    let line = other.line;
                    self.fail(item, &format!("the same repository, branch and commit are in line {line} already"));
                }
                None => entries.push(entry),
            }
        }
        entries
    }

    fn entry(&mut self, item: &Node, base: &Path) -> Option<SourceEntry> {
        let Some(fields) = item.entries() else {
            self.fail(item, "an entry must be a map with `repo` and `path`");
            return None;
        };
        self.unknown(fields, &ENTRY_KEYS, "an entry of `sources`");
        let repo = self.required(item, "repo");
        let path = self.required(item, "path");
        let branch = self.text(item, "branch");
        let commit = self.text(item, "commit");
        let (repo, path) = (repo?, path?);
        Some(SourceEntry { repo, branch, commit, path: base.join(path), line: item.line })
    }

    fn required(&mut self, item: &Node, key: &str) -> Option<String> {
        match item.get(key) {
            None => {
                self.fail(item, &format!("an entry needs `{key}`"));
                None
            }
            Some(value) => match self.text(item, key) {
                Some(text) => Some(text),
                None if value.text().is_some() => {
                    self.fail(value, &format!("`{key}` is empty"));
                    None
                }
                None => None,
            },
        }
    }

    /// A scalar as written: a commit of digits alone is no number.
    fn text(&mut self, item: &Node, key: &str) -> Option<String> {
        let value = item.get(key)?;
        match value.text() {
            Some(_) if value.is_null() => None,
            Some(text) => Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned),
            None => {
                self.fail(value, &format!("`{key}` must be a string"));
                None
            }
        }
    }

    fn unknown(&mut self, fields: &[(Node, Node)], known: &[&str], place: &str) {
        for (key, _) in fields {
            match key.text() {
                Some(text) if known.contains(&text) => {}
                text => {
                    let name = text.unwrap_or("a map or list");
                    let name = name.escape_debug();
                    self.fail(key, &format!("`{name}` is not a key of {place}; it has {}", known.join(", ")));
                }
            }
        }
    }

    fn syntax(&self, error: ParseError) -> Problem {
        let mut problem = self.problem(error.line, error.column, format!("the file isn't YAML: {}", error.message));
        problem.hint = error.hint;
        problem
    }

    fn whole(&mut self, message: &str) {
        self.problems.push(Problem::error("SourcesInvalid", message).at(self.file.clone()));
    }

    fn fail(&mut self, node: &Node, message: &str) {
        let problem = self.problem(node.line, node.column, message.to_owned());
        self.problems.push(problem);
    }

    fn problem(&self, line: u32, column: u32, message: String) -> Problem {
        let problem = Problem::error("SourcesInvalid", message).at(self.file.at(line, column));
        match self.lines.get((line as usize).wrapping_sub(1)) {
            Some(text) => problem.excerpt(Excerpt::of_line(text, column as usize, 1)),
            None => problem,
        }
    }
}

fn same(one: &SourceEntry, other: &SourceEntry) -> bool {
    one.branch == other.branch
        && one.commit.as_deref().map(str::to_ascii_lowercase) == other.commit.as_deref().map(str::to_ascii_lowercase)
        && RepoKey::new(&one.repo) == RepoKey::new(&other.repo)
}
