//! Which cache has what, as each last said, and downloads from them. The door writes it, the sync loop's downloads ask it before the hub.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use kedge_model::wire::{BlobRef, ClusterId, Digest};
use tokio::time::Instant;

use super::super::content::{Seat, Way};
use super::CacheKey;
use crate::objects::Objects;
use crate::paths::Paths;
use crate::swarm::{Holder, HolderError, Misbehavior, Pieces, Sources, Swarm, SwarmError};

/// Cheap to clone.
#[derive(Clone)]
pub struct Caches {
    swarm: Swarm,
    known: Arc<Mutex<BTreeMap<SocketAddr, Known>>>,
}

struct Known {
    seat: Arc<CacheSeat>,
    blobs: BTreeSet<Digest>,
    heard: Instant,
    /// It gave what can't be true, and isn't asked until then.
    shunned: Option<Instant>,
}

/// One cache. All show the same key, and each is one of its own.
struct CacheSeat {
    id: ClusterId,
    seat: Seat,
}

/// Who says nothing for so long is gone.
const SILENT: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_secs(1);
const SHUNNED: Duration = Duration::from_secs(600);
/// More nodes than that are enough to have everything.
const MOST: usize = 64;

impl Caches {
    pub fn new(paths: &Paths) -> Caches {
        Caches { swarm: Swarm::new(paths), known: Arc::default() }
    }

    /// One told what it has.
    pub(super) fn hear(&self, key: &CacheKey, address: SocketAddr, blobs: BTreeSet<Digest>) {
        let mut known = self.lock();
        known.retain(|_, one| one.heard.elapsed() < SILENT);
        if known.len() >= MOST && !known.contains_key(&address) {
            return;
        }
        let heard = Instant::now();
        let one = known.entry(address).or_insert_with(|| {
            tracing::info!(%address, "a cache of the cluster is here");
            let seat = Seat::new(key.id, Way::Own(key.mutual.clone()), vec![address]);
            let id = ClusterId::of_public_key(Digest::of(address.to_string().as_bytes()).as_bytes());
            Known { seat: Arc::new(CacheSeat { id, seat }), blobs: BTreeSet::new(), heard, shunned: None }
        });
        (one.blobs, one.heard) = (blobs, heard);
    }

    /// The blob is an object when this returns true. False: nobody has it.
    pub async fn fetch(&self, blob: &BlobRef, objects: &Objects) -> Result<bool, SwarmError> {
        if self.holders(&blob.digest).is_empty() {
            return Ok(false);
        }
        // A download from peers waits for others to come; here the hub is asked as soon as no cache is left.
        let left_alone = async {
            while !self.holders(&blob.digest).is_empty() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let fetched = tokio::select! {
            fetched = self.swarm.fetch(blob, self, objects) => fetched,
            () = left_alone => Err(SwarmError::Nobody(blob.digest)),
        };
        match fetched {
            Ok(()) => {
                tracing::info!(blob = %blob.digest, "it came from a cache of the cluster");
                Ok(true)
            }
            Err(SwarmError::Nobody(_)) => {
                if let Err(error) = self.swarm.hand_over(blob) {
                    tracing::debug!(%error, "what came from caches can't be used");
                }
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sources for Caches {
    fn holders(&self, blob: &Digest) -> Vec<Arc<dyn Holder>> {
        let known = self.lock();
        let asked = known.values().filter(|one| {
            one.heard.elapsed() < SILENT
                && one.shunned.is_none_or(|until| Instant::now() >= until)
                && one.blobs.contains(blob)
        });
        asked.map(|one| Arc::clone(&one.seat) as Arc<dyn Holder>).collect()
    }

    fn is_coming(&self, _blob: &Digest) -> bool {
        false
    }

    fn misbehaved(&self, who: ClusterId, misbehavior: Misbehavior) {
        let mut known = self.lock();
        let Some((address, misbehaving)) = known.iter_mut().find(|(_, one)| one.seat.id == who) else { return };
        tracing::warn!(%address, lie = %misbehavior, "a cache of the cluster gave wrong bytes and isn't asked for a while");
        misbehaving.shunned = Some(Instant::now() + SHUNNED);
    }
}

impl Holder for CacheSeat {
    fn cluster(&self) -> ClusterId {
        self.id
    }

    fn chunks(&self, blob: Digest) -> BoxFuture<'_, Result<Pieces, HolderError>> {
        self.seat.chunks(blob)
    }

    fn range(&self, blob: Digest, range: Range<u64>) -> BoxFuture<'_, Result<Pieces, HolderError>> {
        self.seat.range(blob, range)
    }
}

impl std::fmt::Debug for Caches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Caches")
    }
}
