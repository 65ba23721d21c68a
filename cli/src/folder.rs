//! The folder that `render` writes to: whether it is ours, what of ours it holds, and the change to it. Owns the
//! staging folder `.kedge-tmp-…` that exists while files are written.

mod staging;

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use kedge_scheduler::{Existing, Files, OutputPlan, PROMOTED_COMMIT, README, README_TEXT};

use staging::Staging;

/// What may stand at the root of a GitOps repository before we first write to it.
const HARMLESS: [&str; 3] = ["README", "LICENSE", "CODEOWNERS"];

/// A folder that may be written to, or that may be made.
#[derive(Debug)]
pub struct OutputFolder {
    root: PathBuf,
}

/// What is to be done to a folder.
#[derive(Debug, Default)]
pub struct Work<'a> {
    /// Files that are new or differ.
    pub write: Vec<(&'a str, &'a str)>,
    pub delete: Vec<&'a str>,
    pub unchanged: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("the output `{}` is a file, not a folder", path.display())]
    NotAFolder { path: PathBuf },
    #[error("the output folder `{}` isn't ours: it holds `{found}`, and nothing that kedge wrote", path.display())]
    NotOurs { path: PathBuf, found: String },
    #[error("`{}` is a symbolic link; kedge doesn't write through links", path.display())]
    Symlink { path: PathBuf },
    #[error("`{}` is {found}, and {wanted} is to be written there", path.display())]
    InTheWay { path: PathBuf, found: &'static str, wanted: &'static str },
    #[error("another kedge is writing to `{}`", path.display())]
    Busy { path: PathBuf },
    #[error("`{}` can't be read", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("`{}` can't be written; nothing was changed", path.display())]
    Staging { path: PathBuf, source: io::Error },
    #[error("`{}` can't be replaced; {done} of {all} files were", path.display())]
    Replace { path: PathBuf, done: usize, all: usize, source: io::Error },
    #[error("`{}` can't be deleted", path.display())]
    Delete { path: PathBuf, source: io::Error },
}

impl FolderError {
    pub fn hint(&self) -> Option<String> {
        let full = |source: &io::Error| {
            matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
                .then(|| "make room on that disk and run it again".to_owned())
        };
        match self {
            FolderError::NotAFolder { .. } => Some("name a folder; it is made when it doesn't exist".to_owned()),
            FolderError::NotOurs { .. } => {
                Some("name an empty or new folder, or a checkout of the platform's GitOps repository".to_owned())
            }
            FolderError::Symlink { .. } => {
                Some("put a real folder or file there, or write to another folder".to_owned())
            }
            FolderError::InTheWay { .. } => Some("move it away, or write to another folder".to_owned()),
            FolderError::Busy { .. } => Some("wait until it is done".to_owned()),
            FolderError::Staging { source, .. } | FolderError::Replace { source, .. } => full(source),
            FolderError::Unreadable { .. } | FolderError::Delete { .. } => None,
        }
    }
}

impl OutputFolder {
    /// Refuses a folder that isn't ours, before anything is written.
    pub fn open(root: &Path) -> Result<OutputFolder, FolderError> {
        match fs::metadata(root) {
            Ok(found) if !found.is_dir() => Err(FolderError::NotAFolder { path: root.to_owned() }),
            Ok(_) => {
                let folder = OutputFolder { root: root.to_owned() };
                folder.check_ours()?;
                Ok(folder)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(OutputFolder { root: root.to_owned() }),
            Err(source) => Err(FolderError::Unreadable { path: root.to_owned(), source }),
        }
    }

    fn check_ours(&self) -> Result<(), FolderError> {
        let mut stranger = None;
        for (name, is_folder) in list(&self.root)? {
            let harmless = name.starts_with('.') || (!is_folder && HARMLESS.iter().any(|word| name.starts_with(word)));
            if !harmless {
                if is_folder && self.has_our_readme(&name) {
                    return Ok(());
                }
                stranger.get_or_insert(name);
            }
        }
        match stranger {
            Some(found) if !self.root.join(PROMOTED_COMMIT).is_file() => {
                Err(FolderError::NotOurs { path: self.root.clone(), found })
            }
            _ => Ok(()),
        }
    }

    fn has_our_readme(&self, folder: &str) -> bool {
        same_bytes(&self.root.join(folder).join(README), README_TEXT.as_bytes())
    }

    /// Files that may be ours, by path. Links are never followed, so what is behind one isn't ours.
    pub fn existing(&self) -> Result<BTreeMap<String, Existing>, FolderError> {
        let mut found = BTreeMap::new();
        if !self.root.exists() {
            return Ok(found);
        }
        for (cluster_type, is_folder) in list(&self.root)? {
            if !is_folder || cluster_type.starts_with('.') {
                continue;
            }
            let folder = self.root.join(&cluster_type);
            let readme = folder.join(README);
            if is_real_file(&readme) {
                let ours = same_bytes(&readme, README_TEXT.as_bytes());
                let file = if ours { Existing::Readme(README_TEXT.to_owned()) } else { Existing::Other };
                found.insert(format!("{cluster_type}/{README}"), file);
            }
            let targets = match list(&folder) {
                Err(_) if !found.contains_key(&format!("{cluster_type}/{README}")) => continue,
                listed => listed?,
            };
            for (target, is_folder) in targets {
                if !is_folder {
                    continue;
                }
                for name in Files::NAMES {
                    if is_real_file(&folder.join(&target).join(name)) {
                        found.insert(format!("{cluster_type}/{target}/{name}"), Existing::Other);
                    }
                }
            }
        }
        Ok(found)
    }

    /// What differs from the plan. Refuses what would lead out of the folder or is in the way.
    pub fn compare<'a>(&self, plan: &'a OutputPlan) -> Result<Work<'a>, FolderError> {
        let mut work = Work::default();
        for (path, text) in &plan.write {
            self.check_way(path)?;
            if same_bytes(&self.root.join(path), text.as_bytes()) {
                work.unchanged += 1;
            } else {
                work.write.push((path, text));
            }
        }
        for path in &plan.delete {
            self.check_way(path)?;
            work.delete.push(path);
        }
        Ok(work)
    }

    fn check_way(&self, path: &str) -> Result<(), FolderError> {
        let mut place = self.root.clone();
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            place.push(part);
            let wanted = if parts.peek().is_some() { "a folder" } else { "a file" };
            match fs::symlink_metadata(&place) {
                Ok(found) if found.is_symlink() => return Err(FolderError::Symlink { path: place }),
                Ok(found) if found.is_dir() != (wanted == "a folder") => {
                    let found = if found.is_dir() { "a folder" } else { "a file" };
                    return Err(FolderError::InTheWay { path: place, found, wanted });
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(source) => return Err(FolderError::Unreadable { path: place, source }),
            }
        }
        Ok(())
    }

    /// Does the work: every new text is on the disk before the first file is replaced.
    pub fn apply(&self, work: &Work<'_>) -> Result<(), FolderError> {
        if work.write.is_empty() && work.delete.is_empty() && self.root.exists() {
            return Ok(());
        }
        let mut staging = Staging::begin(&self.root)?;
        let _lock = self.lock()?;
        staging.sweep()?;
        for (path, text) in &work.write {
            staging.add(path, text)?;
        }
        staging.replace()?;
        for path in &work.delete {
            self.delete(path)?;
        }
        Ok(())
    }

    /// Held until the file is dropped; leaves no trace. Where locks aren't known there is none.
    fn lock(&self) -> Result<Option<File>, FolderError> {
        let Ok(folder) = File::open(&self.root) else { return Ok(None) };
        match folder.try_lock() {
            Ok(()) => Ok(Some(folder)),
            Err(TryLockError::WouldBlock) => Err(FolderError::Busy { path: self.root.clone() }),
            Err(TryLockError::Error(_)) => Ok(None),
        }
    }

    fn delete(&self, path: &str) -> Result<(), FolderError> {
        let file = self.root.join(path);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(FolderError::Delete { path: file, source: error });
            }
            _ => {}
        }
        let mut folder = Path::new(path).parent();
        while let Some(emptied) = folder.filter(|folder| !folder.as_os_str().is_empty()) {
            // A folder with something else in it stays.
            if fs::remove_dir(self.root.join(emptied)).is_err() {
                break;
            }
            folder = emptied.parent();
        }
        Ok(())
    }
}

/// Names and whether each is a folder that may be ours, sorted. A link isn't, nor is one whose name isn't UTF-8.
fn list(folder: &Path) -> Result<Vec<(String, bool)>, FolderError> {
    let unreadable = |source| FolderError::Unreadable { path: folder.to_owned(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        let is_folder = name.to_str().is_some() && entry.file_type().map_err(unreadable)?.is_dir();
        names.push((name.to_string_lossy().into_owned(), is_folder));
    }
    names.sort();
    Ok(names)
}

fn is_real_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

/// Reads the file only when its size is right.
fn same_bytes(path: &Path, bytes: &[u8]) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() == bytes.len() as u64)
        && fs::read(path).is_ok_and(|found| found == bytes)
}

#[cfg(test)]
mod tests;
