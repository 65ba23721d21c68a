//! Git objects of a bare mirror by id: what the packer reads, with no work tree and no `git` program. Links, submodules
//! and names that no folder could hold are kinds of their own, so that they can be refused by name.

use std::path::Path;

use gix::ObjectId;
use gix::objs::tree::EntryKind;

/// An open mirror.
pub struct Objects {
    repo: gix::Repository,
}

/// What a folder holds under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub name: String,
    pub id: ObjectId,
    pub kind: ItemKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    File,
    Executable,
    Folder,
    Symlink,
    Submodule,
    /// Not UTF-8, or not a name at all. The name is lossy.
    BadName,
}

#[derive(Debug, thiserror::Error)]
pub enum ObjectsError {
    #[error("the mirror `{mirror}` can't be read")]
    Mirror { mirror: String, source: Box<gix::Error> },
    #[error("`{0}` is not a commit id")]
    NotACommit(String),
    #[error("the commit {commit} can't be read")]
    Commit { commit: String, source: Box<gix::Error> },
    #[error("`{path}` can't be read")]
    Unreadable { path: String, source: Box<gix::Error> },
    #[error("`{path}` does not exist")]
    Missing { path: String },
    #[error("`{path}` is {found}, not {wanted}")]
    WrongKind { path: String, found: &'static str, wanted: &'static str },
    #[error("`{path}` has {size} bytes, over the limit of {limit}")]
    TooLarge { path: String, size: u64, limit: u64 },
}

/// A tree object with more entries than anybody keeps has more bytes than this.
const TREE_LIMIT: u64 = 32 << 20;
/// Trees of one reconciliation are read again and again on the way to files.
const CACHE_BYTES: usize = 4 << 20;

impl Objects {
    pub fn open(mirror: &Path) -> Result<Objects, ObjectsError> {
        let opened = gix::open::Options::isolated().open(mirror).map(gix::Repository::from);
        let mut repo = opened
            .map_err(|error| ObjectsError::Mirror { mirror: mirror.display().to_string(), source: Box::new(error) })?;
        repo.object_cache_size_if_unset(CACHE_BYTES);
        Ok(Objects { repo })
    }

    /// The root folder of a commit.
    pub fn root(&self, commit: &str) -> Result<ObjectId, ObjectsError> {
        let id = commit_id(commit)?;
        let tree = self.repo.find_commit(id).and_then(|commit| Ok(commit.tree_id()?.detach()));
        tree.map_err(|error| ObjectsError::Commit { commit: commit.to_owned(), source: Box::new(error) })
    }

    /// What a folder holds, in Git's order. `path` is for messages.
    pub fn list(&self, folder: ObjectId, path: &str) -> Result<Vec<Item>, ObjectsError> {
        self.check_size(folder, path, TREE_LIMIT)?;
        let tree = self.repo.find_tree(folder).map_err(|error| unreadable(path, error))?;
        let decoded = tree.decode().map_err(|error| unreadable(path, error))?;
        let mut items: Vec<Item> = Vec::with_capacity(decoded.entries.len());
        for entry in &decoded.entries {
            let name = String::from_utf8_lossy(entry.filename).into_owned();
            let kind = match is_name(entry.filename) {
                true => kind_of(entry.mode.kind()),
                false => ItemKind::BadName,
            };
            items.push(Item { name, id: entry.oid.to_owned(), kind });
        }
        Ok(items)
    }

    /// The folder at a path below another one; the empty path is itself. Links are never followed.
    pub fn folder(&self, root: ObjectId, path: &str) -> Result<ObjectId, ObjectsError> {
        let mut here = root;
        for part in path.split('/').filter(|part| !part.is_empty()) {
            match self.find(here, part, path)? {
                Some(Item { id, kind: ItemKind::Folder, .. }) => here = id,
                Some(Item { kind, .. }) => {
                    let (path, found) = (path.to_owned(), kind.describe());
                    return Err(ObjectsError::WrongKind { path, found, wanted: "a folder" });
                }
                None => return Err(ObjectsError::Missing { path: path.to_owned() }),
            }
        }
        Ok(here)
    }

    /// The item at a path of names below a folder; none when something on the way isn't there or isn't a folder.
    pub fn item(&self, root: ObjectId, path: &str) -> Result<Option<Item>, ObjectsError> {
        let (folder, name) = match path.rsplit_once('/') {
            Some((folder, name)) => (self.folder(root, folder), name),
            None => (Ok(root), path),
        };
        match folder {
            Ok(folder) => self.find(folder, name, path),
            Err(ObjectsError::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn size(&self, blob: ObjectId, path: &str) -> Result<u64, ObjectsError> {
        Ok(self.repo.find_header(blob).map_err(|error| unreadable(path, error))?.size())
    }

    pub fn read(&self, blob: ObjectId, path: &str, limit: u64) -> Result<Vec<u8>, ObjectsError> {
        self.check_size(blob, path, limit)?;
        let mut found = self.repo.find_blob(blob).map_err(|error| unreadable(path, error))?;
        Ok(found.take_data())
    }

    fn find(&self, folder: ObjectId, name: &str, path: &str) -> Result<Option<Item>, ObjectsError> {
        self.check_size(folder, path, TREE_LIMIT)?;
        let tree = self.repo.find_tree(folder).map_err(|error| unreadable(path, error))?;
        Ok(tree.find_entry(name).map(|entry| Item {
            name: name.to_owned(),
            id: entry.object_id(),
            kind: kind_of(entry.kind()),
        }))
    }

    fn check_size(&self, id: ObjectId, path: &str, limit: u64) -> Result<(), ObjectsError> {
        match self.size(id, path)? {
            size if size > limit => Err(ObjectsError::TooLarge { path: path.to_owned(), size, limit }),
            _ => Ok(()),
        }
    }
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Objects").field(&self.repo.git_dir()).finish()
    }
}

impl ItemKind {
    pub fn is_file(self) -> bool {
        matches!(self, ItemKind::File | ItemKind::Executable)
    }

    pub fn describe(self) -> &'static str {
        match self {
            ItemKind::File | ItemKind::Executable => "a file",
            ItemKind::Folder => "a folder",
            ItemKind::Symlink => "a symbolic link",
            ItemKind::Submodule => "a Git submodule",
            ItemKind::BadName => "a name that can't be used",
        }
    }
}

pub fn commit_id(commit: &str) -> Result<ObjectId, ObjectsError> {
    ObjectId::from_hex(commit.as_bytes())
        .map_err(|_| ObjectsError::NotACommit(commit.chars().take(80).flat_map(char::escape_debug).collect()))
}

/// A tree object may hold any bytes as a name, but a folder wouldn't.
fn is_name(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(|name| kedge_model::name::check_path_name(name).is_ok() && name != ".git")
}

fn kind_of(kind: EntryKind) -> ItemKind {
    match kind {
        EntryKind::Blob => ItemKind::File,
        EntryKind::BlobExecutable => ItemKind::Executable,
        EntryKind::Tree => ItemKind::Folder,
        EntryKind::Link => ItemKind::Symlink,
        EntryKind::Commit => ItemKind::Submodule,
    }
}

fn unreadable(path: &str, error: gix::Error) -> ObjectsError {
    ObjectsError::Unreadable { path: path.to_owned(), source: Box::new(error) }
}
