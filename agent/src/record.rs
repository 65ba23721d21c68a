//! What is remembered of one assignment, in one ledger, so that its inventory and its journal change together: what runs, the
//! transaction that is under way, how the last one went, and what must not be tried again. Plan, transactions, report and the
//! commands `status` and `why` read it; only the transaction engine writes it.

use kedge_model::wire::{Generation, Packages, PackagesKey, Timestamp};
use serde::{Deserialize, Serialize};

use crate::goal::Goal;
use crate::observed::{DebState, PathState};
use crate::step::{FileBefore, Step};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Record {
    pub assignment: String,
    /// What was committed last.
    pub running: Option<Running>,
    /// The journal: a transaction that hasn't ended.
    pub transaction: Option<Transaction>,
    /// The last one that ended, for `why`.
    pub last: Option<Transaction>,
    /// What failed: tried again only for other content, a command, or a cause that passes.
    pub failed: Option<FailedAttempt>,
    /// A repair of drift or a removal that failed: done again with backoff.
    pub upkeep: Option<FailedAttempt>,
    /// Folders that systemd makes for its units, and that were free when it asked for them first.
    #[serde(skip_serializing_if = "std::collections::BTreeSet::is_empty")]
    pub claimed: std::collections::BTreeSet<String>,
    /// Counts this assignment's transactions.
    pub counter: u64,
}

/// What runs, and what its inventory is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Running {
    pub key: PackagesKey,
    pub packages: Packages,
    pub generation: Generation,
    pub restart: u64,
    pub since: Timestamp,
    pub goal: Goal,
    /// How things were before Kedge had them: what removal returns to.
    pub original: Original,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Original {
    pub paths: std::collections::BTreeMap<String, PathState>,
    /// All debs that came or changed with this assignment, also as dependencies.
    pub debs: std::collections::BTreeMap<String, DebOriginal>,
    pub units: std::collections::BTreeMap<String, crate::observed::UnitState>,
    /// Users that Kedge made.
    pub users: Vec<String>,
    /// Objects of what ran before, where a change failed and was left as it was: they go with the next one.
    pub objects: Vec<crate::goal::ObjectGoal>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DebOriginal {
    pub state: DebState,
    /// The archive of that version, where it is needed for the way back.
    pub archive: Option<kedge_model::wire::Digest>,
    /// Its configuration files then.
    pub conffiles: std::collections::BTreeMap<String, FileBefore>,
}

/// One transaction: its steps, the way back, and how far it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Transaction {
    pub number: u64,
    pub cause: Cause,
    pub started: Timestamp,
    pub ended: Option<Timestamp>,
    /// What would run; none for a removal.
    pub wanted: Option<Box<Running>>,
    pub phase: Phase,
    pub forward: Vec<Step>,
    pub back: Vec<Step>,
    /// Steps of the current direction that have begun; a cut does them all again, since each can be done twice.
    pub begun: usize,
    pub outcome: Option<Outcome>,
    pub trace: Vec<Traced>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Cause {
    /// New packages.
    Change,
    /// Only the restart counter was raised.
    Restart,
    /// A verified state lists it under `removed`.
    Removal,
    /// What somebody changed by hand, in a sentence.
    Drift(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    /// The steps are done from the first one on.
    Forward,
    /// Steps are done; health must hold.
    Health,
    /// Back to what was there, and why.
    Back(Failure),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    Committed,
    RolledBack(Failure),
    /// Both reasons.
    RollbackFailed {
        first: Failure,
        back: Failure,
    },
    /// `rollback: never`: it stays as it is.
    Left(Failure),
    /// Nothing was changed.
    Refused(Failure),
}

/// Why something failed: a stable word and a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// CamelCase, such as `HealthCheck`.
    pub reason: String,
    pub message: String,
    /// A cause that is known to pass (network, lock, disk): tried again with backoff.
    #[serde(default)]
    pub passes: bool,
}

/// A line of `why`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traced {
    pub at: Timestamp,
    /// What was done, as a person reads it.
    pub what: String,
    pub took_ms: u64,
    /// None: it went well.
    #[serde(default)]
    pub failed: Option<String>,
    /// What the commands said, its beginning and end.
    #[serde(default)]
    pub output: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedAttempt {
    pub key: PackagesKey,
    pub restart: u64,
    pub failure: Failure,
    pub at: Timestamp,
    /// How often it was tried: the backoff's exponent.
    pub tries: u32,
}

/// What one command may leave in a trace.
pub const MAX_OUTPUT: usize = 4096;

impl Failure {
    pub fn new(reason: &str, message: impl Into<String>) -> Failure {
        Failure { reason: reason.to_owned(), message: message.into(), passes: false }
    }

    /// A cause that passes by itself.
    pub fn passing(reason: &str, message: impl Into<String>) -> Failure {
        Failure { passes: true, ..Failure::new(reason, message) }
    }
}
