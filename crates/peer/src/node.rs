//! One agent among its peers: whom it talks to and when, what it gives and asks for, and who carries for the site. The agent's driver (or the
//! simulation) tells it what happened and does what the actions say; it never waits and opens nothing.

mod partners;
mod peer;
mod sync;
#[cfg(test)]
mod tests;
mod uplink;

use std::collections::{BTreeMap, BTreeSet};

use kedge_model::wire::{ClusterId, Digest, Envelope, KeySet, Presence, Timestamp};

use crate::chance::Chance;
use crate::document_store::DocumentStore;
use crate::message::{MAX_BLOBS, Message};
use crate::misbehavior::{Misbehavior, Taken};
use crate::name::{Name, Version};
use crate::pace::{CARRY_EVERY, FIRST_PARTNERS, GOSSIP_ALONE_EVERY, MAX_PEERS, NEWS_AFTER, SECOND_EVERY};
use peer::Peer;
pub use peer::{PeerView, Told};

/// Who this is.
#[derive(Clone, Debug)]
pub struct Settings {
    pub me: ClusterId,
    pub site: String,
    /// For jitter and the choice of partners.
    pub seed: u64,
    /// Whether it may carry for the others when it reaches the hub.
    pub carries: bool,
}

/// What the driver has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send it; the answer comes to `answered`, no answer to `failed`.
    Send { to: ClusterId, message: Message },
    /// A new document of this name is in the store.
    Took(Name),
    /// I am the uplink: signs of life to bring to the hub now. What its answer holds comes to `put`; `lacks` and `not_carried` tell the rest.
    Carry(Vec<Envelope>),
    /// I am the uplink: a status document, or holds, that the hub lacks.
    Upload(Envelope),
    /// It misbehaved, and is left alone for a while.
    Dropped { peer: ClusterId, why: Misbehavior },
}

#[derive(Debug)]
pub struct Node {
    settings: Settings,
    store: DocumentStore,
    chance: Chance,
    /// The own place in the order of who carries.
    rank: Digest,
    peers: BTreeMap<ClusterId, Peer>,
    /// When this agent last heard the hub itself.
    contact: Option<Timestamp>,
    /// Whether that was lately.
    reaches_hub: bool,
    uplink: Option<ClusterId>,
    /// The own sign of life.
    presence: Option<(Timestamp, Envelope)>,
    /// The others', newest of each, and whether they were carried.
    presences: BTreeMap<ClusterId, Sign>,
    next_carry: Timestamp,
    uploads: Uploads,
    wants: Vec<Digest>,
    next_want: Option<Timestamp>,
    has: BTreeSet<Digest>,
    next_gossip: Timestamp,
    /// Gossip goes to the next of the ring and to anybody, in turn.
    turn: Turn,
    next_second: Timestamp,
    /// Something came that others should hear of.
    news: News,
    refused: BTreeMap<Name, (Version, Timestamp)>,
}

#[derive(Debug)]
struct Sign {
    at: Timestamp,
    envelope: Envelope,
    carried: bool,
}

/// What goes up, and what went.
#[derive(Debug, Default)]
struct Uploads {
    waiting: BTreeSet<Name>,
    /// When what waits goes.
    due: Option<Timestamp>,
    /// The hub asked for it before it was here.
    asked: BTreeSet<ClusterId>,
    sent: BTreeMap<Name, Version>,
}

#[derive(Clone, Copy, Debug)]
enum Turn {
    Ring,
    Anybody,
}

#[derive(Clone, Copy, Debug, Default)]
struct News {
    /// For some others.
    site: bool,
    /// For the uplink alone.
    uplink: bool,
}

impl Node {
    /// `now` is of a clock that doesn't jump; all times here are of the same.
    pub fn new(settings: Settings, keys: KeySet, now: Timestamp) -> Node {
        let mut chance = Chance::new(settings.seed);
        let next_gossip = after(now, chance.around(GOSSIP_ALONE_EVERY / 2));
        Node {
            rank: uplink::rank(&settings.site, &settings.me),
            store: DocumentStore::new(settings.me, &settings.site, keys),
            settings,
            chance,
            peers: BTreeMap::new(),
            contact: None,
            reaches_hub: false,
            uplink: None,
            presence: None,
            presences: BTreeMap::new(),
            next_carry: now,
            uploads: Uploads::default(),
            wants: Vec::new(),
            next_want: None,
            has: BTreeSet::new(),
            next_gossip,
            turn: Turn::Anybody,
            next_second: after(now, SECOND_EVERY),
            news: News::default(),
            refused: BTreeMap::new(),
        }
    }

    /// Own documents and what the hub answered. The own Membership first: nothing can be judged without it.
    pub fn put(&mut self, envelope: Envelope) -> Result<Taken, Misbehavior> {
        let taken = self.store.take(envelope)?;
        if let Taken::New(name) = &taken {
            if *name == Name::Status(self.settings.me) {
                self.news.uplink = true;
            } else {
                self.note_new(name);
            }
        }
        Ok(taken)
    }

    /// The own sign of life, for whoever carries it.
    pub fn presence(&mut self, envelope: Envelope) {
        let read = Presence::open(&envelope).ok().filter(|presence| presence.cluster() == self.settings.me);
        if let Some(presence) = read {
            self.presence = Some((presence.at, envelope));
            self.news.uplink |= !self.reaches_hub;
        }
    }

    /// When this agent last heard the hub itself, a poll that the hub holds included; None: it doesn't. Told at least every 30 s while it holds.
    pub fn reach(&mut self, contact: Option<Timestamp>) {
        self.contact = contact;
    }

    /// Content that is looked for; the first of the list are asked for.
    pub fn want(&mut self, mut blobs: Vec<Digest>) {
        blobs.truncate(MAX_BLOBS);
        if blobs != self.wants {
            self.next_want = (!blobs.is_empty()).then_some(Timestamp(i64::MIN));
            self.wants = blobs;
            for peer in self.peers.values_mut() {
                peer.view.has.retain(|blob| self.wants.contains(blob));
            }
        }
    }

    /// Content that is here.
    pub fn have(&mut self, blobs: BTreeSet<Digest>) {
        let new: Vec<Digest> = blobs.difference(&self.has).copied().collect();
        self.has = blobs;
        self.tell_those_who_asked(&new);
    }

    /// A peer of this site: by mDNS or the static list, after its certificate was seen.
    pub fn found(&mut self, peer: ClusterId, now: Timestamp) {
        if peer == self.settings.me {
            return;
        }
        if !self.peers.contains_key(&peer) {
            self.make_room();
            self.peers.insert(peer, Peer::new(peer, &self.settings.site, now));
        }
        let partners = self.peers.values().filter(|known| known.due.is_some() || known.last_exchange.is_some()).count();
        let first = self.chance.around(NEWS_AFTER);
        if let Some(known) = self.peers.get_mut(&peer)
            && !known.present
        {
            known.present = true;
            // Enough to hear of everything; the others come in turn, so that a site that wakes up doesn't talk each with each.
            if partners < FIRST_PARTNERS {
                known.soon(after(now, first));
            }
        }
    }

    /// It is gone from the network. How it misbehaved is remembered.
    pub fn lost(&mut self, peer: ClusterId) {
        if let Some(known) = self.peers.get_mut(&peer) {
            known.leave();
            if known.view.misbehaviors.is_empty() {
                self.peers.remove(&peer);
            }
        }
    }

    /// The hub lacks this cluster's newest status document, it said.
    pub fn lacks(&mut self, cluster: ClusterId) {
        let name = Name::Status(cluster);
        self.uploads.sent.remove(&name);
        if self.store.get(&name).is_some() {
            self.uploads.waiting.insert(name);
        } else if self.uploads.asked.len() < MAX_PEERS {
            self.uploads.asked.insert(cluster);
        }
    }

    /// What the last `Carry` held didn't reach the hub: it is carried again, by this one or the next uplink.
    pub fn not_carried(&mut self, envelopes: &[Envelope], now: Timestamp) {
        for sign in self.presences.values_mut() {
            sign.carried &= !envelopes.contains(&sign.envelope);
        }
        self.next_carry = after(now, self.chance.around(2 * CARRY_EVERY));
    }

    /// Something that the driver saw a peer do, such as bytes that aren't what their digest says.
    pub fn accuse(&mut self, peer: ClusterId, why: Misbehavior, now: Timestamp) -> Vec<Action> {
        let mut actions = Vec::new();
        self.punish(peer, why, now, &mut actions);
        actions
    }

    /// The one who carries for the site, as seen from here; it may be me.
    pub fn uplink(&self) -> Option<ClusterId> {
        self.uplink
    }

    /// Peers that say they have this content.
    pub fn holders(&self, blob: &Digest) -> Vec<ClusterId> {
        let has = |peer: &&Peer| peer.present && peer.view.dropped.is_none() && peer.view.has.contains(blob);
        self.peers.values().filter(has).map(|peer| peer.view.cluster).collect()
    }

    pub fn peers(&self) -> impl Iterator<Item = &PeerView> {
        self.peers.values().map(|peer| &peer.view)
    }

    /// Whether a peer may have content: its signed Membership names a stream, or it is a relay of the site, whose state lists it.
    pub fn may_have(&self, peer: &ClusterId, blob: &Digest) -> bool {
        self.peers.get(peer).is_none_or(|known| known.view.dropped.is_none()) && self.store.may_have(peer, blob)
    }

    /// The others' newest signs of life.
    pub fn signs(&self) -> impl Iterator<Item = &Envelope> {
        self.presences.values().map(|sign| &sign.envelope)
    }

    pub fn store(&self) -> &DocumentStore {
        &self.store
    }
}

pub(crate) fn after(time: Timestamp, millis: i64) -> Timestamp {
    Timestamp(time.0.saturating_add(millis))
}
