//! Limits on what is read, and the error that says where reading stopped and what to do about it.

use crate::scan::Mark;

/// What a parser may use up. Aliases count as the nodes they expand to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub bytes: usize,
    pub nodes: usize,
    pub depth: usize,
}

/// Why a text isn't YAML that we accept. `line` and `column` count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ParseError {
    pub line: u32,
    pub column: u32,
    pub message: String,
    pub hint: Option<String>,
}

/// Why a text has no value: it isn't YAML, or yaml.v2 refuses what it says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error(transparent)]
    Syntax(#[from] ParseError),
    #[error("line {line}: invalid map key: a {kind} cannot be a key")]
    InvalidKey { line: u32, kind: &'static str },
    #[error("line {line}: {text:?} cannot be read as {tag}")]
    Tag { line: u32, tag: String, text: String },
    #[error("line {line}: a merge key needs a map or a list of maps")]
    Merge { line: u32 },
    #[error("line {line}: an anchored value contains itself")]
    Cycle { line: u32 },
    #[error("the document expands its aliases too often")]
    Aliases,
    #[error("line {line}: nested deeper than {limit} levels")]
    Depth { line: u32, limit: usize },
}

impl Default for Limits {
    /// Far above any file that a person keeps, far below what hurts the machine.
    fn default() -> Limits {
        Limits { bytes: 4 << 20, nodes: 200_000, depth: 100 }
    }
}

impl ParseError {
    pub(crate) fn at(mark: Mark, message: impl Into<String>) -> ParseError {
        ParseError { line: mark.line + 1, column: mark.column + 1, message: message.into(), hint: None }
    }

    pub(crate) fn too_deep(mark: Mark, limit: usize) -> ParseError {
        ParseError::at(mark, format!("nested deeper than {limit} levels"))
            .with_hint("no object should be nested this deeply: check that the file belongs here")
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> ParseError {
        self.hint = Some(hint.into());
        self
    }
}
