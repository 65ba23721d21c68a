//! What publishing needs of Git servers: branches' heads in a bare mirror, pushes that never overwrite, and credentials
//! for the server's REST API. A trait, so that tests publish between two folders.

mod mirrors;

use std::path::PathBuf;

use async_trait::async_trait;

use crate::git::Secret;

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

#[cfg(test)]
mod tests;
