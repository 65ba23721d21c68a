//! The other agents of the site: found on the LAN, talked to over TLS both ways, and never believed. Runs in tasks of its own beside the
//! loop, started by the sync loop while the membership names a site; what fails or breaks here is begun again and stops nothing else. The
//! loop tells what is its own (`Own`) and hears what others brought (`News`), to be judged as if the hub had said it.

#[cfg(feature = "kubernetes")]
pub mod caches;
mod content;
mod dial;
mod driver;
mod listener;
pub mod mdns;
#[cfg(feature = "kubernetes")]
pub mod pods;
pub mod shown;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kedge_model::wire::{BlobRef, Envelope, Generation, KeyId, KeySet, PollRequest};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::config;
use crate::link::HubLink;
use crate::objects::Objects;
use crate::paths::Paths;
use crate::swarm::{Server, Swarm};
pub use content::Content;
use content::ContentSources;
use driver::Driver;
use shown::Shown;

/// The running part. Ends when it is dropped.
#[derive(Debug)]
pub struct Peers {
    own: watch::Sender<Arc<Own>>,
    news: mpsc::Receiver<News>,
    content: Content,
    paths: Paths,
    task: JoinHandle<()>,
}

/// What it works with.
#[derive(Clone, Debug)]
pub struct Place {
    pub link: Arc<HubLink>,
    pub paths: Paths,
    pub clock: Arc<dyn Clock>,
    pub objects: Objects,
    pub config: config::Peers,
    pub site: String,
}

/// What this cluster has to say, always the newest.
#[derive(Clone, Debug)]
pub struct Own {
    pub keys: KeySet,
    /// Key sets as they came; those after `keys` of the start.
    pub key_sets: Vec<Envelope>,
    pub membership: Envelope,
    pub state: Option<Envelope>,
    pub status: Option<Envelope>,
    /// The hub's and the technician's, and those on other clusters.
    pub holds: Vec<Envelope>,
    /// The newest that is known of each other agent that holds something here.
    pub peer_holds: BTreeMap<KeyId, u64>,
    pub poll: PollRequest,
    /// When the poll's look age was true.
    pub at: Instant,
    /// The hub answers this agent.
    pub online: bool,
    /// Milliseconds to add to this host's clock for the hub's.
    pub offset: i64,
    /// Content that is looked for.
    pub wants: Vec<BlobRef>,
    /// A newer state is here and waits for this cluster's turn.
    pub waits: Option<Generation>,
}

/// What others brought: newer than what is told as own, and signed as it must be. Judged again by who follows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct News {
    pub key_sets: Vec<Envelope>,
    pub membership: Option<Envelope>,
    pub state: Option<Envelope>,
    /// The hub's word that it is this cluster's turn to follow it.
    pub turn: Option<Envelope>,
    /// The hub's, on this cluster.
    pub hub_holds: Option<Envelope>,
    /// Other agents', on this cluster, each with its writer's membership.
    pub peer_holds: Vec<(Envelope, Envelope)>,
    /// What somebody of the site did that no honest peer does; empty: nobody is left alone for it any more.
    pub lies: Option<String>,
    /// Somebody has content that is looked for.
    pub content: bool,
}

/// After a breakdown.
const AGAIN_FIRST: Duration = Duration::from_secs(10);
const AGAIN_MOST: Duration = Duration::from_secs(600);
/// One that ran so long was well.
const WELL: Duration = Duration::from_secs(3600);
/// News are gathered until the loop has time for them.
const NEWS: usize = 2;
const MISBEHAVIORS: usize = 16;

impl Peers {
    /// Must be called in the runtime.
    pub fn start(place: Place, own: Own) -> Peers {
        let (own, listen) = watch::channel(Arc::new(own));
        let (tell, news) = mpsc::channel(NEWS);
        let (lies, lied) = mpsc::channel(MISBEHAVIORS);
        let sources = Arc::new(ContentSources::new(Arc::clone(&place.link), lies));
        let content = Content::new(Swarm::new(&place.paths), Arc::clone(&sources));
        let paths = place.paths.clone();
        let task = tokio::spawn(keep(place, sources, listen, tell, lied));
        Peers { own, news, content, paths, task }
    }

    pub fn tell(&self, own: Own) {
        self.own.send_replace(Arc::new(own));
    }

    /// Waits for what others bring.
    pub async fn news(&mut self) -> News {
        match self.news.recv().await {
            Some(news) => news,
            None => std::future::pending().await,
        }
    }

    /// For downloads.
    pub fn content(&self) -> Content {
        self.content.clone()
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        self.task.abort();
        Shown::end(&self.paths);
    }
}

/// Runs the driver again and again, each time from what is on the disk and what is told.
async fn keep(
    place: Place,
    sources: Arc<ContentSources>,
    own: watch::Receiver<Arc<Own>>,
    tell: mpsc::Sender<News>,
    lied: mpsc::Receiver<(kedge_model::wire::ClusterId, crate::swarm::Misbehavior)>,
) {
    let (mut wait, lied) = (AGAIN_FIRST, Arc::new(tokio::sync::Mutex::new(lied)));
    let server = Server::new(&place.paths, place.objects.clone());
    loop {
        let began = Instant::now();
        let driver = Driver::new(place.clone(), Arc::clone(&sources), own.clone(), tell.clone(), Arc::clone(&lied));
        // In a task of its own: a bug in it ends itself only.
        let mut running = tokio::task::JoinSet::new();
        running.spawn(driver.run(server.clone()));
        match running.join_next().await {
            Some(Ok(Ok(()))) => return,
            Some(Ok(Err(error))) => tracing::warn!(%error, "peers can't be talked to; trying again"),
            Some(Err(error)) => tracing::error!(%error, "the part for peers broke down and is begun again"),
            None => return,
        }
        sources.show(Default::default(), false);
        if began.elapsed() >= WELL {
            wait = AGAIN_FIRST;
        }
        tokio::time::sleep(wait.mul_f64(rand::random_range(0.8..1.2))).await;
        wait = (wait * 2).min(AGAIN_MOST);
    }
}
