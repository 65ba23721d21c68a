//! A tree of files that can be read: a folder, or a commit of a Git repository. Walked by `walk`, opened by whoever
//! knows where a repository is (`sources`, `fetch`, `load`).

pub mod folder;
pub mod git;
pub mod overlay;

use std::fmt;
use std::sync::Arc;

use kedge_model::Source;

/// A file of YAML that a person wrote is never near this; a hundred megabytes are a mistake or an attack.
pub const FILE_LIMIT: u64 = kedge_model::decode::MAX_FILE_BYTES as u64;

/// How much of a larger file is looked at, for what it seems to be.
const BEGINNING_LIMIT: usize = 8 * 1024 * 1024;

/// Far above a real control plane; a tree with more files and folders is not one.
pub const ENTRY_LIMIT: usize = 100_000;

/// Longer than any path that a file system takes.
const PATH_LIMIT: usize = 4096;

/// Paths are relative to the root, with `/`, as [`clean_path`] gives them; the root is the empty path.
pub trait Tree: Send + fmt::Debug {
    fn source(&self) -> Arc<Source>;

    /// What is at a path. A symbolic link on the way, or at its end, is never followed.
    fn entry(&self, path: &str) -> Result<EntryKind, TreeError>;

    /// What a folder holds, sorted by name, without `.git`.
    fn list(&self, folder: &str) -> Result<Vec<Entry>, TreeError>;

    /// A file's bytes, refused before they are read when there are more than `limit`.
    fn read(&self, file: &str, limit: u64) -> Result<Vec<u8>, TreeError>;

    /// What a file's or folder's content is known by, where it has such a name: the same id, the same content.
    fn content_id(&self, _path: &str) -> Option<ContentId> {
        None
    }

    /// Some of the first bytes of a file that is over the limit; none when they can't be had cheaply.
    fn beginning(&self, file: &str) -> Vec<u8>;
}

/// The object id that Git gives a content.
pub type ContentId = gix::ObjectId;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// From the tree's root. Lossy when the name isn't UTF-8, then the kind says so.
    pub path: String,
    pub kind: EntryKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    File,
    Folder,
    Symlink,
    /// Another repository inside this one.
    Submodule,
    /// A name that isn't UTF-8, or that no folder could hold.
    BadName,
    /// A pipe, a socket, a device.
    Other,
}

#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    #[error("`{path}` does not exist in {place}")]
    Missing { path: String, place: String },
    #[error("`{path}` is a symbolic link; links are never followed")]
    Symlink { path: String },
    #[error("`{path}` is {found}, not {wanted}")]
    WrongKind { path: String, found: &'static str, wanted: &'static str },
    #[error("`{path}` has {size} bytes, over the limit of {limit}")]
    TooLarge { path: String, size: u64, limit: u64 },
    #[error("there are more than {limit} files and folders below `{path}`")]
    TooMany { path: String, limit: usize },
    #[error("`{path}` lies more than {limit} folders deep")]
    TooDeep { path: String, limit: usize },
    #[error("the path `{path}` leaves the repository")]
    Escapes { path: String },
    #[error("the path is {size} bytes long, over the limit of {PATH_LIMIT}")]
    LongPath { size: usize },
    #[error("`{path}` is among the files that are ignored ({rule})")]
    Ignored { path: String, rule: String },
    #[error("`{path}` can't be read")]
    Unreadable { path: String, source: Box<dyn std::error::Error + Send + Sync> },
}

impl TreeError {
    pub fn hint(&self) -> Option<String> {
        match self {
            TreeError::Missing { .. } => Some("fix the path, or add the file to the repository".to_owned()),
            TreeError::Symlink { .. } => {
                Some("put the file itself there, or list the link in .sourceignore".to_owned())
            }
            TreeError::TooLarge { .. } | TreeError::TooMany { .. } | TreeError::TooDeep { .. } => {
                Some("list what isn't part of the platform in .sourceignore".to_owned())
            }
            TreeError::Escapes { .. } => Some("write a path from the repository's root, without `..`".to_owned()),
            TreeError::Ignored { .. } => Some("name another path, or take it out of the ignored ones".to_owned()),
            TreeError::WrongKind { .. } | TreeError::LongPath { .. } | TreeError::Unreadable { .. } => None,
        }
    }

    /// A stable word for a problem made of it.
    pub fn code(&self) -> &'static str {
        match self {
            TreeError::Missing { .. } => "PathMissing",
            TreeError::Symlink { .. } => "Symlink",
            TreeError::WrongKind { .. } => "NotAFile",
            TreeError::TooLarge { .. } => "FileTooLarge",
            TreeError::TooMany { .. } | TreeError::TooDeep { .. } => "TooManyFiles",
            TreeError::Escapes { .. } | TreeError::LongPath { .. } => "PathInvalid",
            TreeError::Ignored { .. } => "PathIgnored",
            TreeError::Unreadable { .. } => "Unreadable",
        }
    }
}

impl EntryKind {
    pub fn describe(self) -> &'static str {
        match self {
            EntryKind::File => "a file",
            EntryKind::Folder => "a folder",
            EntryKind::Symlink => "a symbolic link",
            EntryKind::Submodule => "a Git submodule",
            EntryKind::BadName => "a name that can't be read",
            EntryKind::Other => "neither a file nor a folder",
        }
    }
}

/// A path as people write it (`.`, `./workloads`, `workload/`, `/apps`) as one from the tree's root.
pub fn clean_path(path: &str) -> Result<String, TreeError> {
    if path.len() > PATH_LIMIT {
        return Err(TreeError::LongPath { size: path.len() });
    }
    let mut clean = String::with_capacity(path.len());
    for part in path.trim().split('/') {
        match part {
            "" | "." => {}
            ".." => return Err(TreeError::Escapes { path: path.to_owned() }),
            part => join_onto(&mut clean, part),
        }
    }
    Ok(clean)
}

/// `folder/name`, or `name` at the root.
pub(crate) fn join(folder: &str, name: &str) -> String {
    let mut path = String::with_capacity(folder.len() + 1 + name.len());
    path.push_str(folder);
    join_onto(&mut path, name);
    path
}

/// An error with its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    // Libraries repeat a cause's text in their own; a line should say a thing once.
    while let Some(next) = cause {
        let line = next.to_string();
        if !text.contains(&line) {
            text.push_str(": ");
            text.push_str(&line);
        }
        cause = next.source();
    }
    text
}

fn join_onto(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('/');
    }
    path.push_str(name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_people_become_paths_from_the_root() {
        for (written, clean) in [
            (".", ""),
            ("", ""),
            ("./", ""),
            ("/", ""),
            ("./workloads", "workloads"),
            ("workload/", "workload"),
            ("/a//b/./c", "a/b/c"),
        ] {
            assert_eq!(clean_path(written).unwrap(), clean, "{written:?}");
        }
    }

    #[test]
    fn a_path_that_leaves_the_repository_is_refused() {
        for path in ["..", "a/../b", "../x", "a/.."] {
            let error = clean_path(path).unwrap_err();
            assert_eq!(error.to_string(), format!("the path `{path}` leaves the repository"));
        }
        assert!(matches!(clean_path(&"a/".repeat(4000)), Err(TreeError::LongPath { .. })));
    }
}
