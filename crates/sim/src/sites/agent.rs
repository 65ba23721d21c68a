//! A simulated agent: its key, what its disk keeps over a restart, and the real `Node` while it runs.

use std::collections::BTreeMap;

use kedge_model::wire::{
    ClusterId, Envelope, Generation, Heads, KeySet, PollRequest, Presence, Profile, Sequence, SigningKey, Timestamp,
};
use kedge_peer::{Node, Settings};
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
    pub liar: Option<Liar>,
    pub disk: Disk,
    pub said: Timestamp,
    /// Requests since the count began.
    pub requests: u64,
}

/// How a liar lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Liar {
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
    pub state: Option<Envelope>,
    pub status: Option<Envelope>,
    pub epoch: u64,
    pub changes: u64,
    pub holds: BTreeMap<ClusterId, (u64, Envelope)>,
}

impl Agent {
    pub fn start(&mut self, site: &str, seed: u64, now: Timestamp) {
        self.life += 1;
        if self.liar.is_some() {
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
        let document = hold(on, sequence, now);
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
        let presence = Presence { cluster: self.id, key: self.key.public(), at: now, poll };
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
