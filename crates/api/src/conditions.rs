//! The condition of an assignment on a cluster.

use serde::{Deserialize, Serialize};

/// What is true of an assignment on a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConditionSummary {
    /// The cluster's id.
    pub cluster: String,
    pub cluster_name: String,
    pub environment: String,
    pub cluster_type: String,
    pub ring: String,
    /// `<workload>-<target>`
    pub assignment: String,
    /// Absent if the target is no longer in Git and no rollout records its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// `Converged`, `Converging`, `Failed` or `Unknown`
    pub condition: String,
    /// The condition before the cluster went offline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_known: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The desired state that the cluster last received, and what runs, as digests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<String>,
    /// The version of what runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What differs from what was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<String>,
    /// `asDesired`, `differs`, `drifted` or `unknown`
    pub reality: Reality,
    /// RFC 3339
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<String>,
}

/// What runs compared with what should run, as one code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum Reality {
    /// What runs is what the newest desired state says.
    AsDesired,
    Differs,
    /// The cluster tells of changes that nobody asked for.
    Drifted,
    Unknown,
}

/// What is true of an assignment on a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct AssignmentCondition {
    pub assignment: String,
    pub condition: String,
    /// The condition before the cluster went offline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_known: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What should run and what does, as digests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<String>,
    /// RFC 3339
    pub since: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<String>,
    /// The version of what runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What differs from what was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<String>,
}

impl Reality {
    /// As JSON has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Reality::AsDesired => "asDesired",
            Reality::Differs => "differs",
            Reality::Drifted => "drifted",
            Reality::Unknown => "unknown",
        }
    }
}
