//! The numbers as OpenMetrics text. `FAMILIES` names each once; `docs/metrics.md` is made from it. Called by the listener.

use std::fmt::Write as _;

use kedge_model::wire::Timestamp;
use kedge_status::Severity;

use crate::overview::Overview;
use crate::tally::{self, Counted};

/// A metric: its name without `_total`, its type, unit and label, and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Family {
    pub name: &'static str,
    pub kind: Kind,
    /// The end of its name; empty: it is a count.
    pub unit: &'static str,
    /// Empty: it has none.
    pub label: &'static str,
    pub help: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Gauge,
    Counter,
    Info,
}

/// What the listener knows of this host.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub overview: Overview,
    pub certificate_ends: Option<Timestamp>,
    pub disk: Option<Room>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub free: u64,
    pub size: u64,
}

pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const fn gauge(name: &'static str, unit: &'static str, label: &'static str, help: &'static str) -> Family {
    Family { name, kind: Kind::Gauge, unit, label, help }
}

const fn counter(name: &'static str, unit: &'static str, label: &'static str, help: &'static str) -> Family {
    Family { name, kind: Kind::Counter, unit, label, help }
}

const BUILD: Family =
    Family { name: "kedge_agent_build", kind: Kind::Info, unit: "", label: "version", help: "Which agent this is" };
const JOINED: Family = gauge("kedge_agent_joined", "", "", "1 when this host has joined a hub");
const ASSIGNMENTS: Family = gauge("kedge_agent_assignments", "", "condition", "Assignments of this host by condition");
const DRIFTED: Family =
    gauge("kedge_agent_drifted_assignments", "", "", "Assignments that differ from what was applied");
const HELD: Family = gauge("kedge_agent_held_assignments", "", "", "Assignments that somebody holds");
const WARNINGS: Family = gauge("kedge_agent_warnings", "", "severity", "Warnings of this host, by severity");
const CONTACT: Family = gauge(
    "kedge_agent_contact_age_seconds",
    "seconds",
    "",
    "Time since the hub last answered; absent before the first answer",
);
const CERTIFICATE: Family = gauge(
    "kedge_agent_certificate_left_seconds",
    "seconds",
    "",
    "Remaining lifetime of this host's certificate; negative: it expired, and is renewed at the next check-in",
);
const FREE: Family = gauge("kedge_agent_disk_free_bytes", "bytes", "", "Free space on the disk of packages");
const SIZE: Family = gauge("kedge_agent_disk_size_bytes", "bytes", "", "Size of the disk of packages");
const POLLS: Family = counter("kedge_agent_polls", "", "outcome", "Polls of the hub since the agent began");
const TRANSACTIONS: Family =
    counter("kedge_agent_transactions", "", "outcome", "Transactions that ended since the agent began");
const REPAIRS: Family = counter("kedge_agent_drift_repairs", "", "outcome", "Repairs of drift since the agent began");
const DOWNLOADS: Family =
    counter("kedge_agent_downloads", "", "outcome", "Downloads of an assignment's content since the agent began");
const DOWNLOADED: Family =
    counter("kedge_agent_downloaded_bytes", "bytes", "", "Bytes of content fetched since the agent began");
const REQUESTS: Family = counter(
    "kedge_agent_api_requests",
    "",
    "outcome",
    "Requests to the cluster's API server since the agent began; none on a host",
);

/// All of them, in the order of the text.
pub(super) const FAMILIES: [Family; 16] = [
    BUILD,
    JOINED,
    ASSIGNMENTS,
    DRIFTED,
    HELD,
    WARNINGS,
    CONTACT,
    CERTIFICATE,
    FREE,
    SIZE,
    POLLS,
    TRANSACTIONS,
    REPAIRS,
    DOWNLOADS,
    DOWNLOADED,
    REQUESTS,
];

const CONDITIONS: [(&str, &str); 4] =
    [("Converged", "converged"), ("Converging", "converging"), ("Failed", "failed"), ("Unknown", "unknown")];
const TRANSACTION_ENDS: [(&str, Counted); 5] = [
    ("committed", Counted::Committed),
    ("rolled_back", Counted::RolledBack),
    ("rollback_failed", Counted::RollbackFailed),
    ("left", Counted::Left),
    ("refused", Counted::Refused),
];
const REPAIR_ENDS: [(&str, Counted); 2] = [("repaired", Counted::Repaired), ("failed", Counted::RepairFailed)];
const DOWNLOAD_ENDS: [(&str, Counted); 2] = [("fetched", Counted::Fetched), ("failed", Counted::FetchFailed)];
const REQUEST_ENDS: [(&str, Counted); 2] = [("done", Counted::Requested), ("failed", Counted::RequestFailed)];
const POLL_ENDS: [(&str, Counted); 2] = [("answered", Counted::Answered), ("failed", Counted::Missed)];

/// The whole text.
pub(super) fn write(seen: &Seen, now: Timestamp) -> String {
    let mut text = String::with_capacity(4096);
    for family in FAMILIES {
        head(&mut text, family);
        for (value, count) in samples(family, seen, now) {
            sample(&mut text, family, value, count);
        }
    }
    text.push_str("# EOF\n");
    text
}

fn samples(family: Family, seen: &Seen, now: Timestamp) -> Vec<(&'static str, i64)> {
    let Overview { assignments, warnings, .. } = &seen.overview;
    let seconds = |ms: i64| ms / 1000;
    let one = |value: Option<i64>| value.map(|value| ("", value)).into_iter().collect();
    let counted = |ends: &[(&'static str, Counted)]| {
        ends.iter().map(|(word, what)| (*word, number(tally::of(*what)))).collect::<Vec<_>>()
    };
    match family {
        BUILD => vec![(env!("CARGO_PKG_VERSION"), 1)],
        JOINED => one(Some(i64::from(seen.overview.cluster.is_some()))),
        ASSIGNMENTS => {
            let of = |word: &str| assignments.iter().filter(|assignment| assignment.condition == word).count();
            CONDITIONS.iter().map(|(word, label)| (*label, number(of(word) as u64))).collect()
        }
        DRIFTED => one(Some(number(assignments.iter().filter(|one| one.drift.is_some()).count() as u64))),
        HELD => one(Some(number(assignments.iter().filter(|one| one.held).count() as u64))),
        WARNINGS => {
            let errors = warnings.iter().filter(|warning| warning.severity == Severity::Error).count();
            vec![("error", number(errors as u64)), ("warning", number((warnings.len() - errors) as u64))]
        }
        CONTACT => one(seen.overview.hub.last_contact.map(|last| seconds((now.0 - last.0.0).max(0)))),
        CERTIFICATE => one(seen.certificate_ends.map(|ends| seconds(ends.0 - now.0))),
        FREE => one(seen.disk.map(|room| number(room.free))),
        SIZE => one(seen.disk.map(|room| number(room.size))),
        POLLS => counted(&POLL_ENDS),
        TRANSACTIONS => counted(&TRANSACTION_ENDS),
        REPAIRS => counted(&REPAIR_ENDS),
        DOWNLOADS => counted(&DOWNLOAD_ENDS),
        DOWNLOADED => one(Some(number(tally::of(Counted::FetchedBytes)))),
        REQUESTS => counted(&REQUEST_ENDS),
        _ => Vec::new(),
    }
}

fn head(text: &mut String, family: Family) {
    let Family { name, kind, unit, help, .. } = family;
    let kind = match kind {
        Kind::Gauge => "gauge",
        Kind::Counter => "counter",
        Kind::Info => "info",
    };
    // Writing to a text can't fail.
    _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    if !unit.is_empty() {
        _ = writeln!(text, "# UNIT {name} {unit}");
    }
}

fn sample(text: &mut String, family: Family, value: &str, count: i64) {
    let end = family.kind.ending();
    _ = match family.label {
        "" => writeln!(text, "{}{end} {count}", family.name),
        label => writeln!(text, "{}{end}{{{label}=\"{value}\"}} {count}", family.name),
    };
}

impl Kind {
    /// What a series' name has behind the metric's.
    pub(super) fn ending(self) -> &'static str {
        match self {
            Kind::Gauge => "",
            Kind::Counter => "_total",
            Kind::Info => "_info",
        }
    }
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
