//! A simulated agent: its key, what its disk keeps over a restart, and the real `Node` while it runs.

use std::collections::BTreeMap;

use kedge_model::wire::{
    ClusterId, Envelope, Generation, Heads, KeySet, Membership, PollRequest, Presence, Profile, Sequence, SigningKey,
    SiteHolds, Stream, Timestamp,
};
use kedge_peer::{Name, Node, Settings, Version};
use kedge_status::{Header, Nonce, PAYLOAD_TYPE};

use super::hub::{broken, hold};
use crate::Broken;

#[derive(Debug)]
pub(super) struct Agent {
    pub key: SigningKey,
    pub id: ClusterId,
    pub site: usize,
    /// None: it is off.
    pub node: Option<Node>,
    /// Counts its starts: an answer to the process before is nobody's.
    pub life: u64,
    /// Of the wake that counts.
    pub token: u64,
    /// Whether it reaches the hub.
    pub online: bool,
    /// Which part of a split site it is in.
    pub part: u8,
    pub misbehaving: Option<Misbehaving>,
    pub disk: Disk,
    pub said: Timestamp,
    /// Documents that wait for the hub.
    pub uploads: Vec<Envelope>,
    /// Requests since the count began.
    pub requests: u64,
}

/// How a misbehaving peer misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misbehaving {
    /// In every way there is.
    Loud,
    /// It only says that it reaches the hub, and swallows what it is given.
    Quiet,
}

/// What an agent keeps.
#[derive(Debug)]
pub(super) struct Disk {
    pub keys: KeySet,
    pub chain: Vec<Envelope>,
    pub membership: Envelope,
    /// The stream that the membership names.
    pub stream: Stream,
    /// What runs.
    pub state: Option<Envelope>,
    /// The last generation of each stream that ran, also of those that it left.
    pub generations: BTreeMap<Stream, u64>,
    pub status: Option<Envelope>,
    pub epoch: u64,
    pub changes: u64,
    pub holds: BTreeMap<ClusterId, (u64, Envelope)>,
}

impl Disk {
    pub fn new(keys: KeySet, first: Envelope, membership: Envelope, stream: Stream) -> Disk {
        Disk {
            keys,
            chain: vec![first],
            membership,
            stream,
            state: None,
            generations: BTreeMap::new(),
            status: None,
            epoch: 0,
            changes: 0,
            holds: BTreeMap::new(),
        }
    }

    /// Of its status document.
    pub fn version(&self) -> Version {
        Version(self.epoch, self.changes)
    }

    /// The hub's newest word on where this agent belongs; None: nowhere any more.
    pub fn join(&mut self, membership: Option<&Membership>, envelope: Envelope) {
        self.membership = envelope;
        if let Some(membership) = membership.filter(|membership| membership.stream != self.stream) {
            (self.stream, self.state) = (membership.stream.clone(), None);
        }
    }
}

impl Agent {
    pub fn new(
        key: SigningKey,
        id: ClusterId,
        site: usize,
        online: bool,
        misbehaving: Option<Misbehaving>,
        disk: Disk,
    ) -> Agent {
        Agent {
            key,
            id,
            site,
            node: None,
            life: 0,
            token: 0,
            online,
            part: 0,
            misbehaving,
            disk,
            said: Timestamp(i64::MIN),
            uploads: Vec::new(),
            requests: 0,
        }
    }

    /// Takes the own stream's state from the store as an agent's memory does: never an older generation, and the same only after a move.
    pub fn run_newest(&mut self) {
        let name = Name::State(self.disk.stream.clone());
        let Some(store) = self.node.as_ref().map(Node::store) else { return };
        let (Some(version), Some(envelope)) = (store.version(&name), store.get(&name)) else { return };
        let last = self.disk.generations.get(&self.disk.stream).copied().unwrap_or_default();
        if version.0 > last || (version.0 == last && self.disk.state.is_none()) {
            self.disk.state = Some(envelope.clone());
            self.disk.generations.insert(self.disk.stream.clone(), version.0);
        }
    }

    /// Its power is gone, and all that isn't on disk.
    pub fn stop(&mut self) {
        self.node = None;
        self.uploads.clear();
    }

    pub fn start(&mut self, site: &str, seed: u64, now: Timestamp) {
        self.life += 1;
        if self.misbehaving.is_some() {
            return;
        }
        let seed = seed.wrapping_add(self.life);
        let settings = Settings { me: self.id, site: site.to_owned(), seed, carries: true };
        let mut node = Node::new(settings, self.disk.keys.clone(), now);
        let own =
            self.disk.chain.iter().chain([&self.disk.membership]).chain(&self.disk.state).chain(&self.disk.status);
        for envelope in own.chain(self.disk.holds.values().map(|(_, envelope)| envelope)) {
            // What can't be judged yet comes again with the next poll.
            let _ = node.put(envelope.clone());
        }
        self.node = Some(node);
    }

    /// Something is true now that wasn't: the next document.
    pub fn change_status(&mut self, new_epoch: bool, now: Timestamp) -> Envelope {
        if new_epoch || self.disk.epoch == 0 {
            (self.disk.epoch, self.disk.changes) = (self.disk.epoch + 1, 0);
        }
        self.disk.changes += 1;
        let nonce = Nonce([u8::try_from(self.disk.epoch % 251).unwrap_or_default(); 16]);
        let envelope = status(&self.key, self.id, (self.disk.epoch, self.disk.changes), nonce, now);
        self.disk.status = Some(envelope.clone());
        envelope
    }

    pub fn write_hold(&mut self, on: ClusterId, now: Timestamp) -> Result<Envelope, Broken> {
        let sequence = self.disk.holds.get(&on).map_or(1, |(sequence, _)| sequence + 1);
        // As an agent writes them: with the key, so that who never heard of the writer's other documents can judge it.
        let document =
            SiteHolds { document: hold(on, sequence, now), key: self.key.public(), lasts: Default::default() };
        let envelope = Envelope::sign(&document, &self.key).map_err(broken)?;
        self.disk.holds.insert(on, (sequence, envelope.clone()));
        Ok(envelope)
    }

    pub fn presence(&self, now: Timestamp) -> Result<Envelope, Broken> {
        let heads = vec![format!("{:016x}", self.disk.changes)];
        let poll = PollRequest {
            key_set: self.disk.keys.version,
            membership: Sequence(0),
            generation: Generation(0),
            status: Heads { epoch: self.disk.epoch, nonce: String::new(), heads },
            look_age: 0,
            profile: Profile::Normal,
            wait: None,
            holds: 0,
        };
        let presence = Presence { key: self.key.public(), at: now, poll };
        Envelope::sign(&presence, &self.key).map_err(broken)
    }
}

/// A status document of which nobody here reads the body.
pub(super) fn status(
    key: &SigningKey,
    cluster: ClusterId,
    (epoch, changes): (u64, u64),
    nonce: Nonce,
    now: Timestamp,
) -> Envelope {
    let header = Header {
        cluster,
        key: key.public(),
        epoch,
        nonce,
        changes,
        written_at: now,
        clock_offset: None,
        requires: Vec::new(),
    };
    let header = serde_json::to_vec(&header).unwrap_or_default();
    let mut payload = u32::try_from(header.len()).unwrap_or_default().to_be_bytes().to_vec();
    payload.extend(header);
    Envelope::sign_bytes(PAYLOAD_TYPE, payload, key)
}
