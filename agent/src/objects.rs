//! Content by digest, in one folder: packages, files, debs, artifacts, and what a way back needs. An object appears only whole
//! and synced, so whoever finds one may use it. Link, goal and the host applier put and read them.

pub mod collect;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use kedge_model::wire::Digest;
use ring::digest::{Context, SHA256};

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Objects {
    folder: PathBuf,
}

/// Several objects that become visible together, with one sync of the folder.
#[derive(Debug)]
pub struct Batch<'o> {
    objects: &'o Objects,
    pending: BTreeMap<Digest, PathBuf>,
}

/// An object that is being written, whose digest is known at its end.
pub struct Writing {
    file: File,
    temporary: PathBuf,
    hash: Context,
}

/// What is read of a file at one time.
const PIECE: usize = 64 * 1024;
/// More files than that are synced with their whole file system at once.
const SYNC_EACH: usize = 8;
/// A tenant that knows an artifact's digest reaches it; nobody lists what is here.
const FOLDER_MODE: u32 = 0o711;
/// Packages hold settings that aren't everybody's.
const PRIVATE: u32 = 0o600;
/// An artifact is read by the tenant's own user.
const PUBLISHED: u32 = 0o644;

static COUNTER: AtomicU64 = AtomicU64::new(0);

impl Objects {
    pub fn open(folder: &Path) -> io::Result<Objects> {
        if !folder.is_dir() {
            fs::create_dir_all(folder)?;
        }
        // Tenants pass through the folder above on their way to an artifact.
        for (path, mode) in [(folder.parent(), FOLDER_MODE & 0o011), (Some(folder), FOLDER_MODE)] {
            let Some(path) = path else { continue };
            let is = fs::metadata(path)?.permissions().mode() & 0o777;
            let wanted = if path == folder { mode } else { is | mode };
            // Whoever only reads need not own it.
            if is != wanted && fs::set_permissions(path, Permissions::from_mode(wanted)).is_err() {
                tracing::debug!(path = %path.display(), "permissions stay as they are");
            }
        }
        Ok(Objects { folder: folder.to_owned() })
    }

    /// Where the object is, if it is there: `sha256-<hex>`.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(digest.to_string().replace(':', "-"))
    }

    pub fn has(&self, digest: &Digest) -> bool {
        self.path(digest).is_file()
    }

    pub fn read(&self, digest: &Digest) -> io::Result<File> {
        File::open(self.path(digest))
    }

    /// A whole object in memory; one that is larger than the limit, or that a disk damaged, is an error.
    pub fn read_small(&self, digest: &Digest, limit: u64) -> io::Result<Vec<u8>> {
        let file = self.read(digest)?;
        if file.metadata()?.len() > limit {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {limit} bytes")));
        }
        let mut bytes = Vec::new();
        file.take(limit).read_to_end(&mut bytes)?;
        if Digest::of(&bytes) != *digest {
            self.remove(digest)?;
            return Err(damaged(digest));
        }
        Ok(bytes)
    }

    /// Whether its content is what its name says. One that isn't goes, so that it is made or fetched again.
    pub fn is_whole(&self, digest: &Digest) -> bool {
        let whole = digest_of(&self.path(digest)).is_ok_and(|found| found == *digest);
        if !whole {
            tracing::warn!(%digest, "an object was damaged on the disk and is removed");
            _ = self.remove(digest);
        }
        whole
    }

    pub fn size(&self, digest: &Digest) -> io::Result<u64> {
        fs::metadata(self.path(digest)).map(|metadata| metadata.len())
    }

    pub fn put(&self, bytes: &[u8]) -> io::Result<Digest> {
        let mut batch = self.batch();
        let digest = batch.put(bytes)?;
        batch.finish()?;
        Ok(digest)
    }

    /// A copy of a file of the host, as it is while it is read.
    pub fn put_copy(&self, path: &Path) -> io::Result<Digest> {
        self.put_stream(File::open(path)?)
    }

    /// Everything that a reader gives, piece by piece.
    pub fn put_stream(&self, mut from: impl Read) -> io::Result<Digest> {
        let (mut batch, mut writing) = (self.batch(), self.begin()?);
        let mut piece = vec![0; PIECE];
        loop {
            match from.read(&mut piece)? {
                0 => break,
                read => writing.write(&piece[..read])?,
            }
        }
        let digest = batch.end(writing)?;
        batch.finish()?;
        Ok(digest)
    }

    /// Takes over a file of the same file system whose digest the caller has checked while it wrote it.
    pub fn adopt(&self, path: &Path, digest: &Digest) -> io::Result<()> {
        if self.use_again(digest) {
            return fs::remove_file(path);
        }
        let file = File::open(path)?;
        file.set_permissions(Permissions::from_mode(PRIVATE))?;
        file.sync_all()?;
        fs::rename(path, self.path(digest))?;
        self.sync()
    }

    /// An artifact: the tenant's programs may read it.
    pub fn publish(&self, digest: &Digest) -> io::Result<()> {
        fs::set_permissions(self.path(digest), Permissions::from_mode(PUBLISHED))
    }

    pub fn remove(&self, digest: &Digest) -> io::Result<()> {
        fs::remove_file(self.path(digest))
    }

    pub fn batch(&self) -> Batch<'_> {
        Batch { objects: self, pending: BTreeMap::new() }
    }

    pub fn begin(&self) -> io::Result<Writing> {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let temporary = self.folder.join(format!("incoming-{}-{number}.new", std::process::id()));
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(PRIVATE).open(&temporary)?;
        Ok(Writing { file, temporary, hash: Context::new(&SHA256) })
    }

    /// Whether it is there; being wanted makes it young again.
    pub fn use_again(&self, digest: &Digest) -> bool {
        let Ok(file) = self.read(digest) else { return false };
        // A file that can't be touched is only collected earlier.
        _ = file.set_modified(SystemTime::now());
        true
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }
}

impl Writing {
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.hash.update(bytes);
        Ok(())
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        // It was renamed, or nobody will finish it.
        _ = fs::remove_file(&self.temporary);
    }
}

impl std::fmt::Debug for Writing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writing").field("temporary", &self.temporary).finish_non_exhaustive()
    }
}

impl Batch<'_> {
    /// Bytes that are in memory anyway: nothing is written if they are here already.
    pub fn put(&mut self, bytes: &[u8]) -> io::Result<Digest> {
        let digest = Digest::of(bytes);
        if !self.is_known(&digest) {
            let mut writing = self.objects.begin()?;
            writing.write(bytes)?;
            self.end(writing)?;
        }
        Ok(digest)
    }

    /// The content is complete; it is visible after `finish`.
    pub fn end(&mut self, mut writing: Writing) -> io::Result<Digest> {
        let digest = Digest::finish(std::mem::replace(&mut writing.hash, Context::new(&SHA256)));
        if !self.is_known(&digest) {
            let complete = self.objects.path(&digest).with_extension("new");
            fs::rename(&writing.temporary, &complete)?;
            self.pending.insert(digest, complete);
        }
        Ok(digest)
    }

    /// Everything is on the disk before the first name says so.
    pub fn finish(mut self) -> io::Result<()> {
        if self.pending.len() > SYNC_EACH {
            nix::unistd::syncfs(File::open(&self.objects.folder)?)?;
        } else {
            self.pending.values().try_for_each(|path| File::open(path)?.sync_all())?;
        }
        for (digest, temporary) in &self.pending {
            fs::rename(temporary, self.objects.path(digest))?;
        }
        if self.pending.is_empty() {
            return Ok(());
        }
        self.pending.clear();
        self.objects.sync()
    }

    fn is_known(&self, digest: &Digest) -> bool {
        self.pending.contains_key(digest) || self.objects.use_again(digest)
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        for temporary in self.pending.values() {
            _ = fs::remove_file(temporary);
        }
    }
}

/// A disk that rots; the object was removed, so another try finds it whole.
pub fn damaged(digest: &Digest) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{digest} was damaged on the disk; it is made again"))
}

/// The digest of a file, read piece by piece.
pub fn digest_of(path: &Path) -> io::Result<Digest> {
    digest_of_stream(File::open(path)?)
}

/// The digest of all that a reader gives.
pub fn digest_of_stream(mut from: impl Read) -> io::Result<Digest> {
    let (mut hash, mut piece) = (Context::new(&SHA256), vec![0; PIECE]);
    loop {
        match from.read(&mut piece)? {
            0 => return Ok(Digest::finish(hash)),
            read => hash.update(&piece[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects() -> (tempfile::TempDir, Objects) {
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::open(&folder.path().join("state/objects")).unwrap();
        (folder, objects)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn an_object_is_private_until_it_is_published() {
        let (folder, objects) = objects();
        let digest = objects.put(b"secret").unwrap();
        assert_eq!(digest, Digest::of(b"secret"));
        assert_eq!(mode(&objects.path(&digest)), 0o600);
        objects.publish(&digest).unwrap();
        objects.put(b"secret").unwrap();
        assert_eq!(mode(&objects.path(&digest)), 0o644);
        assert_eq!(mode(&folder.path().join("state/objects")), 0o711);
        assert_eq!(mode(&folder.path().join("state")) & 0o011, 0o011);
    }

    #[test]
    fn an_adopted_file_leaves_no_copy_and_keeps_what_is_published() {
        let (folder, objects) = objects();
        let digest = Digest::of(b"model");
        for _ in 0..2 {
            let download = folder.path().join("download");
            fs::write(&download, "model").unwrap();
            objects.adopt(&download, &digest).unwrap();
            assert!(!download.exists());
            objects.publish(&digest).unwrap();
        }
        assert_eq!(mode(&objects.path(&digest)), 0o644);
        assert_eq!(objects.size(&digest).unwrap(), 5);
    }

    #[test]
    fn a_batch_that_is_given_up_leaves_nothing() {
        let (_folder, objects) = objects();
        let mut batch = objects.batch();
        let mut writing = objects.begin().unwrap();
        writing.write(b"half").unwrap();
        batch.end(writing).unwrap();
        let unfinished = objects.begin().unwrap();
        drop((unfinished, batch));
        assert_eq!(fs::read_dir(&objects.folder).unwrap().count(), 0);
    }

    #[test]
    fn a_large_batch_shows_all_its_objects_once() {
        let (_folder, objects) = objects();
        let mut batch = objects.batch();
        let mut digests = Vec::new();
        let texts: Vec<String> = (0..20).map(|number| (number % 15).to_string()).collect();
        for text in &texts {
            let mut writing = objects.begin().unwrap();
            writing.write(text.as_bytes()).unwrap();
            digests.push(batch.end(writing).unwrap());
        }
        assert!(!objects.has(&digests[0]));
        batch.finish().unwrap();
        assert!(digests.iter().all(|digest| objects.has(digest)));
        assert_eq!(fs::read_dir(&objects.folder).unwrap().count(), 15);
    }

    #[test]
    fn a_small_read_refuses_what_is_large_or_damaged() {
        let (_folder, objects) = objects();
        let digest = objects.put(b"12345").unwrap();
        assert_eq!(objects.read_small(&digest, 5).unwrap(), b"12345");
        assert!(objects.read_small(&digest, 4).is_err());
        assert!(objects.is_whole(&digest));
        fs::write(objects.path(&digest), "rot").unwrap();
        assert_eq!(objects.read_small(&digest, 5).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert!(!objects.has(&digest));
    }
}
