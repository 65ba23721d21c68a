//! A folder of the file system as a tree. Used for checkouts and for `--sources`; loads nothing of Git.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kedge_model::Source;

use super::{BEGINNING_LIMIT, ENTRY_LIMIT, Entry, EntryKind, Tree, TreeError, join};

#[derive(Debug)]
pub struct FolderTree {
    root: PathBuf,
    source: Arc<Source>,
}

impl FolderTree {
    /// The root itself may be reached through a link: whoever names it chose it.
    pub fn new(root: impl Into<PathBuf>, source: Source) -> FolderTree {
        FolderTree { root: root.into(), source: Arc::new(source) }
    }

    fn unreadable(path: &str, error: io::Error) -> TreeError {
        TreeError::Unreadable { path: shown(path), source: Box::new(error) }
    }

    fn missing(&self, path: &str) -> TreeError {
        TreeError::Missing { path: shown(path), place: self.source.to_string() }
    }
}

impl Tree for FolderTree {
    fn source(&self) -> Arc<Source> {
        Arc::clone(&self.source)
    }

    fn entry(&self, path: &str) -> Result<EntryKind, TreeError> {
        let mut place = self.root.clone();
        let mut kind = match fs::metadata(&place) {
            Ok(found) => kind_of(found.file_type()),
            Err(error) if is_missing(&error) => return Err(self.missing("")),
            Err(error) => return Err(Self::unreadable("", error)),
        };
        let mut seen = String::new();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            if kind != EntryKind::Folder {
                return Err(self.missing(path));
            }
            place.push(part);
            seen = join(&seen, part);
            kind = match fs::symlink_metadata(&place) {
                Ok(found) => kind_of(found.file_type()),
                Err(error) if is_missing(&error) => return Err(self.missing(path)),
                Err(error) => return Err(Self::unreadable(&seen, error)),
            };
            if kind == EntryKind::Symlink {
                return Err(TreeError::Symlink { path: seen });
            }
        }
        Ok(kind)
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>, TreeError> {
        let mut entries = Vec::new();
        for item in fs::read_dir(self.root.join(folder)).map_err(|error| Self::unreadable(folder, error))? {
            let item = item.map_err(|error| Self::unreadable(folder, error))?;
            let name = item.file_name();
            if name == ".git" {
                continue;
            }
            let path = join(folder, &name.to_string_lossy());
            let mut kind = kind_of(item.file_type().map_err(|error| Self::unreadable(&path, error))?);
            if name.to_str().is_none() {
                kind = EntryKind::BadName;
            }
            if kind == EntryKind::Folder && item.path().join(".git").symlink_metadata().is_ok() {
                kind = EntryKind::Submodule;
            }
            entries.push(Entry { path, kind });
            if entries.len() > ENTRY_LIMIT {
                return Err(TreeError::TooMany { path: shown(folder), limit: ENTRY_LIMIT });
            }
        }
        entries.sort();
        Ok(entries)
    }

    fn read(&self, file: &str, limit: u64) -> Result<Vec<u8>, TreeError> {
        let opened = File::open(self.root.join(file)).map_err(|error| match is_missing(&error) {
            true => self.missing(file),
            false => Self::unreadable(file, error),
        })?;
        let size = opened.metadata().map_err(|error| Self::unreadable(file, error))?.len();
        let too_large = |size| TreeError::TooLarge { path: file.to_owned(), size, limit };
        if size > limit {
            return Err(too_large(size));
        }
        // One byte more than allowed shows a file that grew meanwhile.
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0).saturating_add(1));
        opened.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| Self::unreadable(file, error))?;
        match bytes.len() as u64 {
            read if read > limit => Err(too_large(read)),
            _ => Ok(bytes),
        }
    }

    fn beginning(&self, file: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Ok(opened) = File::open(self.root.join(file)) {
            // What was read before an error is a beginning too.
            let _ = opened.take(BEGINNING_LIMIT as u64).read_to_end(&mut bytes);
        }
        bytes
    }
}

/// Whether a folder is a Git repository, with a work tree or bare, without opening it.
pub fn is_git_repository(path: &Path) -> bool {
    path.join(".git").exists()
        || (path.join("HEAD").is_file() && path.join("objects").is_dir() && path.join("refs").is_dir())
}

fn kind_of(found: fs::FileType) -> EntryKind {
    if found.is_symlink() {
        EntryKind::Symlink
    } else if found.is_dir() {
        EntryKind::Folder
    } else if found.is_file() {
        EntryKind::File
    } else {
        EntryKind::Other
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn shown(path: &str) -> String {
    if path.is_empty() { ".".to_owned() } else { path.to_owned() }
}
