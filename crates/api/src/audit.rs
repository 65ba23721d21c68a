//! The audit log: who did what, and what came of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A write: who, when, what, from where, and how it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    pub number: i64,
    pub at: String,
    /// The person's name.
    pub who: String,
    /// The person's id; empty before there were persons.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub person: String,
    /// Id of the access token.
    pub token: String,
    pub role: String,
    pub action: String,
    pub object: String,
    pub environment: String,
    pub detail: Value,
    pub address: String,
    /// `done`, `refused: …` with the reason, or that it waits for the leader.
    pub result: String,
}
