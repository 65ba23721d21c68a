//! Signed statements about rollouts and promotions.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A statement that is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct EvidenceSummary {
    pub id: i64,
    pub environment: String,
    pub commit: String,
    /// `promotion` or `rollout`
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<i64>,
    /// `passed`, `overridden`, `reopened`, `completed`, `ended`
    pub event: String,
    pub created_at: String,
}

/// A statement with its envelope.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct EvidenceDetail {
    #[serde(flatten)]
    pub evidence: EvidenceSummary,
    /// What the envelope holds, for reading; what counts is the envelope.
    pub statement: Value,
    /// The DSSE envelope around the in-toto statement, as the hub signed it.
    pub envelope: Value,
}
