//! Who said "don't touch this assignment here": a technician on the spot (signed by the cluster's key) and people at the hub (signed
//! by the hub's). Both are in force together. The commands `hold` and `unhold` and the daemon write the ledger `holds`, one at a time.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use kedge_durable::{Disk, FileLock, Ledger, LedgerError, RealDisk};
use kedge_model::wire::{
    ClusterId, Envelope, EnvelopeError, HoldDocument, HoldEntry, SigningKey, Timestamp, VerifyingKey,
};
use serde::{Deserialize, Serialize};

use crate::paths::Paths;

#[cfg(test)]
mod tests;

/// The holds of this host, on disk.
#[derive(Clone, Debug)]
pub struct Holds {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
}

/// A hold that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub assignment: String,
    /// The Unix user on the spot, or the person at the hub.
    pub by: String,
    pub reason: String,
    pub since: Timestamp,
    pub writer: Writer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Writer {
    Technician,
    Hub,
}

/// What `unhold` came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unheld {
    pub assignment: String,
    /// Whether a technician's hold was there.
    pub removed: bool,
    /// The hub's, which is still in force: only people there can take it back.
    pub still: Option<Held>,
}

#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    #[error("`{0}` can't be the name of an assignment")]
    Name(String),
    #[error("there are {MAX_HOLDS} holds already")]
    TooMany,
    #[error("the holds can't be kept")]
    Disk(#[from] LedgerError),
    #[error("the holds can't be locked")]
    Lock(#[source] io::Error),
    /// Not the hub's word: nothing changes.
    #[error("the hub's holds can't be believed")]
    Forged(#[from] EnvelopeError),
    #[error("the hub's holds are for cluster {0}, not for this one")]
    WrongCluster(ClusterId),
}

/// Both documents as their writers signed them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    technician: Option<Envelope>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hub: Option<Envelope>,
}

/// More than a host has assignments; a bound for what is written and read.
const MAX_HOLDS: usize = 1_000;
/// As in the status document.
const MAX_NAME: usize = 256;
const MAX_REASON: usize = 1_024;

impl Holds {
    /// Those of this host, for commands.
    pub fn of(paths: &Paths) -> Holds {
        Holds::on(Arc::new(RealDisk), paths)
    }

    pub fn on(disk: Arc<dyn Disk>, paths: &Paths) -> Holds {
        Holds { disk, folder: paths.state() }
    }

    /// All that are in force, the technician's first.
    pub fn read(&self) -> Result<Vec<Held>, HoldError> {
        Ok(Ledger::<Kept>::read(&*self.disk, &self.path())?.unwrap_or_default().held())
    }

    /// The same, by assignment.
    pub fn held(&self) -> Result<BTreeMap<String, Vec<Held>>, HoldError> {
        let mut by_assignment: BTreeMap<String, Vec<Held>> = BTreeMap::new();
        for held in self.read()? {
            by_assignment.entry(held.assignment.clone()).or_default().push(held);
        }
        Ok(by_assignment)
    }

    /// The technician's document as it was signed, for the hub and for peers; and the sequence of the hub's, for a poll.
    pub fn documents(&self) -> Result<(Option<Envelope>, u64), HoldError> {
        let kept = Ledger::<Kept>::read(&*self.disk, &self.path())?.unwrap_or_default();
        let sequence = content(kept.hub.as_ref()).map_or(0, |document| document.sequence);
        Ok((kept.technician, sequence))
    }

    /// A technician holds an assignment; once more changes who and why, and keeps since when.
    pub fn hold(
        &self,
        key: &SigningKey,
        assignment: &str,
        by: &str,
        reason: &str,
        now: Timestamp,
    ) -> Result<(), HoldError> {
        if assignment.is_empty() || assignment.len() > MAX_NAME || assignment.chars().any(char::is_control) {
            return Err(HoldError::Name(assignment.chars().take(MAX_NAME).collect()));
        }
        self.change(key, now, |holds| {
            let before = holds.iter().position(|entry| entry.assignment == assignment).map(|index| holds.remove(index));
            if holds.len() >= MAX_HOLDS {
                return Err(HoldError::TooMany);
            }
            holds.push(HoldEntry {
                assignment: assignment.to_owned(),
                by: plain(by, MAX_NAME),
                reason: plain(reason, MAX_REASON),
                since: before.map_or(now, |entry| entry.since),
            });
            Ok(())
        })
    }

    /// A technician takes a hold back.
    pub fn unhold(&self, key: &SigningKey, assignment: &str, now: Timestamp) -> Result<Unheld, HoldError> {
        let here = |held: &Held| held.assignment == assignment;
        let before = self.read()?;
        let removed = before.iter().any(|held| here(held) && held.writer == Writer::Technician);
        if removed {
            self.change(key, now, |holds| {
                holds.retain(|entry| entry.assignment != assignment);
                Ok(())
            })?;
        }
        let still = before.into_iter().find(|held| here(held) && held.writer == Writer::Hub);
        Ok(Unheld { assignment: assignment.to_owned(), removed, still })
    }

    /// The hub's document: believed with a pinned key's signature, for this cluster, and only if it is newer. Answers whether it was.
    pub fn take_from_hub(
        &self,
        envelope: &Envelope,
        cluster: ClusterId,
        keys: &[VerifyingKey],
    ) -> Result<bool, HoldError> {
        let document: HoldDocument = envelope.open(keys)?;
        if document.cluster != cluster {
            return Err(HoldError::WrongCluster(document.cluster));
        }
        if document.holds.len() > MAX_HOLDS {
            return Err(HoldError::TooMany);
        }
        let (_lock, mut ledger, mut kept) = self.open()?;
        // A document for an earlier identity of this host counts for nothing.
        let known = content(kept.hub.as_ref()).filter(|known| known.cluster == cluster);
        if known.is_some_and(|known| known.sequence >= document.sequence) {
            return Ok(false);
        }
        kept.hub = Some(envelope.clone());
        ledger.write(&kept)?;
        Ok(true)
    }

    fn change(
        &self,
        key: &SigningKey,
        now: Timestamp,
        change: impl FnOnce(&mut Vec<HoldEntry>) -> Result<(), HoldError>,
    ) -> Result<(), HoldError> {
        let (_lock, mut ledger, mut kept) = self.open()?;
        let before = content(kept.technician.as_ref());
        let (sequence, mut holds) = before.map_or((0, Vec::new()), |before| (before.sequence, before.holds));
        let unchanged = holds.clone();
        change(&mut holds)?;
        if holds == unchanged {
            return Ok(());
        }
        let cluster = ClusterId::of_public_key(key.public().as_bytes());
        let document = HoldDocument { cluster, sequence: sequence + 1, written_at: now, holds };
        kept.technician = Some(Envelope::sign(&document, key)?);
        Ok(ledger.write(&kept)?)
    }

    fn open(&self) -> Result<(FileLock, Ledger<Kept>, Kept), HoldError> {
        self.disk.make_folder(&self.folder).map_err(HoldError::Lock)?;
        let lock = self.disk.lock(&self.folder.join("holds.lock")).map_err(HoldError::Lock)?;
        let opened = Ledger::open(Arc::clone(&self.disk), &self.path())?;
        if let Some(healed) = opened.healed {
            tracing::warn!(healed, "a copy of the holds was broken");
        }
        Ok((lock, opened.ledger, opened.value.unwrap_or_default()))
    }

    fn path(&self) -> PathBuf {
        self.folder.join("holds")
    }
}

impl Kept {
    fn held(&self) -> Vec<Held> {
        let written = [(Writer::Technician, &self.technician), (Writer::Hub, &self.hub)];
        let entries = written.into_iter().flat_map(|(writer, envelope)| {
            let holds = content(envelope.as_ref()).map(|document| document.holds).unwrap_or_default();
            holds.into_iter().map(move |entry| (writer, entry))
        });
        let held =
            |(writer, HoldEntry { assignment, by, reason, since })| Held { assignment, by, reason, since, writer };
        entries.map(held).collect()
    }
}

impl Held {
    /// Its name in the status document.
    pub fn name(&self) -> String {
        format!("{}:{}", self.writer, self.assignment)
    }
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Writer::Technician => "technician",
            Writer::Hub => "hub",
        })
    }
}

/// As `kedge-agent unhold` says it.
impl fmt::Display for Unheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let assignment = &self.assignment;
        match (&self.still, self.removed) {
            (None, true) => write!(f, "{assignment} is no longer held"),
            (None, false) => write!(f, "{assignment} wasn't held"),
            (Some(still), removed) => {
                let here = if removed { "the hold on the spot is gone, but" } else { "there was no hold on the spot;" };
                let why = if still.reason.is_empty() { String::new() } else { format!(" ({})", still.reason) };
                write!(f, "{assignment} stays held: {here} {} holds it at the hub{why}", still.by)?;
                write!(f, "; only `kedge unhold` takes that back")
            }
        }
    }
}

/// What was believed when it was written. The ledger's checksum vouches for it since.
fn content(envelope: Option<&Envelope>) -> Option<HoldDocument> {
    serde_json::from_slice(&envelope?.payload).ok()
}

fn plain(text: &str, most: usize) -> String {
    let text: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    text[..text.floor_char_boundary(most)].trim().to_owned()
}
