//! Repositories without a sources file: those on this machine are read where they are, those behind https are fetched
//! into a cache of bare mirrors. Used by the CLI; the hub adds credentials and its list of hosts.

mod address;
pub mod mirror;

use std::env;
use std::fmt;
use std::fs;
use std::path::PathBuf;

use kedge_model::Source;

use crate::repositories::{RepoError, Repositories, Request};
use crate::tree::Tree;
use crate::tree::folder::{FolderTree, is_git_repository};
use crate::tree::git::GitRepository;
use address::Address;
use mirror::Mirror;

/// What is told before a repository is contacted: the sentence to show.
pub type Progress = dyn Fn(&str) + Send + Sync;

/// Opens repositories by their address.
pub struct Fetch {
    cache: PathBuf,
    base: Option<PathBuf>,
    progress: Option<Box<Progress>>,
}

impl Fetch {
    /// Mirrors are kept below `cache`, which is made when it is first needed.
    pub fn new(cache: impl Into<PathBuf>) -> Fetch {
        Fetch { cache: cache.into(), base: None, progress: None }
    }

    /// `$XDG_CACHE_HOME/kedge/git`, or `~/.cache/kedge/git`.
    pub fn default_cache() -> Option<PathBuf> {
        let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
        Some(cache.join("kedge").join("git"))
    }

    /// Where relative addresses such as `../app` begin: the control plane's folder.
    #[must_use]
    pub fn relative_to(mut self, base: impl Into<PathBuf>) -> Fetch {
        self.base = Some(base.into());
        self
    }

    #[must_use]
    pub fn on_progress(mut self, progress: impl Fn(&str) + Send + Sync + 'static) -> Fetch {
        self.progress = Some(Box::new(progress));
        self
    }

    fn open_local(&self, path: PathBuf, request: &Request) -> Result<Box<dyn Tree>, RepoError> {
        let path = match (&self.base, path.is_relative()) {
            (Some(base), true) => base.join(path),
            (None, true) => return Err(address::relative(&request.repo)),
            (_, false) => path,
        };
        if is_git_repository(&path) {
            let repo = GitRepository::open(&path)?;
            let revision = match (&request.commit, &request.tag, &request.branch) {
                (Some(commit), ..) => repo.commit(commit)?,
                (None, Some(tag), _) => repo.tag(tag)?,
                (None, None, Some(branch)) => repo.branch(branch)?,
                (None, None, None) => repo.head()?,
            };
            return Ok(Box::new(repo.tree(&revision, &request.repo)?));
        }
        if !fs::metadata(&path).is_ok_and(|found| found.is_dir()) {
            return Err(RepoError::Refused {
                reason: format!("there is no repository at `{}`", path.display()),
                hint: "fix the address, or list the repository in a sources file".to_owned(),
            });
        }
        if let Some(commit) = &request.commit {
            return Err(RepoError::Refused {
                reason: format!("`{}` is a plain folder, and commit {commit} is wanted of it", path.display()),
                hint: "make it a Git repository, or leave the commit out".to_owned(),
            });
        }
        let source = Source { repo: request.repo.clone(), revision: None };
        Ok(Box::new(FolderTree::new(path, source)))
    }
}

impl Repositories for Fetch {
    fn open(&self, request: &Request) -> Result<Box<dyn Tree>, RepoError> {
        match Address::parse(&request.repo)? {
            Address::Local(path) => self.open_local(path, request),
            Address::Remote(url) => {
                let say = |text: &str| {
                    if let Some(progress) = &self.progress {
                        progress(text);
                    }
                };
                let tree_of = |mirror: &Mirror| {
                    let revision = mirror.bring(request, &say)?;
                    let tree = mirror.repository().tree(&revision, &request.repo)?;
                    tree.list("")?;
                    Ok::<_, RepoError>(Box::new(tree))
                };
                let mirror = Mirror::at(&self.cache, &url, &request.repo)?;
                match tree_of(&mirror) {
                    Err(_) if mirror.is_damaged() => Ok(tree_of(&mirror.renew()?)?),
                    tree => Ok(tree?),
                }
            }
        }
    }
}

impl fmt::Debug for Fetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetch").field("cache", &self.cache).field("base", &self.base).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
