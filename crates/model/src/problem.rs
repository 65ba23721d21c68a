//! A problem as data: what is wrong, where, what it looks like there, and the way out. Printed by the CLI, shown by
//! the hub, never raised as an error: a platform has as many as it has.

mod text;

use crate::Origin;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Error,
    Warning,
}

/// The line that a problem is about, so that it can be shown with a caret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Excerpt {
    pub text: String,
    /// Where the caret stands, in characters from 0, and how many characters it underlines (at least 1).
    pub start: usize,
    pub width: usize,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Problem {
    pub severity: Severity,
    /// A stable word for programs, in CamelCase: `UnknownField`, `TemplateMissing`.
    pub code: &'static str,
    /// One sentence without a full stop. Names the object or the value.
    pub message: String,
    pub origin: Option<Origin>,
    pub excerpt: Option<Excerpt>,
    /// Further places that matter: the other definition of the same object.
    pub related: Vec<Origin>,
    /// What to do about it.
    pub hint: Option<String>,
    /// The assignment that it stops, or only concerns when it is a warning: `<cluster type>/<workload>-<target>`.
    pub assignment: Option<String>,
}

impl Problem {
    pub fn error(code: &'static str, message: impl Into<String>) -> Problem {
        Problem::new(Severity::Error, code, message.into())
    }

    pub fn warning(code: &'static str, message: impl Into<String>) -> Problem {
        Problem::new(Severity::Warning, code, message.into())
    }

    fn new(severity: Severity, code: &'static str, message: String) -> Problem {
        Problem {
            severity,
            code,
            message,
            origin: None,
            excerpt: None,
            related: Vec::new(),
            hint: None,
            assignment: None,
        }
    }

    #[must_use]
    pub fn at(mut self, origin: Origin) -> Problem {
        self.origin = Some(origin);
        self
    }

    #[must_use]
    pub fn also_at(mut self, origin: Origin) -> Problem {
        self.related.push(origin);
        self
    }

    #[must_use]
    pub fn excerpt(mut self, excerpt: Excerpt) -> Problem {
        self.excerpt = Some(excerpt);
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
