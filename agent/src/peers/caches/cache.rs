//! A node's cache: asks the agent that works what to keep, fetches it, and gives it back to whoever shows the cluster's cache key. It knows
//! nothing of the cluster but digests and that key, and talks to no API server. Called by `run`.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use kedge_model::wire::{BlobRef, Digest};
use tokio::net::lookup_host;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::super::dial::{self, Line};
use super::super::listener::{self, Asked, Door, Guard};
use super::super::pods::NodeContent;
use super::super::pods::known::Known;
use super::super::pods::mirror::{Lacks, MirrorError};
use super::super::shown::pods::Pods;
use super::{CacheKey, Has, Keep, PORT};
use crate::causes::chain;
use crate::swarm::Server;

/// What it is told by its pod's manifest.
#[derive(Clone, Debug)]
pub struct Place {
    /// The agents, by a name that leads to all of them: HOST:PORT.
    pub agents: String,
    /// Where the mounted key is.
    pub key: PathBuf,
    /// None: any address of this pod.
    pub ip: Option<IpAddr>,
}

/// Between two questions.
const EVERY: Duration = Duration::from_secs(10);
/// Until the Secret is mounted, or after a breakdown.
const AGAIN: Duration = Duration::from_secs(5);
const QUESTIONS: usize = 32;
/// An agent names fewer; more is a stranger's wish to fill the disk.
const MOST_BLOBS: usize = 16 * 1024;

/// For ever.
pub async fn run(place: Place, content: NodeContent) {
    let mut told = String::new();
    loop {
        let error = match CacheKey::in_folder(&place.key) {
            Ok(Some(key)) => match serve(&place, &key, &content).await {
                Ok(never) => match never {},
                Err(error) => error.to_string(),
            },
            Ok(None) => format!("there is no key in {} yet: the agent makes it when it works", place.key.display()),
            Err(error) => error.to_string(),
        };
        if told != error {
            tracing::warn!(error, "this cache can't work yet; trying again");
            show(&content, None, None, Some(error.clone()), false);
            told = error;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn serve(place: &Place, key: &CacheKey, content: &NodeContent) -> io::Result<std::convert::Infallible> {
    let ip = place.ip.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
    let socket = listener::bind(SocketAddr::new(ip, PORT)).await?;
    let port = socket.local_addr()?.port();
    let (ask, mut asks) = mpsc::channel(QUESTIONS);
    let guard = Guard::Own { mutual: key.mutual.clone(), id: key.id };
    let mut helpers = JoinSet::new();
    let server = Server::new(&content.paths, content.objects.clone());
    helpers.spawn(listener::serve(socket, Door { guard, server, ask }));
    tracing::info!(port, agents = place.agents, "this node keeps what its cluster runs");
    let mut follower = Follower { place, key, content, port, line: None, kept: BTreeSet::new() };
    let mut following = std::pin::pin!(follower.follow());
    loop {
        tokio::select! {
            never = &mut following => match never {},
            Some(asked) = asks.recv() => match asked {
                Asked::May { from, blob, reply, .. } => _ = reply.send(from == key.id && content.objects.has(&blob)),
                Asked::Sync { reply, .. } => _ = reply.send(None),
            },
            Some(_) = helpers.join_next() => return Err(io::Error::other("the door broke down")),
        }
    }
}

/// The one that asks.
struct Follower<'a> {
    place: &'a Place,
    key: &'a CacheKey,
    content: &'a NodeContent,
    port: u16,
    /// To the agent that worked when it was last asked.
    line: Option<Line>,
    /// What was last to be kept.
    kept: BTreeSet<Digest>,
}

impl Follower<'_> {
    async fn follow(&mut self) -> std::convert::Infallible {
        loop {
            let told = self.has();
            if let Some((address, keep)) = self.ask(&told).await {
                self.keep(address, keep).await;
                // The agent may be waiting for what is here.
                if self.has() != told {
                    continue;
                }
            }
            tokio::time::sleep(EVERY.mul_f64(rand::random_range(0.9..1.1))).await;
        }
    }

    fn has(&self) -> BTreeSet<Digest> {
        self.kept.iter().copied().filter(|blob| self.content.objects.has(blob)).collect()
    }

    /// Of all agents the one that works answers.
    async fn ask(&mut self, has: &BTreeSet<Digest>) -> Option<(SocketAddr, Keep)> {
        let message = serde_json::to_vec(&Has { port: self.port, blobs: has.clone() }).ok()?;
        if let Some(mut line) = self.line.take()
            && line.connection.is_open()
            && let Ok(answer) = line.sync(message.clone().into()).await
        {
            return self.read(line, &answer);
        }
        let found = match lookup_host(self.place.agents.as_str()).await {
            Ok(found) => found,
            Err(error) => {
                let why = format!("{} can't be found: {error}", self.place.agents);
                show(self.content, None, None, Some(why), false);
                return None;
            }
        };
        let mut last = format!("{} leads nowhere", self.place.agents);
        for address in found {
            match dial::dial_to(&self.key.mutual, self.key.id, &[address]).await {
                Ok(mut line) => match line.sync(message.clone().into()).await {
                    Ok(answer) => return self.read(line, &answer),
                    Err(error) => last = error.sentence(),
                },
                Err(error) => last = error.to_string(),
            }
        }
        show(self.content, None, None, Some(last), false);
        None
    }

    fn read(&mut self, line: Line, answer: &[u8]) -> Option<(SocketAddr, Keep)> {
        let address = line.address;
        self.line = Some(line);
        let keep = serde_json::from_slice::<Keep>(answer).ok().filter(|keep| keep.blobs.len() <= MOST_BLOBS)?;
        Some((address, keep))
    }

    async fn keep(&mut self, address: SocketAddr, keep: Keep) {
        let blobs = keep.blobs.into_iter().map(|blob: BlobRef| (blob.digest, blob)).collect();
        let known = Known { cluster: self.key.id, mutual: self.key.mutual.clone(), blobs };
        self.kept = known.blobs.keys().copied().collect();
        let gathered = self
            .content
            .gather(address, &known, |lacks| show(self.content, Some(address), Some(lacks), None, false))
            .await;
        match gathered {
            Ok(lacks) => show(self.content, Some(address), Some(lacks), None, false),
            Err(error) => {
                let lied = matches!(error, MirrorError::Misbehaved(_));
                tracing::debug!(%address, error = chain(&error), "not all can be kept; trying again");
                show(self.content, Some(address), None, Some(chain(&error)), lied);
            }
        }
    }
}

/// For `kedge-agent peers`.
fn show(content: &NodeContent, address: Option<SocketAddr>, lacks: Option<Lacks>, trouble: Option<String>, lied: bool) {
    let (blobs, bytes) = (lacks.map(|lacks| lacks.blobs), lacks.map_or(0, |lacks| lacks.bytes));
    let leader = address.map(|_| "the agent".to_owned());
    Pods::StandsBy { leader, address, lacks: blobs, bytes, trouble, lied }.show(&content.paths);
}
