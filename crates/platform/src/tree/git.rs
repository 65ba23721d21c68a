//! A commit of a Git repository as a tree: objects are read where they are, with no work tree and no `git` program.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use gix::ObjectId;
use gix::objs::tree::EntryKind as GitKind;
use kedge_model::Source;

use super::{BEGINNING_LIMIT, ContentId, ENTRY_LIMIT, Entry, EntryKind, Tree, TreeError, chain, join};
use crate::tree::folder::is_git_repository;

/// A tree object with more entries than we walk has more bytes than this.
const TREE_LIMIT: u64 = 32 * 1024 * 1024;

/// Objects are unpacked whole, also for their beginning; what is larger stays packed.
const BLOB_LIMIT: u64 = 64 * 1024 * 1024;

/// A first line is a line; what is longer isn't shown.
const SUBJECT_LIMIT: usize = 200;

/// Where branches are: our own, and those that a clone knows of.
const BRANCHES: [&str; 2] = ["refs/heads/", "refs/remotes/origin/"];
const TAGS: &str = "refs/tags/";

/// An open repository, bare or not. Reads no configuration but its own.
#[derive(Debug)]
pub struct GitRepository {
    repo: gix::Repository,
}

/// A commit that a revision stands for, and the branch or tag that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    pub name: Option<String>,
    pub commit: ObjectId,
}

/// The first line of a commit, who wrote it, and when (seconds since 1970).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitNote {
    pub subject: String,
    pub author: String,
    /// The author's; may be empty.
    pub mail: String,
    pub time: i64,
}

impl CommitNote {
    /// `Name <mail>`: who it was, also for those who know only one of both.
    pub fn who(&self) -> String {
        match self.mail.is_empty() {
            true => self.author.clone(),
            false => format!("{} <{}>", self.author, self.mail),
        }
    }
}

#[derive(Debug)]
pub struct GitTree {
    repo: gix::Repository,
    root: ObjectId,
    source: Arc<Source>,
    /// What the walk has met, so that a read needn't start at the root again.
    known: RefCell<BTreeMap<String, (ObjectId, EntryKind)>>,
}

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("`{path}` is not a Git repository")]
    NotARepository { path: String, source: Box<gix::Error> },
    #[error("`{path}` can't be opened as a Git repository")]
    Damaged { path: String, source: Box<gix::Error> },
    #[error("`{path}` uses SHA-256, which isn't supported")]
    Sha256 { path: String },
    #[error("there is no {wanted} `{revision}` in {place}")]
    NoRevision { wanted: &'static str, revision: String, place: String, branches: Vec<String> },
    #[error("the current branch of {place} has no commit")]
    Empty { place: String },
    #[error("the commit {commit} of {place} can't be read")]
    Commit { commit: String, place: String, source: Box<gix::Error> },
}

impl GitError {
    fn unopened(path: &Path, error: gix::Error) -> GitError {
        let (here, source) = (path.display().to_string(), Box::new(error));
        match chain(&source).to_lowercase() {
            _ if !is_git_repository(path) => GitError::NotARepository { path: here, source },
            text if text.contains("sha256") => GitError::Sha256 { path: here },
            _ => GitError::Damaged { path: here, source },
        }
    }

    pub fn hint(&self) -> Option<String> {
        match self {
            GitError::NotARepository { .. } => Some("name a folder with a Git repository, bare or not".to_owned()),
            GitError::Sha256 { .. } => {
                Some("`git fast-export` and `git fast-import` make one with SHA-1 of it".to_owned())
            }
            GitError::NoRevision { branches, .. } if !branches.is_empty() => {
                Some(format!("its branches are {}", branches.join(", ")))
            }
            GitError::NoRevision { .. } => Some("it has no branches".to_owned()),
            GitError::Empty { .. } => Some("commit something first, or name a revision".to_owned()),
            GitError::Damaged { .. } | GitError::Commit { .. } => {
                Some("`git fsck` says what is wrong with the repository".to_owned())
            }
        }
    }
}

impl GitRepository {
    pub fn open(path: &Path) -> Result<GitRepository, GitError> {
        let mut repo = gix::open::Options::isolated()
            .open(path)
            .map(gix::Repository::from)
            .map_err(|error| GitError::unopened(path, error))?;
        repo.object_cache_size_if_unset(1024 * 1024);
        Ok(GitRepository { repo })
    }

    pub fn from_repo(repo: gix::Repository) -> GitRepository {
        GitRepository { repo }
    }

    /// A branch, a branch of `origin`, a tag, `HEAD`, or a commit by its full or abbreviated id.
    pub fn resolve(&self, revision: &str) -> Result<Revision, GitError> {
        if revision == "HEAD" {
            return self.head();
        }
        if let Some(found) = self.named(revision, &[BRANCHES[0], BRANCHES[1], TAGS]) {
            return Ok(found);
        }
        let parsed = self.repo.rev_parse_single(revision).ok().and_then(|id| id.object().ok());
        match parsed.and_then(|object| object.peel_to_commit().ok()) {
            Some(commit) => Ok(Revision { name: None, commit: commit.id }),
            None => Err(self.missing("branch, tag or commit", revision)),
        }
    }

    /// A branch, here or of `origin`, and nothing else: when it was deleted, a tag or an abbreviated id of the same
    /// letters isn't what was meant.
    pub fn branch(&self, name: &str) -> Result<Revision, GitError> {
        self.named(name, &BRANCHES).ok_or_else(|| self.missing("branch", name))
    }

    /// A tag, and nothing else.
    pub fn tag(&self, name: &str) -> Result<Revision, GitError> {
        self.named(name, &[TAGS]).ok_or_else(|| self.missing("tag", name))
    }

    /// A commit by its full id, which a branch can't hide, or else as `resolve` finds it.
    pub fn commit(&self, commit: &str) -> Result<Revision, GitError> {
        match ObjectId::from_hex(commit.as_bytes()) {
            Ok(id) if self.has_commit(commit) => Ok(Revision { name: None, commit: id }),
            _ => self.resolve(commit),
        }
    }

    /// The first of these branches that exists.
    pub fn first_branch(&self, names: &[&str]) -> Option<Revision> {
        names.iter().find_map(|name| self.named(name, &BRANCHES))
    }

    pub fn head(&self) -> Result<Revision, GitError> {
        let commit = self.repo.head_id().map_err(|_| GitError::Empty { place: self.place() })?.detach();
        let name = self.repo.head_name().ok().flatten().map(|name| name.shorten().to_string());
        Ok(Revision { name, commit })
    }

    pub fn has_commit(&self, commit: &str) -> bool {
        ObjectId::from_hex(commit.as_bytes())
            .ok()
            .and_then(|id| self.repo.find_header(id).ok())
            .is_some_and(|header| header.kind() == gix::objs::Kind::Commit)
    }

    /// What people see of a commit.
    pub fn describe(&self, commit: &str) -> Option<CommitNote> {
        let id = ObjectId::from_hex(commit.as_bytes()).ok()?;
        let commit = self.repo.find_commit(id).ok()?;
        let subject = commit.message().ok()?.title.to_string();
        let author = commit.author().ok()?;
        Some(CommitNote {
            subject: subject.trim().chars().take(SUBJECT_LIMIT).collect(),
            author: author.name.to_string().chars().take(SUBJECT_LIMIT).collect(),
            mail: author.email.to_string().chars().take(SUBJECT_LIMIT).collect(),
            time: commit.time().ok()?.seconds,
        })
    }

    /// Whether a commit holds no file at all.
    pub fn is_empty_commit(&self, commit: ObjectId) -> bool {
        let tree = self.repo.find_commit(commit).and_then(|commit| Ok(commit.tree_id()?.detach()));
        tree.is_ok_and(|id| id == ObjectId::empty_tree(gix::hash::Kind::Sha1))
    }

    /// The newest commit that two have behind them.
    pub fn merge_base(&self, one: ObjectId, other: ObjectId) -> Option<ObjectId> {
        self.repo.merge_base(one, other).ok().flatten().map(gix::Id::detach)
    }

    /// Whether a commit is the other one's ancestor.
    pub fn is_behind(&self, ancestor: ObjectId, commit: ObjectId) -> bool {
        self.repo.merge_base(ancestor, commit).is_ok_and(|base| base.is_some_and(|base| base.detach() == ancestor))
    }

    /// The address it was cloned from.
    pub fn origin_url(&self) -> Option<String> {
        let remote = self.repo.find_remote("origin").ok()?;
        Some(remote.url(gix::remote::Direction::Fetch)?.to_bstring().to_string())
    }

    /// The files of a commit. `repo` is how the repository is called in origins.
    pub fn tree(&self, revision: &Revision, repo: &str) -> Result<GitTree, GitError> {
        let root = self.repo.find_commit(revision.commit).and_then(|commit| Ok(commit.tree_id()?.detach()));
        let root = root.map_err(|error| GitError::Commit {
            commit: revision.commit.to_string(),
            place: self.place(),
            source: Box::new(error),
        })?;
        let source = Source { repo: repo.to_owned(), revision: Some(revision.to_string()) };
        let known = RefCell::new(BTreeMap::from([(String::new(), (root, EntryKind::Folder))]));
        Ok(GitTree { repo: self.repo.clone(), root, source: Arc::new(source), known })
    }

    fn named(&self, name: &str, prefixes: &[&str]) -> Option<Revision> {
        prefixes.iter().find_map(|prefix| {
            let mut reference = self.repo.try_find_reference(&format!("{prefix}{name}")).ok()??;
            let commit = reference.peel_to_commit().ok()?.id;
            Some(Revision { name: Some(name.to_owned()), commit })
        })
    }

    fn missing(&self, wanted: &'static str, revision: &str) -> GitError {
        let mut branches = Vec::new();
        if let Ok(references) = self.repo.references() {
            for found in references.local_branches().into_iter().flatten().flatten() {
                branches.push(found.name().shorten().to_string());
            }
            for found in references.remote_branches().into_iter().flatten().flatten() {
                let name = found.name().shorten().to_string();
                if !name.ends_with("/HEAD") {
                    branches.push(name);
                }
            }
        }
        // Enough to see a misspelling; a monorepo has thousands.
        branches.truncate(30);
        GitError::NoRevision { wanted, revision: revision.to_owned(), place: self.place(), branches }
    }

    fn place(&self) -> String {
        self.repo.workdir().unwrap_or_else(|| self.repo.git_dir()).display().to_string()
    }
}

impl std::fmt::Display for Revision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name}@sha1:{}", self.commit),
            None => write!(f, "sha1:{}", self.commit),
        }
    }
}

impl GitTree {
    fn tree(&self, id: ObjectId, path: &str) -> Result<gix::Tree<'_>, TreeError> {
        let header = self.repo.find_header(id).map_err(|error| unreadable(path, error))?;
        if header.size() > TREE_LIMIT {
            return Err(TreeError::TooMany { path: path.to_owned(), limit: ENTRY_LIMIT });
        }
        self.repo.find_tree(id).map_err(|error| unreadable(path, error))
    }

    fn locate(&self, path: &str) -> Result<(ObjectId, EntryKind), TreeError> {
        if let Some(found) = self.known.borrow().get(path) {
            return Ok(*found);
        }
        let missing = || TreeError::Missing { path: path.to_owned(), place: self.source.to_string() };
        let mut here = (self.root, EntryKind::Folder);
        let mut seen = String::new();
        for part in path.split('/') {
            if here.1 != EntryKind::Folder {
                return Err(missing());
            }
            let found = {
                let tree = self.tree(here.0, &seen)?;
                tree.find_entry(part).map(|entry| (entry.object_id(), kind_of(entry.kind())))
            };
            here = found.ok_or_else(missing)?;
            seen = join(&seen, part);
            if here.1 == EntryKind::Symlink {
                return Err(TreeError::Symlink { path: seen });
            }
        }
        Ok(here)
    }
}

impl Tree for GitTree {
    fn source(&self) -> Arc<Source> {
        Arc::clone(&self.source)
    }

    fn entry(&self, path: &str) -> Result<EntryKind, TreeError> {
        Ok(self.locate(path)?.1)
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>, TreeError> {
        let (id, kind) = self.locate(folder)?;
        if kind != EntryKind::Folder {
            let (path, found) = (folder.to_owned(), kind.describe());
            return Err(TreeError::WrongKind { path, found, wanted: "a folder" });
        }
        let tree = self.tree(id, folder)?;
        let decoded = tree.decode().map_err(|error| unreadable(folder, error))?;
        let mut entries: BTreeMap<String, EntryKind> = BTreeMap::new();
        let mut known = self.known.borrow_mut();
        for item in decoded.entries.iter().filter(|item| item.filename != ".git") {
            let path = join(folder, &String::from_utf8_lossy(item.filename));
            let kind = match is_name(item.filename) && !entries.contains_key(&path) {
                true => kind_of(item.mode.kind()),
                false => EntryKind::BadName,
            };
            if kind != EntryKind::BadName {
                known.insert(path.clone(), (item.oid.to_owned(), kind));
            }
            entries.insert(path, kind);
        }
        Ok(entries.into_iter().map(|(path, kind)| Entry { path, kind }).collect())
    }

    fn read(&self, file: &str, limit: u64) -> Result<Vec<u8>, TreeError> {
        let (id, kind) = self.locate(file)?;
        if kind != EntryKind::File {
            return Err(TreeError::WrongKind { path: file.to_owned(), found: kind.describe(), wanted: "a file" });
        }
        let size = self.repo.find_header(id).map_err(|error| unreadable(file, error))?.size();
        if size > limit {
            return Err(TreeError::TooLarge { path: file.to_owned(), size, limit });
        }
        let mut blob = self.repo.find_blob(id).map_err(|error| unreadable(file, error))?;
        Ok(blob.take_data())
    }

    fn content_id(&self, path: &str) -> Option<ContentId> {
        self.locate(path).ok().map(|(id, _)| id)
    }

    fn beginning(&self, file: &str) -> Vec<u8> {
        let Ok((id, EntryKind::File)) = self.locate(file) else { return Vec::new() };
        if !self.repo.find_header(id).is_ok_and(|header| header.size() <= BLOB_LIMIT) {
            return Vec::new();
        }
        let mut bytes = self.repo.find_blob(id).map(|mut blob| blob.take_data()).unwrap_or_default();
        bytes.truncate(BEGINNING_LIMIT);
        bytes
    }
}

/// A tree object may hold any bytes as a name, but a folder wouldn't.
fn is_name(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(|name| !matches!(name, "" | "." | "..") && !name.contains(['/', '\0']))
}

fn unreadable(path: &str, error: gix::Error) -> TreeError {
    TreeError::Unreadable { path: path.to_owned(), source: Box::new(error) }
}

fn kind_of(kind: GitKind) -> EntryKind {
    match kind {
        GitKind::Blob | GitKind::BlobExecutable => EntryKind::File,
        GitKind::Tree => EntryKind::Folder,
        GitKind::Link => EntryKind::Symlink,
        GitKind::Commit => EntryKind::Submodule,
    }
}

#[cfg(test)]
mod tests;
