//! What happened since the process began, counted where it happens. Static, because the applier's thread, the loop and the
//! listener share nothing else.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::record::{Cause, Outcome};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Committed,
    RolledBack,
    RollbackFailed,
    Left,
    Refused,
    /// Drift that was mended, and that couldn't be.
    Repaired,
    RepairFailed,
    Fetched,
    FetchFailed,
    FetchedBytes,
    Answered,
    Missed,
    /// Requests to the cluster's API server, and those that it couldn't or wouldn't do.
    Requested,
    RequestFailed,
}

const KINDS: usize = 14;
static COUNTS: [AtomicU64; KINDS] = [const { AtomicU64::new(0) }; KINDS];

pub fn add(what: Counted, many: u64) {
    if let Some(count) = COUNTS.get(what as usize) {
        count.fetch_add(many, Ordering::Relaxed);
    }
}

pub fn of(what: Counted) -> u64 {
    COUNTS.get(what as usize).map_or(0, |count| count.load(Ordering::Relaxed))
}

/// A transaction ended so.
pub fn ended(cause: &Cause, outcome: &Outcome) {
    let what = match outcome {
        Outcome::Committed => Counted::Committed,
        Outcome::RolledBack(_) => Counted::RolledBack,
        Outcome::RollbackFailed { .. } => Counted::RollbackFailed,
        Outcome::Left(_) => Counted::Left,
        Outcome::Refused(_) => Counted::Refused,
    };
    add(what, 1);
    if matches!(cause, Cause::Drift(_)) {
        add(if *outcome == Outcome::Committed { Counted::Repaired } else { Counted::RepairFailed }, 1);
    }
}
