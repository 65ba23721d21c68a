//! New files on their way: each is written beside the output first, and renamed into its place when all of them are
//! there. Whatever happens, nothing of it stays behind. Used by `OutputFolder`.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::FolderError;

const PREFIX: &str = ".kedge-tmp-";

/// So many folders that can't be swept away are passed by.
const MAX_LEFT: u32 = 100;

/// A change that is being made. Removes its folder when dropped, and what was made for nothing; until then no other
/// kedge writes to the output.
#[derive(Debug)]
pub struct Staging {
    root: PathBuf,
    /// There is one once there are files.
    folder: Option<PathBuf>,
    files: Vec<(PathBuf, PathBuf)>,
    /// Folders that were made, the outermost first; removed again when the work fails.
    made: Vec<PathBuf>,
    done: bool,
    /// None where locks aren't known.
    lock: Option<File>,
}

impl Staging {
    /// Makes the output folder when it isn't there.
    pub(super) fn begin(root: &Path) -> Result<Staging, FolderError> {
        let mut staging = Staging {
            root: root.to_owned(),
            folder: None,
            files: Vec::new(),
            made: Vec::new(),
            done: false,
            lock: None,
        };
        staging.make_folders(root)?;
        staging.lock = lock(root)?;
        Ok(staging)
    }

    /// Every text, beside the output. Not synced to the disk: that takes 0.2 to 3 ms for each file, which made the
    /// render of 25 files 3 to 10 times slower, and what a power cut takes is rendered again, since it differs.
    pub(super) fn write(&mut self, files: &[(&str, &str)]) -> Result<(), FolderError> {
        if files.is_empty() {
            self.sweep(None);
            return Ok(());
        }
        let folder = self.make_own()?;
        // After ours is there: one of them marks half-made folders as ours, should this run be killed too.
        self.sweep(Some(&folder));
        for (index, (path, text)) in files.iter().enumerate() {
            let staged = folder.join(index.to_string());
            let target = self.root.join(path);
            let written = File::create_new(&staged).and_then(|mut file| file.write_all(text.as_bytes()));
            written.map_err(|source| FolderError::Staging { path: target.clone(), source })?;
            self.files.push((staged, target));
        }
        Ok(())
    }

    /// Puts the files where they belong, in the order they were written.
    pub(super) fn replace(&mut self) -> Result<(), FolderError> {
        let files = std::mem::take(&mut self.files);
        for folder in files.iter().filter_map(|(_, target)| target.parent()) {
            self.make_folders(folder)?;
        }
        for (done, (staged, target)) in files.iter().enumerate() {
            fs::rename(staged, target).map_err(|source| FolderError::Replace {
                path: target.clone(),
                done,
                all: files.len(),
                source,
            })?;
        }
        self.done = true;
        Ok(())
    }

    /// In a container each run may have the same process number as the one that was killed before it.
    fn make_own(&mut self) -> Result<PathBuf, FolderError> {
        let process = std::process::id();
        let mut attempt = 0_u32;
        loop {
            let folder = self.root.join(format!("{PREFIX}{process}-{attempt}"));
            match fs::create_dir(&folder) {
                Ok(()) => {
                    self.folder = Some(folder.clone());
                    return Ok(folder);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < MAX_LEFT => attempt += 1,
                Err(source) => return Err(FolderError::Staging { path: folder, source }),
            }
        }
    }

    /// Clears away what a run left that was killed. What can't be removed harms nobody.
    fn sweep(&self, own: Option<&Path>) {
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let is_folder = entry.file_type().is_ok_and(|found| found.is_dir());
            let left = is_name(&entry.file_name().to_string_lossy()) && own != Some(&*entry.path());
            if is_folder && left {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// As `create_dir_all`, and remembers what it made.
    fn make_folders(&mut self, folder: &Path) -> Result<(), FolderError> {
        let missing: Vec<&Path> =
            folder.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).collect();
        for path in missing.into_iter().rev() {
            match fs::create_dir(path) {
                Ok(()) => self.made.push(path.to_owned()),
                // Another kedge was quicker; the lock sorts us.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
                Err(source) => return Err(FolderError::Staging { path: path.to_owned(), source }),
            }
        }
        Ok(())
    }
}

/// Whether a folder is one that `Staging` makes.
pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Held until the file is dropped; leaves no trace.
fn lock(root: &Path) -> Result<Option<File>, FolderError> {
    let Ok(folder) = File::open(root) else { return Ok(None) };
    match folder.try_lock() {
        Ok(()) => Ok(Some(folder)),
        Err(TryLockError::WouldBlock) => Err(FolderError::Busy { path: root.to_owned() }),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir_all(folder);
        }
        if !self.done {
            for folder in self.made.iter().rev() {
                // One that already holds a file stays.
                let _ = fs::remove_dir(folder);
            }
        }
    }
}
