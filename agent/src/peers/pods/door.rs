//! The door of the pod that leads: a socket, and a task that asks for nothing until somebody comes. The sync loop tells what may be had;
//! where the door is goes into the Lease with the next renewal.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use kedge_model::wire::{Digest, Timestamp};
use ring::digest::{Context, SHA256};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use super::super::listener::{self, Asked, Door, Guard};
use super::super::shown::pods::Pods;
use crate::clock::{Clock as _, SystemClock};
use crate::cluster::lease::Offer;
use crate::link::HubLink;
use crate::objects::Objects;
use crate::paths::Paths;
use crate::swarm::Server;

/// Where this pod is, and whom it tells.
#[derive(Clone, Debug)]
pub struct Pod {
    pub ip: IpAddr,
    pub offer: watch::Sender<Option<Offer>>,
}

/// Closed when it is dropped.
#[derive(Debug)]
pub struct PodDoor {
    content: watch::Sender<Content>,
    objects: Objects,
    paths: Paths,
    offer: watch::Sender<Option<Offer>>,
    task: JoinHandle<()>,
}

/// What those that stand by may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Content {
    named: BTreeSet<Digest>,
    /// Over those that are here.
    mark: String,
}

/// Beside the port of a site's peers, who are other clusters.
const PORT: u16 = 7444;
const QUESTIONS: usize = 32;
/// After a breakdown.
const AGAIN: Duration = Duration::from_secs(60);
/// Between two writes of what is shown.
const SHOW_EVERY: Duration = Duration::from_secs(5);
/// Addresses that are remembered; a pod gets another one each time that it is made.
const MAX_GUESTS: usize = 256;

impl PodDoor {
    /// Must be called in the runtime.
    pub fn open(pod: Pod, link: Arc<HubLink>, paths: &Paths, objects: &Objects) -> PodDoor {
        let (content, told) = watch::channel(Content::default());
        let offer = pod.offer.clone();
        let server = Server::new(paths, objects.clone());
        let task = tokio::spawn(keep(pod, link, server, paths.clone(), told));
        PodDoor { content, objects: objects.clone(), paths: paths.clone(), offer, task }
    }

    /// The desired state names these, whether they are here or not.
    pub fn name(&self, named: BTreeSet<Digest>) {
        let mut hash = Context::new(&SHA256);
        named.iter().filter(|blob| self.objects.has(blob)).for_each(|blob| hash.update(blob.as_bytes()));
        let mark = Digest::finish(hash).hex().chars().take(16).collect();
        let next = Content { named, mark };
        self.content.send_if_modified(|now| {
            let other = *now != next;
            *now = next;
            other
        });
    }
}

impl Drop for PodDoor {
    fn drop(&mut self) {
        self.task.abort();
        self.offer.send_replace(None);
        Pods::end(&self.paths);
    }
}

async fn keep(pod: Pod, link: Arc<HubLink>, server: Server, paths: Paths, content: watch::Receiver<Content>) {
    loop {
        let door = |ask| Door { guard: Guard::Fleet(Arc::clone(&link)), server: server.clone(), ask };
        match serve(&pod, door, &paths, content.clone()).await {
            Ok(()) => return,
            Err(error) => {
                tracing::warn!(%error, ip = %pod.ip, "the pods that stand by can't be let in; trying again");
                pod.offer.send_replace(None);
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

/// Until nobody tells what may be had.
async fn serve(
    pod: &Pod,
    door: impl FnOnce(mpsc::Sender<Asked>) -> Door,
    paths: &Paths,
    mut content: watch::Receiver<Content>,
) -> io::Result<()> {
    let socket = listener::bind(SocketAddr::new(pod.ip, PORT)).await?;
    let address = socket.local_addr()?;
    let (ask, mut asks) = mpsc::channel(QUESTIONS);
    let door = door(ask);
    let own = door.guard.own();
    let mut helpers = JoinSet::new();
    helpers.spawn(listener::serve(socket, door));
    tracing::info!(%address, "the pods that stand by are let in");
    let mut guests: BTreeMap<IpAddr, Timestamp> = BTreeMap::new();
    let mut show_at = Some(Instant::now());
    loop {
        let offer = Some(Offer { address, mark: content.borrow_and_update().mark.clone() });
        pod.offer.send_if_modified(|now| std::mem::replace(now, offer.clone()) != offer);
        tokio::select! {
            changed = content.changed() => if changed.is_err() {
                return Ok(());
            },
            Some(asked) = asks.recv() => match asked {
                Asked::May { from, address, blob, reply } => {
                    // Other clusters of the fleet have the site's door. Who asked may be gone.
                    _ = reply.send(from == own && content.borrow().named.contains(&blob));
                    if from == own {
                        note(&mut guests, address.ip().to_canonical());
                        show_at.get_or_insert(Instant::now() + SHOW_EVERY);
                    }
                }
                Asked::Sync { reply, .. } => _ = reply.send(None),
            },
            Some(_) = helpers.join_next() => return Err(io::Error::other("the door broke down")),
            () = tokio::time::sleep_until(show_at.unwrap_or_else(Instant::now)), if show_at.is_some() => {
                show_at = None;
                Pods::Leads { address, asked: guests.clone() }.show(paths);
            }
        }
    }
}

fn note(guests: &mut BTreeMap<IpAddr, Timestamp>, guest: IpAddr) {
    guests.insert(guest, SystemClock.now());
    while guests.len() > MAX_GUESTS
        && let Some(oldest) = guests.iter().min_by_key(|(_, at)| **at).map(|(guest, _)| *guest)
    {
        guests.remove(&oldest);
    }
}
