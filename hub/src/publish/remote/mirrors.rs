//! The mirrors as publishing sees them.

use async_trait::async_trait;
use kedge_hub_types::causes::chain;

use super::{PushError, Remote, RemoteError, Seen};
use crate::git::{self, Look, MirrorError, Mirrors, Secret, Trust};
use crate::publish::shown_repo;

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
        match self.ask(repo, branch).await {
            Ok((mirror, head)) => Ok(Seen { mirror, head }),
            Err(error) => Err(remote_error(repo, error)),
        }
    }

    async fn push(&self, repo: &str, commit: &str, branch: &str, expected: Option<&str>) -> Result<(), PushError> {
        Mirrors::push(self, repo, commit, branch, expected).await.map_err(push_error)
    }

    async fn delete(&self, repo: &str, branch: &str, expected: &str) -> Result<(), PushError> {
        Mirrors::delete(self, repo, branch, expected).await.map_err(push_error)
    }

    fn credential(&self, repo: &str) -> Option<Secret> {
        Mirrors::credential(self, repo)
    }
}

fn remote_error(repo: &str, error: MirrorError) -> RemoteError {
    let repo = shown_repo(repo);
    match error {
        MirrorError::Refused(_) => RemoteError::Denied { repo, source: Box::new(error) },
        MirrorError::Failing { .. } | MirrorError::Pending { .. } => {
            RemoteError::Unreachable { repo, source: Box::new(error) }
        }
    }
}

fn push_error(error: git::PushError) -> PushError {
    match error {
        git::PushError::Moved => PushError::Moved,
        git::PushError::Refused { message } => PushError::Refused { message },
        git::PushError::Denied { message } => PushError::Denied { message },
        git::PushError::Unreachable { message } => PushError::Unreachable { message },
        git::PushError::NotAllowed(refused) => PushError::Denied { message: refused.reason },
        git::PushError::Secret(error) => PushError::Denied { message: chain(&error) },
        git::PushError::Program(error) => PushError::Unreachable { message: chain(&error) },
    }
}
