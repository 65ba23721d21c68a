//! Where the repositories that a platform names are found: the trait that `load` asks, and the address of a repository
//! in the form that all its spellings share.

use std::fmt;
use std::path::Path;

pub use kedge_model::address::local_path;
use kedge_model::kinds::{DeliverySource, SourceRef};

use crate::cache::Cache;
use crate::tree::git::GitError;
use crate::tree::{Tree, TreeError};

/// Opens repositories. `Sources` never leaves the machine, `Fetch` does.
pub trait Repositories {
    fn open(&self, request: &Request) -> Result<Box<dyn Tree>, RepoError>;

    /// Where what was read before is remembered, for those who read again and again.
    fn cache(&self) -> Option<&Cache> {
        None
    }

    /// Whether this folder is known to be the repository of that address.
    fn is_at(&self, _repo: &str, _folder: &Path) -> bool {
        false
    }
}

/// A repository as an object names it. An empty branch is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    pub repo: String,
    pub branch: Option<String>,
    pub tag: Option<String>,
    pub commit: Option<String>,
}

/// A repository's address without what two spellings of it may differ in: a trailing `/` or `.git`, the case of
/// scheme and host, the scheme's own port, `file://` before a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoKey(String);

#[derive(Debug, thiserror::Error)]
pub enum RepoError {
    #[error("the sources file has no entry for {request}")]
    NoSource { request: String, hint: String },
    #[error("the folder `{path}` that the sources file names for {repo} does not exist")]
    SourceMissing { path: String, repo: String },
    #[error("{reason}")]
    Refused { reason: String, hint: String },
    #[error("{repo} could not be fetched")]
    Fetch { repo: String, hint: Option<String>, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("the cache `{path}` can't be used")]
    Cache { path: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Tree(#[from] TreeError),
}

impl Request {
    pub fn new(repo: &str, branch: &str, commit: Option<&str>) -> Request {
        let given = |text: &str| Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned);
        Request { repo: repo.trim().to_owned(), branch: given(branch), tag: None, commit: commit.and_then(given) }
    }

    /// What a Delivery reads.
    pub fn of_source(source: &DeliverySource) -> Request {
        match &source.reference {
            SourceRef::Branch(branch) => Request::new(&source.repo, branch, None),
            SourceRef::Tag(tag) => Request { tag: Some(tag.clone()), ..Request::new(&source.repo, "", None) },
            SourceRef::Commit(commit) => Request::new(&source.repo, "", Some(commit)),
        }
    }
}

impl RepoKey {
    pub fn new(repo: &str) -> RepoKey {
        let repo = repo.trim();
        let key = match repo.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("file") => bare(&decoded(rest)).to_owned(),
            Some((scheme, rest)) => {
                let scheme = scheme.to_ascii_lowercase();
                let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
                let (user, host) = match authority.rsplit_once('@') {
                    Some((user, host)) => (format!("{user}@"), host.to_ascii_lowercase()),
                    None => (String::new(), authority.to_ascii_lowercase()),
                };
                let port = if scheme == "https" { ":443" } else { ":80" };
                let host = host.strip_suffix(port).unwrap_or(&host);
                format!("{scheme}://{user}{host}/{}", bare(path))
            }
            None => match repo.split_once(':') {
                // `git@host:path`, the short form of ssh.
                Some((host, path)) if !host.contains('/') => format!("{}:{}", host.to_ascii_lowercase(), bare(path)),
                _ => bare(repo).to_owned(),
            },
        };
        RepoKey(key)
    }
}

/// `%20` is a space in a URL, and only there.
fn decoded(path: &str) -> String {
    percent_encoding::percent_decode_str(path).decode_utf8_lossy().into_owned()
}

fn bare(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/')
}

impl RepoError {
    pub fn hint(&self) -> Option<String> {
        match self {
            RepoError::NoSource { hint, .. } | RepoError::Refused { hint, .. } => Some(hint.clone()),
            RepoError::SourceMissing { .. } => {
                Some("fix `path` in the sources file; it is relative to that file".to_owned())
            }
            RepoError::Fetch { hint, .. } => hint.clone(),
            RepoError::Cache { .. } => {
                Some("delete it, or set XDG_CACHE_HOME to a folder that can be written".to_owned())
            }
            RepoError::Git(error) => error.hint(),
            RepoError::Tree(error) => error.hint(),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.repo)?;
        match (&self.commit, &self.tag, &self.branch) {
            (Some(commit), ..) => write!(f, " at commit {commit}"),
            (None, Some(tag), _) => write!(f, " at tag {tag}"),
            (None, None, Some(branch)) => write!(f, " on branch {branch}"),
            (None, None, None) => Ok(()),
        }
    }
}

impl fmt::Display for RepoKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_repository_are_the_same() {
        for (one, other) in [
            ("file:///a%20b/100%25", "/a b/100%"),
            ("https://github.com/Org/Repo", "HTTPS://GitHub.com/Org/Repo.git"),
            ("https://github.com/org/repo", "https://github.com:443/org/repo/"),
            ("https://github.com/org/repo.git/", "https://github.com/org/repo"),
            ("file:///srv/git/a.git", "/srv/git/a/"),
            ("git@GitHub.com:org/repo.git", "git@github.com:org/repo"),
        ] {
            assert_eq!(RepoKey::new(one), RepoKey::new(other));
        }
    }

    #[test]
    fn different_repositories_stay_different() {
        for (one, other) in [
            ("https://github.com/org/repo", "https://github.com/org/Repo"),
            ("https://github.com/org/repo", "http://github.com/org/repo"),
            ("https://github.com:8443/org/repo", "https://github.com/org/repo"),
            ("https://a@github.com/org/repo", "https://github.com/org/repo"),
            ("/srv/a", "/srv/b"),
        ] {
            assert_ne!(RepoKey::new(one), RepoKey::new(other));
        }
    }

    #[test]
    fn an_empty_branch_or_commit_is_none() {
        let request = Request::new("r", " ", Some(""));
        assert_eq!(request, Request { repo: "r".to_owned(), ..Request::default() });
        assert_eq!(Request::new("r", "dev", None).to_string(), "r on branch dev");
        assert_eq!(Request::new("r", "dev", Some("abc")).to_string(), "r at commit abc");
    }
}
