//! What a node knows of one peer: what a person is shown of it, and what is under way with it.

use std::collections::{BTreeSet, VecDeque};

use kedge_model::wire::{ClusterId, Digest, Timestamp};

use super::after;
use super::uplink::rank;
use crate::chance::Chance;
use crate::misbehavior::Misbehavior;
use crate::name::Name;
use crate::pace::{
    BACKOFF_FIRST, BACKOFF_MOST, DROPPED_FIRST, DROPPED_MOST, MAX_LIES, MESSAGES_PER_MINUTE, MINUTE, UPLINK_ANSWERS,
};

/// A peer as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerView {
    pub cluster: ClusterId,
    /// As its Membership calls it.
    pub name: Option<String>,
    /// When it was first seen.
    pub since: Timestamp,
    /// When it last said something.
    pub heard: Option<Timestamp>,
    /// When it last heard the hub itself, as far as is known.
    pub contact: Option<Timestamp>,
    pub relay: bool,
    /// It carries for the site, as seen from here.
    pub uplink: bool,
    /// At the last exchange both had the same documents.
    pub in_step: bool,
    /// How many documents it listed when that wasn't so.
    pub documents: usize,
    /// What it has of the content that is looked for here.
    pub has: BTreeSet<Digest>,
    /// Exchanges in a row that got no answer.
    pub failures: u32,
    /// Left alone until then, for having misbehaved.
    pub dropped: Option<Timestamp>,
    /// The newest last.
    pub misbehaviors: VecDeque<Told>,
    /// The last thing of it that was refused without blaming it.
    pub refused: Option<String>,
}

/// A misbehavior, as a person is shown it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub at: Timestamp,
    pub what: String,
}

#[derive(Debug)]
pub(super) struct Peer {
    pub view: PeerView,
    pub present: bool,
    /// When to talk to it next.
    pub due: Option<Timestamp>,
    /// Not before this, after failures.
    pub retry: Option<Timestamp>,
    pub under_way: Option<UnderWay>,
    /// Not chosen as uplink until then.
    pub out: Option<Timestamp>,
    /// It left a question open: others are chosen before it until then.
    pub hung: Option<Timestamp>,
    /// When it last said itself whether it reaches the hub.
    pub said: Option<Timestamp>,
    /// The last own sign of life that it has.
    pub presence_sent: Option<Timestamp>,
    /// When it was last chosen as a second carrier.
    pub seconded: Option<Timestamp>,
    /// Content that it looks for.
    pub asked: BTreeSet<Digest>,
    pub last_exchange: Option<Timestamp>,
    /// The newest key set that it knows, it says.
    pub keys: u64,
    /// Exchanges that followed each other at once.
    pub rounds: u32,
    /// Its place in the order of who carries.
    pub rank: Digest,
    misbehaved: u32,
    /// Since when messages are counted, and how many came.
    counted: (Timestamp, u32),
}

/// An exchange that waits for its answer.
#[derive(Debug)]
pub(super) struct UnderWay {
    pub since: Timestamp,
    /// The signs of life that went with it.
    pub own: Option<Timestamp>,
    pub others: Vec<(ClusterId, Timestamp)>,
    pub stage: Stage,
}

#[derive(Debug)]
pub(super) enum Stage {
    /// Digests.
    Summary,
    /// Documents: what was asked for, and whether more is to be given than fitted.
    Documents { wanted: Vec<Name>, more: bool },
}

impl Peer {
    pub fn new(cluster: ClusterId, site: &str, now: Timestamp) -> Peer {
        Peer {
            view: PeerView {
                cluster,
                name: None,
                since: now,
                heard: None,
                contact: None,
                relay: false,
                uplink: false,
                in_step: false,
                documents: 0,
                has: BTreeSet::new(),
                failures: 0,
                dropped: None,
                misbehaviors: VecDeque::new(),
                refused: None,
            },
            present: false,
            due: None,
            retry: None,
            under_way: None,
            out: None,
            hung: None,
            said: None,
            presence_sent: None,
            seconded: None,
            asked: BTreeSet::new(),
            last_exchange: None,
            keys: 0,
            rounds: 0,
            rank: rank(site, &cluster),
            misbehaved: 0,
            counted: (now, 0),
        }
    }

    /// Talk to it then, or before.
    pub fn soon(&mut self, at: Timestamp) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// Whether it may be talked to.
    pub fn is_usable(&self, now: Timestamp) -> bool {
        self.present && self.view.dropped.is_none() && self.retry.is_none_or(|retry| retry <= now)
    }

    /// When it will be talked to, if nothing else happens.
    pub fn wakes(&self) -> Option<Timestamp> {
        if !self.present || self.view.dropped.is_some() {
            return None;
        }
        let due = self.due?;
        Some(self.retry.map_or(due, |retry| retry.max(due)))
    }

    /// When it will be known to hang, if it leaves what is under way open.
    pub fn hangs_at(&self) -> Option<Timestamp> {
        let open = self.under_way.as_ref().filter(|_| self.hung.is_none());
        open.map(|exchange| after(exchange.since, UPLINK_ANSWERS))
    }

    pub fn leave(&mut self) {
        (self.present, self.due, self.under_way, self.view.contact) = (false, None, None, None);
        self.view.has.clear();
        self.asked.clear();
    }

    pub fn fail(&mut self, now: Timestamp, chance: &mut Chance) {
        self.under_way = None;
        self.view.failures = self.view.failures.saturating_add(1);
        self.view.has.clear();
        let doubled = BACKOFF_FIRST.saturating_mul(1 << (self.view.failures - 1).min(20));
        self.retry = Some(after(now, chance.around(doubled.min(BACKOFF_MOST))));
    }

    pub fn answer(&mut self, now: Timestamp) {
        self.view.heard = Some(now);
        (self.view.failures, self.retry, self.last_exchange, self.hung) = (0, None, Some(now), None);
    }

    pub fn misbehavior(&mut self, why: &Misbehavior, now: Timestamp) {
        let length = DROPPED_FIRST.saturating_mul(1 << self.misbehaved.min(10)).min(DROPPED_MOST);
        self.misbehaved = self.misbehaved.saturating_add(1);
        self.view.dropped = Some(after(now, length));
        self.view.misbehaviors.push_back(Told { at: now, what: why.to_string() });
        while self.view.misbehaviors.len() > MAX_LIES {
            self.view.misbehaviors.pop_front();
        }
        (self.due, self.under_way, self.view.contact) = (None, None, None);
        self.view.has.clear();
        self.asked.clear();
    }

    /// Counts a message; false: there are too many.
    pub fn count(&mut self, now: Timestamp) -> bool {
        if now.0.saturating_sub(self.counted.0.0) >= MINUTE {
            self.counted = (now, 0);
        }
        self.counted.1 = self.counted.1.saturating_add(1);
        self.counted.1 <= MESSAGES_PER_MINUTE
    }
}
