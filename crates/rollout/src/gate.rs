//! Whether a ring lets a change go on, from what is true of its clusters. Called by `advance`.

use kedge_model::wire::Timestamp;
use serde::{Deserialize, Serialize};

/// The clusters of one ring for one changed assignment, by the truth of its exact packages. Their sum is the members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    pub converged: u64,
    pub converging: u64,
    pub failed: u64,
    /// Unknown: the promise is broken.
    pub offline: u64,
    /// In contact, and hasn't got the change yet.
    pub waiting: u64,
}

/// What an external check said last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckFact {
    pub ok: bool,
    /// What was answered, or why there was no answer; short.
    pub said: String,
    pub at: Timestamp,
}

/// What a gate says now, with the numbers for the evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "verdict")]
pub enum Verdict {
    Holds,
    /// What it waits for, each a sentence.
    Waits {
        why: Vec<String>,
    },
    /// Beyond the failure budget, or a quarantine.
    Fails {
        why: Vec<String>,
    },
}

impl Counts {
    pub fn members(&self) -> u64 {
        self.reached() + self.offline + self.waiting
    }

    /// Has the change and isn't away.
    pub fn reached(&self) -> u64 {
        self.converged + self.converging + self.failed
    }
}
