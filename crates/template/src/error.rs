//! What goes wrong in a template: where, at which expression, and why. The scheduler places it in the template's file.

use std::fmt;

use crate::quote::quote;

/// The name that every template has in Go's texts: Kalypso calls them all so.
pub(crate) const TEMPLATE_NAME: &str = "template";

/// An error of parsing (a line, no column) or of execution (both, and the expression).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Counted from 1, within the template's own text.
    pub line: Option<u32>,
    /// Bytes before the place on its line, as Go counts.
    pub column: Option<u32>,
    /// The bare cause.
    pub message: String,
    /// The expression that failed and the template or `define` that holds it.
    pub context: Option<Box<Place>>,
    /// The configuration value that the failing text came from, when a later pass fails.
    pub config_key: Option<String>,
}

/// Where an execution was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// `template`, or the name that `define` or `block` gave.
    pub template: String,
    /// The expression as Go writes it back.
    pub expression: String,
}

impl Error {
    pub(crate) fn parsing(line: u32, message: impl Into<String>) -> Error {
        Error { line: Some(line), column: None, message: message.into(), context: None, config_key: None }
    }

    pub(crate) fn plain(message: impl Into<String>) -> Error {
        Error { line: None, column: None, message: message.into(), context: None, config_key: None }
    }

    /// The bare cause, without place and expression.
    pub fn cause(&self) -> &str {
        &self.message
    }

    /// The expression that failed, when the template was running.
    pub fn expression(&self) -> Option<&str> {
        self.context.as_deref().map(|place| place.expression.as_str())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "template: {TEMPLATE_NAME}:")?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        if let Some(column) = self.column {
            write!(f, "{column}:")?;
        }
        if let Some(place) = &self.context {
            write!(f, " executing {} at <{}>:", quote(&place.template), place.expression)?;
        }
        write!(f, " {}", self.message)
    }
}

impl std::error::Error for Error {}
