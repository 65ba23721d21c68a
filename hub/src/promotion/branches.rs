//! Commits of the hub on the branches of environments: the promoted commit of main, and what else should last (a Pin). Never
//! over somebody's newer push: fetched, built again, pushed again. Called by the promotion controller and by the API of any hub.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_platform::GitRepository;

use super::facts;
use crate::config::{Config, Forge as ForgeConfig};
use crate::platform::base;
use crate::publish::tree::{self, Author};
use crate::publish::{Change, PushError, Remote, RemoteError, Seen, TreeError, shown_repo};
use crate::store::now;

/// Where commits go and whose name they carry. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Branches {
    pub(super) remote: Arc<dyn Remote>,
    pub(super) forges: Arc<[ForgeConfig]>,
    author: (String, String),
}

/// A branch of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At<'a> {
    pub repo: &'a str,
    pub branch: &'a str,
}

/// What is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The BaseRepo `main` below `path` names this commit.
    Base { path: String, control_plane: String, main: String, commit: String },
    /// A file with this text; none: it goes.
    File { path: String, text: Option<String> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrote {
    /// The branch says it already.
    Unchanged,
    Pushed(String),
}

/// Typed by what happens next.
#[derive(Debug, thiserror::Error)]
pub enum BranchError {
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// Nobody pushed it yet.
    #[error("branch {branch} of {repo} doesn't exist")]
    NoBranch { repo: String, branch: String },
    /// A pull request may do it.
    #[error("branch {branch} of {repo} takes no push: {message}")]
    Protected { repo: String, branch: String, message: String },
    /// Tried again.
    #[error("branch {branch} of {repo} can't be pushed")]
    Push { repo: String, branch: String, source: PushError },
    #[error("branch {branch} of {repo} moved again and again while it was built")]
    Restless { repo: String, branch: String },
    /// Only a person should change what is written there.
    #[error("{0}")]
    Unclear(String),
    #[error("the commit can't be made")]
    Tree(#[from] TreeError),
    #[error("a task of the hub ended early")]
    Interrupted,
}

/// How often a branch may move under us.
const ATTEMPTS: usize = 5;

impl Branches {
    pub fn new(remote: Arc<dyn Remote>, config: &Config) -> Branches {
        let author = (config.git.author_name.clone(), config.git.author_email.clone());
        Branches { remote, forges: config.git.forges.clone().into(), author }
    }

    /// Commits the edit to the branch.
    pub async fn write(&self, at: At<'_>, edit: &Edit, message: &str) -> Result<Wrote, BranchError> {
        for _ in 0..ATTEMPTS {
            let seen = self.remote.fetch(at.repo, at.branch).await?;
            let Some(head) = seen.head.clone() else { return Err(at.missing()) };
            let Some(commit) = self.build(&seen, &head, edit, message).await? else { return Ok(Wrote::Unchanged) };
            match self.remote.push(at.repo, &commit, at.branch, Some(&head)).await {
                Ok(()) => return Ok(Wrote::Pushed(commit)),
                Err(PushError::Moved) => {
                    tracing::warn!(branch = at.branch, "the branch moved meanwhile: building on its new head");
                }
                Err(PushError::Refused { message }) => {
                    let (repo, branch) = (shown_repo(at.repo), at.branch.to_owned());
                    return Err(BranchError::Protected { repo, branch, message });
                }
                Err(source) => return Err(at.unpushed(source)),
            }
        }
        Err(BranchError::Restless { repo: shown_repo(at.repo), branch: at.branch.to_owned() })
    }

    /// A commit with the edit on top of a head, in the mirror. None: it says so already.
    pub(super) async fn build(
        &self,
        seen: &Seen,
        head: &str,
        edit: &Edit,
        message: &str,
    ) -> Result<Option<String>, BranchError> {
        let (name, email) = self.author.clone();
        let author = Author { name, email, seconds: now().0.div_euclid(1000) };
        let (mirror, head, edit, message) = (seen.mirror.clone(), head.to_owned(), edit.clone(), message.to_owned());
        let work = move || {
            let repo = tree::open(&mirror)?;
            let Some((path, change)) = edit.change(&GitRepository::from_repo(repo.clone()), &head)? else {
                return Ok(None);
            };
            let parent = tree::commit_id(&head)?;
            let root = tree::tree_of(&repo, parent)?;
            let made = tree::build(&repo, Some(root), &BTreeMap::from([(path, change)]))?;
            if made == root {
                return Ok(None);
            }
            Ok(Some(tree::commit(&repo, made, Some(parent), &message, &author)?.to_string()))
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| BranchError::Interrupted)?
    }
}

impl At<'_> {
    pub(super) fn missing(&self) -> BranchError {
        BranchError::NoBranch { repo: shown_repo(self.repo), branch: self.branch.to_owned() }
    }

    pub(super) fn unpushed(&self, source: PushError) -> BranchError {
        BranchError::Push { repo: shown_repo(self.repo), branch: self.branch.to_owned(), source }
    }
}

impl Edit {
    /// The file and what becomes of it, on top of a commit. None: nothing is to be done.
    fn change(&self, repo: &GitRepository, head: &str) -> Result<Option<(String, Change)>, BranchError> {
        let write = |path: String, text: String| -> Result<_, BranchError> {
            let id = tree::blob_id(&text)?;
            Ok(Some((path, Change::Write { text: text.into(), id })))
        };
        match self {
            Edit::File { path, text: Some(text) } => write(path.clone(), text.clone()),
            Edit::File { path, text: None } => match facts::text_of(repo, head, path) {
                Some(_) => Ok(Some((path.clone(), Change::Delete))),
                None => Ok(None),
            },
            Edit::Base { path, control_plane, main, commit } => {
                match facts::find_in(repo, head, "", path, None).map_err(BranchError::Unclear)? {
                    None => {
                        let folder = path.trim_matches(['.', '/']);
                        let file = match folder.is_empty() {
                            true => base::FILE.to_owned(),
                            false => format!("{folder}/{}", base::FILE),
                        };
                        if facts::text_of(repo, head, &file).is_some() {
                            return Err(BranchError::Unclear(format!("{file} is there and holds no BaseRepo main")));
                        }
                        write(file, base::fresh(control_plane, main, commit))
                    }
                    Some((_, found)) if found.commit.as_deref() == Some(commit) => Ok(None),
                    Some((file, _)) => {
                        let text = facts::text_of(repo, head, &file).unwrap_or_default();
                        match base::with_commit(&text, commit) {
                            Some(text) => write(file, text),
                            None => Err(BranchError::Unclear(format!(
                                "the commit in {file} can't be changed without changing more: write `commit: {commit}` by hand"
                            ))),
                        }
                    }
                }
            }
        }
    }
}

impl BranchError {
    /// The way out.
    pub fn hint(&self) -> Option<String> {
        match self {
            BranchError::NoBranch { .. } => Some("push the environment's branch".to_owned()),
            BranchError::Push { source: PushError::Denied { .. }, .. } => {
                Some("the credential of that address needs the right to write to the repository".to_owned())
            }
            BranchError::Tree(TreeError::Write { .. }) => Some("is the disk of the hub's data folder full?".to_owned()),
            _ => None,
        }
    }
}
