//! Proved lists of chunks, kept in `cache/chunks/` so that a blob is read once for all who ask. The server and finished downloads
//! write them. Each file begins with its own digest: a disk that rots must not make us misbehave.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use kedge_model::wire::{BlobRef, Digest};

use super::chunks::ChunkList;
use crate::paths::Paths;

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Lists {
    folder: PathBuf,
}

/// More blobs of several chunks than a host runs; 16 MiB at the very most for what is usual.
const KEPT: usize = 128;
/// `sha256:<64 digits>` and a line's end.
const SEAL: usize = 72;

impl Lists {
    pub fn of(paths: &Paths) -> Lists {
        Lists { folder: paths.cache().join("chunks") }
    }

    /// As JSON, if it is there and as it was written.
    pub fn read(&self, blob: &BlobRef) -> Option<(ChunkList, Vec<u8>)> {
        let json = unseal(&self.path(&blob.digest), ChunkList::limit(blob.size))?;
        Some((ChunkList::parse(&json, blob).ok()?, json))
    }

    /// It can be made again: a disk that refuses costs time only.
    pub fn keep(&self, digest: &Digest, list: &ChunkList) {
        let kept = fs::create_dir_all(&self.folder).and_then(|()| {
            self.sweep()?;
            seal(&self.path(digest), list)
        });
        if let Err(error) = kept {
            tracing::debug!(%digest, %error, "a list of chunks isn't kept");
        }
    }

    /// The oldest go.
    fn sweep(&self) -> io::Result<()> {
        let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            found.push((entry.metadata()?.modified()?, entry.path()));
        }
        found.sort();
        let more = (found.len() + 1).saturating_sub(KEPT);
        found.iter().take(more).try_for_each(|(_, path)| fs::remove_file(path))
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(digest.hex())
    }
}

/// Writes a list with its digest before it. A cut may leave anything: `unseal` sees it.
pub(super) fn seal(path: &Path, list: &ChunkList) -> io::Result<()> {
    let json = list.to_json()?;
    let mut bytes = format!("{}\n", Digest::of(&json)).into_bytes();
    bytes.extend_from_slice(&json);
    fs::write(path, bytes)
}

/// The JSON of a list that is as it was written.
pub(super) fn unseal(path: &Path, most: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).ok()?;
    file.take(most + SEAL as u64 + 1).read_to_end(&mut bytes).ok()?;
    let (seal, json) = bytes.split_at_checked(SEAL)?;
    let digest: Digest = std::str::from_utf8(seal.strip_suffix(b"\n")?).ok()?.parse().ok()?;
    (Digest::of(json) == digest).then(|| json.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::chunks::CHUNK;

    fn list(number: u64) -> (BlobRef, ChunkList) {
        let digest = Digest::of(&number.to_be_bytes());
        let size = CHUNK + 1;
        (BlobRef { digest, size }, ChunkList { size, chunk: CHUNK, digests: vec![digest; 2] })
    }

    #[test]
    fn a_kept_list_is_read_again_and_a_damaged_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let lists = Lists { folder: folder.path().join("chunks") };
        let (blob, list) = list(1);
        assert!(lists.read(&blob).is_none());
        lists.keep(&blob.digest, &list);
        assert_eq!(lists.read(&blob).unwrap().0, list);
        let path = lists.path(&blob.digest);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&path, &damaged).unwrap();
            assert!(lists.read(&blob).is_none(), "byte {at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert!(lists.read(&blob).is_none(), "cut at {at}");
        }
    }

    #[test]
    fn only_so_many_lists_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let lists = Lists { folder: folder.path().to_owned() };
        for number in 0..KEPT as u64 + 20 {
            let (blob, list) = list(number);
            lists.keep(&blob.digest, &list);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), KEPT);
        let (newest, _) = list(KEPT as u64 + 19);
        assert!(lists.read(&newest).is_some());
    }
}
