//! What a document tells of its cluster's past, as entries of history: events that weren't told before, each at its true time.
//! Pure; the writer records them with the document.

use std::collections::{BTreeMap, BTreeSet};

use kedge_hub_types::history::what::REPAIR;
use kedge_hub_types::history::{Entry, Place, What};
use kedge_hub_types::status::prepared::Prepared;
use kedge_hub_types::status::truly;
use kedge_hub_types::status::warnings::one_line;
use kedge_model::wire::Timestamp;
use kedge_status::{Condition, Event, Report};

use crate::store::status::{DriftChange, Seat};

/// The beginning of 2025: no agent existed.
const BEFORE_KEDGE: i64 = 1_735_689_600_000;

/// Events above the watermark, and the new watermark.
pub fn events(prepared: &Prepared, seat: &Seat) -> (Vec<Entry>, i64) {
    let status = &prepared.status;
    let log = &status.events;
    let newest = number(log.next_number().saturating_sub(1));
    let is_new_epoch = seat.document.as_ref().is_none_or(|stored| stored.epoch < status.epoch);
    // A log that counts from the beginning again was lost with the disk it was on.
    let told = if newest < seat.told && is_new_epoch { 0 } else { seat.told };
    let is_fresh = |event: &&Event| number(event.number) > told && !prepared.untold.contains(&event.assignment);
    let fresh: Vec<&Event> = log.events.iter().filter(is_fresh).collect();
    let last: BTreeMap<&str, u64> = fresh.iter().map(|event| (event.assignment.as_str(), event.number)).collect();
    let place = || Place::cluster(&seat.stream, status.cluster);
    let mut entries = Vec::with_capacity(fresh.len());
    let lost = number(log.dropped).saturating_sub(told);
    // A hub that kept no history yet has missed nothing.
    if lost > 0 && (told > 0 || seat.document.is_none()) {
        let at = fresh.first().map_or(prepared.received_at.0, |event| time(prepared, event).0);
        let count = lost.unsigned_abs();
        entries.push(Entry::new(Timestamp(at), place(), What::Lost { count }));
    }
    for event in fresh {
        let (at, corrected) = time(prepared, event);
        let is_last = last.get(event.assignment.as_str()) == Some(&event.number);
        let report = status.reports.get(&event.assignment).filter(|report| is_last && tells(report, event));
        let drift = event.drift.as_deref().map(one_line).filter(|drift| !drift.is_empty());
        let repaired = drift.clone().filter(|_| event.condition == "Converged");
        let told = repaired.map(|drift| What::DriftRepaired { drift }).into_iter();
        for what in told.chain([what(event, report, drift)]) {
            let entry = Entry::new(Timestamp(at), place().target(&event.assignment), what);
            entries.push(Entry { corrected, ..entry });
        }
    }
    (entries, newest.max(told))
}

/// Drift that began or ended. Of what was repaired the events tell already.
pub fn drift(prepared: &Prepared, seat: &Seat, changes: Vec<DriftChange>, events: &[Entry]) -> Vec<Entry> {
    let status = &prepared.status;
    let written = status.written_at_true().0.min(prepared.received_at.0);
    let entry = |change: DriftChange| {
        let exception = prepared.exceptions.get(&change.assignment);
        let at = exception.map_or(written, |exception| exception.observed_at);
        let what = match (change.now, change.before) {
            (Some(drift), _) => What::Drifted { drift },
            (None, was) => What::DriftEnded { was: was.unwrap_or_default() },
        };
        let place = Place::cluster(&seat.stream, status.cluster).target(&change.assignment);
        Entry { corrected: exception.is_some_and(|told| told.corrected), ..Entry::new(Timestamp(at), place, what) }
    };
    let repaired: BTreeSet<&str> = events
        .iter()
        .filter(|event| matches!(event.what, What::DriftRepaired { .. }))
        .map(|event| event.place.assignment.as_str())
        .collect();
    let ours = changes.into_iter().filter(|change| !prepared.untold.contains(&change.assignment));
    let told = ours.map(entry);
    told.filter(|told| {
        !matches!(told.what, What::DriftEnded { .. }) || !repaired.contains(told.place.assignment.as_str())
    })
    .collect()
}

fn what(event: &Event, report: Option<&Report>, drift: Option<String>) -> What {
    let drift = drift.filter(|_| event.condition == "Converging");
    let message = report.and_then(|report| match &report.condition {
        Condition::Failed { message, .. } => Some(message.clone()).filter(|message| !message.is_empty()),
        _ => None,
    });
    What::Condition {
        condition: event.condition.clone(),
        reason: event.reason.clone().or_else(|| drift.is_some().then(|| REPAIR.to_owned())),
        message: message.or(drift),
        version: report.and_then(|report| report.version.clone()),
        running: event.running,
        desired: event.desired,
    }
}

/// Whether the report is of this very event: it says more.
fn tells(report: &Report, event: &Event) -> bool {
    report.condition.word() == event.condition && report.running == event.running && report.since == event.at
}

/// A clock that nobody has corrected yet and that is before this program tells nothing: then it is when the hub heard of it.
fn time(prepared: &Prepared, event: &Event) -> (i64, bool) {
    let (at, corrected) = truly(&prepared.status, event.clock, event.at, prepared.received_at);
    if at < BEFORE_KEDGE { (prepared.received_at.0, true) } else { (at, corrected) }
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
