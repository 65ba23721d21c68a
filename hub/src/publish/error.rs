//! Why a publish didn't happen, typed by what happens next.

use std::time::Duration;

use super::forge::ForgeError;
use super::remote::{PushError, RemoteError};
use super::tree::TreeError;
use crate::store::StoreError;

/// What the caller does about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Try again, with backoff, and not before that time.
    Retry(Option<Duration>),
    /// Nothing helps but new input: another content, a merge, a changed setting of the branch.
    Wait,
    /// A person is needed.
    Stalled,
}

#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error("branch {branch} of {repo} can't be pushed")]
    Push { repo: String, branch: String, source: PushError },
    /// Somebody else pushes all the time.
    #[error("branch {branch} of {repo} moved again and again while it was built")]
    Restless { repo: String, branch: String },
    #[error("the environment's tree can't be made")]
    Tree(#[from] TreeError),
    #[error("the pull request of {environment} can't be kept up to date")]
    Forge { environment: String, source: ForgeError },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("nothing of {environment}/{cluster_type} waits for a confirmation")]
    NothingWaits { environment: String, cluster_type: String },
    #[error("a task of the hub ended early")]
    Interrupted,
}

impl PublishError {
    pub fn next(&self) -> Next {
        match self {
            PublishError::Remote(RemoteError::Denied { .. }) => Next::Stalled,
            PublishError::Push { source, .. } => match source {
                PushError::Refused { .. } => Next::Wait,
                PushError::Denied { .. } => Next::Stalled,
                PushError::Moved | PushError::Unreachable { .. } => Next::Retry(None),
            },
            PublishError::Forge { source, .. } => source.next(),
            PublishError::Store(StoreError::Corrupt(_) | StoreError::Migration(_) | StoreError::Foreign(_)) => {
                Next::Stalled
            }
            PublishError::Store(StoreError::Fenced(_)) | PublishError::NothingWaits { .. } => Next::Wait,
            PublishError::Remote(_)
            | PublishError::Restless { .. }
            | PublishError::Tree(_)
            | PublishError::Store(StoreError::Unavailable(_) | StoreError::Refused(_))
            | PublishError::Interrupted => Next::Retry(None),
        }
    }

    pub fn hint(&self) -> Option<String> {
        match self {
            PublishError::Push { source: PushError::Refused { .. }, .. } => Some(
                "a protected branch takes pull requests only: set `publish = \"pull-request\"` for the environment"
                    .to_owned(),
            ),
            PublishError::Push { source: PushError::Denied { .. }, .. } => {
                Some("the credential of that address needs the right to write to the repository".to_owned())
            }
            PublishError::Tree(TreeError::Write { .. }) => {
                Some("is the disk of the hub's data folder full? Nothing was published".to_owned())
            }
            PublishError::Forge { source, .. } => source.hint(),
            _ => None,
        }
    }
}
