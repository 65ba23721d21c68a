//! Bare mirrors of every repository the platform names, kept fresh by polling and webhooks; credentials; pushing.
//! Owns the folder of mirrors and one task for each repository. Asked by `platform`, `publish`, `pack` and the API.

pub mod access;
pub mod credential;
mod find;
mod followed_ref;
mod mirrors;
mod news;
mod program;
pub mod push;
pub mod repository;
#[cfg(test)]
pub(crate) mod testing;
mod transfer;
pub mod webhook;

use std::collections::BTreeMap;
use std::path::PathBuf;

use kedge_hub_types::git::{Failure, RefName, Tracked};
use kedge_model::wire::Timestamp;
use kedge_platform::RepoKey;

pub use access::Trust;
pub use address::Refused;
pub use credential::Secret;
pub use kedge_model::address;
pub use mirrors::Mirrors;
pub use push::PushError;

/// A commit in a mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub repo: String,
    /// Or tag; empty for a commit that was named by its id.
    pub branch: String,
    pub commit: String,
    /// The bare mirror that holds it.
    pub path: PathBuf,
}

/// Something about a repository is different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoChange {
    pub key: RepoKey,
    pub repo: String,
    /// The platform's own mirror; otherwise that of workspaces, which sources of applications are read from.
    pub of_platform: bool,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Moved {
        reference: RefName,
        commit: String,
        forced: bool,
    },
    Failing,
    Recovered,
    /// Its server told of something that moves nothing, such as a closed pull request.
    Told,
}

/// A repository for people to see.
#[derive(Clone, Debug, PartialEq)]
pub struct RepoStatus {
    pub key: RepoKey,
    pub url: String,
    pub refs: BTreeMap<RefName, Tracked>,
    /// The last time that the server answered.
    pub last_good: Option<Timestamp>,
    pub failing: Option<Failure>,
    pub next_try: Option<Timestamp>,
}

/// Typed by what happens next.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// The address has to be changed, or the hub's list.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It is tried again; a change is told when it works.
    #[error("{repo} can't be fetched: {}", failure.error)]
    Failing { repo: String, failure: Failure },
    /// The first fetch goes on; a change is told when it ends.
    #[error("{repo} is being fetched for the first time")]
    Pending { repo: String },
}

#[derive(Debug, thiserror::Error)]
pub enum GitConfigError {
    #[error("the hub's configuration of Git can't be used")]
    Address(#[from] Refused),
    #[error("the folder of mirrors can't be made")]
    Folder(#[source] std::io::Error),
}

/// What is known without asking anybody.
#[derive(Debug)]
pub enum Look {
    Known { head: Head, failing: Option<Failure> },
    Failing(MirrorError),
    NotYet,
}

impl RepoStatus {
    pub fn is_failing(&self) -> bool {
        self.failing.is_some() || self.refs.values().any(|tracked| tracked.failing.is_some())
    }
}

impl MirrorError {
    pub fn hint(&self) -> Option<String> {
        match self {
            MirrorError::Refused(refused) => Some(refused.hint.clone()),
            MirrorError::Failing { failure, .. } => Some(failure.hint.clone()).filter(|hint| !hint.is_empty()),
            MirrorError::Pending { .. } => Some("it continues by itself".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
