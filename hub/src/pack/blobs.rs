//! Content on disk by its digest: `sha256/ab/<hex>` below the packages folder, which several hubs may share. A blob
//! appears whole and synced under its name or not at all. Written by the packer, read by whoever serves agents.

mod collect;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use kedge_model::wire::{BlobRef, Digest};

pub use collect::Collected;

/// The folder of packages. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Blobs {
    folder: Arc<Path>,
    /// Between looking whether a blob is there and saying that it is needed, it isn't collected.
    sweeping: Arc<Mutex<()>>,
}

/// A blob in the making. Dropped unfinished it leaves nothing.
pub struct BlobWriter {
    blobs: Blobs,
    file: File,
    path: Option<PathBuf>,
    context: ring::digest::Context,
    size: u64,
    limit: u64,
}

/// Many small blobs that become visible together: one sync for all of them.
#[derive(Debug)]
pub struct Batch {
    blobs: Blobs,
    pending: BTreeMap<Digest, PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// Worth another try once there is room.
    #[error("there is no room for packages in `{folder}`")]
    Full { folder: String, source: io::Error },
    #[error("there is no blob {0}")]
    Missing(Digest),
    #[error("the content is {found}, not {expected}")]
    Other { expected: Digest, found: Digest },
    #[error("the content has more than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("the packages in `{folder}` can't be used")]
    Io { folder: String, source: io::Error },
}

/// From so many on, one sync of the file system is cheaper than one for each file.
const SYNC_TOGETHER: usize = 16;

/// Below the packages folder: what isn't whole yet.
const UNFINISHED: &str = "unfinished";

static COUNTER: AtomicU64 = AtomicU64::new(0);

impl Blobs {
    /// Makes the folder if need be; only the hub's user reads it, because packages hold configuration.
    pub fn open(folder: &Path) -> Result<Blobs, BlobError> {
        let blobs = Blobs { folder: folder.into(), sweeping: Arc::default() };
        for part in [folder.join("sha256"), folder.join(UNFINISHED), folder.join("partial")] {
            private_folder(&part).map_err(|error| blobs.failed(error))?;
        }
        Ok(blobs)
    }

    pub fn path(&self, digest: &Digest) -> PathBuf {
        let hex = digest.hex();
        self.folder.join("sha256").join(&hex[..2]).join(&hex)
    }

    /// Where a download that may go on later is kept.
    pub(super) fn partial(&self, digest: &Digest) -> PathBuf {
        self.folder.join("partial").join(digest.hex())
    }

    pub fn size(&self, digest: &Digest) -> Option<u64> {
        let found = fs::symlink_metadata(self.path(digest)).ok()?;
        found.is_file().then_some(found.len())
    }

    /// Whether the blob is here as a whole; from now on it counts as needed for the time that unneeded ones are kept.
    pub fn claim(&self, blob: &BlobRef) -> bool {
        let _sweeping = self.sweeping.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.size(&blob.digest) == Some(blob.size) && collect::touch(&self.path(&blob.digest)).is_ok()
    }

    pub fn put(&self, bytes: &[u8]) -> Result<BlobRef, BlobError> {
        let mut batch = self.batch();
        let blob = batch.add(bytes)?;
        batch.commit()?;
        Ok(blob)
    }

    pub fn batch(&self) -> Batch {
        Batch { blobs: self.clone(), pending: BTreeMap::new() }
    }

    /// For content that is read in pieces; more than `limit` bytes are refused.
    pub fn writer(&self, limit: u64) -> Result<BlobWriter, BlobError> {
        let (file, path) = self.unfinished().map_err(|error| self.failed(error))?;
        let context = ring::digest::Context::new(&ring::digest::SHA256);
        Ok(BlobWriter { blobs: self.clone(), file, path: Some(path), context, size: 0, limit })
    }

    /// The open blob and its length.
    pub fn open_blob(&self, digest: &Digest) -> Result<(File, u64), BlobError> {
        let file = File::open(self.path(digest)).map_err(|error| self.missing(error, digest))?;
        let size = file.metadata().map_err(|error| self.failed(error))?.len();
        Ok((file, size))
    }

    /// The blob from an offset on, and its whole length. An offset behind the end reads nothing.
    pub fn open_range(&self, digest: &Digest, start: u64) -> Result<(File, u64), BlobError> {
        let (mut file, size) = self.open_blob(digest)?;
        file.seek(SeekFrom::Start(start.min(size))).map_err(|error| self.failed(error))?;
        Ok((file, size))
    }

    /// The whole content, checked; for what is known to be small.
    pub fn read(&self, digest: &Digest, limit: u64) -> Result<Vec<u8>, BlobError> {
        let (file, size) = self.open_blob(digest)?;
        if size > limit {
            return Err(BlobError::TooLarge { limit });
        }
        let mut bytes = Vec::new();
        file.take(limit).read_to_end(&mut bytes).map_err(|error| self.failed(error))?;
        match Digest::of(&bytes) {
            found if found == *digest => Ok(bytes),
            found => Err(BlobError::Other { expected: *digest, found }),
        }
    }

    /// A finished download takes its place. The caller has checked the digest of what was synced.
    pub(super) fn adopt(&self, from: &Path, digest: &Digest) -> Result<(), BlobError> {
        self.place(from, digest).and_then(|()| self.sync_folder_of(digest)).map_err(|error| self.failed(error))
    }

    fn unfinished(&self) -> io::Result<(File, PathBuf)> {
        // Several hubs may share the folder: the name is unique among processes and among machines.
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let random: u64 = rand::random();
        let path = self.folder.join(UNFINISHED).join(format!("{}-{number}-{random:016x}", std::process::id()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok((file, path))
    }

    fn place(&self, from: &Path, digest: &Digest) -> io::Result<()> {
        let to = self.path(digest);
        if let Some(folder) = to.parent()
            && !folder.is_dir()
        {
            private_folder(folder)?;
            File::open(self.folder.join("sha256"))?.sync_all()?;
        }
        fs::rename(from, to)
    }

    fn sync_folder_of(&self, digest: &Digest) -> io::Result<()> {
        match self.path(digest).parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }

    fn missing(&self, error: io::Error, digest: &Digest) -> BlobError {
        match error.kind() {
            io::ErrorKind::NotFound => BlobError::Missing(*digest),
            _ => self.failed(error),
        }
    }

    pub(super) fn failed(&self, source: io::Error) -> BlobError {
        let folder = self.folder.display().to_string();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => BlobError::Full { folder, source },
            _ => BlobError::Io { folder, source },
        }
    }
}

impl std::fmt::Debug for BlobWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlobWriter").field("path", &self.path).field("size", &self.size).finish_non_exhaustive()
    }
}

impl BlobWriter {
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        self.size += bytes.len() as u64;
        if self.size > self.limit {
            return Err(BlobError::TooLarge { limit: self.limit });
        }
        self.context.update(bytes);
        self.file.write_all(bytes).map_err(|error| self.blobs.failed(error))
    }

    /// Makes it visible, if it is what was expected.
    pub fn finish(mut self, expected: Option<&Digest>) -> Result<BlobRef, BlobError> {
        let digest = Digest::finish(self.context.clone());
        if let Some(expected) = expected.filter(|expected| **expected != digest) {
            return Err(BlobError::Other { expected: *expected, found: digest });
        }
        self.file.sync_all().map_err(|error| self.blobs.failed(error))?;
        if let Some(path) = &self.path {
            self.blobs.adopt(path, &digest)?;
        }
        self.path = None;
        Ok(BlobRef { digest, size: self.size })
    }
}

impl Drop for BlobWriter {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // What stays behind is swept by `collect`.
            let _ = fs::remove_file(path);
        }
    }
}

impl Batch {
    /// Writes a content. It is visible after `commit`.
    pub fn add(&mut self, bytes: &[u8]) -> Result<BlobRef, BlobError> {
        let blob = BlobRef { digest: Digest::of(bytes), size: bytes.len() as u64 };
        if self.pending.contains_key(&blob.digest) || self.blobs.claim(&blob) {
            return Ok(blob);
        }
        let (mut file, path) = self.blobs.unfinished().map_err(|error| self.blobs.failed(error))?;
        self.pending.insert(blob.digest, path);
        file.write_all(bytes).map_err(|error| self.blobs.failed(error))?;
        Ok(blob)
    }

    pub fn commit(mut self) -> Result<(), BlobError> {
        let blobs = self.blobs.clone();
        self.sync_and_place().map_err(|error| blobs.failed(error))
    }

    fn sync_and_place(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let together = self.pending.len() >= SYNC_TOGETHER;
        if together {
            nix::unistd::syncfs(File::open(&self.blobs.folder)?)?;
        } else {
            for path in self.pending.values() {
                File::open(path)?.sync_all()?;
            }
        }
        let digests: Vec<Digest> = self.pending.keys().copied().collect();
        for digest in &digests {
            if let Some(path) = self.pending.get(digest) {
                self.blobs.place(path, digest)?;
            }
            self.pending.remove(digest);
        }
        if together {
            return Ok(nix::unistd::syncfs(File::open(&self.blobs.folder)?)?);
        }
        digests.iter().try_for_each(|digest| self.blobs.sync_folder_of(digest))
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        for path in self.pending.values() {
            let _ = fs::remove_file(path);
        }
    }
}

fn private_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
mod tests;
