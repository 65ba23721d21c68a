//! A person's "don't touch this assignment here", as a document of its own: signed by the cluster's key for a technician on the
//! spot, by the hub's for a person there. Holds of both writers are in force together.

use serde::{Deserialize, Serialize};

use super::envelope::Payload;
use super::id::{ClusterId, Timestamp};

/// All holds of one writer on one cluster; a higher sequence replaces the whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HoldDocument {
    pub cluster: ClusterId,
    /// Counts the writer's documents for this cluster: 1 is the first.
    pub sequence: u64,
    pub written_at: Timestamp,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<HoldEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HoldEntry {
    pub assignment: String,
    /// The Unix user on the spot, or the person at the hub.
    pub by: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    pub since: Timestamp,
}

impl Payload for HoldDocument {
    const TYPE: &'static str = "application/vnd.kedge.hold.v1+json";
}
