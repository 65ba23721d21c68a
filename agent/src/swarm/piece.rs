//! One request to one holder: its list, or a chunk that is hashed while it is written to its place. A round begins them and may drop
//! them at any time; nothing is kept in memory but what just came.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use kedge_model::wire::{BlobRef, Digest};
use ring::digest::{Context, SHA256};
use tokio::time::{Instant, timeout, timeout_at};

use super::chunks::{CHUNK, ChunkList};
use super::holder::{Holder, HolderError, Misbehavior, Pieces};

/// A chunk that is to be fetched.
#[derive(Clone, Debug)]
pub struct Piece {
    pub index: usize,
    pub range: Range<u64>,
    pub digest: Digest,
}

/// Why a request came to nothing.
#[derive(Debug)]
pub enum Fault {
    Misbehavior(Misbehavior),
    Away(HolderError),
    Slow,
    /// Not the holder's.
    Disk(io::Error),
}

/// A peer on the same LAN that gives nothing for so long has other worries.
const SILENCE: Duration = Duration::from_secs(15);
/// For each MiB: 17 kB/s, less than which the hub's thin line has too.
const MIB_WITHIN: Duration = Duration::from_secs(60);
/// Whoever is asked first reads the whole blob from a slow disk.
const LIST_WITHIN: Duration = Duration::from_secs(55);

/// A list of the right shape.
pub async fn list(holder: Arc<dyn Holder>, blob: BlobRef) -> Result<ChunkList, Fault> {
    let limit = ChunkList::limit(blob.size);
    let read = async {
        let mut pieces = holder.chunks(blob.digest).await?;
        let mut json = Vec::new();
        while let Some(piece) = pieces.next().await {
            json.extend_from_slice(&piece?);
            if json.len() as u64 > limit {
                return Err(Fault::Misbehavior(Misbehavior::Endless { blob: blob.digest }));
            }
        }
        Ok(json)
    };
    let json = timeout(LIST_WITHIN, read).await.map_err(|_| Fault::Slow).flatten()?;
    ChunkList::parse(&json, &blob).map_err(|why| Fault::Misbehavior(Misbehavior::List { blob: blob.digest, why }))
}

/// The chunk is at its place when this returns. `got` counts its bytes as they come.
pub async fn fetch(
    holder: Arc<dyn Holder>,
    blob: Digest,
    piece: Piece,
    file: Arc<File>,
    got: Arc<AtomicU64>,
) -> Result<(), Fault> {
    let length = piece.range.end - piece.range.start;
    let within = MIB_WITHIN * u32::try_from(length.div_ceil(CHUNK)).unwrap_or(u32::MAX);
    let until = Instant::now() + within;
    let asked = timeout(SILENCE, holder.range(blob, piece.range.clone()));
    let mut pieces: Pieces = asked.await.map_err(|_| Fault::Slow)??;
    let mut hash = Context::new(&SHA256);
    let mut at = piece.range.start;
    loop {
        let next = timeout_at(until.min(Instant::now() + SILENCE), pieces.next());
        let Some(bytes) = next.await.map_err(|_| Fault::Slow)? else { break };
        let bytes = bytes?;
        if bytes.len() as u64 > piece.range.end - at {
            return Err(Fault::Misbehavior(Misbehavior::Endless { blob }));
        }
        hash.update(&bytes);
        file.write_all_at(&bytes, at).map_err(Fault::Disk)?;
        at += bytes.len() as u64;
        got.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    }
    if at < piece.range.end {
        return Err(Fault::Away(HolderError::Broken("it ended early".to_owned())));
    }
    if Digest::finish(hash) == piece.digest {
        Ok(())
    } else {
        Err(Fault::Misbehavior(Misbehavior::Chunk { blob, range: piece.range }))
    }
}

impl From<HolderError> for Fault {
    fn from(error: HolderError) -> Fault {
        Fault::Away(error)
    }
}
