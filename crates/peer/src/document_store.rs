//! The documents that an agent holds for its site: each verified when it was taken, newest of its name, bounded. A `Node` owns one; the agent
//! reads it. Nothing is believed for who brought it, and the same documents in any order give the same store.

mod check;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use kedge_model::wire::{ClusterId, Digest, Envelope, KeyId, KeySet, Membership, Presence, Stream, VerifyingKey};
use kedge_status::Nonce;

use crate::message::weight;
use crate::misbehavior::{Misbehavior, Taken};
use crate::name::{Name, Version, digits};
use crate::pace::{MAX_BYTES, MAX_KEY_SETS, MAX_NAMES, MAX_PRESENCE};

#[derive(Debug)]
pub struct DocumentStore {
    me: ClusterId,
    site: String,
    /// The newest set of the chain.
    keys: KeySet,
    documents: BTreeMap<Name, Document>,
    /// Public keys of members, learnt from what they signed.
    known: BTreeMap<KeyId, VerifyingKey>,
    bytes: usize,
}

#[derive(Debug)]
struct Document {
    version: Version,
    /// Stands for name and version in the digest.
    mark: u128,
    envelope: Envelope,
    content: Content,
}

/// What of a document is needed again and again.
#[derive(Debug)]
enum Content {
    Keys(KeySet),
    Membership(Box<Membership>),
    /// Blobs that the state names.
    State(BTreeSet<Digest>),
    Turn,
    Status(Nonce),
    /// Whether the hub wrote them.
    Holds {
        hub: bool,
    },
}

impl DocumentStore {
    pub fn new(me: ClusterId, site: &str, keys: KeySet) -> DocumentStore {
        DocumentStore { me, site: site.to_owned(), keys, documents: BTreeMap::new(), known: BTreeMap::new(), bytes: 0 }
    }

    /// Takes a document that anybody brought, if its owner signed it and it has a place here.
    pub fn take(&mut self, envelope: Envelope) -> Result<Taken, Misbehavior> {
        // What is here was judged; a signature costs far more than a look.
        if self.documents.values().any(|known| known.envelope == envelope) {
            return Ok(Taken::Known);
        }
        let document = match self.judge(&envelope)? {
            check::Judged::Place(name, document) => (name, document),
            check::Judged::Taken(taken) => return Ok(taken),
        };
        let (name, (version, content)) = document;
        let known = self.documents.get(&name).map(|known| known.version);
        match known {
            Some(known) if known == version => return Ok(Taken::Known),
            Some(known) if known > version => return Ok(Taken::Older),
            _ => {}
        }
        let (size, freed) = (weight(&envelope), self.documents.get(&name).map_or(0, |known| weight(&known.envelope)));
        let full = (known.is_none() && self.documents.len() >= MAX_NAMES) || self.bytes + size - freed > MAX_BYTES;
        // What one is oneself comes first: others' documents never keep it out.
        let own = [Name::Membership(self.me), Name::Turn(self.me), Name::Status(self.me)];
        if full && !own.contains(&name) {
            return Err(Misbehavior::Full);
        }
        let mark = name.mark(version);
        self.place(name.clone(), Document { version, mark, envelope, content });
        Ok(Taken::New(name))
    }

    /// A sign of life that its cluster signed, of this site. None: its membership isn't here yet.
    pub fn check_presence(&mut self, envelope: &Envelope) -> Result<Option<Presence>, Misbehavior> {
        if envelope.payload.len() > MAX_PRESENCE {
            return Err(Misbehavior::TooLarge(envelope.payload.len(), MAX_PRESENCE));
        }
        let presence = Presence::open(envelope).map_err(|error| Misbehavior::of_owner(&error))?;
        if !self.is_live(&presence.cluster())? {
            return Ok(None);
        }
        self.known.insert(presence.key.id(), presence.key);
        Ok(Some(presence))
    }

    pub fn get(&self, name: &Name) -> Option<&Envelope> {
        self.documents.get(name).map(|document| &document.envelope)
    }

    pub fn version(&self, name: &Name) -> Option<Version> {
        self.documents.get(name).map(|document| document.version)
    }

    /// Everything, with its version.
    pub fn documents(&self) -> impl Iterator<Item = (&Name, Version, &Envelope)> {
        self.documents.iter().map(|(name, document)| (name, document.version, &document.envelope))
    }

    pub fn keys(&self) -> &KeySet {
        &self.keys
    }

    /// A cluster of this site that isn't retired.
    pub fn member(&self, cluster: &ClusterId) -> Option<&Membership> {
        self.membership(cluster).filter(|membership| self.is_here(membership))
    }

    /// All of them.
    pub fn members(&self) -> impl Iterator<Item = &Membership> {
        self.documents.values().filter_map(|document| match &document.content {
            Content::Membership(membership) if self.is_here(membership) => Some(&**membership),
            _ => None,
        })
    }

    /// Blobs that the newest state of a stream names.
    pub fn blobs(&self, stream: &Stream) -> Option<&BTreeSet<Digest>> {
        match &self.documents.get(&Name::State(stream.clone()))?.content {
            Content::State(blobs) => Some(blobs),
            _ => None,
        }
    }

    /// Whether its signed Membership lets a cluster have a blob: its stream's state names it, or it is a relay and some state here does.
    pub fn may_have(&self, cluster: &ClusterId, blob: &Digest) -> bool {
        let Some(membership) = self.member(cluster) else { return false };
        if membership.relay {
            return self.documents.values().any(|document| match &document.content {
                Content::State(blobs) => blobs.contains(blob),
                _ => false,
            });
        }
        self.blobs(&membership.stream).is_some_and(|blobs| blobs.contains(blob))
    }

    /// The cluster left the site or was retired, and the hub said so.
    pub fn is_gone(&self, cluster: &ClusterId) -> bool {
        self.membership(cluster).is_some_and(|membership| !self.is_here(membership))
    }

    /// Bytes of all documents, about as they are in messages.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What is here and this reader may have, in short, as the own word.
    pub fn digest(&self, to: &ClusterId) -> String {
        digits(&self.me, self.marks(to))
    }

    /// The digest that a peer says if it has the same: nothing to say.
    pub fn digest_of(&self, peer: &ClusterId) -> String {
        digits(peer, self.marks(peer))
    }

    fn marks(&self, to: &ClusterId) -> u128 {
        let (keys, version) = self.newest_keys();
        self.listed(to).fold(keys.mark(version), |sum, (_, document)| sum ^ document.mark)
    }

    /// The same as a list.
    pub fn summary(&self, to: &ClusterId) -> Vec<(Name, Version)> {
        let listed = self.listed(to).map(|(name, document)| (name.clone(), document.version));
        std::iter::once(self.newest_keys()).chain(listed).take(MAX_NAMES).collect()
    }

    /// What a reader lacks, by its own list, and may have; in the order in which it can be judged.
    pub fn lacking(&self, to: &ClusterId, theirs: &[(Name, Version)]) -> Vec<Name> {
        let known: BTreeMap<&Name, Version> = theirs.iter().map(|(name, version)| (name, *version)).collect();
        let pinned = theirs.iter().filter_map(|(name, _)| match name {
            Name::Keys(version) => Some(*version),
            _ => None,
        });
        let pinned = pinned.max().unwrap_or(u64::MAX);
        let reader = self.member(to);
        let lacked = self.documents.iter().filter(|(name, document)| match name {
            Name::Keys(version) => *version > pinned,
            // Who still lists it should learn that it is over; nobody else needs to.
            _ if self.is_farewell(document) => known.get(name).is_some_and(|known| *known < document.version),
            _ => self.shows(name, reader) && known.get(name).is_none_or(|known| *known < document.version),
        });
        lacked.map(|(name, _)| name.clone()).collect()
    }

    /// What is newer in another's list and has a place here.
    pub fn missing(&self, theirs: &[(Name, Version)]) -> Vec<Name> {
        let mut wanted = BTreeSet::new();
        for (name, version) in theirs {
            match name {
                Name::Keys(newest) => {
                    let most = self.keys.version.saturating_add(MAX_KEY_SETS as u64);
                    wanted.extend((self.keys.version.saturating_add(1)..=(*newest).min(most)).map(Name::Keys));
                }
                _ if self.version(name).is_some_and(|known| known >= *version) => {}
                Name::State(stream) if !self.follows(stream) => {}
                Name::Turn(cluster) | Name::Status(cluster) | Name::Holds { of: cluster, .. }
                    if self.is_gone(cluster) => {}
                _ => {
                    wanted.insert(name.clone());
                }
            }
        }
        wanted.into_iter().collect()
    }

    /// Whether a document may be given to a reader.
    pub fn may_read(&self, name: &Name, to: &ClusterId) -> bool {
        self.shows(name, self.member(to)) || *name == Name::Membership(*to)
    }

    /// Whether somebody of this site wrote it, rather than the hub: what may be brought up.
    pub(crate) fn is_from_here(&self, name: &Name) -> bool {
        match self.documents.get(name).map(|document| &document.content) {
            Some(Content::Status(_)) => true,
            Some(Content::Holds { hub }) => !hub,
            _ => false,
        }
    }

    /// The chain is one thing in a summary: how far it is known.
    fn newest_keys(&self) -> (Name, Version) {
        (Name::Keys(self.keys.version), Version(self.keys.version, 0))
    }

    fn listed(&self, to: &ClusterId) -> impl Iterator<Item = (&Name, &Document)> {
        let reader = self.member(to);
        self.documents.iter().filter(move |(name, document)| {
            !matches!(name, Name::Keys(_)) && !self.is_farewell(document) && self.shows(name, reader)
        })
    }

    fn shows(&self, name: &Name, reader: Option<&Membership>) -> bool {
        match (name, reader) {
            (Name::Keys(_), _) => true,
            // To a stranger one says who one is; its answer makes it a member, or not.
            (Name::Membership(cluster), None) => *cluster == self.me,
            (_, None) => false,
            (Name::State(stream), Some(reader)) => reader.relay || reader.stream == *stream,
            (Name::Membership(_) | Name::Turn(_) | Name::Status(_) | Name::Holds { .. }, Some(_)) => true,
        }
    }

    /// A state has a place here if it is the own stream's, or a relay's for a member.
    fn follows(&self, stream: &Stream) -> bool {
        let Some(own) = self.member(&self.me) else { return false };
        own.stream == *stream || (own.relay && self.members().any(|member| member.stream == *stream))
    }

    fn membership(&self, cluster: &ClusterId) -> Option<&Membership> {
        match &self.documents.get(&Name::Membership(*cluster))?.content {
            Content::Membership(membership) => Some(membership),
            _ => None,
        }
    }

    fn is_here(&self, membership: &Membership) -> bool {
        !membership.retired && membership.site.as_deref() == Some(&self.site)
    }

    fn is_farewell(&self, document: &Document) -> bool {
        matches!(&document.content, Content::Membership(membership) if !self.is_here(membership))
    }

    /// Whether a cluster is a member; false while that isn't known.
    fn is_live(&self, cluster: &ClusterId) -> Result<bool, Misbehavior> {
        match self.membership(cluster) {
            None => Ok(false),
            Some(membership) if self.is_here(membership) => Ok(true),
            Some(membership) if membership.retired => Err(Misbehavior::NotAMember(*cluster)),
            Some(_) => Err(Misbehavior::OtherSite(*cluster)),
        }
    }

    fn place(&mut self, name: Name, document: Document) {
        if let Content::Keys(set) = &document.content
            && set.version > self.keys.version
        {
            self.keys = set.clone();
        }
        let membership = matches!(document.content, Content::Membership(_));
        self.bytes += weight(&document.envelope);
        if let Some(before) = self.documents.insert(name, document) {
            self.bytes -= weight(&before.envelope).min(self.bytes);
        }
        if membership {
            self.prune();
        }
        let sets: Vec<Name> = self.documents.keys().filter(|name| matches!(name, Name::Keys(_))).cloned().collect();
        for old in sets.iter().take(sets.len().saturating_sub(MAX_KEY_SETS)) {
            self.remove(old);
        }
    }

    /// A membership changed: what rests on none any more goes.
    fn prune(&mut self) {
        let gone = self.documents.values().filter_map(|document| match &document.content {
            Content::Membership(membership) if !self.is_here(membership) => Some(membership.cluster.key_id()),
            _ => None,
        });
        let gone: BTreeSet<KeyId> = gone.collect();
        let goes = self.documents.keys().filter(|name| match name {
            Name::State(stream) => !self.follows(stream),
            Name::Turn(cluster) | Name::Status(cluster) => gone.contains(&cluster.key_id()),
            Name::Holds { of, by } => gone.contains(&of.key_id()) || gone.contains(by),
            Name::Keys(_) | Name::Membership(_) => false,
        });
        for name in goes.cloned().collect::<Vec<_>>() {
            self.remove(&name);
        }
    }

    fn remove(&mut self, name: &Name) {
        if let Some(gone) = self.documents.remove(name) {
            self.bytes -= weight(&gone.envelope).min(self.bytes);
        }
    }
}
