//! Holds across the site: what people at other agents hold here, and what people here hold on others. Each is a document of its
//! writer's, numbered per target; peers carry it, the target judges it.

use std::collections::BTreeMap;
use std::time::Duration;

use kedge_model::wire::{
    ClusterId, Envelope, HoldDocument, HoldEntry, HubHolds, KeyId, Membership, SigningKey, SiteHolds, Timestamp,
    VerifyingKey,
};

use super::{Held, HoldError, Holds, Kept, MAX_TARGETS, MAX_WRITERS, Writer, add, content, entry, held};

/// A hold that this agent keeps on another cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    pub cluster: ClusterId,
    pub entry: HoldEntry,
}

/// Two dozen holds with the longest reasons; a peer that lies shall not fill the ledger.
const MAX_PEER_DOCUMENT: usize = 32 * 1024;

impl Holds {
    /// A peer's document on this cluster: obeyed if its writer signed it, the hub's word makes the writer a member of the same site,
    /// and it is newer than what is known of that writer. Answers whether it was.
    pub fn take_from_peer(
        &self,
        envelope: &Envelope,
        writer: &Envelope,
        own: &Membership,
        keys: &[VerifyingKey],
    ) -> Result<bool, HoldError> {
        let SiteHolds { document, key, .. } = SiteHolds::open(envelope)?;
        let by = ClusterId::of_public_key(key.as_bytes());
        if envelope.payload.len() > MAX_PEER_DOCUMENT {
            return Err(HoldError::TooLarge(by));
        }
        if document.cluster != own.cluster {
            return Err(HoldError::WrongCluster(document.cluster));
        }
        let writer: Membership = writer.open(keys)?;
        let shares = own.site.as_ref().is_some_and(|site| !site.is_empty() && writer.site.as_ref() == Some(site));
        if writer.cluster != by || by == own.cluster || !shares || writer.retired {
            return Err(HoldError::NotOfTheSite(by));
        }
        let (_lock, mut ledger, mut kept) = self.open()?;
        // Documents for an earlier identity of this host count for nothing.
        kept.peers.retain(|_, known| content(Some(known)).is_some_and(|known| known.cluster == own.cluster));
        if content(kept.peers.get(&by)).is_some_and(|known| known.sequence >= document.sequence) {
            return Ok(false);
        }
        if !kept.peers.contains_key(&by) && kept.peers.len() >= MAX_WRITERS {
            // One that holds nothing any more makes room; its number is forgotten with it.
            let empty = |known: &Envelope| content(Some(known)).is_none_or(|known| known.holds.is_empty());
            let gone = kept.peers.iter().find(|(_, known)| empty(known)).map(|(writer, _)| *writer);
            kept.peers.remove(&gone.ok_or(HoldError::TooManyWriters)?);
        }
        kept.peers.insert(by, envelope.clone());
        kept.forget_set_aside();
        kept.forget_ages();
        ledger.write(&kept)?;
        Ok(true)
    }

    /// Somebody here holds an assignment of another cluster of the site, for so long. Once more is a new hold, whose time begins
    /// again.
    #[expect(clippy::too_many_arguments, reason = "what a hold says")]
    pub fn hold_on(
        &self,
        key: &SigningKey,
        target: ClusterId,
        assignment: &str,
        by: &str,
        reason: &str,
        lasts: Duration,
        now: Timestamp,
    ) -> Result<(), HoldError> {
        let entry = entry(assignment, by, reason, now)?;
        self.change_on(key, target, now, |holds, said| {
            holds.retain(|held| held.assignment != entry.assignment);
            said.insert(entry.assignment.clone(), lasts.as_secs());
            add(holds, entry)
        })
        .map(drop)
    }

    /// Takes back what this agent wrote; false: there was nothing.
    pub fn unhold_on(
        &self,
        key: &SigningKey,
        target: ClusterId,
        assignment: &str,
        now: Timestamp,
    ) -> Result<bool, HoldError> {
        self.change_on(key, target, now, |holds, lasts| {
            lasts.remove(assignment);
            holds.retain(|entry| entry.assignment != assignment);
            Ok(())
        })
    }

    /// The documents on others as they were signed, for peers and for the hub. One that holds nothing any more is told too.
    pub fn outgoing(&self) -> Result<Vec<Envelope>, HoldError> {
        Ok(self.kept()?.outgoing.into_values().collect())
    }

    /// The sequence of what is known of each other agent that holds something here, by its key.
    pub fn known_of_peers(&self) -> Result<BTreeMap<KeyId, u64>, HoldError> {
        let kept = self.kept()?;
        let known =
            kept.peers.iter().filter_map(|(writer, known)| Some((writer.key_id(), content(Some(known))?.sequence)));
        Ok(known.collect())
    }

    /// What this agent holds on others.
    pub fn elsewhere(&self) -> Result<Vec<Elsewhere>, HoldError> {
        let kept = self.kept()?;
        let documents = kept.outgoing.values().filter_map(|envelope| content(Some(envelope)));
        let entries =
            |HoldDocument { cluster, holds, .. }| holds.into_iter().map(move |entry| Elsewhere { cluster, entry });
        Ok(documents.flat_map(entries).collect())
    }

    /// What peers hold of this assignment until now isn't obeyed any more.
    pub(super) fn set_aside(&self, assignment: &str) -> Result<(), HoldError> {
        let (_lock, mut ledger, mut kept) = self.open()?;
        for held in kept.held() {
            if let (Writer::Peer(writer), true) = (held.writer, held.assignment == assignment) {
                kept.set_aside.entry(writer).or_default().insert(held.assignment, held.since);
            }
        }
        Ok(ledger.write(&kept)?)
    }

    fn change_on(
        &self,
        key: &SigningKey,
        target: ClusterId,
        now: Timestamp,
        change: impl FnOnce(&mut Vec<HoldEntry>, &mut BTreeMap<String, u64>) -> Result<(), HoldError>,
    ) -> Result<bool, HoldError> {
        let (_lock, mut ledger, mut kept) = self.open()?;
        // Those of an earlier identity of this host were another writer's.
        kept.outgoing.retain(|_, known| SiteHolds::open(known).is_ok_and(|known| known.key == key.public()));
        let before = kept.outgoing.get(&target).and_then(|envelope| SiteHolds::open(envelope).ok());
        let is_new = before.is_none();
        let (sequence, mut holds, mut lasts) = before
            .map_or_else(Default::default, |before| (before.document.sequence, before.document.holds, before.lasts));
        let unchanged = (holds.clone(), lasts.clone());
        change(&mut holds, &mut lasts)?;
        if (&holds, &lasts) == (&unchanged.0, &unchanged.1) {
            return Ok(false);
        }
        if is_new && kept.outgoing.len() >= MAX_TARGETS {
            return Err(HoldError::TooManyTargets);
        }
        let document = HoldDocument { cluster: target, sequence: sequence + 1, written_at: now, holds };
        let envelope = Envelope::sign(&SiteHolds { document, key: key.public(), lasts }, key)?;
        if envelope.payload.len() > MAX_PEER_DOCUMENT {
            return Err(HoldError::TooMany);
        }
        kept.outgoing.insert(target, envelope);
        ledger.write(&kept)?;
        Ok(true)
    }
}

impl Kept {
    /// What other agents of the site hold here: not what was set aside here, what the hub lifted, or what has lasted its time.
    pub(super) fn held_by_peers(&self) -> Vec<Held> {
        let lifted = self.hub.as_ref().map(HubHolds::lifted).unwrap_or_default();
        let mut all = Vec::new();
        for (by, envelope) in &self.peers {
            let Ok(said) = serde_json::from_slice::<SiteHolds>(&envelope.payload) else { continue };
            let sequence = said.document.sequence;
            for entry in &said.document.holds {
                let writer = Writer::Peer(*by);
                let ends_in = said.lasts(&entry.assignment).checked_sub(self.lasted(*by, entry));
                let over = ends_in.is_none_or(|left| left.is_zero());
                if !over
                    && !self.is_set_aside(writer, entry)
                    && !lifted.iter().any(|lift| lift.ends(*by, sequence, entry))
                {
                    all.push(held(writer, entry.clone(), ends_in));
                }
            }
        }
        all
    }

    pub(super) fn is_set_aside(&self, writer: Writer, entry: &HoldEntry) -> bool {
        let Writer::Peer(writer) = writer else { return false };
        let until = self.set_aside.get(&writer).and_then(|names| names.get(&entry.assignment));
        until.is_some_and(|until| entry.since <= *until)
    }

    /// What nobody holds any more needn't be remembered as set aside.
    fn forget_set_aside(&mut self) {
        let peers = &self.peers;
        self.set_aside.retain(|writer, names| {
            let holds = content(peers.get(writer)).map(|document| document.holds).unwrap_or_default();
            names.retain(|name, _| holds.iter().any(|entry| entry.assignment == *name));
            !names.is_empty()
        });
    }
}
