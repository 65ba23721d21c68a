//! What publishing needs of Git servers: branches' heads in a bare mirror, pushes that never overwrite, and credentials
//! for the server's REST API. A trait, so that tests publish between two folders.

use std::path::PathBuf;

use async_trait::async_trait;

use super::message::shown_repo;
use crate::git::{self, Look, MirrorError, Mirrors, Secret, Trust};

/// A mirror, and where a branch stands in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The bare repository that holds the commit and takes new objects.
    pub mirror: PathBuf,
    /// None: the server has no such branch.
    pub head: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    #[error("{repo} can't be fetched")]
    Unreachable { repo: String, source: Box<dyn std::error::Error + Send + Sync> },
    /// Not an address that this hub fetches from, or a credential that the server doesn't take.
    #[error("{repo} may not be fetched")]
    Denied { repo: String, source: Box<dyn std::error::Error + Send + Sync> },
}

#[derive(Debug, thiserror::Error)]
pub enum PushError {
    #[error("the branch moved meanwhile")]
    Moved,
    /// The server said no: a protected branch, a hook.
    #[error("the server refused the push: {message}")]
    Refused { message: String },
    #[error("the credential isn't accepted: {message}")]
    Denied { message: String },
    #[error("the server can't be reached: {message}")]
    Unreachable { message: String },
}

#[async_trait]
pub trait Remote: Send + Sync + std::fmt::Debug {
    /// As last seen; asked for when it was never seen.
    async fn head(&self, repo: &str, branch: &str) -> Result<Seen, RemoteError>;

    /// As the server says now.
    async fn fetch(&self, repo: &str, branch: &str) -> Result<Seen, RemoteError>;

    /// Moves the branch to a commit of the mirror, if it is where we expect it (None: nowhere).
    async fn push(&self, repo: &str, commit: &str, branch: &str, expected: Option<&str>) -> Result<(), PushError>;

    /// Deletes the branch, if it is where we expect it.
    async fn delete(&self, repo: &str, branch: &str, expected: &str) -> Result<(), PushError>;

    fn credential(&self, repo: &str) -> Option<Secret>;
}

#[async_trait]
impl Remote for Mirrors {
    /// Followed from now on. While the server is away what was last seen is good enough: a push notices if it isn't.
    async fn head(&self, repo: &str, branch: &str) -> Result<Seen, RemoteError> {
        let known = Mirrors::head(self, repo, branch, Trust::Platform).await;
        let doubtful = match self.look(repo, Some(branch), None, Trust::Platform) {
            Look::Known { failing, .. } => failing.is_some(),
            _ => true,
        };
        match (known, doubtful) {
            (Ok(head), false) => Ok(Seen { mirror: head.path, head: Some(head.commit) }),
            // Deleted, emptied, or the server is away.
            (Ok(head), true) => {
                let last = Seen { mirror: head.path, head: Some(head.commit) };
                Ok(self.fetch(repo, branch).await.unwrap_or(last))
            }
            (Err(_), _) => self.fetch(repo, branch).await,
        }
    }

    async fn fetch(&self, repo: &str, branch: &str) -> Result<Seen, RemoteError> {
        match self.branch_now(repo, branch).await {
            Ok(now) => Ok(Seen { mirror: now.path, head: now.commit }),
            Err(error) => {
                let repo = shown_repo(repo);
                Err(match &error {
                    MirrorError::Refused(_) => RemoteError::Denied { repo, source: Box::new(error) },
                    MirrorError::Failing { .. } | MirrorError::Pending { .. } => {
                        RemoteError::Unreachable { repo, source: Box::new(error) }
                    }
                })
            }
        }
    }

    async fn push(&self, repo: &str, commit: &str, branch: &str, expected: Option<&str>) -> Result<(), PushError> {
        Mirrors::push(self, repo, commit, branch, expected).await.map_err(PushError::from)
    }

    async fn delete(&self, repo: &str, branch: &str, expected: &str) -> Result<(), PushError> {
        self.delete_branch(repo, branch, expected).await.map_err(PushError::from)
    }

    fn credential(&self, repo: &str) -> Option<Secret> {
        Mirrors::credential(self, repo)
    }
}

/// What `git` and ssh say when a credential isn't enough.
const DENIALS: [&str; 6] = [
    "error: 401",
    "error: 403",
    "authentication failed",
    "permission denied",
    "access denied",
    "could not read username",
];

impl From<git::PushError> for PushError {
    fn from(error: git::PushError) -> PushError {
        match error {
            git::PushError::Moved => PushError::Moved,
            git::PushError::Refused { message } => PushError::Refused { message },
            git::PushError::Unreachable { message } => {
                let text = message.to_lowercase();
                match DENIALS.iter().any(|words| text.contains(words)) {
                    true => PushError::Denied { message },
                    false => PushError::Unreachable { message },
                }
            }
            git::PushError::NotAllowed(refused) => PushError::Denied { message: refused.to_string() },
            git::PushError::Secret(error) => PushError::Denied { message: error.to_string() },
            git::PushError::Program(error) => PushError::Unreachable { message: error.to_string() },
        }
    }
}

#[cfg(test)]
mod tests;
