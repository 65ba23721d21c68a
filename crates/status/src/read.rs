//! A status envelope as anybody reads it: the signature is the owner's, the bytes are bounded and guarded before
//! automerge sees them, and one register that can't be read stands for itself only. Pure; a load takes some hundred
//! microseconds, so a server calls it off its event loop.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use automerge::Automerge;
use kedge_model::wire::{ClusterId, Envelope, EnvelopeError, Heads, Timestamp, VerifyingKey};

use crate::document::{CLOCK, FACT, HOLD, MAX_MESSAGE, MAX_VALUE, REPORT, WARNING, cut, is_name, registers, shortened};
use crate::event::{EventLog, MAX_EVENTS};
use crate::guard::{self, GuardError};
use crate::payload::{Header, Nonce, Opened, PAYLOAD_TYPE, PayloadError};
use crate::report::{Hold, Report, Warning};

/// What a reader takes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of the whole payload.
    pub payload: usize,
    /// Registers of the document.
    pub registers: usize,
}

/// A document's content, believed because its owner signed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub cluster: ClusterId,
    pub key: VerifyingKey,
    pub epoch: u64,
    pub nonce: Nonce,
    pub written_at: Timestamp,
    pub clock_offset: Option<i64>,
    pub reports: BTreeMap<String, Report>,
    pub facts: BTreeMap<String, String>,
    pub warnings: BTreeMap<String, Warning>,
    pub holds: BTreeMap<String, Hold>,
    /// Assignments whose register can't be read: Unknown, each for itself.
    pub unreadable: Vec<String>,
    pub events: EventLog,
    clocks: BTreeMap<u64, i64>,
    heads: Vec<String>,
    /// The first half of every change's hash, sorted: what this document builds on.
    history: Vec<u64>,
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("the document is {length} bytes long, more than {most}")]
    TooLarge { length: usize, most: usize },
    #[error("the document has more than {0} registers")]
    TooMany(usize),
    #[error(transparent)]
    Payload(#[from] PayloadError),
    #[error("the signature isn't the owner's")]
    Signature(#[from] EnvelopeError),
    #[error("the document names cluster {named}, but its key is that of {key}")]
    WrongKey { named: ClusterId, key: ClusterId },
    #[error("the document needs `{0}`, which this version can't do")]
    Unsupported(String),
    #[error(transparent)]
    Guard(#[from] GuardError),
    #[error("automerge can't read the document: {0}")]
    Broken(String),
    #[error("the documents belong to different epochs or clusters")]
    Different,
}

/// Documents of 2,000 assignments with all their events stay below it.
const MAX_PAYLOAD: usize = 256 * 1024;
const MAX_REGISTERS: usize = 4_000;
/// A clock that is wrong by less isn't worth a mark.
const CLOCK_TOLERANCE_MS: u64 = 5_000;

impl Default for Limits {
    fn default() -> Limits {
        Limits { payload: MAX_PAYLOAD, registers: MAX_REGISTERS }
    }
}

/// Reads one envelope.
pub fn read(envelope: &Envelope, limits: &Limits) -> Result<Status, ReadError> {
    let opened = open(envelope, limits)?;
    let body = opened.body()?;
    let automerge = load(body.document())?;
    extract(&opened.header, body.events, &automerge, limits)
}

/// Reads envelopes of one epoch as one document: what they come to together, in whatever order they are given.
pub fn read_all(envelopes: &[&Envelope], limits: &Limits) -> Result<Status, ReadError> {
    let mut opened = envelopes.iter().map(|envelope| open(envelope, limits)).collect::<Result<Vec<_>, _>>()?;
    opened.sort_by_cached_key(|opened| (opened.header.written_at, opened.deflated()));
    let Some((newest, rest)) = opened.split_last() else { return Err(ReadError::Different) };
    let whose = |header: &Header| (header.cluster, header.epoch, header.nonce);
    if rest.iter().any(|other| whose(&other.header) != whose(&newest.header)) {
        return Err(ReadError::Different);
    }
    let body = newest.body()?;
    let mut merged = load(body.document())?;
    let mut events = body.events;
    for other in rest {
        let body = other.body()?;
        let mut document = load(body.document())?;
        let joined = catch_unwind(AssertUnwindSafe(|| merged.merge(&mut document)));
        joined.map_err(|_| panicked())?.map_err(|why| ReadError::Broken(why.to_string()))?;
        events = events.merge(body.events);
    }
    extract(&newest.header, events, &merged, limits)
}

/// Whose document it is and how far it has come, if its owner signed it: for who carries documents and needn't load them.
pub fn header(envelope: &Envelope, limits: &Limits) -> Result<Header, ReadError> {
    Ok(open(envelope, limits)?.header)
}

fn open<'a>(envelope: &'a Envelope, limits: &Limits) -> Result<Opened<'a>, ReadError> {
    if envelope.payload.len() > limits.payload {
        return Err(ReadError::TooLarge { length: envelope.payload.len(), most: limits.payload });
    }
    let opened = Opened::open(&envelope.payload)?;
    let header = &opened.header;
    let key = ClusterId::of_public_key(header.key.as_bytes());
    if header.cluster != key {
        return Err(ReadError::WrongKey { named: header.cluster, key });
    }
    envelope.verify(PAYLOAD_TYPE, &[header.key])?;
    if let Some(feature) = header.requires.first() {
        return Err(ReadError::Unsupported(cut(feature, MAX_VALUE)));
    }
    Ok(opened)
}

/// Loads automerge's bytes. The guard bounds what they become; a panic inside is caught and is the document's fault.
pub(crate) fn load(bytes: &[u8]) -> Result<Automerge, ReadError> {
    guard::check(bytes)?;
    let loaded = catch_unwind(|| Automerge::load(bytes)).map_err(|_| panicked())?;
    loaded.map_err(|why| ReadError::Broken(cut(&why.to_string(), MAX_MESSAGE)))
}

fn extract(header: &Header, events: EventLog, automerge: &Automerge, limits: &Limits) -> Result<Status, ReadError> {
    catch_unwind(AssertUnwindSafe(|| {
        let mut history: Vec<u64> =
            automerge.get_changes_meta(&[]).iter().map(|change| short_number(&change.hash.0)).collect();
        history.sort_unstable();
        let mut status = Status {
            cluster: header.cluster,
            key: header.key,
            epoch: header.epoch,
            nonce: header.nonce,
            written_at: header.written_at,
            clock_offset: header.clock_offset,
            reports: BTreeMap::new(),
            facts: BTreeMap::new(),
            warnings: BTreeMap::new(),
            holds: BTreeMap::new(),
            unreadable: Vec::new(),
            events: tidy(events),
            clocks: BTreeMap::new(),
            heads: heads_of(automerge),
            history,
        };
        for (count, (name, value)) in registers(automerge).enumerate() {
            if count >= limits.registers {
                return Err(ReadError::TooMany(limits.registers));
            }
            status.take(&name, &value);
        }
        Ok(status)
    }))
    .map_err(|_| panicked())?
}

impl Status {
    /// How far the document has come, as a poll says it.
    pub fn heads(&self) -> Heads {
        Heads { epoch: self.epoch, nonce: self.nonce.to_string(), heads: self.heads.clone() }
    }

    /// How many changes the epoch has.
    pub fn changes(&self) -> usize {
        self.history.len()
    }

    /// Whether all of these changes, in a poll's short form, are part of this document.
    pub fn contains<T: AsRef<str>>(&self, heads: &[T]) -> bool {
        heads.iter().all(|head| {
            let number = u64::from_str_radix(head.as_ref(), 16);
            head.as_ref().len() == 16 && number.is_ok_and(|number| self.history.binary_search(&number).is_ok())
        })
    }

    /// A time of one of the document's clocks in the hub's time, and whether it had to be corrected.
    pub fn true_time(&self, clock: u64, at: Timestamp) -> (Timestamp, bool) {
        match self.clocks.get(&clock) {
            Some(offset) if offset.unsigned_abs() > CLOCK_TOLERANCE_MS => {
                (Timestamp(at.0.saturating_add(*offset)), true)
            }
            _ => (at, false),
        }
    }

    /// When the document was written, in the hub's time as far as the writer knew it.
    pub fn written_at_true(&self) -> Timestamp {
        Timestamp(self.written_at.0.saturating_add(self.clock_offset.unwrap_or(0)))
    }

    fn take(&mut self, name: &str, value: &str) {
        let Some((kind, name)) = name.split_at_checked(2).filter(|(_, name)| is_name(name)) else { return };
        match kind {
            REPORT => match serde_json::from_str(value) {
                Ok(report) => {
                    self.reports.insert(name.to_owned(), shortened(&report));
                }
                Err(_) => self.unreadable.push(name.to_owned()),
            },
            FACT => {
                if let Ok(fact) = serde_json::from_str::<String>(value) {
                    self.facts.insert(name.to_owned(), cut(&fact, MAX_VALUE));
                }
            }
            WARNING => {
                if let Ok(warning) = serde_json::from_str::<Warning>(value) {
                    let message = cut(&warning.message, MAX_MESSAGE);
                    self.warnings.insert(name.to_owned(), Warning { message, ..warning });
                }
            }
            HOLD => {
                if let Ok(hold) = serde_json::from_str::<Hold>(value) {
                    let (by, reason) = (cut(&hold.by, MAX_VALUE), cut(&hold.reason, MAX_MESSAGE));
                    let assignment = cut(&hold.assignment, MAX_VALUE);
                    self.holds.insert(name.to_owned(), Hold { by, reason, assignment, ..hold });
                }
            }
            CLOCK => {
                if let (Ok(clock), Ok(offset)) = (name.parse(), serde_json::from_str(value)) {
                    self.clocks.insert(clock, offset);
                }
            }
            // A newer agent's register.
            _ => {}
        }
    }
}

/// The short form of heads: the first 16 digits, sorted.
pub(crate) fn heads_of(automerge: &Automerge) -> Vec<String> {
    let mut heads: Vec<String> =
        automerge.get_heads().iter().map(|head| format!("{:016x}", short_number(&head.0))).collect();
    heads.sort_unstable();
    heads
}

fn short_number(hash: &[u8]) -> u64 {
    hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// What others wrote, bounded as if we had.
fn tidy(mut log: EventLog) -> EventLog {
    while log.events.len() > MAX_EVENTS {
        log.events.pop_front();
        log.dropped = log.dropped.saturating_add(1);
    }
    log.events.retain(|event| is_name(&event.assignment));
    for event in &mut log.events {
        event.condition = cut(&event.condition, MAX_VALUE);
        event.reason = event.reason.as_deref().map(|reason| cut(reason, MAX_VALUE));
        event.drift = event.drift.as_deref().map(|drift| cut(drift, MAX_VALUE));
    }
    log
}

fn panicked() -> ReadError {
    ReadError::Broken("automerge gave up on its bytes".to_owned())
}
