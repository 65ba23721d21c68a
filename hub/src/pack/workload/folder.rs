//! The private folder of one rendering: the files that a program reads, and for the renderer also where it may write. It
//! goes when it is dropped, whatever a program left in it. Used by `local`.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::pack::archive::Contents;

/// What a folder's name begins with.
const PREFIX: &str = "render-";
const SOURCE: &str = "source";
const SCRATCH: &str = "scratch";

/// Removed with everything in it.
#[derive(Debug)]
pub(super) struct JobFolder(PathBuf);

impl JobFolder {
    /// A new one below `above`, with the files and an empty scratch folder.
    pub fn make(above: &Path, files: &Contents) -> io::Result<JobFolder> {
        let random: u64 = rand::random();
        let root = above.join(format!("{PREFIX}{random:016x}"));
        fs::create_dir_all(above)?;
        // Its name is new, so it is ours.
        private(&root)?;
        let folder = JobFolder(root);
        private(&folder.source())?;
        private(&folder.scratch())?;
        for (path, file) in files.files() {
            let to = folder.source().join(path);
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(&to, &file.bytes)?;
            if file.executable {
                fs::set_permissions(&to, fs::Permissions::from_mode(0o755))?;
            }
        }
        Ok(folder)
    }

    pub fn source(&self) -> PathBuf {
        self.0.join(SOURCE)
    }

    pub fn scratch(&self) -> PathBuf {
        self.0.join(SCRATCH)
    }
}

impl Drop for JobFolder {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "a rendering's folder can't be removed; the next start tries again");
        }
    }
}

/// Removes what a killed process left below `above`.
pub(super) fn clear(above: &Path) {
    for left in fs::read_dir(above).into_iter().flatten().flatten() {
        if left.file_name().to_string_lossy().starts_with(PREFIX) {
            let _ = remove(&left.path());
        }
    }
}

/// Whether there is more below a folder than `bytes` on disk or `entries`, or something that can't be looked at.
pub(super) fn exceeds(folder: &Path, bytes: u64, entries: usize) -> bool {
    let (mut folders, mut size, mut seen) = (vec![folder.to_owned()], 0, 0);
    while let Some(folder) = folders.pop() {
        let listed = match fs::read_dir(&folder) {
            Ok(listed) => listed,
            // It went meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(_) => return true,
        };
        for entry in listed.flatten() {
            seen += 1;
            let Ok(metadata) = entry.metadata() else { continue };
            size += metadata.blocks() * 512;
            if size > bytes || seen > entries {
                return true;
            }
            if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    false
}

fn private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(folder)
}

/// As `remove_dir_all`, for a tree that somebody else made: deeper than a path is long or a stack is deep, with folders that
/// their owner may not read. What is in a folder's folder moves up, so that no path grows. Links aren't followed.
fn remove(root: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(root)?.is_dir() {
        return fs::remove_file(root);
    }
    open(root)?;
    let mut moved = 0_u64;
    loop {
        let mut emptied = true;
        for entry in fs::read_dir(root)? {
            let entry = entry?;
            emptied = false;
            if !entry.file_type()?.is_dir() {
                fs::remove_file(entry.path())?;
                continue;
            }
            open(&entry.path())?;
            for below in fs::read_dir(entry.path())? {
                let below = below?;
                if !below.file_type()?.is_dir() {
                    fs::remove_file(below.path())?;
                    continue;
                }
                // A folder that moves must be writable itself.
                open(&below.path())?;
                moved += 1;
                fs::rename(below.path(), root.join(format!("{PREFIX}{moved}-{:016x}", rand::random::<u64>())))?;
            }
            fs::remove_dir(entry.path())?;
        }
        if emptied {
            return fs::remove_dir(root);
        }
    }
}

fn open(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_that_is_deeper_than_a_path_is_long_goes() {
        let above = tempfile::tempdir().unwrap();
        let folder = JobFolder::make(above.path(), &Contents::default()).unwrap();
        let mut here =
            nix::fcntl::open(&folder.scratch(), nix::fcntl::OFlag::O_DIRECTORY, nix::sys::stat::Mode::empty()).unwrap();
        for _ in 0..3000 {
            let mode = nix::sys::stat::Mode::S_IRWXU;
            nix::sys::stat::mkdirat(&here, "deep", mode).unwrap();
            nix::fcntl::openat(&here, "file", nix::fcntl::OFlag::O_CREAT, mode).unwrap();
            here = nix::fcntl::openat(&here, "deep", nix::fcntl::OFlag::O_DIRECTORY, mode).unwrap();
        }
        drop(folder);
        assert_eq!(fs::read_dir(above.path()).unwrap().count(), 0);
    }

    #[test]
    fn closed_folders_go_and_links_are_not_followed() {
        let above = tempfile::tempdir().unwrap();
        let kept = above.path().join("kept");
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "kept").unwrap();
        let folder = JobFolder::make(above.path(), &Contents::default()).unwrap();
        let closed = folder.scratch().join("a/b/c");
        fs::create_dir_all(&closed).unwrap();
        std::os::unix::fs::symlink(&kept, closed.join("link")).unwrap();
        for path in [&closed, &folder.scratch().join("a/b"), &folder.scratch().join("a"), &folder.source()] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
        }
        drop(folder);
        let left: Vec<_> = fs::read_dir(above.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["kept"]);
        assert!(kept.join("file").exists());
    }

    #[test]
    fn a_folder_with_too_much_in_it_is_noticed() {
        let above = tempfile::tempdir().unwrap();
        fs::create_dir(above.path().join("below")).unwrap();
        fs::write(above.path().join("below/file"), vec![1; 100_000]).unwrap();
        assert!(!exceeds(above.path(), 1 << 20, 10));
        assert!(exceeds(above.path(), 50_000, 10));
        assert!(exceeds(above.path(), 1 << 20, 1));
        assert!(!exceeds(&above.path().join("went"), 0, 0));
    }

    #[test]
    fn what_a_killed_process_left_is_cleared_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["render-0123", "other"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        clear(folder.path());
        assert!(!folder.path().join("render-0123").exists() && folder.path().join("other").exists());
    }
}
