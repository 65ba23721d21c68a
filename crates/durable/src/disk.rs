//! The few things that durable files ask of a disk. `RealDisk` is the machine's; tests have one that forgets what wasn't synced.

use std::fmt::Debug;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Each call names a whole path. Nothing is durable before `sync_file` (bytes) and `sync_folder` (names).
pub trait Disk: Debug + Send + Sync {
    fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>>;
    /// Makes or empties the file, readable by its owner alone, and writes all of it.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    fn sync_file(&self, path: &Path) -> io::Result<()>;
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// For its owner alone, with what lacks above it; durable when it returns. One that is there stays as it is.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// The files of a folder, in order; none when there is no such folder.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;
    /// Waits until no other process holds this lock.
    fn lock(&self, path: &Path) -> io::Result<FileLock>;
}

#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

/// Counts the syncs on their way to another disk: what a write costs.
#[derive(Debug)]
pub struct CountingDisk {
    inner: Arc<dyn Disk>,
    syncs: AtomicU64,
}

/// Held until it is dropped.
#[derive(Debug)]
pub struct FileLock {
    _file: Option<File>,
}

/// What ledgers hold is nobody else's to read.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

impl Disk for RealDisk {
    fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let file = File::open(path)?;
        let mut bytes = Vec::new();
        file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {most} bytes")));
        }
        Ok(bytes)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(path)?;
        file.write_all(bytes)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        if path.is_dir() {
            return Ok(());
        }
        let parent = path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(parent)?;
        match DirBuilder::new().mode(FOLDER_MODE).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        // Each folder's name is in the one above it; the topmost ones were there before us.
        path.ancestors().skip(1).take(MADE_ABOVE).try_for_each(|above| match File::open(above) {
            Ok(folder) => folder.sync_all(),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            Err(error) => Err(error),
        })
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        paths.sort();
        Ok(paths)
    }

    fn lock(&self, path: &Path) -> io::Result<FileLock> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(FILE_MODE).open(path)?;
        file.lock()?;
        Ok(FileLock { _file: Some(file) })
    }
}

/// `/var/lib/kedge-agent/records`, and what may lack above it.
const MADE_ABOVE: usize = 4;

impl CountingDisk {
    pub fn new(inner: Arc<dyn Disk>) -> CountingDisk {
        CountingDisk { inner, syncs: AtomicU64::new(0) }
    }

    /// How many syncs were asked for.
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    fn count(&self) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
    }
}

impl Disk for CountingDisk {
    fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        self.inner.read(path, most)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.inner.write(path, bytes)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.count();
        self.inner.sync_file(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.count();
        self.inner.sync_folder(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.inner.make_folder(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        self.inner.list(folder)
    }

    fn lock(&self, path: &Path) -> io::Result<FileLock> {
        self.inner.lock(path)
    }
}

impl FileLock {
    /// The lock of a disk that no other process sees.
    pub fn of_nobody() -> FileLock {
        FileLock { _file: None }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn folders_and_files_are_their_owners_alone() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("var/lib/state");
        RealDisk.make_folder(&folder).unwrap();
        RealDisk.make_folder(&folder).unwrap();
        RealDisk.write(&folder.join("x"), b"secret").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join("x"))), (0o700, 0o600));
        assert_eq!(RealDisk.list(&folder).unwrap(), [folder.join("x")]);
        assert!(RealDisk.list(&place.path().join("nowhere")).unwrap().is_empty());
    }

    #[test]
    fn a_file_over_the_bound_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x");
        RealDisk.write(&path, b"12345").unwrap();
        assert_eq!(RealDisk.read(&path, 5).unwrap(), b"12345");
        assert_eq!(RealDisk.read(&path, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_lock_makes_the_next_one_wait() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("lock");
        let held = RealDisk.lock(&path).unwrap();
        let (told, heard) = std::sync::mpsc::channel();
        let waiting = std::thread::spawn({
            let path = path.clone();
            move || {
                let _held = RealDisk.lock(&path).unwrap();
                told.send(()).unwrap();
            }
        });
        assert!(File::open(&path).unwrap().try_lock().is_err());
        assert!(heard.try_recv().is_err());
        drop(held);
        heard.recv().unwrap();
        waiting.join().unwrap();
    }
}
