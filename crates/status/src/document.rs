//! The document as its owner writes it. An agent makes one per epoch, changes registers as facts change, and seals it into
//! an envelope when the hub or a peer wants it. It owns no file: the agent keeps `to_bytes`.

use std::fmt;

use automerge::transaction::{CommitOptions, Transactable as _};
use automerge::{ActorId, AutoCommit, ROOT, ReadDoc};
use kedge_model::wire::{ClusterId, Envelope, Heads, SigningKey, Timestamp, VerifyingKey};
use serde::Serialize;

use crate::event::{Event, EventLog};
use crate::payload::{self, Header, Nonce, Opened, PAYLOAD_TYPE, PayloadError};
use crate::read::{ReadError, heads_of, load};
use crate::report::{Condition, Hold, Report, Warning};

/// One epoch of one cluster's status.
pub struct StatusDocument {
    automerge: AutoCommit,
    key: VerifyingKey,
    epoch: u64,
    nonce: Nonce,
    changes: usize,
    events: EventLog,
}

/// Whether something was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Written,
    /// It said so already: nothing was written, nothing needs to be sent.
    Same,
}

#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("`{0}` can't be the name of a register")]
    Name(String),
    #[error("the status document refused the change")]
    Automerge(#[from] automerge::AutomergeError),
    #[error("the value can't be written")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Payload(#[from] PayloadError),
}

/// Kinds of registers, as the first letters of their names.
pub(crate) const REPORT: &str = "a:";
pub(crate) const FACT: &str = "f:";
pub(crate) const WARNING: &str = "w:";
pub(crate) const HOLD: &str = "h:";
pub(crate) const CLOCK: &str = "c:";

/// History never shrinks, so an epoch ends at so many changes; about 30 KiB.
pub const EPOCH_CHANGES: usize = 200;
/// The longest sentence that a report or a warning carries.
pub const MAX_MESSAGE: usize = 1024;
/// The longest name of an assignment, a fact or a warning.
pub const MAX_NAME: usize = 300;
/// The longest value of a fact, a version or a reason.
pub const MAX_VALUE: usize = 256;

impl StatusDocument {
    /// The first document of a cluster. Its epoch's counter and nonce are in the agent's ledger before this.
    pub fn new(key: VerifyingKey, epoch: u64, nonce: Nonce) -> StatusDocument {
        let automerge = AutoCommit::new().with_actor(ActorId::random());
        StatusDocument { automerge, key, epoch, nonce, changes: 0, events: EventLog::default() }
    }

    /// What `to_bytes` kept, for a new process: it writes as a new actor.
    pub fn from_bytes(bytes: &[u8]) -> Result<StatusDocument, ReadError> {
        let opened = Opened::open(bytes)?;
        let body = opened.body()?;
        let changes = load(body.document())?.get_changes_meta(&[]).len();
        let mut automerge = AutoCommit::load(body.document()).map_err(|why| ReadError::Broken(why.to_string()))?;
        automerge.set_actor(ActorId::random());
        let Header { key, epoch, nonce, .. } = opened.header;
        Ok(StatusDocument { automerge, key, epoch, nonce, changes, events: body.events })
    }

    /// Writes as this actor: for test vectors, which must come out the same each time.
    pub fn as_actor(mut self, actor: [u8; 16]) -> StatusDocument {
        self.automerge.set_actor(ActorId::from(actor));
        self
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    pub fn nonce(&self) -> Nonce {
        self.nonce
    }

    pub fn events(&self) -> &EventLog {
        &self.events
    }

    /// How many changes the epoch has.
    pub fn changes(&self) -> usize {
        self.changes
    }

    pub fn needs_new_epoch(&self) -> bool {
        self.changes >= EPOCH_CHANGES
    }

    /// A new epoch with the current values as its one change; the events go on, clocks that told nothing don't.
    pub fn next_epoch(&mut self, epoch: u64, nonce: Nonce, at: Timestamp) -> Result<StatusDocument, WriteError> {
        let mut next = StatusDocument::new(self.key, epoch, nonce);
        next.automerge.set_actor(self.automerge.get_actor().clone());
        let clocks = self.clocks_in_use();
        // A host that starts every day has a clock a day: those that told nothing which is still here are left behind.
        let told = |name: &str| {
            name.strip_prefix(CLOCK).is_none_or(|clock| clock.parse().is_ok_and(|clock| clocks.contains(&clock)))
        };
        for (name, value) in self.registers() {
            if told(&name) {
                next.automerge.put(ROOT, name, value)?;
            }
        }
        next.events = self.events.clone();
        next.commit(at);
        Ok(next)
    }

    /// What is now true of an assignment. The event is written with the change, at its own time.
    pub fn set_report(&mut self, assignment: &str, report: &Report) -> Result<Change, WriteError> {
        let report = shortened(report);
        let before = self.report(assignment);
        if before.as_ref().is_some_and(|before| before.says_the_same(&report)) {
            return Ok(Change::Same);
        }
        self.put(REPORT, assignment, &report, report.observed_at)?;
        let is_news = |before: &Report| before.condition != report.condition || before.running != report.running;
        if before.as_ref().is_none_or(is_news) {
            self.push_event(assignment, before.as_ref(), &report);
        }
        Ok(Change::Written)
    }

    /// The assignment is gone from this cluster.
    pub fn remove_report(&mut self, assignment: &str, at: Timestamp, clock: u64) -> Result<Change, WriteError> {
        if self.delete(REPORT, assignment, at)? == Change::Same {
            return Ok(Change::Same);
        }
        self.events.push(Event {
            number: self.events.next_number(),
            at,
            clock,
            assignment: assignment.to_owned(),
            condition: "Removed".to_owned(),
            reason: None,
            running: None,
            desired: None,
            drift: None,
        });
        Ok(Change::Written)
    }

    pub fn set_fact(&mut self, name: &str, value: &str, at: Timestamp) -> Result<Change, WriteError> {
        self.put(FACT, name, &cut(value, MAX_VALUE), at)
    }

    pub fn set_warning(&mut self, code: &str, warning: &Warning) -> Result<Change, WriteError> {
        let message = cut(&warning.message, MAX_MESSAGE);
        self.put(WARNING, code, &Warning { message, ..warning.clone() }, warning.since)
    }

    pub fn clear_warning(&mut self, code: &str, at: Timestamp) -> Result<Change, WriteError> {
        self.delete(WARNING, code, at)
    }

    /// A hold that is obeyed here, by its document's name.
    pub fn show_hold(&mut self, name: &str, hold: &Hold) -> Result<Change, WriteError> {
        let (by, reason) = (cut(&hold.by, MAX_VALUE), cut(&hold.reason, MAX_MESSAGE));
        self.put(HOLD, name, &Hold { by, reason, ..hold.clone() }, hold.since)
    }

    pub fn hide_hold(&mut self, name: &str, at: Timestamp) -> Result<Change, WriteError> {
        self.delete(HOLD, name, at)
    }

    /// What a contact told of a clock: milliseconds to add to its times. Reports name their clock by number; a new number
    /// begins when a clock was set or a host started without one.
    pub fn set_clock(&mut self, clock: u64, offset: i64, at: Timestamp) -> Result<Change, WriteError> {
        self.put(CLOCK, &clock.to_string(), &offset, at)
    }

    pub fn report(&self, assignment: &str) -> Option<Report> {
        serde_json::from_str(&self.register(REPORT, assignment)?).ok()
    }

    /// How far the document has come, as a poll says it.
    pub fn heads(&mut self) -> Heads {
        let automerge = self.automerge.document();
        Heads { epoch: self.epoch, nonce: self.nonce.to_string(), heads: heads_of(automerge) }
    }

    /// What the agent keeps on disk.
    pub fn to_bytes(&mut self, at: Timestamp) -> Result<Vec<u8>, WriteError> {
        self.payload(at, None)
    }

    /// The signed document, for the hub and for peers. The key is the one that the document was made for.
    pub fn seal(
        &mut self,
        key: &SigningKey,
        written_at: Timestamp,
        clock_offset: Option<i64>,
    ) -> Result<Envelope, WriteError> {
        Ok(Envelope::sign_bytes(PAYLOAD_TYPE, self.payload(written_at, clock_offset)?, key))
    }

    fn payload(&mut self, written_at: Timestamp, clock_offset: Option<i64>) -> Result<Vec<u8>, WriteError> {
        let cluster = ClusterId::of_public_key(self.key.as_bytes());
        let (key, epoch, nonce) = (self.key, self.epoch, self.nonce);
        let changes = u64::try_from(self.changes).unwrap_or(u64::MAX);
        let header = Header { cluster, key, epoch, nonce, changes, written_at, clock_offset, requires: Vec::new() };
        Ok(payload::join(&header, &self.events, &self.automerge.save_nocompress())?)
    }

    pub(crate) fn registers(&self) -> Vec<(String, String)> {
        registers(&self.automerge).collect()
    }

    fn register(&self, kind: &str, name: &str) -> Option<String> {
        let (value, _) = self.automerge.get(ROOT, format!("{kind}{name}")).ok()??;
        value.into_string().ok()
    }

    fn put<T: Serialize>(&mut self, kind: &str, name: &str, value: &T, at: Timestamp) -> Result<Change, WriteError> {
        if !is_name(name) {
            return Err(WriteError::Name(name.chars().take(MAX_NAME).collect()));
        }
        let text = serde_json::to_string(value)?;
        if self.register(kind, name).is_some_and(|before| before == text) {
            return Ok(Change::Same);
        }
        self.automerge.put(ROOT, format!("{kind}{name}"), text)?;
        self.commit(at);
        Ok(Change::Written)
    }

    fn delete(&mut self, kind: &str, name: &str, at: Timestamp) -> Result<Change, WriteError> {
        if self.register(kind, name).is_none() {
            return Ok(Change::Same);
        }
        self.automerge.delete(ROOT, format!("{kind}{name}"))?;
        self.commit(at);
        Ok(Change::Written)
    }

    fn commit(&mut self, at: Timestamp) {
        let seconds = at.0.div_euclid(1000);
        if self.automerge.commit_with(CommitOptions::default().with_time(seconds)).is_some() {
            self.changes += 1;
        }
    }

    fn push_event(&mut self, assignment: &str, before: Option<&Report>, report: &Report) {
        let reason = match &report.condition {
            Condition::Failed { reason, .. } => Some(reason.clone()),
            _ => None,
        };
        self.events.push(Event {
            number: self.events.next_number(),
            at: report.since,
            clock: report.clock,
            assignment: assignment.to_owned(),
            condition: report.condition.word().to_owned(),
            reason,
            running: report.running,
            desired: report.desired,
            drift: repaired(before, report).map(|drift| cut(drift, MAX_VALUE)),
        });
    }
}

impl fmt::Debug for StatusDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("StatusDocument");
        shown.field("epoch", &self.epoch).field("nonce", &self.nonce).field("changes", &self.changes);
        shown.finish_non_exhaustive()
    }
}

/// Names and values of all registers. What isn't text isn't ours.
pub(crate) fn registers(automerge: &impl ReadDoc) -> impl Iterator<Item = (String, String)> + '_ {
    automerge.map_range(ROOT, ..).filter_map(|item| {
        let text = item.value.into_value().into_string().ok()?;
        Some((item.key.into_owned(), text))
    })
}

/// Printable, not empty and bounded: names go into tables and into a person's terminal.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME && !name.chars().any(char::is_control)
}

/// A text of at most so many bytes, without characters that no table takes.
/// The drift that a change of condition is about: what runs stays the same, and is made whole.
fn repaired<'a>(before: Option<&'a Report>, report: &'a Report) -> Option<&'a str> {
    let before = before.filter(|before| before.running == report.running && report.running == report.desired)?;
    match (&before.condition, &report.condition) {
        (_, Condition::Converging) => report.drift.as_deref(),
        (Condition::Converging, Condition::Converged) if report.drift.is_none() => before.drift.as_deref(),
        _ => None,
    }
}

pub(crate) fn cut(text: &str, most: usize) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        let letter = if letter.is_control() && letter != '\n' && letter != '\t' { '\u{fffd}' } else { letter };
        if out.len() + letter.len_utf8() > most {
            break;
        }
        out.push(letter);
    }
    out
}

/// A report whose texts fit.
pub(crate) fn shortened(report: &Report) -> Report {
    let condition = match &report.condition {
        Condition::Failed { reason, message } => {
            Condition::Failed { reason: cut(reason, MAX_VALUE), message: cut(message, MAX_MESSAGE) }
        }
        other => other.clone(),
    };
    Report {
        condition,
        version: report.version.as_deref().map(|version| cut(version, MAX_VALUE)),
        drift: report.drift.as_deref().map(|drift| cut(drift, MAX_MESSAGE)),
        ..report.clone()
    }
}
