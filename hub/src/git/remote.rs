//! The mirrors as publishing sees them.

use async_trait::async_trait;

use super::{MirrorError, Mirrors, PushError};
use crate::publish::{self, Remote, RemoteError, Seen};

#[async_trait]
impl Remote for Mirrors {
    async fn head(&self, repo: &str, branch: &str) -> Result<Seen, RemoteError> {
        let (mirror, head) = self.there(repo, branch).await.map_err(|error| remote_error(repo, error))?;
        Ok(Seen { mirror, head })
    }

    async fn fetch(&self, repo: &str, branch: &str) -> Result<Seen, RemoteError> {
        self.there(repo, branch).await.map_err(|error| remote_error(repo, error))?;
        self.fetch_now(repo).await.map_err(|error| remote_error(repo, error))?;
        Remote::head(self, repo, branch).await
    }

    async fn push(
        &self,
        repo: &str,
        commit: &str,
        branch: &str,
        expected: Option<&str>,
    ) -> Result<(), publish::PushError> {
        Mirrors::push(self, repo, commit, branch, expected).await.map_err(push_error)
    }

    async fn delete(&self, repo: &str, branch: &str, expected: &str) -> Result<(), publish::PushError> {
        Mirrors::delete(self, repo, branch, expected).await.map_err(push_error)
    }

    fn credential(&self, repo: &str) -> Option<publish::Secret> {
        let secret = Mirrors::credential(self, repo)?;
        Some(publish::Secret { username: secret.username, secret: secret.secret })
    }
}

fn remote_error(repo: &str, error: MirrorError) -> RemoteError {
    let repo = repo.to_owned();
    match error {
        MirrorError::Refused(_) => RemoteError::Denied { repo, source: Box::new(error) },
        MirrorError::Failing { .. } | MirrorError::Pending { .. } => {
            RemoteError::Unreachable { repo, source: Box::new(error) }
        }
    }
}

fn push_error(error: PushError) -> publish::PushError {
    match error {
        PushError::Moved => publish::PushError::Moved,
        PushError::Refused { message } => publish::PushError::Refused { message },
        PushError::Denied { message } => publish::PushError::Denied { message },
        PushError::Unreachable { message } => publish::PushError::Unreachable { message },
        PushError::NotAllowed(refused) => publish::PushError::Denied { message: refused.reason },
        PushError::Secret(error) => publish::PushError::Denied { message: super::transfer::chain(&error) },
        PushError::Program(error) => publish::PushError::Unreachable { message: super::transfer::chain(&error) },
    }
}
