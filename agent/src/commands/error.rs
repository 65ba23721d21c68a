//! How a command ends: exit codes, and errors as `Error`, `Caused by` and `Hint`. Every command returns them, `main` prints them.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use kedge_durable::LedgerError;

use super::names;
use crate::join::JoinError;
use crate::overview::{OverviewError, UnknownAssignment};
use crate::run::RunError;

/// How a command that did its work ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0
    Success,
    /// 3: `status` saw something that isn't Converged, `doctor` found a problem, `import` refused something.
    Findings,
}

/// Typed by what the person does next.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("{what} can't be read: only root may")]
    NeedsRoot { what: String },
    #[error("only root may change what the agent does")]
    NeedsRootToChange,
    #[error("this host hasn't joined a hub")]
    NotJoined,
    #[error(transparent)]
    UnknownAssignment(#[from] UnknownAssignment),
    #[error("{what}")]
    Refused { what: String, hint: String },
    #[error("{path} can't be {action}")]
    File { path: PathBuf, action: &'static str, source: io::Error },
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Join(#[from] Box<JoinError>),
    #[error(transparent)]
    Run(#[from] Box<RunError>),
    #[error("{what}")]
    Failed { what: String, source: Box<dyn Error + Send + Sync> },
    #[error("the output can't be printed")]
    Output(#[from] io::Error),
}

impl From<OverviewError> for CommandError {
    fn from(error: OverviewError) -> CommandError {
        match error {
            OverviewError::Forbidden(path) => CommandError::NeedsRoot { what: path.display().to_string() },
            OverviewError::Folder { path, source } => CommandError::File { path, action: "read", source },
            OverviewError::Records(source) => CommandError::failed("what was done on this host can't be read", source),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        match exit {
            Exit::Success => ExitCode::SUCCESS,
            Exit::Findings => ExitCode::from(3),
        }
    }
}

impl CommandError {
    pub fn failed(what: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> CommandError {
        CommandError::Failed { what: what.into(), source: source.into() }
    }

    pub fn refused(what: impl Into<String>, hint: impl Into<String>) -> CommandError {
        CommandError::Refused { what: what.into(), hint: hint.into() }
    }

    /// The way out, where one is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            CommandError::NeedsRoot { .. } | CommandError::NeedsRootToChange => {
                Some("try again with sudo, or give --root with a folder of your own".to_owned())
            }
            CommandError::NotJoined => Some(
                "join it: kedge-agent join --token-file FILE (a platform team makes one with kedge token create)"
                    .to_owned(),
            ),
            CommandError::UnknownAssignment(UnknownAssignment { name, known }) => Some(names::hint(name, known)),
            CommandError::Refused { hint, .. } => Some(hint.clone()).filter(|hint| !hint.is_empty()),
            CommandError::Join(error) => error.hint(),
            CommandError::Run(error) => error.hint(),
            CommandError::Ledger(LedgerError::Broken { .. }) => {
                Some("the disk may be failing; kedge-agent doctor lists the damaged files".to_owned())
            }
            _ => None,
        }
    }

    /// As a person reads it.
    pub fn to_text(&self) -> String {
        let mut said = self.to_string();
        let mut text = format!("Error: {said}\n");
        let mut cause = self.source();
        while let Some(error) = cause {
            let line = error.to_string();
            // Libraries repeat a cause in their own text; it is said once.
            if !said.contains(&line) {
                _ = writeln!(text, "Caused by: {line}");
            }
            said = line;
            cause = error.source();
        }
        if let Some(hint) = self.hint() {
            _ = writeln!(text, "Hint: {hint}");
        }
        super::output::harmless(&text).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_each_cause_once_and_the_way_out() {
        let source = io::Error::new(io::ErrorKind::PermissionDenied, "permission denied");
        let error = CommandError::File { path: "/etc/kedge/join-token".into(), action: "removed", source };
        assert_eq!(error.to_text(), "Error: /etc/kedge/join-token can't be removed\nCaused by: permission denied\n");
        let error = CommandError::NeedsRootToChange;
        assert!(error.to_text().ends_with("Hint: try again with sudo, or give --root with a folder of your own\n"));
    }
}
