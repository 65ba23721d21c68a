//! The mirrors as publishing sees them.

use async_trait::async_trait;

use super::{Failure, Look, MirrorError, Mirrors, PushError, RefName, Secret, Trust};
use crate::causes::chain;
use crate::publish::{self, Remote, RemoteError, Seen, shown_repo};
use crate::store::now;

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

    /// Good or not, and not followed because of that: a branch of ours that isn't there fails nobody.
    async fn fetch(&self, repo: &str, branch: &str) -> Result<Seen, RemoteError> {
        let asked = async {
            let repository = self.repository(repo, &Trust::Platform)?;
            let want = RefName::Branch(branch.to_owned()).want()?;
            match repository.bring(self.around(), want).await {
                Ok(found) => {
                    let head = found.map(|found| found.commit.to_string());
                    Ok(Seen { mirror: repository.path.clone(), head })
                }
                Err(fault) => {
                    let (error, hint, firm) = (fault.error, fault.hint, fault.firm);
                    let failure = Failure { error, hint, since: now(), attempts: 1, firm };
                    Err(MirrorError::Failing { repo: repo.to_owned(), failure })
                }
            }
        };
        asked.await.map_err(|error| remote_error(repo, error))
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

fn push_error(error: PushError) -> publish::PushError {
    match error {
        PushError::Moved => publish::PushError::Moved,
        PushError::Refused { message } => publish::PushError::Refused { message },
        PushError::Denied { message } => publish::PushError::Denied { message },
        PushError::Unreachable { message } => publish::PushError::Unreachable { message },
        PushError::NotAllowed(refused) => publish::PushError::Denied { message: refused.reason },
        PushError::Secret(error) => publish::PushError::Denied { message: chain(&error) },
        PushError::Program(error) => publish::PushError::Unreachable { message: chain(&error) },
    }
}
