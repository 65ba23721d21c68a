//! The hub of simulated sites: it signs, and believes what the owners signed, whoever brought it. It remembers everything that was ever signed, so
//! that a document which nobody wrote is noticed anywhere.

use std::collections::{BTreeMap, BTreeSet};

use kedge_model::wire::{
    ClusterId, DesiredState, Digest, Envelope, EnvelopeError, Generation, HoldDocument, HoldEntry, Key, KeyId, KeySet,
    KeyState, Membership, Payload, Presence, SigningKey, Stream, Timestamp,
};
use kedge_peer::Version;
use kedge_status::Limits;

use crate::Broken;

#[derive(Debug)]
pub(super) struct Hub {
    keys: Vec<SigningKey>,
    pub chain: Vec<(KeySet, Envelope)>,
    pub memberships: BTreeMap<ClusterId, (Membership, Envelope)>,
    pub states: BTreeMap<Stream, (u64, Envelope)>,
    pub holds: BTreeMap<ClusterId, (u64, Envelope)>,
    pub statuses: BTreeMap<ClusterId, Version>,
    /// Holds that agents wrote, by target and writer.
    pub site_holds: BTreeMap<(ClusterId, KeyId), u64>,
    /// When each last said that it lives.
    pub contacts: BTreeMap<ClusterId, Timestamp>,
    signed: BTreeSet<Digest>,
}

pub(super) fn key(parts: [u64; 3]) -> Result<SigningKey, Broken> {
    let mut seed = [0; 32];
    for (to, part) in seed.chunks_exact_mut(8).zip(parts) {
        to.copy_from_slice(&part.to_be_bytes());
    }
    SigningKey::from_seed(&seed).map_err(broken)
}

pub(super) fn broken(error: EnvelopeError) -> Broken {
    Broken(error.to_string())
}

impl Hub {
    pub fn new(seed: u64, now: Timestamp) -> Result<Hub, Broken> {
        let first = key([seed, 1, 0])?;
        let set = KeySet {
            version: 1,
            created_at: now,
            keys: vec![entry(&first, KeyState::Active)],
            authorities: Vec::new(),
        };
        let envelope = Envelope::sign(&set, &first).map_err(broken)?;
        let mut hub = Hub {
            keys: vec![first],
            chain: vec![(set, envelope.clone())],
            memberships: BTreeMap::new(),
            states: BTreeMap::new(),
            holds: BTreeMap::new(),
            statuses: BTreeMap::new(),
            site_holds: BTreeMap::new(),
            contacts: BTreeMap::new(),
            signed: BTreeSet::new(),
        };
        hub.remember(&envelope);
        Ok(hub)
    }

    pub fn remember(&mut self, envelope: &Envelope) {
        self.signed.insert(mark(envelope));
    }

    /// Whether the owner wrote this.
    pub fn was_signed(&self, envelope: &Envelope) -> bool {
        self.signed.contains(&mark(envelope))
    }

    fn sign<T: Payload>(&mut self, message: &T) -> Result<Envelope, Broken> {
        let key = self.keys.last().ok_or_else(|| Broken("the hub has no key".to_owned()))?;
        let envelope = Envelope::sign(message, key).map_err(broken)?;
        self.remember(&envelope);
        Ok(envelope)
    }

    /// A new key takes over; what the old ones signed stays good.
    pub fn rotate(&mut self, seed: u64, now: Timestamp) -> Result<(), Broken> {
        let version = self.chain.len() as u64 + 1;
        let next = key([seed, 1, version])?;
        let mut keys: Vec<Key> = self.keys.iter().map(|key| entry(key, KeyState::Retired)).collect();
        keys.push(entry(&next, KeyState::Active));
        let set = KeySet { version, created_at: now, keys, authorities: Vec::new() };
        let envelope = self.sign(&set)?;
        self.chain.push((set, envelope));
        self.keys.push(next);
        Ok(())
    }

    pub fn admit(&mut self, membership: Membership) -> Result<(), Broken> {
        let envelope = self.sign(&membership)?;
        self.memberships.insert(membership.cluster, (membership, envelope));
        Ok(())
    }

    /// Changes a membership; the sequence goes up.
    pub fn change(&mut self, cluster: &ClusterId, change: impl FnOnce(&mut Membership)) -> Result<(), Broken> {
        let Some((membership, _)) = self.memberships.get(cluster) else { return Ok(()) };
        let mut next = membership.clone();
        next.sequence.0 += 1;
        change(&mut next);
        self.admit(next)
    }

    pub fn publish(&mut self, stream: &Stream, now: Timestamp) -> Result<(), Broken> {
        let generation = self.states.get(stream).map_or(1, |(generation, _)| generation + 1);
        let state = DesiredState {
            stream: stream.clone(),
            generation: Generation(generation),
            created_at: now,
            confirmed: 0,
            entries: Vec::new(),
            removed: Vec::new(),
            unmanaged: Vec::new(),
            source: None,
            turns: false,
            requires: Vec::new(),
        };
        let envelope = self.sign(&state)?;
        self.states.insert(stream.clone(), (generation, envelope));
        Ok(())
    }

    pub fn hold(&mut self, cluster: ClusterId, now: Timestamp) -> Result<(), Broken> {
        let sequence = self.holds.get(&cluster).map_or(1, |(sequence, _)| sequence + 1);
        let document = hold(cluster, sequence, now);
        let envelope = self.sign(&document)?;
        self.holds.insert(cluster, (sequence, envelope));
        Ok(())
    }

    /// What is new for a cluster that knows so many key sets, by its own poll or through another.
    pub fn news(&self, cluster: &ClusterId, keys: u64, states: impl Fn(&Stream) -> bool) -> Vec<Envelope> {
        let sets = self.chain.iter().filter(|(set, _)| set.version > keys).map(|(_, envelope)| envelope);
        let membership = self.memberships.get(cluster);
        let state = membership.filter(|(membership, _)| states(&membership.stream) && !membership.retired);
        let state = state.and_then(|(membership, _)| self.states.get(&membership.stream)).map(|(_, envelope)| envelope);
        let holds = self.holds.get(cluster).map(|(_, envelope)| envelope);
        sets.chain(membership.map(|(_, envelope)| envelope)).chain(state).chain(holds).cloned().collect()
    }

    /// A status document or an agent's holds, from whoever. Honest agents bring nothing else.
    pub fn take(&mut self, envelope: &Envelope) -> Result<(), Broken> {
        if !self.was_signed(envelope) {
            return Err(Broken(format!(
                "the hub was brought a {}, which its owner never signed",
                envelope.payload_type
            )));
        }
        if envelope.payload_type == HoldDocument::TYPE {
            let document: HoldDocument = read(envelope)?;
            if let Some(signature) = envelope.signatures.first() {
                let known = self.site_holds.entry((document.cluster, signature.keyid)).or_default();
                *known = (*known).max(document.sequence);
            }
            return Ok(());
        }
        let header = kedge_status::header(envelope, &Limits::default()).map_err(|error| Broken(error.to_string()))?;
        let version = Version(header.epoch, header.changes);
        let known = self.statuses.entry(header.cluster).or_default();
        *known = (*known).max(version);
        Ok(())
    }

    /// A sign of life that was carried.
    pub fn read(&self, sign: &Envelope) -> Result<Presence, Broken> {
        if !self.was_signed(sign) {
            return Err(Broken("the hub was brought a sign of life that nobody gave".to_owned()));
        }
        read(sign)
    }

    /// It heard a cluster itself.
    pub fn met(&mut self, cluster: ClusterId, at: Timestamp) {
        let contact = self.contacts.entry(cluster).or_default();
        *contact = (*contact).max(at);
    }

    /// A sign of life; true: the status document that it names isn't here.
    pub fn hear(&mut self, presence: &Presence) -> bool {
        self.met(presence.cluster(), presence.at);
        let changes = presence.poll.status.heads.first().and_then(|head| u64::from_str_radix(head, 16).ok());
        let named = Version(presence.poll.status.epoch, changes.unwrap_or_default());
        self.lacks(&presence.cluster(), named)
    }

    /// Whether an older status document of it is the newest here.
    pub fn lacks(&self, cluster: &ClusterId, version: Version) -> bool {
        self.statuses.get(cluster).copied().unwrap_or_default() < version
    }
}

fn mark(envelope: &Envelope) -> Digest {
    Digest::of(&[envelope.payload_type.as_bytes(), &[0], &envelope.payload].concat())
}

pub(super) fn read<T: Payload>(envelope: &Envelope) -> Result<T, Broken> {
    serde_json::from_slice(&envelope.payload).map_err(|error| Broken(error.to_string()))
}

fn entry(key: &SigningKey, state: KeyState) -> Key {
    Key { id: key.id(), public: key.public(), state }
}

pub(super) fn hold(cluster: ClusterId, sequence: u64, now: Timestamp) -> HoldDocument {
    let entry =
        HoldEntry { assignment: "shop-prod".to_owned(), by: "anna".to_owned(), reason: String::new(), since: now };
    HoldDocument { cluster, sequence, written_at: now, holds: vec![entry] }
}
