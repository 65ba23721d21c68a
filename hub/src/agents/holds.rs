//! Hold documents: people hold and release assignments at the hub (`Fleet`), and a technician's own document is taken in as any
//! cluster brings it, and so is one that was written at another cluster of the site. Each is signed by its writer; what is in force on
//! a cluster is all of them together.

use std::time::Instant;

use kedge_hub_types::history::{Entry, Place, What};
use kedge_hub_types::status::TakeError;
use kedge_hub_types::status::prepared::is_a_time;
use kedge_model::name::check_assignment_name;
use kedge_model::shown::cell;
use kedge_model::wire::{
    ClusterId, Envelope, EnvelopeError, HoldDocument, HoldEntry, HubHolds, Lift, Payload as _, SiteHolds, Timestamp,
    VerifyingKey,
};

use super::fleet::{Fleet, FleetError};
use super::hold_pace::PACE;
use crate::status::Taken;
use crate::store::agents::holds::{HoldWriter, written_by};
use crate::store::catalog::Visible;
use crate::store::{Store, StoreError, Tx, now};

/// More assignments than a host has.
const MAX_HOLDS: usize = 1000;
/// Exact in JSON, and more than anybody holds.
const MAX_SEQUENCE: u64 = 1 << 53;
/// As an agent keeps of other agents.
const MAX_PEERS: usize = 32;
/// Of one document: who holds more at once has told enough.
const MAX_TOLD: usize = 64;
/// Beyond the assignments that the cluster has: those it had before, and those that are on their way.
const MORE_HOLDS: usize = 16;
/// More than writers and assignments that one lifts at once.
const MAX_LIFTED: usize = 256;
/// As an agent bounds them.
const MAX_NAME: usize = 256;
const MAX_REASON: usize = 1024;

impl Fleet {
    /// Adds a hold to the hub's document of a cluster; one that is there already gets the new reason.
    pub async fn hold(&self, tx: &mut Tx, cluster: &ClusterId, entry: HoldEntry) -> Result<(), FleetError> {
        self.active(tx, cluster).await?;
        let mut holds = hub_holds(tx, cluster).await?;
        holds.document.holds.retain(|held| held.assignment != entry.assignment);
        if holds.document.holds.len() >= MAX_HOLDS {
            return Err(FleetError::BadOrder("a cluster has at most 1,000 holds"));
        }
        holds.document.holds.push(entry);
        self.write_holds(tx, holds).await
    }

    /// False: the hub doesn't hold it.
    pub async fn release(&self, tx: &mut Tx, cluster: &ClusterId, assignment: &str) -> Result<bool, FleetError> {
        let mut holds = hub_holds(tx, cluster).await?;
        let before = holds.document.holds.len();
        holds.document.holds.retain(|held| held.assignment != assignment);
        if holds.document.holds.len() == before {
            return Ok(false);
        }
        self.write_holds(tx, holds).await?;
        Ok(true)
    }

    /// Ends what other clusters of the site hold of an assignment here. Whose holds those were.
    pub async fn lift(
        &self,
        tx: &mut Tx,
        cluster: &ClusterId,
        assignment: &str,
        by: &str,
        reason: &str,
    ) -> Result<Vec<String>, FleetError> {
        self.active(tx, cluster).await?;
        let mut holds = hub_holds(tx, cluster).await?;
        let mut ended = Vec::new();
        for (writer, document) in tx.hold_documents(cluster).await? {
            let HoldWriter::Peer(writer) = writer else { continue };
            for entry in document.holds.iter().filter(|entry| entry.assignment == assignment) {
                holds.lifted.retain(|lift| lift.writer != writer || lift.assignment.as_deref() != Some(assignment));
                holds.lifted.push(Lift {
                    writer,
                    assignment: Some(assignment.to_owned()),
                    through: document.sequence,
                    since: Some(entry.since),
                    by: by.to_owned(),
                    reason: reason.to_owned(),
                    at: now(),
                });
                ended.push(entry.by.clone());
            }
        }
        if !ended.is_empty() {
            trim(&mut holds.lifted);
            self.write_holds(tx, holds).await?;
        }
        Ok(ended)
    }

    /// A cluster that is shut out holds nothing on others any more, whatever it says.
    pub(super) async fn lift_all_of(&self, tx: &mut Tx, writer: &ClusterId) -> Result<(), FleetError> {
        for cluster in tx.held_by_peer(writer).await? {
            let mut holds = hub_holds(tx, &cluster).await?;
            holds.lifted.retain(|lift| lift.writer != *writer);
            holds.lifted.push(Lift {
                writer: *writer,
                assignment: None,
                through: Lift::EVERYTHING,
                since: None,
                by: "the hub".to_owned(),
                reason: "its writer is no member any more".to_owned(),
                at: now(),
            });
            trim(&mut holds.lifted);
            self.write_holds(tx, holds).await?;
        }
        Ok(())
    }

    async fn write_holds(&self, tx: &mut Tx, holds: HubHolds) -> Result<(), FleetError> {
        // A backup that was restored has forgotten numbers: none is given twice.
        let floor = u64::try_from(tx.floor().await?).unwrap_or(0);
        let HubHolds { document, lifted } = holds;
        let document = HoldDocument { sequence: document.sequence.max(floor) + 1, written_at: now(), ..document };
        let holds = HubHolds { document, lifted };
        let envelope = self.sign(&holds)?.to_json()?;
        tx.put_hold_document(&holds.document, HoldWriter::Hub, &envelope).await?;
        Ok(())
    }
}

/// The oldest go first: by then what they ended has lasted its time.
fn trim(lifted: &mut Vec<Lift>) {
    lifted.sort_by_key(|lift| lift.at);
    let over = lifted.len().saturating_sub(MAX_LIFTED);
    lifted.drain(..over);
}

async fn hub_holds(tx: &mut Tx, cluster: &ClusterId) -> Result<HubHolds, StoreError> {
    let first = HoldDocument { cluster: *cluster, sequence: 0, written_at: Timestamp(0), holds: Vec::new() };
    Ok(match tx.hold_document(cluster, HoldWriter::Hub).await? {
        Some((envelope, document)) => HubHolds { lifted: HubHolds::lifted(&envelope), document },
        None => HubHolds { document: first, lifted: Vec::new() },
    })
}

/// A technician's document, on his own cluster or on another of the site, whoever brings it.
pub async fn take(store: &Store, envelope: &Envelope) -> Result<Taken, TakeError> {
    let claimed: HoldDocument = serde_json::from_slice(&envelope.payload)
        .map_err(|why| TakeError::Malformed(format!("the hold document can't be read: {why}")))?;
    if claimed.holds.len() > MAX_HOLDS || claimed.sequence == 0 || claimed.sequence > MAX_SEQUENCE {
        return Err(TakeError::Malformed("the hold document is beyond what an agent writes".to_owned()));
    }
    let unavailable = |error: StoreError| {
        tracing::warn!(%error, "a hold document can't be stored now");
        TakeError::Unavailable
    };
    let by = serde_json::from_slice(&envelope.payload).map_or(claimed.cluster, |holds: SiteHolds| holds.writer());
    let key = store.public_key(&by).await.map_err(unavailable)?;
    let key: [u8; 32] = key.and_then(|key| key.try_into().ok()).ok_or(TakeError::UnknownCluster(by))?;
    check(envelope, &key).map_err(|why| TakeError::Forged(why.to_string()))?;
    let mut writer = HoldWriter::Cluster;
    if by != claimed.cluster {
        writer = HoldWriter::Peer(by);
        if store.shared_site(&by, &claimed.cluster).await.map_err(unavailable)?.is_none() {
            let why = format!("clusters {by} and {} share no site: one holds nothing on the other", claimed.cluster);
            return Err(TakeError::WrongCluster(why));
        }
        let known = store.hold_documents(&claimed.cluster).await.map_err(unavailable)?;
        let peers = known.iter().filter(|(known, _)| *known != writer && matches!(known, HoldWriter::Peer(_)));
        if peers.count() >= MAX_PEERS {
            return Err(TakeError::TooLarge(format!(
                "{MAX_PEERS} others hold something on {} already",
                claimed.cluster
            )));
        }
    }
    let mut times = claimed.holds.iter().map(|hold| hold.since).chain([claimed.written_at]);
    if !times.all(is_a_time) {
        return Err(TakeError::Malformed("the hold document has a time that no calendar has".to_owned()));
    }
    for hold in &claimed.holds {
        check_assignment_name(&hold.assignment)
            .map_err(|why| TakeError::Malformed(format!("a hold is for no assignment: {why}")))?;
    }
    let json = envelope.to_json().map_err(|why| TakeError::Malformed(why.to_string()))?;
    let standing = store.standing(&claimed.cluster).await.map_err(unavailable)?;
    let known = match &standing {
        Some(standing) => store.count_assignments(&standing.stream).await.map_err(unavailable)?,
        None => 0,
    };
    let writers = store.cluster_names(&Visible::All, &[by.to_string()]).await.map_err(unavailable)?;
    let name = writers.into_values().next().unwrap_or_else(|| by.to_string());
    let place = standing.map(|standing| Place::cluster(&standing.stream, claimed.cluster)).unwrap_or_default();
    let mut tx = store.write().await.map_err(unavailable)?;
    let before = tx.hold_document(&claimed.cluster, writer).await.map_err(unavailable)?;
    let newer = before.as_ref().is_none_or(|(_, document)| document.sequence < claimed.sequence);
    let before = before.map(|(_, document)| document.holds).unwrap_or_default();
    // Who held more before, as its assignments were more, must be able to end some of them.
    let most = before.len().max(known + MORE_HOLDS);
    if newer && claimed.holds.len() > most {
        return Err(TakeError::TooLarge(format!("a cluster with {known} assignments holds at most {most}")));
    }
    let told = told(&before, &claimed, &place, &name, now());
    if newer {
        PACE.take(by, told.len(), Instant::now()).map_err(|seconds| TakeError::TooOften { cluster: by, seconds })?;
    }
    let stored = tx.put_hold_document(&claimed, writer, &json).await.map_err(unavailable)?;
    if stored {
        tx.record(told).await.map_err(unavailable)?;
    }
    tx.commit().await.map_err(unavailable)?;
    Ok(if stored { Taken::Stored } else { Taken::Older })
}

/// Who holds what anew, and what was let go, for the history. The cluster wrote it: it says so whoever it names.
fn told(before: &[HoldEntry], document: &HoldDocument, place: &Place, writer: &str, now: Timestamp) -> Vec<Entry> {
    let entry = |held: bool, hold: &HoldEntry, at: Timestamp| {
        let (by, reason) = (written_by(&hold.by, writer), cell(&hold.reason, MAX_REASON));
        let place = place.clone().target(&cell(&hold.assignment, MAX_NAME));
        Entry::new(at.min(now), place, What::Hold { held, by: by.clone(), reason }).by(&by)
    };
    let new = document.holds.iter().filter(|hold| !before.contains(hold)).map(|hold| entry(true, hold, hold.since));
    let is_held = |gone: &HoldEntry| document.holds.iter().any(|hold| hold.assignment == gone.assignment);
    let gone = before.iter().filter(|gone| !is_held(gone)).map(|gone| entry(false, gone, document.written_at));
    new.chain(gone).take(MAX_TOLD).collect()
}

fn check(envelope: &Envelope, key: &[u8; 32]) -> Result<(), EnvelopeError> {
    envelope.verify(HoldDocument::TYPE, &[VerifyingKey::new(key)?]).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(assignment: &str, by: &str) -> HoldEntry {
        HoldEntry {
            assignment: assignment.to_owned(),
            by: by.to_owned(),
            reason: "lens".to_owned(),
            since: Timestamp(5),
        }
    }

    #[test]
    fn the_history_tells_who_began_and_who_ended_a_hold() {
        let cluster = ClusterId::of_public_key(&[1; 32]);
        let holds = vec![hold("a", "anna@gate"), hold("b", "ben")];
        let document = HoldDocument { cluster, sequence: 2, written_at: Timestamp(90), holds };
        let place = Place { cluster_type: "press".to_owned(), ..Place::default() };
        let told = told(&[hold("b", "ben"), hold("c", "cleo")], &document, &place, "press-1", Timestamp(50));
        let lines = told.iter().map(|entry| (entry.what.event(), entry.place.assignment.as_str(), entry.at.0));
        assert_eq!(lines.collect::<Vec<_>>(), [("held", "press/a", 5), ("unheld", "press/c", 50)]);
        assert_eq!(told[0].who.as_deref(), Some("anna@press-1"), "whatever the cluster says");
    }

    #[test]
    fn a_document_of_a_thousand_holds_fills_no_history() {
        let cluster = ClusterId::of_public_key(&[1; 32]);
        let holds = (0..1000).map(|number| hold(&number.to_string(), &"x".repeat(5000))).collect();
        let document = HoldDocument { cluster, sequence: 1, written_at: Timestamp(1), holds };
        let told = told(&[], &document, &Place::default(), "press-1", Timestamp(50));
        assert!(
            told.len() == MAX_TOLD && told.iter().all(|entry| entry.who.as_ref().is_some_and(|who| who.len() < 80))
        );
    }
}
