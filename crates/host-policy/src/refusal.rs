//! Why something isn't allowed, and who can change that. Every rule makes one; the agent says it as a sentence, `kedge validate` as a
//! problem with a hint.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub reason: String,
    /// None: nothing allows it.
    pub way_out: Option<String>,
    /// Where it is written, of a unit's file.
    pub line: Option<UnitLine>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitLine {
    /// On the host.
    pub path: String,
    /// From 1.
    pub number: usize,
}

impl Refusal {
    pub(crate) fn new(reason: impl Into<String>, way_out: impl Into<String>) -> Refusal {
        Refusal { reason: reason.into(), way_out: Some(way_out.into()), line: None }
    }
}

impl From<String> for Refusal {
    fn from(reason: String) -> Refusal {
        Refusal { reason, way_out: None, line: None }
    }
}

/// One sentence.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(UnitLine { path, number }) = &self.line {
            write!(f, "{path}:{number}: ")?;
        }
        f.write_str(&self.reason)?;
        match &self.way_out {
            // The reason of a setting says what the tenant can write instead.
            Some(way_out) if self.line.is_some() => write!(f, "; or {way_out}"),
            Some(way_out) => write!(f, "; {way_out}"),
            None => Ok(()),
        }
    }
}
