//! What `up` can't go on without, each with the way out.

use std::io;
use std::path::{Path, PathBuf};

use crate::init::commands::quote;

/// What `up` can't go on without.
#[derive(Debug, thiserror::Error)]
pub enum UpError {
    #[error("the program `{program}` isn't beside `kedge` (in {}) and not in the PATH", beside.display())]
    NoProgram { program: &'static str, beside: PathBuf },
    #[error("`git` isn't here, and the hub publishes with it")]
    NoGit,
    #[error("`{}` isn't empty and wasn't made by `kedge up`", path.display())]
    NotOurs { path: PathBuf },
    #[error("another `kedge up` runs in `{}`", path.display())]
    InUse { path: PathBuf },
    #[error("`{}` was made by another version of `kedge up`", path.display())]
    OtherVersion { path: PathBuf },
    #[error("can't write `{}`", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("git {what} failed: {said}")]
    Git { what: &'static str, said: String },
    #[error("`{program}` can't be started")]
    Start { program: String, source: io::Error },
    #[error("the hub has ended by itself ({how}); the last lines of its log:\n{log}")]
    HubEnded { how: String, log: String, left: Option<PathBuf> },
    #[error("the hub isn't ready after {seconds} s; the last lines of its log:\n{log}")]
    HubSlow { seconds: u64, log: String, left: Option<PathBuf> },
    #[error("no free port was found on loopback")]
    NoPort { source: io::Error },
}

impl UpError {
    /// The way out, in one sentence.
    pub fn hint(&self) -> Option<String> {
        match self {
            UpError::NoProgram { program, .. } => Some(format!(
                "in a clone of the project `./up` builds all three; or: cargo install --locked --path {}",
                program.trim_start_matches("kedge-")
            )),
            UpError::NoGit => Some("install it: apt install git".to_owned()),
            UpError::NotOurs { .. } => {
                Some("name a folder that doesn't exist yet, or one that `kedge up --keep` left".to_owned())
            }
            UpError::InUse { .. } => {
                Some("name another folder; without a name there is a new one each time".to_owned())
            }
            UpError::OtherVersion { .. } => Some("name another folder".to_owned()),
            UpError::HubEnded { left: Some(folder), .. } | UpError::HubSlow { left: Some(folder), .. } => {
                let folder = folder.display().to_string();
                Some(format!("hub.log in {folder} has everything; again: kedge up {}", quote(&folder)))
            }
            UpError::HubEnded { .. } | UpError::HubSlow { .. } => {
                Some("with --keep the folder stays, and hub.log in it has everything".to_owned())
            }
            UpError::File { path, source } if source.kind() == io::ErrorKind::NotFound => {
                let parent = path.parent().unwrap_or(Path::new("/"));
                Some(format!("make its folder first: mkdir -p {}", quote(&parent.display().to_string())))
            }
            UpError::File { .. } | UpError::Git { .. } | UpError::Start { .. } | UpError::NoPort { .. } => None,
        }
    }

    pub(super) fn file(path: &Path) -> impl FnOnce(io::Error) -> UpError {
        let path = path.to_owned();
        move |source| UpError::File { path, source }
    }
}
