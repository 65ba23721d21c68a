//! What people say about a rollout or a promotion. Kept with it for ever; read by `advance` and `promote`.

use kedge_model::wire::Timestamp;
use serde::{Deserialize, Serialize};

/// One person's word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Word {
    /// The access token's name.
    pub who: String,
    /// Of the token: `platform`, `application`.
    pub role: String,
    pub at: Timestamp,
    /// Why; never empty for an override.
    pub reason: String,
    pub say: Say,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "say")]
pub enum Say {
    /// For one ring; none: for the one that waits now.
    Approve {
        ring: Option<String>,
    },
    /// The gate of this ring (none: the one that waits now), or of the environments before, counts as passed.
    Override {
        ring: Option<String>,
    },
    /// Windows and freezes don't hold it up.
    Now,
    Pause,
    /// Goes on; failures until now no longer count against the budget.
    Resume,
    /// No further ring; those reached keep what they have.
    Abort,
    /// Those reached go back to what they had.
    Rollback,
}

/// Why a word can't be taken, for the person who said it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// A stable CamelCase word.
    pub reason: &'static str,
    pub message: String,
}

impl Refused {
    pub(crate) fn new(reason: &'static str, message: impl Into<String>) -> Refused {
        Refused { reason, message: message.into() }
    }
}

impl Say {
    /// As people type it.
    pub fn verb(&self) -> &'static str {
        match self {
            Say::Approve { .. } => "approve",
            Say::Override { .. } => "override",
            Say::Now => "now",
            Say::Pause => "pause",
            Say::Resume => "resume",
            Say::Abort => "abort",
            Say::Rollback => "rollback",
        }
    }
}
