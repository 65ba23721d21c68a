//! Where a new folder goes: checked first, filled out of sight, shown at the end. When anything fails before that,
//! nothing stays behind. Used by `init`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::InitError;

/// How many names for the staging folder are tried.
const ATTEMPTS: u32 = 100;

/// A folder that is being made. Dropped before `finish`, it is taken away again.
pub(super) struct Place {
    /// The folder as it will be: absolute, without symbolic links in it.
    target: PathBuf,
    staging: PathBuf,
    /// The target stood there already, empty, and may be somebody's current folder: it is filled, never replaced.
    existed: bool,
}

impl Place {
    /// Refuses a folder that isn't empty or can't be written to.
    pub fn prepare(dir: &Path) -> Result<Place, InitError> {
        let existed = match fs::symlink_metadata(dir) {
            Ok(_) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(source) => return Err(InitError::Unreadable { path: dir.to_owned(), source }),
        };
        let target = if existed { check_empty(dir)? } else { check_parent(dir)? };
        if target.to_str().is_none() {
            return Err(InitError::NotUtf8 { path: target });
        }
        let staging = create_staging(&target, existed)?;
        Ok(Place { target, staging, existed })
    }

    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Where to write meanwhile.
    pub fn staging(&self) -> &Path {
        &self.staging
    }

    /// Shows what was written under its own name.
    pub fn finish(self) -> Result<PathBuf, InitError> {
        let moved = if self.existed { self.move_into() } else { fs::rename(&self.staging, &self.target) };
        moved.map_err(|source| InitError::Write { path: self.target.clone(), source })?;
        Ok(self.target.clone())
    }

    fn move_into(&self) -> io::Result<()> {
        let mut moved = Vec::new();
        let outcome = self.move_entries(&mut moved);
        if outcome.is_err() {
            for path in moved {
                // The first error is the one to tell.
                let _ = remove(&path);
            }
        }
        outcome
    }

    fn move_entries(&self, moved: &mut Vec<PathBuf>) -> io::Result<()> {
        for entry in fs::read_dir(&self.staging)? {
            let entry = entry?;
            let to = self.target.join(entry.file_name());
            if to.try_exists()? {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    format!("{} appeared meanwhile", to.display()),
                ));
            }
            fs::rename(entry.path(), &to)?;
            moved.push(to);
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // After a rename there is nothing here; after a failure the cause is told, not this.
        let _ = fs::remove_dir_all(&self.staging);
    }
}

fn check_empty(dir: &Path) -> Result<PathBuf, InitError> {
    let unreadable = |source| InitError::Unreadable { path: dir.to_owned(), source };
    if !fs::metadata(dir).map_err(unreadable)?.is_dir() {
        return Err(InitError::NotAFolder { path: dir.to_owned() });
    }
    if fs::read_dir(dir).map_err(unreadable)?.next().is_some() {
        return Err(InitError::NotEmpty { path: dir.to_owned() });
    }
    fs::canonicalize(dir).map_err(unreadable)
}

fn check_parent(dir: &Path) -> Result<PathBuf, InitError> {
    let parent = match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => Path::new("/"),
    };
    let Some(name) = dir.file_name() else {
        return Err(InitError::NotAFolder { path: dir.to_owned() });
    };
    match fs::canonicalize(parent) {
        Ok(parent) if parent.is_dir() => Ok(parent.join(name)),
        Ok(parent) => Err(InitError::NotAFolder { path: parent }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(InitError::NoParent { path: parent.to_owned() }),
        Err(source) => Err(InitError::Unreadable { path: parent.to_owned(), source }),
    }
}

fn create_staging(target: &Path, existed: bool) -> Result<PathBuf, InitError> {
    let near = if existed { target } else { target.parent().unwrap_or(target) };
    let mut attempt = 0;
    loop {
        let staging = near.join(format!(".kedge-init-{}-{attempt}", std::process::id()));
        match fs::create_dir(&staging) {
            Ok(()) => return Ok(staging),
            // Left by a process that was killed and had our number, or another thread's.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS => attempt += 1,
            Err(source) if existed => return Err(InitError::Write { path: target.to_owned(), source }),
            Err(source) => return Err(InitError::ParentNotWritable { path: near.to_owned(), source }),
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}
