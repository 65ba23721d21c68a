//! Drives the protocol: what the node wants sent goes out over connections, what comes in is put to it, and what is new for this cluster
//! goes to the loop. One task, one event at a time; everything that takes time runs beside it, bounded.

mod actions;
mod carry;
mod files;
mod find;
mod keep;
mod relay;
mod show;
mod tell;
mod turn;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kedge_model::wire::{ClusterId, Digest, Envelope, Generation, PollRequest, SiteAnswer, Timestamp};
use kedge_peer::{Message, Misbehavior, Node, Settings};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::content::ContentSources;
use super::dial::{DialError, Line};
use super::listener::{self, Asked, Door, Guard};
use super::mdns::{self, Heard};
use super::shown::Shown;
use super::table::Table;
use super::{News, Own, Place};
use crate::link::{FetchError, LinkError};
use crate::swarm::{Misbehavior as ContentMisbehavior, Server};
use files::Files;
use find::Fixed;

pub struct Driver {
    place: Place,
    me: ClusterId,
    node: Node,
    sources: Arc<ContentSources>,
    own: watch::Receiver<Arc<Own>>,
    tell: mpsc::Sender<News>,
    lied: Arc<tokio::sync::Mutex<mpsc::Receiver<(ClusterId, ContentMisbehavior)>>>,
    /// The node's clock, which doesn't jump.
    began: (Instant, Timestamp),
    table: Table,
    /// Kept between two exchanges, and since when.
    lines: BTreeMap<ClusterId, (Line, Instant)>,
    under_way: JoinSet<Ended>,
    /// Places that were announced and aren't known yet.
    probes: VecDeque<SocketAddr>,
    probing: usize,
    fixed: Vec<Fixed>,
    files: Files,
    presence_at: Instant,
    /// Who carried when that was last looked at.
    followed: Option<ClusterId>,
    /// What the last sign of life said.
    last_said: Option<PollRequest>,
    /// When each was made, of those that the hub may still answer.
    signs: VecDeque<(Timestamp, Instant)>,
    /// The state that was last seen to wait for this cluster's turn.
    waits: Option<Generation>,
    /// Carrying failed: the hub isn't reached, whatever the last poll said.
    unreachable_until: Option<Instant>,
    uploads: VecDeque<Envelope>,
    uploading: bool,
    /// Somebody has what is looked for.
    found: bool,
    /// Content of others that a relay fetches now.
    relaying: Option<Digest>,
    relay_at: Instant,
    /// Whom the hub no longer knows, and what it said.
    turned_away: BTreeMap<ClusterId, String>,
    /// Up to where the hub told who left the site.
    left: u64,
    news: News,
    has_news: bool,
    port: u16,
    shown: Shown,
    /// Something may be other than it is shown.
    stale: bool,
    show_at: Instant,
}

/// How something ended that was under way.
enum Ended {
    Synced { to: ClusterId, result: Result<(Line, Bytes), DialError> },
    Probed { address: SocketAddr, fixed: Option<usize>, result: Result<Line, LinkError> },
    Carried { signs: Vec<Envelope>, result: Result<SiteAnswer, LinkError> },
    Uploaded { document: Envelope, result: Result<(), LinkError> },
    Relayed { blob: Digest, result: Result<(), FetchError> },
}

/// The node is told at least so often that the hub is reached.
const TICK: Duration = Duration::from_secs(25);
/// Between two turns that nothing but time begins.
const BREATH: Duration = Duration::from_millis(50);
/// Questions of peers that wait for their turn.
const QUESTIONS: usize = 32;
/// Announcements that wait; more are lost, and come again.
const ANNOUNCEMENTS: usize = 128;

impl Driver {
    pub fn new(
        place: Place,
        sources: Arc<ContentSources>,
        own: watch::Receiver<Arc<Own>>,
        tell: mpsc::Sender<News>,
        lied: Arc<tokio::sync::Mutex<mpsc::Receiver<(ClusterId, ContentMisbehavior)>>>,
    ) -> Driver {
        let (me, now) = (place.link.cluster(), Instant::now());
        let began = (now, place.clock.now());
        let settings = Settings { me, site: place.site.clone(), seed: rand::random(), carries: place.config.uplink };
        let keys = own.borrow().keys.clone();
        let fixed = place.config.fixed.iter().map(|text| Fixed::new(text, now)).collect();
        Driver {
            node: Node::new(settings, keys, began.1),
            me,
            place,
            sources,
            own,
            tell,
            lied,
            began,
            table: Table::default(),
            lines: BTreeMap::new(),
            under_way: JoinSet::new(),
            probes: VecDeque::new(),
            probing: 0,
            fixed,
            files: Files::new(now),
            presence_at: now,
            followed: None,
            last_said: None,
            signs: VecDeque::new(),
            waits: None,
            unreachable_until: None,
            uploads: VecDeque::new(),
            uploading: false,
            found: false,
            relaying: None,
            relay_at: now,
            turned_away: BTreeMap::new(),
            left: 0,
            news: News::default(),
            has_news: false,
            port: 0,
            shown: Shown::default(),
            stale: true,
            show_at: now,
        }
    }

    /// Until nobody tells what is own any more.
    pub async fn run(mut self, server: Server) -> io::Result<()> {
        let socket = listener::bind(self.place.config.listen).await?;
        self.port = socket.local_addr()?.port();
        let (ask, mut asks) = mpsc::channel(QUESTIONS);
        let door = Door { guard: Guard::Fleet(Arc::clone(&self.place.link)), server, ask };
        let mut helpers = JoinSet::new();
        helpers.spawn(listener::serve(socket, door));
        let (heard, mut announced) = mpsc::channel(ANNOUNCEMENTS);
        if self.place.config.mdns {
            helpers.spawn(mdns::run(self.announcement(), heard));
        }
        tracing::info!(site = self.place.site, port = self.port, "peers of the site are looked for");
        let lied = Arc::clone(&self.lied);
        let mut lied = lied.lock().await;
        let tell = self.tell.clone();
        self.take_own();
        loop {
            self.keep_up();
            let wake = self.wake();
            tokio::select! {
                changed = self.own.changed() => match changed {
                    Ok(()) => self.take_own(),
                    Err(_) => break,
                },
                Some(asked) = asks.recv() => self.asked(asked),
                Some(heard) = announced.recv() => self.announced(heard),
                Some(ended) = self.under_way.join_next(), if !self.under_way.is_empty() => match ended {
                    Ok(ended) => self.ended(ended),
                    Err(error) => tracing::error!(%error, "an exchange with a peer broke down"),
                },
                Some((who, misbehavior)) = lied.recv() => self.accuse(who, misbehavior),
                Ok(permit) = tell.reserve(), if self.has_news => {
                    self.has_news = false;
                    permit.send(std::mem::take(&mut self.news));
                }
                () = tokio::time::sleep_until(wake) => {}
            }
        }
        Ok(())
    }

    /// Whatever is due.
    fn keep_up(&mut self) {
        self.reach();
        self.live();
        self.find_more();
        self.mind_files();
        let now = self.now();
        let actions = self.node.tick(now);
        self.perform(actions);
        self.upload_next();
        self.relay_next();
        self.close_idle();
        self.show();
    }

    fn wake(&self) -> Instant {
        let begun = self.began;
        let node = u64::try_from(self.node.wake().0.saturating_sub(begun.1.0)).unwrap_or(0);
        let latest = Instant::now() + TICK;
        let node = begun.0.checked_add(Duration::from_millis(node)).unwrap_or(latest);
        let fixed = self.fixed.iter().map(|fixed| fixed.at).min().unwrap_or(latest);
        let show = if self.stale { self.show_at } else { latest };
        // Never so often that others wait for it.
        [node, fixed, show, self.presence_at].into_iter().fold(latest, Instant::min).max(Instant::now() + BREATH)
    }

    fn now(&self) -> Timestamp {
        let past = i64::try_from(self.began.0.elapsed().as_millis()).unwrap_or(i64::MAX);
        Timestamp(self.began.1.0.saturating_add(past))
    }

    fn asked(&mut self, asked: Asked) {
        match asked {
            Asked::Sync { from, address, message, reply } => self.heard(from, address, &message, reply),
            Asked::May { from, blob, reply, .. } => {
                let may = !self.turned_away.contains_key(&from) && self.node.may_have(&from, &blob);
                // Who asked is gone: nobody needs the answer.
                _ = reply.send(may);
            }
        }
    }

    fn heard(&mut self, from: ClusterId, address: SocketAddr, bytes: &[u8], reply: oneshot::Sender<Option<Vec<u8>>>) {
        let now = self.now();
        if self.turned_away.contains_key(&from) {
            _ = reply.send(None);
            return;
        }
        let message = match Message::from_json(bytes) {
            Ok(message) => message,
            Err(error) => {
                let actions = self.node.accuse(from, Misbehavior::Unreadable(error.to_string()), now);
                self.perform(actions);
                _ = reply.send(None);
                return;
            }
        };
        self.visited(from, address);
        self.stale = true;
        let (answer, actions) = self.node.heard(from, message, now);
        _ = reply.send(answer.and_then(|answer| answer.to_json().ok()));
        self.perform(actions);
    }

    fn accuse(&mut self, who: ClusterId, misbehavior: ContentMisbehavior) {
        let now = self.now();
        let actions = self.node.accuse(who, Misbehavior::WrongBytes(misbehavior.to_string()), now);
        self.perform(actions);
    }

    fn ended(&mut self, ended: Ended) {
        self.stale = true;
        match ended {
            Ended::Synced { to, result } => self.synced(to, result),
            Ended::Probed { address, fixed, result } => self.probed(address, fixed, result),
            Ended::Carried { signs, result } => self.carried(&signs, result),
            Ended::Uploaded { document, result } => self.uploaded(&document, result),
            Ended::Relayed { blob, result } => self.relayed(blob, result),
        }
    }

    fn announced(&mut self, heard: Heard) {
        let now = self.now();
        let Heard { cluster, address, stays } = heard;
        if !stays {
            // Only from where it is: anybody can say that another goes.
            if self.table.addresses(&cluster).iter().any(|known| known.ip() == address.ip()) {
                self.node.lost(cluster);
                self.lines.remove(&cluster);
            }
            return;
        }
        let new = self.table.tell(cluster, address, now);
        // The hub says that there is such a one: whether it is there is found out when it is talked to.
        if self.node.store().member(&cluster).is_some() {
            self.node.found(cluster, now);
        } else if new || !self.node.peers().any(|peer| peer.cluster == cluster) {
            self.probe_soon(address);
        }
    }
}
