//! New files on their way: each is written beside the output first, and renamed into its place when all of them are
//! there. Whatever happens, nothing of it stays behind. Used by `OutputFolder`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::FolderError;

const PREFIX: &str = ".kedge-tmp-";

/// Removes its folder when dropped, and what was made for nothing.
#[derive(Debug)]
pub(super) struct Staging {
    root: PathBuf,
    folder: PathBuf,
    files: Vec<(PathBuf, PathBuf)>,
    /// Folders that were made, the outermost first; removed again when the work fails.
    made: Vec<PathBuf>,
    done: bool,
}

impl Staging {
    /// Makes the output folder when it isn't there.
    pub fn begin(root: &Path) -> Result<Staging, FolderError> {
        let folder = root.join(format!("{PREFIX}{}", std::process::id()));
        let mut staging = Staging { root: root.to_owned(), folder, files: Vec::new(), made: Vec::new(), done: false };
        staging.make_folders(root).map_err(|(path, source)| FolderError::Staging { path, source })?;
        Ok(staging)
    }

    /// Clears away what a run left that was killed, and begins. The caller holds the folder's lock.
    pub fn sweep(&mut self) -> Result<(), FolderError> {
        let staging = |path: &Path, source| FolderError::Staging { path: path.to_owned(), source };
        for entry in fs::read_dir(&self.root).map_err(|error| staging(&self.root, error))?.flatten() {
            let is_folder = entry.file_type().is_ok_and(|found| found.is_dir());
            if is_folder && entry.file_name().to_string_lossy().starts_with(PREFIX) {
                fs::remove_dir_all(entry.path()).map_err(|error| staging(&entry.path(), error))?;
            }
        }
        fs::create_dir(&self.folder).map_err(|error| staging(&self.folder, error))
    }

    /// Not synced to the disk: whoever loses power renders again, and a rename shows the old file or the new one.
    pub fn add(&mut self, path: &str, text: &str) -> Result<(), FolderError> {
        let staged = self.folder.join(self.files.len().to_string());
        let target = self.root.join(path);
        let written = fs::File::create_new(&staged).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.flush()
        });
        written.map_err(|source| FolderError::Staging { path: target.clone(), source })?;
        self.files.push((staged, target));
        Ok(())
    }

    pub fn replace(mut self) -> Result<(), FolderError> {
        let files = std::mem::take(&mut self.files);
        for (_, target) in &files {
            if let Some(folder) = target.parent() {
                self.make_folders(folder).map_err(|(path, source)| FolderError::Staging { path, source })?;
            }
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

    /// As `create_dir_all`, and remembers what it made.
    fn make_folders(&mut self, folder: &Path) -> Result<(), (PathBuf, io::Error)> {
        let missing: Vec<&Path> =
            folder.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).collect();
        for path in missing.into_iter().rev() {
            fs::create_dir(path).map_err(|error| (path.to_owned(), error))?;
            self.made.push(path.to_owned());
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
        if !self.done {
            for folder in self.made.iter().rev() {
                // One that already holds a file stays.
                let _ = fs::remove_dir(folder);
            }
        }
    }
}
