//! What changed when, by whom and why; and the timeline of one commit.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing that happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// Grows in the order in which entries are recorded.
    pub id: i64,
    /// When it happened, in the hub's time.
    pub at: String,
    pub recorded_at: String,
    /// It was reported long after it happened, because a cluster was offline.
    pub late: bool,
    /// The cluster's clock was wrong, and the time is corrected.
    pub corrected: bool,
    /// `condition`, `drift`, `generation`, `publish`, `promotion`, `rollout`, `approval`, `cluster`, `audit` or `problem`
    pub kind: String,
    /// A stable code: `Failed`, `passed`, `joined`, …
    pub event: String,
    pub environment: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<String>,
    /// `<cluster type>/<workload>-<target>`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Its name of today.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// One sentence.
    pub title: String,
    /// Further details; `type` is their schema.
    pub detail: Value,
}

/// A commit and everything that became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Timeline {
    pub commit: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Environment by environment along the chain of promotion, each in the order of time.
    pub items: Vec<TimelineStep>,
}

/// One step in one environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct TimelineStep {
    pub environment: String,
    /// `pushed`, `waiting`, `promoted`, `read`, `scheduled`, `published`, `packed`, `issued`, `firstConverged`, `converged`,
    /// `gatePassed`, `stopped`, `rolledBack`, `aborted`, `failed`
    pub step: String,
    /// When it was done.
    pub at: String,
    /// How long the step itself took, or how long after the step before it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    pub detail: Value,
}
