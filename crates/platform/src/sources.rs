//! The file of `--sources`: where the repositories that a platform names are found on this machine. With it nothing is
//! fetched, so that a render is the same everywhere.

mod parse;

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use kedge_model::{Problem, Source};

use crate::repositories::{RepoError, RepoKey, Repositories, Request};
use crate::tree::folder::{FolderTree, is_git_repository};
use crate::tree::git::GitRepository;
use crate::tree::{FILE_LIMIT, Tree};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// As the user named it.
    file: String,
    entries: Vec<SourceEntry>,
}

/// A repository, or one branch or commit of it, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceEntry {
    pub repo: String,
    pub branch: Option<String>,
    pub commit: Option<String>,
    /// A folder or a Git repository.
    pub path: PathBuf,
    /// The line that the entry begins on.
    pub line: u32,
}

#[derive(Debug, thiserror::Error)]
pub enum SourcesError {
    #[error("the sources file `{path}` can't be read")]
    Unreadable { path: String, source: std::io::Error },
    #[error("the sources file `{path}` has {size} bytes, over the limit of {FILE_LIMIT}")]
    TooLarge { path: String, size: u64 },
    #[error("the sources file `{path}` has {} {}", problems.len(), if problems.len() == 1 { "error" } else { "errors" })]
    Invalid { path: String, problems: Vec<Problem> },
}

impl SourcesError {
    pub fn hint(&self) -> Option<String> {
        match self {
            SourcesError::Unreadable { .. } => Some("name a file that lists repositories".to_owned()),
            SourcesError::TooLarge { .. } => Some("is this the right file?".to_owned()),
            SourcesError::Invalid { .. } => Some(format!(
                "a sources file looks like this:\n{}",
                entry_text("https://host/org/repo", Some("main"), None)
            )),
        }
    }
}

impl Sources {
    pub fn read(path: &Path) -> Result<Sources, SourcesError> {
        let shown = path.display().to_string();
        let unreadable = |source| SourcesError::Unreadable { path: shown.clone(), source };
        let file = File::open(path).map_err(unreadable)?;
        let size = file.metadata().map_err(unreadable)?.len();
        if size > FILE_LIMIT {
            return Err(SourcesError::TooLarge { path: shown, size });
        }
        let mut bytes = Vec::new();
        file.take(FILE_LIMIT).read_to_end(&mut bytes).map_err(unreadable)?;
        let base = path.parent().unwrap_or(Path::new(""));
        Sources::parse(&bytes, &shown, base).map_err(|problems| SourcesError::Invalid { path: shown, problems })
    }

    /// `file` is what problems call it; paths in it are relative to `base`.
    pub fn parse(bytes: &[u8], file: &str, base: &Path) -> Result<Sources, Vec<Problem>> {
        let entries = parse::entries(bytes, file, base)?;
        Ok(Sources { file: file.to_owned(), entries })
    }

    pub fn entries(&self) -> &[SourceEntry] {
        &self.entries
    }

    /// A request with a commit takes the entry with that commit, or an entry without a commit whose Git repository
    /// holds it: one with another commit was meant for that one. One with a tag takes an entry whose Git repository has
    /// the tag. A request without takes the entry of its branch, or the only entry of that repository.
    pub fn find(&self, request: &Request) -> Option<&SourceEntry> {
        let key = RepoKey::new(&request.repo);
        let same: Vec<&SourceEntry> = self.entries.iter().filter(|entry| RepoKey::new(&entry.repo) == key).collect();
        if let Some(commit) = &request.commit {
            let exact = same.iter().find(|entry| is_commit(entry.commit.as_deref(), commit));
            return exact.or_else(|| same.iter().find(|entry| entry.holds(commit))).copied();
        }
        if let Some(tag) = &request.tag
            && let Some(entry) = same.iter().find(|entry| entry.has_tag(tag))
        {
            return Some(entry);
        }
        let of_branch: Vec<&SourceEntry> =
            same.iter().filter(|entry| entry.branch.is_some() && entry.branch == request.branch).copied().collect();
        let head = of_branch.iter().find(|entry| entry.commit.is_none());
        match (head, of_branch.as_slice(), same.as_slice()) {
            (Some(head), _, _) => Some(head),
            (None, [only], _) | (None, [], [only]) => Some(only),
            _ => None,
        }
    }

    fn missing(&self, request: &Request) -> RepoError {
        let text = entry_text(&request.repo, request.branch.as_deref(), request.commit.as_deref());
        let file = if self.file.is_empty() { "the sources file" } else { &self.file };
        RepoError::NoSource { request: request.to_string(), hint: format!("add an entry to {file}:\n{text}") }
    }
}

impl Repositories for Sources {
    fn open(&self, request: &Request) -> Result<Box<dyn Tree>, RepoError> {
        let entry = self.find(request).ok_or_else(|| self.missing(request))?;
        if !fs::metadata(&entry.path).is_ok_and(|found| found.is_dir()) {
            return Err(RepoError::SourceMissing {
                path: entry.path.display().to_string(),
                repo: request.repo.clone(),
            });
        }
        if !is_git_repository(&entry.path) {
            let source = Source { repo: request.repo.clone(), revision: entry.revision(request) };
            return Ok(Box::new(FolderTree::new(&entry.path, source)));
        }
        let repo = GitRepository::open(&entry.path)?;
        let commit = request.commit.as_ref().or(entry.commit.as_ref());
        let branch = entry.branch.as_ref().or(request.branch.as_ref());
        let mut revision = match (commit, &request.tag, branch) {
            (Some(commit), ..) => repo.commit(commit)?,
            (None, Some(tag), _) => repo.tag(tag)?,
            (None, None, Some(branch)) => repo.branch(branch)?,
            (None, None, None) => repo.head()?,
        };
        if revision.name.is_none() {
            revision.name = request.branch.clone().filter(|_| request.commit.is_none());
        }
        Ok(Box::new(repo.tree(&revision, &request.repo)?))
    }

    fn is_at(&self, repo: &str, folder: &Path) -> bool {
        let (key, here) = (RepoKey::new(repo), fs::canonicalize(folder).ok());
        self.entries.iter().any(|entry| {
            RepoKey::new(&entry.repo) == key && here.is_some() && fs::canonicalize(&entry.path).ok() == here
        })
    }
}

impl SourceEntry {
    /// What a folder stands for, as far as it is known.
    fn revision(&self, request: &Request) -> Option<String> {
        let commit = self.commit.as_ref()?;
        Some(match self.branch.as_ref().or(request.branch.as_ref()) {
            Some(branch) => format!("{branch}@sha1:{commit}"),
            None => format!("sha1:{commit}"),
        })
    }

    fn has_tag(&self, tag: &str) -> bool {
        self.commit.is_none()
            && is_git_repository(&self.path)
            && GitRepository::open(&self.path).is_ok_and(|repo| repo.tag(tag).is_ok())
    }

    fn holds(&self, commit: &str) -> bool {
        self.commit.is_none()
            && is_git_repository(&self.path)
            && GitRepository::open(&self.path).is_ok_and(|repo| repo.has_commit(commit))
    }
}

fn is_commit(entry: Option<&str>, wanted: &str) -> bool {
    entry.is_some_and(|entry| entry.eq_ignore_ascii_case(wanted))
}

/// The lines that a person adds.
fn entry_text(repo: &str, branch: Option<&str>, commit: Option<&str>) -> String {
    let mut text = format!("sources:\n- repo: {}\n", scalar(repo));
    match (commit, branch) {
        (Some(commit), _) => text.push_str(&format!("  commit: \"{commit}\"\n")),
        (None, Some(branch)) => text.push_str(&format!("  branch: {}\n", scalar(branch))),
        (None, None) => {}
    }
    text.push_str("  path: ./folder-or-git-repository");
    text
}

/// Plain where it surely stays a string, else in quotes.
fn scalar(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-@+~".contains(c) || c == ':')
        && !text.ends_with(':')
        && !["true", "false", "yes", "no", "on", "off", "null", "y", "n"].contains(&text.to_ascii_lowercase().as_str());
    match plain {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "''")),
    }
}

#[cfg(test)]
mod tests;
