//! The door of the agent that works, for caches: it tells them what to keep, gives them that, and remembers what they have. A task
//! beside the loop; what fails is tried again and stops nothing.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use kedge_model::wire::{BlobRef, Digest};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::super::listener::{self, Asked, Door, Guard};
use super::{CacheKey, Caches, Has, Keep, PORT};
use crate::objects::Objects;
use crate::paths::Paths;
use crate::swarm::Server;

/// Closed when it is dropped.
#[derive(Debug)]
pub struct CacheDoor {
    keep: watch::Sender<BTreeMap<Digest, BlobRef>>,
    caches: Caches,
    place: watch::Receiver<Option<SocketAddr>>,
    task: JoinHandle<()>,
}

const QUESTIONS: usize = 32;
/// After a breakdown.
const AGAIN: Duration = Duration::from_secs(60);

impl CacheDoor {
    /// Must be called in the runtime. The key may have to be made first.
    pub fn open<K, E>(ip: IpAddr, key: impl Fn() -> K + Send + 'static, paths: &Paths, objects: &Objects) -> CacheDoor
    where
        K: Future<Output = Result<CacheKey, E>> + Send,
        E: std::fmt::Display + Send,
    {
        let (keep, kept) = watch::channel(BTreeMap::new());
        let (at, place) = watch::channel(None);
        let (caches, server) = (Caches::new(paths), Server::new(paths, objects.clone()));
        let heard = caches.clone();
        let task = tokio::spawn(async move {
            loop {
                let error = match key().await {
                    Ok(key) => match serve(ip, &key, &server, (&heard, &at), kept.clone()).await {
                        Ok(()) => return,
                        Err(error) => error.to_string(),
                    },
                    Err(error) => error.to_string(),
                };
                at.send_replace(None);
                tracing::warn!(error, "the caches of the cluster can't be let in; trying again");
                tokio::time::sleep(AGAIN).await;
            }
        });
        CacheDoor { keep, caches, place, task }
    }

    /// What caches are to keep, whether it is here or not.
    pub fn name(&self, blobs: impl Iterator<Item = BlobRef>) {
        self.keep.send_replace(blobs.map(|blob| (blob.digest, blob)).collect());
    }

    /// Where it is; none while it is closed.
    pub fn place(&self) -> watch::Receiver<Option<SocketAddr>> {
        self.place.clone()
    }

    /// For downloads.
    pub fn caches(&self) -> Caches {
        self.caches.clone()
    }
}

impl Drop for CacheDoor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Until nobody tells any more what is to be kept.
async fn serve(
    ip: IpAddr,
    key: &CacheKey,
    server: &Server,
    (caches, at): (&Caches, &watch::Sender<Option<SocketAddr>>),
    mut keep: watch::Receiver<BTreeMap<Digest, BlobRef>>,
) -> io::Result<()> {
    let socket = listener::bind(SocketAddr::new(ip, PORT)).await?;
    let address = socket.local_addr()?;
    let (ask, mut asks) = mpsc::channel(QUESTIONS);
    let guard = Guard::Own { mutual: key.mutual.clone(), id: key.id };
    let mut helpers = JoinSet::new();
    helpers.spawn(listener::serve(socket, Door { guard, server: server.clone(), ask }));
    at.send_replace(Some(address));
    tracing::info!(%address, "the caches of the cluster are let in");
    loop {
        tokio::select! {
            changed = keep.changed() => if changed.is_err() {
                return Ok(());
            },
            Some(asked) = asks.recv() => match asked {
                // Who asked may be gone.
                Asked::May { from, blob, reply, .. } => {
                    _ = reply.send(from == key.id && keep.borrow().contains_key(&blob));
                }
                Asked::Sync { from, address, message, reply } => {
                    let answer = (from == key.id).then(|| serde_json::from_slice::<Has>(&message).ok()).flatten();
                    let answer = answer.and_then(|has| {
                        let place = SocketAddr::new(address.ip().to_canonical(), has.port);
                        caches.hear(key, place, has.blobs);
                        serde_json::to_vec(&Keep { blobs: keep.borrow().values().cloned().collect() }).ok()
                    });
                    _ = reply.send(answer);
                }
            },
            Some(_) = helpers.join_next() => return Err(io::Error::other("the door broke down")),
        }
    }
}
