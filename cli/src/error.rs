//! How a command ends: its exit codes, and an error as `Error`, `Caused by` and `Hint`. Used by `main`.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Error;
use kedge_api::client::ClientError;
use kedge_bundle::BundleError;
use kedge_model::{Problem, Severity};
use kedge_platform::{LoadError, RepoError, SourcesError};

use crate::folder::FolderError;
use crate::init::InitError;
use crate::output::{harmless, severity_style};
use crate::problems::Problems;
use crate::up::UpError;

/// How a command that did its work ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Success,
    /// `validate` found errors.
    Invalid,
    /// Something was quarantined or left out.
    LeftOut,
}

/// The command can't be understood as it was typed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct UsageError {
    pub message: String,
    pub hint: String,
}

/// What was named isn't there.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct NotFound {
    pub message: String,
    /// Empty when there is nothing to go on from.
    pub hint: String,
}

impl UsageError {
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> UsageError {
        UsageError { message: message.into(), hint: hint.into() }
    }
}

impl NotFound {
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> NotFound {
        NotFound { message: message.into(), hint: hint.into() }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        match exit {
            Exit::Success => ExitCode::SUCCESS,
            Exit::Invalid => ExitCode::from(1),
            Exit::LeftOut => ExitCode::from(3),
        }
    }
}

/// Prints the error and says how to exit.
pub fn report(error: &Error) -> ExitCode {
    let mut problems = Problems::default();
    problems.add("", error.chain().flat_map(details));
    problems.print();
    // There is nobody left to tell when stderr fails.
    let _ = write(&mut anstream::stderr().lock(), error);
    let mistyped = error.downcast_ref::<ClientError>().is_some_and(ClientError::is_usage);
    ExitCode::from(if mistyped || error.is::<UsageError>() { 2 } else { 1 })
}

fn write(out: &mut dyn Write, error: &Error) -> io::Result<()> {
    let red = severity_style(Severity::Error);
    // A bare I/O error is one of stdout: all others say what they were about.
    let of_stdout = error.is::<io::Error>();
    let mut said = if of_stdout { "the output can't be printed".to_owned() } else { error.to_string() };
    writeln!(out, "{red}Error{red:#}: {}", harmless(&said))?;
    for cause in error.chain().skip(usize::from(!of_stdout)) {
        let text = cause.to_string();
        // Libraries repeat a cause in their own text; it is said once.
        if !said.contains(&text) {
            writeln!(out, "Caused by: {}", harmless(&text))?;
        }
        said = text;
    }
    if let Some(hint) = error.chain().find_map(hint) {
        writeln!(out, "Hint: {}", harmless(&hint))?;
    }
    Ok(())
}

/// Problems that an error carries with it.
fn details<'a>(error: &'a (dyn std::error::Error + 'static)) -> &'a [Problem] {
    if let Some(LoadError::NoEnvironment { problems, .. }) = error.downcast_ref() {
        problems
    } else if let Some(SourcesError::Invalid { problems, .. }) = error.downcast_ref() {
        problems
    } else {
        &[]
    }
}

/// A hint lives where the knowledge is.
fn hint(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(error) = error.downcast_ref::<UsageError>() {
        Some(error.hint.clone()).filter(|hint| !hint.is_empty())
    } else if let Some(error) = error.downcast_ref::<NotFound>() {
        Some(error.hint.clone()).filter(|hint| !hint.is_empty())
    } else if let Some(error) = error.downcast_ref::<LoadError>() {
        error.hint()
    } else if let Some(error) = error.downcast_ref::<RepoError>() {
        error.hint()
    } else if let Some(error) = error.downcast_ref::<SourcesError>() {
        error.hint()
    } else if let Some(error) = error.downcast_ref::<BundleError>() {
        error.hint().map(str::to_owned)
    } else if let Some(error) = error.downcast_ref::<ClientError>() {
        error.hint()
    } else if let Some(error) = error.downcast_ref::<FolderError>() {
        error.hint()
    } else if let Some(error) = error.downcast_ref::<UpError>() {
        error.hint()
    } else {
        error.downcast_ref::<InitError>().and_then(InitError::hint)
    }
}
