//! A document that is read and checked, ready to be stored: everything that costs time and needs no database. Whoever reads one
//! does it on a thread where it may take that time.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use kedge_model::wire::{ClusterId, Envelope, Timestamp};
use kedge_status::{Condition, Limits, ReadError, Report, Status};

use super::tally::{Tally, Word};
use super::warnings::{self, Warned, WarningRow};
use super::{TakeError, truly};
use crate::causes::chain;

/// One document, as the writer stores it.
#[derive(Debug)]
pub struct Prepared {
    pub status: Status,
    pub tally: Tally,
    pub exceptions: BTreeMap<String, Exception>,
    pub warnings: BTreeMap<String, WarningRow>,
    pub warned: Warned,
    /// JSON array of envelopes.
    pub envelopes: Vec<u8>,
    pub received_at: Timestamp,
    pub carrier: Option<ClusterId>,
    /// Two hosts write it in turns.
    pub copied: bool,
    /// Names of which history tells nothing.
    pub untold: BTreeSet<String>,
}

/// A report that isn't plainly Converged, in the hub's time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Exception {
    pub condition: Word,
    pub packages: String,
    pub running: String,
    pub generation: i64,
    pub version: Option<String>,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub drift: Option<String>,
    pub since: i64,
    pub observed_at: i64,
    pub corrected: bool,
}

impl Prepared {
    /// Reads envelopes of one epoch, nearly always one.
    pub fn read(
        envelopes: &[Envelope],
        received_at: Timestamp,
        carrier: Option<ClusterId>,
    ) -> Result<Prepared, TakeError> {
        let limits = Limits::default();
        let status = match envelopes {
            [one] => kedge_status::read(one, &limits)?,
            several => kedge_status::read_all(&several.iter().collect::<Vec<_>>(), &limits)?,
        };
        if i64::try_from(status.epoch).is_err() {
            return Err(TakeError::Malformed("the epoch is no number that a ledger counts to".to_owned()));
        }
        check_times(&status)?;
        let exceptions = exceptions(&status, received_at);
        let since = |report: &Report| truly(&status, report.clock, report.since, received_at).0;
        let tally = Tally::of(&status, |name| exceptions.get(name).map(fingerprint), since);
        let warnings = warnings::rows(&status, received_at);
        let warned = Warned::of(&warnings);
        let envelopes = serde_json::to_vec(envelopes).map_err(|why| TakeError::Malformed(why.to_string()))?;
        let (copied, untold) = (false, BTreeSet::new());
        Ok(Prepared { status, tally, exceptions, warnings, warned, envelopes, received_at, carrier, copied, untold })
    }
}

/// A time that no calendar has can't be shown to anybody. A clock that is merely wrong is far from it.
fn check_times(status: &Status) -> Result<(), TakeError> {
    let reports = status.reports.values().flat_map(|told| [(told.clock, told.since), (told.clock, told.observed_at)]);
    let warnings = status.warnings.values().map(|told| (told.clock, told.since));
    let holds = status.holds.values().map(|told| (told.clock, told.since));
    let events = status.events.events.iter().map(|told| (told.clock, told.at));
    let written = [status.written_at, status.written_at_true()].map(is_a_time);
    let all = reports.chain(warnings).chain(holds).chain(events);
    let mut wrong = all.filter(|(clock, at)| !is_a_time(*at) || !is_a_time(status.true_time(*clock, *at).0));
    match (written, wrong.next()) {
        ([true, true], None) => Ok(()),
        _ => Err(TakeError::Malformed("the document has a time that no calendar has".to_owned())),
    }
}

/// Whether it can be shown.
pub fn is_a_time(at: Timestamp) -> bool {
    jiff::Timestamp::from_millisecond(at.0).is_ok()
}

fn exceptions(status: &Status, received_at: Timestamp) -> BTreeMap<String, Exception> {
    let told = status.reports.iter().filter(|(_, report)| !report.is_plain());
    let mut out: BTreeMap<_, _> =
        told.map(|(name, report)| (name.clone(), exception(status, report, received_at))).collect();
    for name in &status.unreadable {
        out.insert(name.clone(), unreadable(status, received_at));
    }
    out
}

fn exception(status: &Status, report: &Report, received_at: Timestamp) -> Exception {
    let (reason, message) = match &report.condition {
        Condition::Failed { reason, message } => (Some(reason.clone()), Some(message.clone())),
        _ => (None, None),
    };
    let (since, wrong_since) = truly(status, report.clock, report.since, received_at);
    let (observed_at, wrong_observed) = truly(status, report.clock, report.observed_at, received_at);
    Exception {
        condition: Word::of(report),
        packages: report.desired.map(|key| key.to_string()).unwrap_or_default(),
        running: report.running.map(|key| key.to_string()).unwrap_or_default(),
        generation: i64::try_from(report.generation.0).unwrap_or(i64::MAX),
        version: report.version.clone(),
        reason,
        message,
        drift: report.drift.clone(),
        since,
        observed_at,
        corrected: wrong_since || wrong_observed,
    }
}

fn unreadable(status: &Status, received_at: Timestamp) -> Exception {
    let since = status.written_at_true().0.min(received_at.0);
    Exception {
        condition: Word::Unknown,
        packages: String::new(),
        running: String::new(),
        generation: 0,
        version: None,
        reason: Some("Unreadable".to_owned()),
        message: Some("the cluster's report of this assignment can't be read".to_owned()),
        drift: None,
        since,
        observed_at: since,
        corrected: false,
    }
}

/// Tells whether a row has to be written again. Stored, so it must not depend on the process.
fn fingerprint(exception: &Exception) -> u64 {
    let mut hasher = DefaultHasher::new();
    exception.hash(&mut hasher);
    hasher.finish()
}

impl From<ReadError> for TakeError {
    fn from(error: ReadError) -> TakeError {
        match error {
            ReadError::TooLarge { .. } | ReadError::TooMany(_) => TakeError::TooLarge(error.to_string()),
            ReadError::Signature(_) => TakeError::Forged(chain(&error)),
            ReadError::WrongKey { .. } => TakeError::WrongCluster(error.to_string()),
            ReadError::Unsupported(_) => TakeError::Unsupported(error.to_string()),
            ReadError::Payload(_) | ReadError::Guard(_) | ReadError::Broken(_) | ReadError::Different => {
                TakeError::Malformed(chain(&error))
            }
        }
    }
}
