//! The one conditional request of an agent's day: what it knows goes up, the news and the next contact come back.

use serde::{Deserialize, Serialize};

use super::envelope::Envelope;
use super::id::{Generation, Sequence, Timestamp};

/// `POST /agent/v1/poll`. An idle one is about two hundred bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PollRequest {
    /// The newest key set that is known.
    pub key_set: u64,
    pub membership: Sequence,
    /// The last accepted generation of the membership's stream.
    pub generation: Generation,
    pub status: Heads,
    /// Seconds since the last full look at what runs: a wedged applier must not stay green.
    pub look_age: u64,
    #[serde(default, skip_serializing_if = "is_normal")]
    pub profile: Profile,
    /// Seconds that the agent would wait for news; the hub may choose less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<u64>,
    /// The sequence of the hub's hold document that is known; 0 is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub holds: u64,
}

/// How far a status document has come: its epoch, the number that was made with the epoch, and automerge's heads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Heads {
    pub epoch: u64,
    /// Made with the epoch and stored: the same epoch with another one is a clone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub nonce: String,
    /// The first 16 digits of each head, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heads: Vec<String>,
}

/// How much traffic a cluster may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Profile {
    #[default]
    Normal,
    Low,
}

/// The answer: what is new, and when the next contact is expected. That is the promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PollAnswer {
    pub time: Timestamp,
    /// Seconds after which the next poll should begin.
    pub next: u64,
    /// Seconds within which the hub expects it; after that, the conditions are Unknown.
    pub promise: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key_sets: Vec<Envelope>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub membership: Option<Envelope>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Envelope>,
    /// The hub's hold document for this cluster, if it is newer than the known one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<Envelope>,
    /// The hub lacks the document that the request's heads name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub want_status: bool,
    /// The hub knows no such generation: show its envelope at `/agent/v1/proof`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub want_proof: bool,
}

/// Why a request was refused: the body of every answer that isn't 2xx.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// A stable word, such as `TokenUsedUp`.
    pub reason: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_normal(profile: &Profile) -> bool {
    *profile == Profile::Normal
}
