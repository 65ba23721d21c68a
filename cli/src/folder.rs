//! The folder that `render` writes to: whether it is ours, what of ours it holds, and the change to it. Called by
//! `render`; `staging` owns the folder `.kedge-tmp-…` that exists while files are written, `overlap` keeps it apart from
//! what is read.

mod overlap;
mod staging;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use kedge_scheduler::{Existing, Files, OutputPlan, PROMOTED_COMMIT, README, README_TEXT};

pub use staging::Staging;

/// What may stand at the root of a GitOps repository before we first write to it.
const HARMLESS: [&str; 3] = ["README", "LICENSE", "CODEOWNERS"];

/// Nothing that we write is larger.
const READ_LIMIT: u64 = 16 << 20;

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
    #[error("the output folder `{}` is inside the control plane `{}`", path.display(), control_plane.display())]
    InsideControlPlane { path: PathBuf, control_plane: PathBuf },
    #[error("the control plane `{1}` is inside the output folder `{0}`", path.display(), control_plane.display())]
    AroundControlPlane { path: PathBuf, control_plane: PathBuf },
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
    #[error("`{}` can't be replaced; {done} of {all} files are written", path.display())]
    Replace { path: PathBuf, done: usize, all: usize, source: io::Error },
    #[error("`{}` can't be deleted", path.display())]
    Delete { path: PathBuf, source: io::Error },
}

impl FolderError {
    pub fn hint(&self) -> Option<String> {
        match self {
            FolderError::NotAFolder { .. } => Some("name a folder; it is made when it doesn't exist".to_owned()),
            FolderError::NotOurs { .. } => {
                Some("name an empty or new folder, or a checkout of the platform's GitOps repository".to_owned())
            }
            FolderError::InsideControlPlane { .. } | FolderError::AroundControlPlane { .. } => {
                Some("write to a folder beside it: what is written would be read as input by the next run".to_owned())
            }
            FolderError::Symlink { .. } => {
                Some("put a real folder or file there, or write to another folder".to_owned())
            }
            FolderError::InTheWay { .. } => Some("move it elsewhere, or write to another folder".to_owned()),
            FolderError::Busy { .. } => Some("wait until it is done".to_owned()),
            FolderError::Unreadable { .. } => Some("give yourself read access, or move it elsewhere".to_owned()),
            FolderError::Staging { source, .. } => Some(mend(source).to_owned()),
            FolderError::Replace { source, .. } | FolderError::Delete { source, .. } => {
                Some(format!("{}; until then each file is whole, the old one or the new one", mend(source)))
            }
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
            Err(error) if error.kind() == io::ErrorKind::NotFound => match root.is_symlink() {
                true => Err(FolderError::Symlink { path: root.to_owned() }),
                false => Ok(OutputFolder { root: root.to_owned() }),
            },
            Err(source) => Err(FolderError::Unreadable { path: root.to_owned(), source }),
        }
    }

    /// Refuses a folder that shares files with the control plane's, which may not exist.
    pub fn check_apart(root: &Path, control_plane: &Path) -> Result<(), FolderError> {
        overlap::check(root, control_plane)
    }

    fn check_ours(&self) -> Result<(), FolderError> {
        let mut stranger = None;
        for (name, is_folder) in list(&self.root)? {
            // A run that was killed may have left folders that have no README yet.
            if is_folder && staging::is_name(&name) {
                return Ok(());
            }
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

    /// Makes the folder when it isn't there, and keeps other kedges out until the answer is dropped. To be called
    /// before `existing`, so that nobody changes what was looked at.
    pub fn begin(&self) -> Result<Staging, FolderError> {
        Staging::begin(&self.root)
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
            // One that can't be looked into isn't known to be ours: `lost+found` is such a folder.
            let has_readme = is_real_file(&folder.join(README)).unwrap_or(false);
            if has_readme {
                let ours = self.has_our_readme(&cluster_type);
                let file = if ours { Existing::Readme(README_TEXT.to_owned()) } else { Existing::Other };
                found.insert(format!("{cluster_type}/{README}"), file);
            }
            let targets = match list(&folder) {
                Err(_) if !has_readme => continue,
                listed => listed?,
            };
            for (target, _) in targets.into_iter().filter(|(_, is_folder)| *is_folder) {
                for name in Files::NAMES {
                    if is_real_file(&folder.join(&target).join(name))? {
                        found.insert(format!("{cluster_type}/{target}/{name}"), Existing::Other);
                    }
                }
            }
        }
        Ok(found)
    }

    /// The text of a file that `existing` found.
    pub fn read(&self, path: &str) -> Option<String> {
        let file = self.root.join(path);
        let small = fs::symlink_metadata(&file).is_ok_and(|found| found.is_file() && found.len() <= READ_LIMIT);
        small.then(|| fs::read_to_string(&file).ok()).flatten()
    }

    /// What differs from the plan. Refuses what would lead out of the folder or is in the way.
    pub fn compare<'a>(&self, plan: &'a OutputPlan) -> Result<Work<'a>, FolderError> {
        let mut work = Work::default();
        let gone: BTreeSet<String> = plan.delete.iter().map(|path| folded(path)).collect();
        for (path, text) in &plan.write {
            self.check_way(path)?;
            if !gone.contains(&folded(path)) && same_bytes(&self.root.join(path), text.as_bytes()) {
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

    /// Does the work in an order that a later run can go on from, wherever this one stops: every new text stands
    /// beside the output before the first file is replaced, the READMEs that mark folders as ours come first and go
    /// last, and the promoted commit is replaced after its files.
    pub fn apply(&self, mut staging: Staging, work: &Work<'_>) -> Result<(), FolderError> {
        let mut write = work.write.clone();
        write.sort_by_key(|(path, _)| (*path == PROMOTED_COMMIT, !is_readme(path)));
        staging.write(&write)?;

        // Where case doesn't count, the old name of a file whose name changed only in that is the new one too: it goes
        // before the new one comes.
        let written: BTreeSet<String> = write.iter().map(|(path, _)| folded(path)).collect();
        let mut delete = work.delete.clone();
        delete.sort_by_key(|path| is_readme(path));
        let (renamed, gone): (Vec<&str>, Vec<&str>) = delete.iter().partition(|path| written.contains(&folded(path)));
        renamed.into_iter().try_for_each(|path| self.delete(path))?;
        staging.replace()?;
        gone.into_iter().try_for_each(|path| self.delete(path))
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

fn is_real_file(path: &Path) -> Result<bool, FolderError> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(found.is_file()),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
        Err(source) => Err(FolderError::Unreadable { path: path.to_owned(), source }),
    }
}

fn is_readme(path: &str) -> bool {
    path.ends_with(README)
}

/// As file systems see a name for which case doesn't count.
fn folded(path: &str) -> String {
    path.to_lowercase()
}

/// What to do about a disk that refuses.
fn mend(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room on that disk and run it again",
        _ => "fix that and run the command again",
    }
}

/// Reads the file only when its size is right.
fn same_bytes(path: &Path, bytes: &[u8]) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() == bytes.len() as u64)
        && fs::read(path).is_ok_and(|found| found == bytes)
}

#[cfg(test)]
mod tests;
