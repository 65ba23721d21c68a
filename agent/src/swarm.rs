//! Big content from several peers at once. A blob is cut into chunks; each holder tells the chunks' digests and is judged by its own
//! list alone, so that nobody can make another look as if it misbehaved. What came is on the disk (`partial/`) and goes on after a restart;
//! an object appears only when the whole has the digest that the signed state names. The sync loop fetches, the peers' listener serves.

pub mod chunks;
pub mod holder;
pub mod lists;
pub mod serve;

mod download;
mod piece;
mod round;
mod seat;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;

use kedge_model::wire::{BlobRef, Digest};

pub use chunks::ChunkList;
use download::Download;
pub use holder::{Holder, HolderError, Misbehavior, Pieces, Sources};
use lists::Lists;
use round::Round;
pub use serve::{ServeError, Served, Server};

use crate::link::FetchError;
use crate::link::fetch::{check_space, of_disk};
use crate::objects::Objects;
use crate::paths::Paths;

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Swarm {
    partial: PathBuf,
    lists: Lists,
}

#[derive(Debug, thiserror::Error)]
pub enum SwarmError {
    /// Ask the hub; what came stays and is used.
    #[error("no peer gives {0}")]
    Nobody(Digest),
    /// As with a download from the hub.
    #[error(transparent)]
    Disk(#[from] FetchError),
}

impl Swarm {
    pub fn new(paths: &Paths) -> Swarm {
        Swarm { partial: paths.state().join("partial"), lists: Lists::of(paths) }
    }

    /// The blob is an object when this returns. May be stopped at any point, and goes on from there.
    pub async fn fetch(&self, blob: &BlobRef, sources: &dyn Sources, objects: &Objects) -> Result<(), SwarmError> {
        if objects.has(&blob.digest) {
            return Ok(());
        }
        let opened = Download::open(&self.partial, blob).await;
        let mut download = opened.map_err(|why| self.of_disk(blob, 0, why))?;
        check_space(blob, download.bytes(), &self.partial)?;
        let whole = Round::new(blob, sources, &mut download).run().await;
        whole.map_err(|stopped| match stopped {
            round::Stopped::Nobody => SwarmError::Nobody(blob.digest),
            round::Stopped::Disk(why) => self.of_disk(blob, download.bytes(), why),
        })?;
        self.adopt(download, blob, objects).await.map_err(|why| self.of_disk(blob, blob.size, why))
    }

    /// What came becomes the beginning of a download from the hub. Answers how many bytes that are.
    pub fn hand_over(&self, blob: &BlobRef) -> io::Result<u64> {
        Download::hand_over(&self.partial, blob)
    }

    /// Syncing gigabytes takes its time: elsewhere, so that the loop goes on.
    async fn adopt(&self, download: Download, blob: &BlobRef, objects: &Objects) -> io::Result<()> {
        let (objects, lists, digest) = (objects.clone(), self.lists.clone(), blob.digest);
        let adopted = tokio::task::spawn_blocking(move || {
            objects.adopt(download.path(), &digest)?;
            // It was proved just now: the next who asks needn't wait for it.
            if let Some(list) = download.list().filter(|list| list.digests.len() > 1) {
                lists.keep(&digest, list);
            }
            download.forget();
            Ok(())
        });
        adopted.await.map_err(io::Error::other).flatten()
    }

    fn of_disk(&self, blob: &BlobRef, have: u64, why: io::Error) -> SwarmError {
        SwarmError::Disk(of_disk(blob, have, &self.partial, why))
    }
}
