//! Who said "don't touch this assignment here": a technician on the spot (signed by the cluster's key), people at the hub (signed by
//! the hub's) and people at other agents of the site (signed by theirs). All are in force together. The commands `hold` and `unhold`
//! and the daemon write the ledger `holds`, one at a time; it also has what this agent holds on others, for peers to carry.

mod age;
mod site;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kedge_durable::{Disk, FileLock, Ledger, LedgerError, RealDisk};
use kedge_model::wire::{
    ClusterId, Envelope, EnvelopeError, HoldDocument, HoldEntry, SigningKey, Timestamp, VerifyingKey,
};
use serde::{Deserialize, Serialize};

use crate::paths::Paths;
use age::Age;
pub use site::Elsewhere;

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
    /// Of a peer: how long it is still obeyed. None: until it is taken back.
    pub ends_in: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Writer {
    Technician,
    Hub,
    /// At another agent of the site.
    Peer(ClusterId),
}

/// What `unhold` came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unheld {
    pub assignment: String,
    /// Whether a technician's hold was there.
    pub removed: bool,
    /// Somebody else's, which is still in force.
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
    /// Not their writer's word: nothing changes.
    #[error("the holds can't be believed")]
    Forged(#[from] EnvelopeError),
    #[error("the holds are for cluster {0}, not for this one")]
    WrongCluster(ClusterId),
    /// Of a peer: nobody obeys it here.
    #[error("cluster {0} is no member of this cluster's site")]
    NotOfTheSite(ClusterId),
    #[error("the holds of cluster {0} are beyond what an agent writes")]
    TooLarge(ClusterId),
    #[error("{MAX_WRITERS} other agents hold something here already")]
    TooManyWriters,
    #[error("this agent holds something on {MAX_TARGETS} other clusters already")]
    TooManyTargets,
}

/// All documents as their writers signed them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    technician: Option<Envelope>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hub: Option<Envelope>,
    /// Of other agents of the site, on this cluster.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    peers: BTreeMap<ClusterId, Envelope>,
    /// What of those a technician here set aside: not obeyed if it was said until then.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    set_aside: BTreeMap<ClusterId, BTreeMap<String, Timestamp>>,
    /// How long what those hold has been obeyed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    ages: BTreeMap<ClusterId, BTreeMap<String, Age>>,
    /// What this agent holds on others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    outgoing: BTreeMap<ClusterId, Envelope>,
}

/// More than a host has assignments; a bound for what is written and read.
const MAX_HOLDS: usize = 1_000;
/// As in the status document.
const MAX_NAME: usize = 256;
const MAX_REASON: usize = 1_024;
/// With the documents' own bound they fit into a ledger.
const MAX_WRITERS: usize = 32;
const MAX_TARGETS: usize = 32;

impl Holds {
    /// Those of this host, for commands.
    pub fn of(paths: &Paths) -> Holds {
        Holds::on(Arc::new(RealDisk), paths)
    }

    pub fn on(disk: Arc<dyn Disk>, paths: &Paths) -> Holds {
        Holds { disk, folder: paths.state() }
    }

    /// All that are in force, the technician's first, the peers' last.
    pub fn read(&self) -> Result<Vec<Held>, HoldError> {
        Ok(self.kept()?.held())
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
        let kept = self.kept()?;
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
        let entry = entry(assignment, by, reason, now)?;
        self.change(key, now, |holds| add(holds, entry))
    }

    /// A technician takes a hold back.
    pub fn unhold(&self, key: &SigningKey, assignment: &str, now: Timestamp) -> Result<Unheld, HoldError> {
        self.release(key, assignment, false, now)
    }

    /// The same, and what other agents of the site hold here is set aside.
    pub fn unhold_with_peers(&self, key: &SigningKey, assignment: &str, now: Timestamp) -> Result<Unheld, HoldError> {
        self.release(key, assignment, true, now)
    }

    fn release(&self, key: &SigningKey, assignment: &str, peers: bool, now: Timestamp) -> Result<Unheld, HoldError> {
        let here = |held: &Held| held.assignment == assignment;
        let is_peers = |held: &Held| matches!(held.writer, Writer::Peer(_));
        let before = self.read()?;
        let own = before.iter().any(|held| here(held) && held.writer == Writer::Technician);
        if own {
            self.change(key, now, |holds| {
                holds.retain(|entry| entry.assignment != assignment);
                Ok(())
            })?;
        }
        let of_peers = peers && before.iter().any(|held| here(held) && is_peers(held));
        if of_peers {
            self.set_aside(assignment)?;
        }
        let mut others = before.into_iter().filter(|held| here(held) && held.writer != Writer::Technician);
        let still = others.find(|held| !of_peers || !is_peers(held));
        Ok(Unheld { assignment: assignment.to_owned(), removed: own || of_peers, still })
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

    fn kept(&self) -> Result<Kept, HoldError> {
        Ok(Ledger::<Kept>::read(&*self.disk, &self.path())?.unwrap_or_default())
    }

    fn path(&self) -> PathBuf {
        self.folder.join("holds")
    }
}

impl Kept {
    fn held(&self) -> Vec<Held> {
        let written = [(Writer::Technician, self.technician.as_ref()), (Writer::Hub, self.hub.as_ref())];
        let entries = written.into_iter().flat_map(|(writer, envelope)| {
            let holds = content(envelope).map(|document| document.holds).unwrap_or_default();
            holds.into_iter().map(move |entry| held(writer, entry, None))
        });
        entries.chain(self.held_by_peers()).collect()
    }
}

fn held(writer: Writer, entry: HoldEntry, ends_in: Option<Duration>) -> Held {
    let HoldEntry { assignment, by, reason, since } = entry;
    Held { assignment, by, reason, since, writer, ends_in }
}

impl Held {
    /// Its name in the status document.
    pub fn name(&self) -> String {
        match self.writer {
            Writer::Peer(cluster) => format!("peer-{cluster}:{}", self.assignment),
            writer => format!("{writer}:{}", self.assignment),
        }
    }
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Writer::Technician => "technician",
            Writer::Hub => "hub",
            Writer::Peer(_) => "peer",
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
                let here = if removed {
                    "the hold made on this host is gone, but"
                } else {
                    "there was no hold made on this host;"
                };
                let why = if still.reason.is_empty() { String::new() } else { format!(" ({})", still.reason) };
                let by = &still.by;
                if still.writer == Writer::Hub {
                    write!(f, "{assignment} stays held: {here} {by} holds it at the hub{why}")?;
                    return write!(f, "; only `kedge unhold` takes that back");
                }
                write!(
                    f,
                    "{assignment} stays held: {here} {by} holds it from there{why}; `kedge-agent unhold --cluster` "
                )?;
                write!(f, "takes that back there, `kedge-agent unhold {assignment} --peers` sets it aside here")
            }
        }
    }
}

/// What was believed when it was written. The ledger's checksum vouches for it since.
fn content(envelope: Option<&Envelope>) -> Option<HoldDocument> {
    serde_json::from_slice(&envelope?.payload).ok()
}

fn entry(assignment: &str, by: &str, reason: &str, now: Timestamp) -> Result<HoldEntry, HoldError> {
    if assignment.is_empty() || assignment.len() > MAX_NAME || assignment.chars().any(char::is_control) {
        return Err(HoldError::Name(assignment.chars().take(MAX_NAME).collect()));
    }
    let (by, reason) = (plain(by, MAX_NAME), plain(reason, MAX_REASON));
    Ok(HoldEntry { assignment: assignment.to_owned(), by, reason, since: now })
}

/// Since when stays, if it was held before.
fn add(holds: &mut Vec<HoldEntry>, entry: HoldEntry) -> Result<(), HoldError> {
    let before = holds.iter().position(|held| held.assignment == entry.assignment).map(|index| holds.remove(index));
    if holds.len() >= MAX_HOLDS {
        return Err(HoldError::TooMany);
    }
    let since = before.map_or(entry.since, |before| before.since);
    holds.push(HoldEntry { since, ..entry });
    Ok(())
}

fn plain(text: &str, most: usize) -> String {
    let text: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    text[..text.floor_char_boundary(most)].trim().to_owned()
}
