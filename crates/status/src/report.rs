//! What a document says: one report per assignment, facts, warnings, the holds that are in force. Each is one register
//! of the document, written as a whole, so that a merge never mixes two reports into a third.

use kedge_model::wire::{Generation, PackagesKey, Timestamp};
use serde::{Deserialize, Serialize};

/// What is true of one assignment on this cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// What the desired state asks for. None: nothing any more, and it still runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<PackagesKey>,
    /// The generation that asked for it first.
    #[serde(default)]
    pub generation: Generation,
    /// What runs. "Failed" alone doesn't say that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<PackagesKey>,
    /// The version of what runs, as its content calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(flatten)]
    pub condition: Condition,
    /// Since when the condition holds.
    pub since: Timestamp,
    /// When this was observed to have changed: never a heartbeat.
    pub observed_at: Timestamp,
    /// What differs from what was applied, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<String>,
    /// Which of the document's clocks told the times.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clock: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "condition")]
pub enum Condition {
    Converged,
    Converging,
    Failed {
        /// A stable word in CamelCase, such as `HealthCheck`.
        reason: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// Also what a newer agent calls by a word that this reader doesn't know.
    #[serde(other)]
    Unknown,
}

/// Something that a person should know of the cluster as a whole; the code is the register's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    pub severity: Severity,
    pub message: String,
    pub since: Timestamp,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clock: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Severity {
    /// A human is needed.
    Error,
    /// It may pass by itself.
    #[serde(other)]
    Warning,
}

/// A hold that this cluster obeys; the hold itself is a document of its own, signed by its writer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    pub assignment: String,
    pub by: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    pub since: Timestamp,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clock: u64,
}

impl Condition {
    /// The word alone, as counts and tables use it.
    pub fn word(&self) -> &'static str {
        match self {
            Condition::Converged => "Converged",
            Condition::Converging => "Converging",
            Condition::Failed { .. } => "Failed",
            Condition::Unknown => "Unknown",
        }
    }
}

impl Report {
    /// The same fact: only when it was seen differs.
    pub(crate) fn says_the_same(&self, other: &Report) -> bool {
        let aside = |report: &Report| Report { observed_at: Timestamp(0), clock: 0, ..report.clone() };
        aside(self) == aside(other)
    }

    /// Converged on what is desired, with nothing to add.
    pub fn is_plain(&self) -> bool {
        self.condition == Condition::Converged && self.running == self.desired && self.drift.is_none()
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
