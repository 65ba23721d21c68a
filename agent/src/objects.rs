//! Content by digest, in one folder: packages, files, debs, artifacts, and what a way back needs. An object appears only whole
//! and synced, so whoever finds one may use it. Link, goal and the host applier put and read them.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use kedge_model::wire::Digest;
use ring::digest::{Context, SHA256};

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Objects {
    folder: PathBuf,
}

/// What is read of a file at one time.
const PIECE: usize = 64 * 1024;

impl Objects {
    pub fn open(folder: &Path) -> io::Result<Objects> {
        fs::create_dir_all(folder)?;
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

    pub fn put(&self, bytes: &[u8]) -> io::Result<Digest> {
        let digest = Digest::of(bytes);
        if !self.has(&digest) {
            let temporary = self.path(&digest).with_extension("new");
            let mut file = File::create(&temporary)?;
            file.write_all(bytes)?;
            self.settle(&file, &temporary, &digest)?;
        }
        Ok(digest)
    }

    /// A copy of a file of the host.
    pub fn put_copy(&self, path: &Path) -> io::Result<Digest> {
        let digest = digest_of(path)?;
        if !self.has(&digest) {
            let temporary = self.path(&digest).with_extension("new");
            let mut file = File::create(&temporary)?;
            io::copy(&mut File::open(path)?, &mut file)?;
            if digest_of(&temporary)? != digest {
                return Err(io::Error::other(format!("{} changed while it was copied", path.display())));
            }
            self.settle(&file, &temporary, &digest)?;
        }
        Ok(digest)
    }

    /// Takes over a file of the same file system whose digest the caller has checked while it wrote it.
    pub fn adopt(&self, path: &Path, digest: &Digest) -> io::Result<()> {
        self.settle(&File::open(path)?, path, digest)
    }

    pub fn remove(&self, digest: &Digest) -> io::Result<()> {
        fs::remove_file(self.path(digest))
    }

    fn settle(&self, file: &File, temporary: &Path, digest: &Digest) -> io::Result<()> {
        file.sync_all()?;
        fs::rename(temporary, self.path(digest))?;
        File::open(&self.folder)?.sync_all()
    }
}

/// The digest of a file, read piece by piece.
pub fn digest_of(path: &Path) -> io::Result<Digest> {
    let (mut file, mut hash, mut piece) = (File::open(path)?, Context::new(&SHA256), vec![0; PIECE]);
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            break;
        }
        hash.update(&piece[..read]);
    }
    Ok(Digest::finish(hash))
}
