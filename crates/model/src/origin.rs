//! Where an object was written: repository, commit, file, line. Carried by every object and every problem.

use std::fmt;
use std::sync::Arc;

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

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.revision {
            Some(revision) => write!(f, "{} ({revision})", self.repo),
            None => f.write_str(&self.repo),
        }
    }
}

/// `file:line`, what an editor understands. The source is shown apart, where it matters.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (0, _) => write!(f, "{}", self.file),
            (line, 0) => write!(f, "{}:{line}", self.file),
            (line, column) => write!(f, "{}:{line}:{column}", self.file),
        }
    }
}
