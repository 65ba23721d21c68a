//! The checks of each kind of document, as if a stranger had brought it: size, signature, owner, site, stream, order. Called by
//! `DocumentStore::take`.

use std::collections::BTreeSet;

use kedge_model::wire::{
    ClusterId, DesiredState, Digest, Envelope, EnvelopeError, HoldDocument, KeyId, KeySet, KeySetError, Membership,
    Mode, Payload, Turn, VerifyingKey,
};
use kedge_status::{Limits, PAYLOAD_TYPE as STATUS, ReadError};
use serde::Deserialize;

use super::{Content, DocumentStore};
use crate::misbehavior::{Misbehavior, Taken};
use crate::name::{Name, Version};
use crate::pace::{MAX_HOLDS, MAX_KEY_SET, MAX_MEMBERSHIP, MAX_STATE, MAX_TURN};

pub(super) enum Judged {
    /// Believed, and has a place, if it is newer.
    Place(Name, (Version, Content)),
    /// Nothing to place.
    Taken(Taken),
}

/// Who wrote holds, where the document says it: the key of an agent of the site.
#[derive(Deserialize)]
struct Writer {
    #[serde(default)]
    key: Option<VerifyingKey>,
}

/// How the types of all our documents begin.
const OURS: &str = "application/vnd.kedge.";
const NOT_YET: Judged = Judged::Taken(Taken::NotYet);

impl DocumentStore {
    pub(super) fn judge(&mut self, envelope: &Envelope) -> Result<Judged, Misbehavior> {
        match envelope.payload_type.as_str() {
            KeySet::TYPE => self.judge_keys(envelope),
            Membership::TYPE => self.judge_membership(envelope),
            DesiredState::TYPE => self.judge_state(envelope),
            Turn::TYPE => self.judge_turn(envelope),
            HoldDocument::TYPE => self.judge_holds(envelope),
            STATUS => self.judge_status(envelope),
            // A newer agent's: not ours to read, and no reason to leave it alone.
            other if other.starts_with(OURS) => Ok(NOT_YET),
            other => Err(Misbehavior::unreadable(format!("`{other}` is no document that peers carry"))),
        }
    }

    /// The next of the chain; or an older one for those who were away, if a key signed it that a later set trusts.
    fn judge_keys(&self, envelope: &Envelope) -> Result<Judged, Misbehavior> {
        bound(envelope, MAX_KEY_SET)?;
        let claimed: KeySet = parse(envelope)?;
        let name = Name::Keys(claimed.version);
        if self.get(&name).is_some_and(|known| known == envelope) {
            return Ok(Judged::Taken(Taken::Known));
        }
        let version = Version(claimed.version, 0);
        if claimed.version <= self.keys.version {
            let sets = self.documents.values().filter_map(|document| match &document.content {
                Content::Keys(set) => Some(set),
                _ => None,
            });
            let trusted: Vec<VerifyingKey> = sets.chain([&self.keys]).flat_map(KeySet::trusted).collect();
            return Ok(match envelope.open::<KeySet>(&trusted) {
                Ok(set) => Judged::Place(name, (version, Content::Keys(set))),
                Err(EnvelopeError::Untrusted(_)) => Judged::Taken(Taken::Older),
                Err(error) => return Err(Misbehavior::of_hub(&error)),
            });
        }
        if claimed.version > self.keys.version.saturating_add(1) {
            return Ok(NOT_YET);
        }
        match self.keys.follow(envelope) {
            Ok(set) => Ok(Judged::Place(name, (version, Content::Keys(set)))),
            Err(KeySetError::Envelope(error)) => Err(Misbehavior::of_hub(&error)),
            Err(other) => Err(Misbehavior::unreadable(other)),
        }
    }

    fn judge_membership(&self, envelope: &Envelope) -> Result<Judged, Misbehavior> {
        bound(envelope, MAX_MEMBERSHIP)?;
        let membership: Membership =
            envelope.open(&self.keys.trusted()).map_err(|error| Misbehavior::of_hub(&error))?;
        let cluster = membership.cluster;
        let known = self.membership(&cluster).is_some();
        // That a stranger left or belongs elsewhere is nobody's business here.
        if !known && cluster != self.me && !self.is_here(&membership) {
            let misbehavior =
                if membership.retired { Misbehavior::NotAMember(cluster) } else { Misbehavior::OtherSite(cluster) };
            return Err(misbehavior);
        }
        let version = Version(membership.sequence.0, 0);
        Ok(Judged::Place(Name::Membership(cluster), (version, Content::Membership(Box::new(membership)))))
    }

    fn judge_state(&self, envelope: &Envelope) -> Result<Judged, Misbehavior> {
        bound(envelope, MAX_STATE)?;
        let state: DesiredState = envelope.open(&self.keys.trusted()).map_err(|error| Misbehavior::of_hub(&error))?;
        let name = Name::of_stream(&state.stream).ok_or_else(|| Misbehavior::unreadable("its stream has no name"))?;
        if !self.follows(&state.stream) {
            // A relay may hear of the member that follows it later; so may who doesn't know its own stream.
            return match self.member(&self.me) {
                Some(own) if !own.relay => Err(Misbehavior::OtherStream(state.stream.to_string())),
                _ => Ok(NOT_YET),
            };
        }
        let version = Version(state.generation.0, 0);
        Ok(Judged::Place(name, (version, Content::State(blobs(&state)))))
    }

    fn judge_turn(&self, envelope: &Envelope) -> Result<Judged, Misbehavior> {
        bound(envelope, MAX_TURN)?;
        let turn: Turn = envelope.open(&self.keys.trusted()).map_err(|error| Misbehavior::of_hub(&error))?;
        if !self.is_live(&turn.cluster)? {
            return Ok(NOT_YET);
        }
        let issued =
            u64::try_from(turn.issued_at.0).map_err(|_| Misbehavior::unreadable("it was issued at no time"))?;
        Ok(Judged::Place(Name::Turn(turn.cluster), (Version(issued, turn.generation.0), Content::Turn)))
    }

    fn judge_status(&mut self, envelope: &Envelope) -> Result<Judged, Misbehavior> {
        let header = match kedge_status::header(envelope, &Limits::default()) {
            Ok(header) => header,
            // A newer agent's: it is signed, and not ours to read.
            Err(ReadError::Unsupported(_)) => return Ok(NOT_YET),
            Err(error) => return Err(Misbehavior::of_status(&error)),
        };
        if !self.is_live(&header.cluster)? {
            return Ok(NOT_YET);
        }
        self.known.insert(header.key.id(), header.key);
        let name = Name::Status(header.cluster);
        if let Some(known) = self.documents.get(&name)
            && known.version.0 == header.epoch
            && !matches!(known.content, Content::Status(nonce) if nonce == header.nonce)
        {
            return Err(Misbehavior::Clone(header.cluster));
        }
        Ok(Judged::Place(name, (Version(header.epoch, header.changes), Content::Status(header.nonce))))
    }

    fn judge_holds(&mut self, envelope: &Envelope) -> Result<Judged, Misbehavior> {
        bound(envelope, MAX_HOLDS)?;
        let claimed: HoldDocument = parse(envelope)?;
        let (of, version) = (claimed.cluster, Version(claimed.sequence, 0));
        match envelope.verify(HoldDocument::TYPE, &self.keys.trusted()) {
            Ok(_) => {
                if !self.is_live(&of)? {
                    return Ok(NOT_YET);
                }
                return Ok(self.hub_holds(of, version, envelope));
            }
            Err(EnvelopeError::Untrusted(_)) => {}
            Err(error) => return Err(Misbehavior::of_hub(&error)),
        }
        // Not the hub's: an agent's of this site, by the key it names or by one that is known.
        let named: Writer = parse(envelope)?;
        let signers = envelope.signatures.iter().filter_map(|signature| self.known.get(&signature.keyid));
        let keys: Vec<VerifyingKey> = named.key.iter().chain(signers).copied().collect();
        if keys.is_empty() {
            return Ok(NOT_YET);
        }
        envelope.verify(HoldDocument::TYPE, &keys).map_err(|error| Misbehavior::of_owner(&error))?;
        let signed = |key: &&VerifyingKey| envelope.signatures.iter().any(|signature| signature.keyid == key.id());
        let Some(key) = keys.iter().find(signed) else { return Err(Misbehavior::NotTheOwner) };
        if !self.is_live(&ClusterId::of_public_key(key.as_bytes()))? || !self.is_live(&of)? {
            return Ok(NOT_YET);
        }
        self.known.insert(key.id(), *key);
        Ok(Judged::Place(Name::Holds { of, by: key.id() }, (version, Content::Holds { hub: false })))
    }

    /// The hub is one writer, whichever of its keys signed: the highest sequence counts.
    fn hub_holds(&mut self, of: ClusterId, version: Version, envelope: &Envelope) -> Judged {
        let trusted: Vec<KeyId> = self.keys.trusted().iter().map(VerifyingKey::id).collect();
        let signer = envelope.signatures.iter().map(|signature| signature.keyid).find(|key| trusted.contains(key));
        let Some(by) = signer else { return NOT_YET };
        let others = self.documents.iter().filter(|(name, document)| {
            let of_hub = matches!(document.content, Content::Holds { hub: true });
            of_hub && matches!(name, Name::Holds { of: whose, by: key } if *whose == of && *key != by)
        });
        let others: Vec<(Name, Version)> = others.map(|(name, document)| (name.clone(), document.version)).collect();
        if others.iter().any(|(_, known)| *known >= version) {
            return Judged::Taken(Taken::Older);
        }
        for (older, _) in &others {
            self.remove(older);
        }
        Judged::Place(Name::Holds { of, by }, (version, Content::Holds { hub: true }))
    }
}

fn bound(envelope: &Envelope, most: usize) -> Result<(), Misbehavior> {
    if envelope.payload.len() > most { Err(Misbehavior::TooLarge(envelope.payload.len(), most)) } else { Ok(()) }
}

fn parse<'a, T: Deserialize<'a>>(envelope: &'a Envelope) -> Result<T, Misbehavior> {
    serde_json::from_slice(&envelope.payload).map_err(Misbehavior::unreadable)
}

fn blobs(state: &DesiredState) -> BTreeSet<Digest> {
    let mut named = BTreeSet::new();
    for entry in &state.entries {
        if let Mode::Apply(packages) = &entry.mode {
            for package in [&packages.platform, &packages.workload] {
                named.insert(package.digest);
                named.extend(package.artifacts.iter().map(|artifact| artifact.digest));
            }
        }
    }
    named
}
