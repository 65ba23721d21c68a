//! A download that isn't whole yet: `partial/<hex>`. What is there is hashed again when it goes on, also after a restart or a power
//! cut, so that a wrong byte is found at the end wherever it came from. Each file is renamed into the objects, never copied.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use kedge_model::wire::Digest;
use ring::digest::{Context, SHA256};

/// Open for appending; the running digest is of everything before the end.
pub struct Partial {
    path: PathBuf,
    file: File,
    hash: Context,
    length: u64,
    synced: u64,
}

/// What is read of a file at one time.
const PIECE: usize = 64 * 1024;
/// A power cut costs at most so much of a download.
const SYNC_EVERY: u64 = 32 * 1024 * 1024;

impl Partial {
    /// What is there of it, hashed; a file that is longer than the whole begins anew.
    pub async fn open(folder: &Path, digest: &Digest, size: u64) -> io::Result<Partial> {
        fs::create_dir_all(folder)?;
        let path = folder.join(digest.hex());
        use std::os::unix::fs::OpenOptionsExt as _;
        // An append can't land anywhere but behind what was hashed.
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&path)?;
        let mut partial = Partial { path, file, hash: Context::new(&SHA256), length: 0, synced: 0 };
        if partial.file.metadata()?.len() > size {
            partial.restart()?;
        }
        let (mut reader, mut piece) = (File::open(&partial.path)?, vec![0; PIECE]);
        loop {
            let read = reader.read(&mut piece)?;
            if read == 0 {
                break;
            }
            partial.hash.update(&piece[..read]);
            partial.length += read as u64;
            // A gigabyte takes seconds: others have their turn meanwhile.
            tokio::task::yield_now().await;
        }
        partial.synced = partial.length;
        Ok(partial)
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(bytes);
        if written.is_err() {
            // A piece of it may be there: what is hashed and what is written must stay the same.
            self.file.set_len(self.length)?;
        }
        written?;
        self.hash.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// A handle to sync elsewhere, when so much came that it is worth it.
    pub fn due_for_sync(&mut self) -> io::Result<Option<File>> {
        if self.length - self.synced < SYNC_EVERY {
            return Ok(None);
        }
        self.synced = self.length;
        self.file.try_clone().map(Some)
    }

    /// From the first byte.
    pub fn restart(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        (self.hash, self.length, self.synced) = (Context::new(&SHA256), 0, 0);
        Ok(())
    }

    pub fn digest(&self) -> Digest {
        Digest::finish(self.hash.clone())
    }

    pub fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// Takes away what is there of others, from the hub or from peers; how many bytes that freed.
pub fn sweep_others(folder: &Path, kept: &Digest) -> io::Result<u64> {
    let (kept, mut freed) = (kept.hex(), 0);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().and_then(|name| name.split('.').next()) != Some(kept.as_str()) {
            let size = entry.metadata()?.len();
            fs::remove_file(entry.path())?;
            freed += size;
        }
    }
    Ok(freed)
}

impl std::fmt::Debug for Partial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Partial({}, {} bytes)", self.path.display(), self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_download_goes_on_after_a_restart_with_the_same_digest() {
        let folder = tempfile::tempdir().unwrap();
        let (content, digest) = (b"hello, edge", Digest::of(b"hello, edge"));
        let mut partial = Partial::open(folder.path(), &digest, 11).await.unwrap();
        partial.append(&content[..4]).unwrap();
        drop(partial);
        let mut partial = Partial::open(folder.path(), &digest, 11).await.unwrap();
        assert_eq!(partial.length(), 4);
        partial.append(&content[4..]).unwrap();
        assert_eq!(partial.digest(), digest);
        partial.restart().unwrap();
        assert_eq!((partial.length(), partial.digest()), (0, Digest::of(b"")));
    }

    #[tokio::test]
    async fn one_that_is_too_long_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let digest = Digest::of(b"abc");
        fs::write(folder.path().join(digest.hex()), b"abcdef").unwrap();
        assert_eq!(Partial::open(folder.path(), &digest, 3).await.unwrap().length(), 0);
    }

    #[tokio::test]
    async fn a_sweep_keeps_the_one_that_is_needed() {
        let folder = tempfile::tempdir().unwrap();
        let (kept, old) = (Digest::of(b"kept"), Digest::of(b"old"));
        for digest in [kept, old] {
            Partial::open(folder.path(), &digest, 9).await.unwrap().append(b"1234").unwrap();
        }
        let from_peers = |digest: &Digest| folder.path().join(digest.hex()).with_extension("swarm");
        fs::write(from_peers(&kept), "12").unwrap();
        fs::write(from_peers(&old), "12").unwrap();
        assert_eq!(sweep_others(folder.path(), &kept).unwrap(), 6);
        assert!(folder.path().join(kept.hex()).exists() && !folder.path().join(old.hex()).exists());
        assert!(from_peers(&kept).exists() && !from_peers(&old).exists());
    }
}
