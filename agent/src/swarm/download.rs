//! A download from several peers that isn't whole yet: `partial/<hex>.swarm` has the bytes, each chunk at its place, `.list` the list
//! that they are judged by, `.have` a bit for each chunk that was there. After a restart the bits are only a hint: what they name is
//! hashed again, so that a cut costs what wasn't synced and nothing is blamed on a peer.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kedge_model::wire::{BlobRef, Digest};
use ring::digest::{Context, SHA256};

use super::chunks::ChunkList;
use super::lists::{seal, unseal};
use crate::objects::digest_of;

#[derive(Debug)]
pub struct Download {
    blob: BlobRef,
    files: Files,
    data: Arc<File>,
    bits: File,
    list: Option<Arc<ChunkList>>,
    /// Chunks that aren't on the disk as the list says.
    missing: BTreeSet<usize>,
    unsynced: u64,
}

#[derive(Debug)]
struct Files {
    data: PathBuf,
    list: PathBuf,
    bits: PathBuf,
    /// A download from the hub: a beginning without holes.
    hub: PathBuf,
}

/// What is read of a file at one time.
const PIECE: usize = 64 * 1024;
/// A power cut costs at most so much of a download.
const SYNC_EVERY: u64 = 32 * 1024 * 1024;

impl Download {
    /// What is there of it. A beginning that came from the hub is taken over.
    pub async fn open(folder: &Path, blob: &BlobRef) -> io::Result<Download> {
        fs::create_dir_all(folder)?;
        let files = Files::of(folder, &blob.digest);
        if !files.data.exists() && files.hub.exists() {
            files.remove_hints();
            fs::rename(&files.hub, &files.data)?;
        }
        let mut settings = OpenOptions::new();
        settings.read(true).write(true).create(true).truncate(false).mode(0o600);
        let (data, bits) = (settings.open(&files.data)?, settings.open(&files.bits)?);
        if data.metadata()?.len() > blob.size {
            data.set_len(0)?;
        }
        let mut download = Download {
            blob: blob.clone(),
            data: Arc::new(data),
            bits,
            list: None,
            missing: BTreeSet::new(),
            unsynced: 0,
            files,
        };
        let kept = unseal(&download.files.list, ChunkList::limit(blob.size));
        let kept = kept.and_then(|json| ChunkList::parse(&json, blob).ok());
        if let Some(list) = ChunkList::of_small(blob) {
            download.begin_with(Arc::new(list)).await?;
        } else if let Some(list) = kept {
            let marked = download.marked(list.digests.len());
            download.look_again(Arc::new(list), marked).await?;
        }
        Ok(download)
    }

    pub fn path(&self) -> &Path {
        &self.files.data
    }

    pub fn data(&self) -> Arc<File> {
        Arc::clone(&self.data)
    }

    pub fn list(&self) -> Option<&Arc<ChunkList>> {
        self.list.as_ref()
    }

    pub fn missing(&self) -> &BTreeSet<usize> {
        &self.missing
    }

    pub fn is_complete(&self) -> bool {
        self.list.is_some() && self.missing.is_empty()
    }

    /// How many bytes are there as the list says.
    pub fn bytes(&self) -> u64 {
        let Some(list) = &self.list else { return 0 };
        let length = |index: &usize| list.range(*index).end - list.range(*index).start;
        self.blob.size - self.missing.iter().map(length).sum::<u64>()
    }

    /// Judges by this list from now on. What is there and the same in both stays.
    pub async fn judge_by(&mut self, list: Arc<ChunkList>) -> io::Result<()> {
        match self.list.take() {
            None => self.begin_with(list).await?,
            Some(before) => {
                let differ = |index: &usize| before.digests.get(*index) != list.digests.get(*index);
                self.missing.extend((0..list.digests.len()).filter(differ));
                self.list = Some(list);
                self.write_hints()?;
            }
        }
        Ok(())
    }

    /// The chunk is there, and was found to be what the list says.
    pub async fn mark(&mut self, index: usize) -> io::Result<()> {
        self.missing.remove(&index);
        let byte =
            (index / 8 * 8..index / 8 * 8 + 8).filter(|at| self.is_there(*at)).fold(0, |byte, at| byte | 1 << (at % 8));
        self.bits.write_all_at(&[byte], index as u64 / 8)?;
        self.unsynced += self.list.as_ref().map_or(0, |list| list.chunk);
        if self.unsynced >= SYNC_EVERY {
            self.unsynced = 0;
            let data = self.data();
            tokio::task::spawn_blocking(move || data.sync_data()).await.map_err(io::Error::other).flatten()?;
        }
        Ok(())
    }

    /// What all of it is; read elsewhere.
    pub async fn digest(&self) -> io::Result<Digest> {
        if self.data.metadata()?.len() != self.blob.size {
            self.data.set_len(self.blob.size)?;
        }
        let path = self.files.data.clone();
        tokio::task::spawn_blocking(move || digest_of(&path)).await.map_err(io::Error::other).flatten()
    }

    /// Hashes every chunk again; how many the disk didn't keep.
    pub async fn look_at_all(&mut self) -> io::Result<usize> {
        let Some(list) = self.list.clone() else { return Ok(0) };
        let all = (0..list.digests.len()).collect();
        self.look_again(list, all).await?;
        self.write_hints()?;
        Ok(self.missing.len())
    }

    /// From the first byte, by whatever list.
    pub fn restart(&mut self) -> io::Result<()> {
        self.data.set_len(0)?;
        self.bits.set_len(0)?;
        (self.list, self.missing) = (None, BTreeSet::new());
        match fs::remove_file(&self.files.list) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The bytes are an object now.
    pub fn forget(self) {
        self.files.remove_hints();
    }

    /// The chunks before the first hole become a download from the hub; answers how many bytes that are.
    pub fn hand_over(folder: &Path, blob: &BlobRef) -> io::Result<u64> {
        let files = Files::of(folder, &blob.digest);
        let Ok(data) = OpenOptions::new().write(true).open(&files.data) else { return Ok(0) };
        let list = unseal(&files.list, ChunkList::limit(blob.size));
        let list = list.and_then(|json| ChunkList::parse(&json, blob).ok()).or_else(|| ChunkList::of_small(blob));
        let bits = fs::read(&files.bits).unwrap_or_default();
        let length = list.map_or(0, |list| {
            let whole = (0..list.digests.len()).take_while(|index| is_set(&bits, *index)).count();
            list.range(whole).start
        });
        // A file that is shorter than its hints is one that a cut left.
        let length = length.min(data.metadata()?.len());
        let before = fs::metadata(&files.hub).map_or(0, |metadata| metadata.len());
        if length > before {
            data.set_len(length)?;
            fs::rename(&files.data, &files.hub)?;
        } else {
            fs::remove_file(&files.data)?;
        }
        files.remove_hints();
        Ok(length.max(before))
    }

    /// The first list: whatever is there is looked at, for it may have come from the hub.
    async fn begin_with(&mut self, list: Arc<ChunkList>) -> io::Result<()> {
        let length = self.data.metadata()?.len();
        let there = (0..list.digests.len()).take_while(|index| list.range(*index).end <= length).collect();
        self.look_again(Arc::clone(&list), there).await?;
        self.write_hints()
    }

    async fn look_again(&mut self, list: Arc<ChunkList>, there: BTreeSet<usize>) -> io::Result<()> {
        self.missing = (0..list.digests.len()).collect();
        for index in there {
            let (range, digest) = (list.range(index), list.digests.get(index).copied());
            if digest.is_some() && digest == self.digest_of(range).await? {
                self.missing.remove(&index);
            }
        }
        self.list = Some(list);
        Ok(())
    }

    /// None: the file is shorter.
    async fn digest_of(&self, range: std::ops::Range<u64>) -> io::Result<Option<Digest>> {
        let (mut hash, mut at, mut piece) = (Context::new(&SHA256), range.start, vec![0; PIECE]);
        while at < range.end {
            let most = usize::try_from(range.end - at).unwrap_or(PIECE).min(PIECE);
            let read = self.data.read_at(&mut piece[..most], at)?;
            if read == 0 {
                return Ok(None);
            }
            hash.update(&piece[..read]);
            at += read as u64;
            // A gigabyte takes seconds: others have their turn meanwhile.
            tokio::task::yield_now().await;
        }
        Ok(Some(Digest::finish(hash)))
    }

    fn write_hints(&self) -> io::Result<()> {
        let Some(list) = &self.list else { return Ok(()) };
        // The list first: bits of another would only cost time.
        seal(&self.files.list, list)?;
        let bytes: Vec<u8> = (0..list.digests.len().div_ceil(8))
            .map(|byte| {
                (byte * 8..byte * 8 + 8).filter(|at| self.is_there(*at)).fold(0, |bits, at| bits | 1 << (at % 8))
            })
            .collect();
        self.bits.set_len(0)?;
        self.bits.write_all_at(&bytes, 0)
    }

    fn is_there(&self, index: usize) -> bool {
        let known = self.list.as_ref().is_some_and(|list| index < list.digests.len());
        known && !self.missing.contains(&index)
    }

    fn marked(&self, count: usize) -> BTreeSet<usize> {
        let bits = fs::read(&self.files.bits).unwrap_or_default();
        (0..count).filter(|index| is_set(&bits, *index)).collect()
    }
}

impl Files {
    fn of(folder: &Path, digest: &Digest) -> Files {
        let hub = folder.join(digest.hex());
        let of = |suffix| hub.with_extension(suffix);
        Files { data: of("swarm"), list: of("list"), bits: of("have"), hub: hub.clone() }
    }

    /// They can be made again from the bytes.
    fn remove_hints(&self) {
        _ = fs::remove_file(&self.list);
        _ = fs::remove_file(&self.bits);
    }
}

fn is_set(bits: &[u8], index: usize) -> bool {
    bits.get(index / 8).is_some_and(|byte| byte & (1 << (index % 8)) != 0)
}
