//! How far a change is: one answer over all rollouts that carry it.

use serde::{Deserialize, Serialize};

use crate::rollouts::{MemberCounts, RingProgress, RolloutCause};

/// How far a change is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RolloutStatus {
    /// One sentence.
    pub headline: String,
    /// Every cluster that should have it has it, and every ring's gate has passed.
    pub complete: bool,
    /// It will not become complete by itself: stopped, rolled back, aborted, superseded, failed, or no longer on `main`.
    pub ended: bool,
    /// `Complete`, `Active`, `Paused`, `Stopped`, `RolledBack`, `Aborted`, `Superseded`; `Unseen` for a commit that the hub hasn't
    /// met; `Failed` and `Gone` (no longer on `main`) of a commit; `Settled` or `Moving` where no rollout says it
    pub state: String,
    /// What is counted.
    pub unit: StatusUnit,
    /// Should have it.
    pub targeted: u64,
    /// All that the question is about.
    pub of: u64,
    #[serde(flatten)]
    pub counts: MemberCounts,
    pub not_targeted: u64,
    /// A Pin keeps them on other content than the one that is asked for: neither targeted nor among those that aren't.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub pinned: u64,
    /// The most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_reasons: Vec<ReasonCount>,
    /// Since when the longest of the offline ones is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offline_since: Option<String>,
    /// Whether clusters that are offline leave it complete, as the policy says.
    pub offline_leaves_complete: bool,
    /// One for each assignment of a cluster type.
    pub lines: Vec<StatusLine>,
    pub rollouts: Vec<RolloutOverview>,
    /// What it waits for, and what else one should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Why so many failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReasonCount {
    pub reason: String,
    pub count: u64,
}

/// An assignment of a cluster type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct StatusLine {
    pub environment: String,
    pub cluster_type: String,
    pub assignment: String,
    pub workload: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The rollout that moves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<u64>,
    pub targeted: u64,
    #[serde(flatten)]
    pub counts: MemberCounts,
    /// In rings that the change hasn't reached.
    pub not_yet: u64,
    /// Rings that a Pin holds on other content.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<String>,
    /// So many clusters of those rings aren't targeted, because other content was asked for by its name.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub pinned_apart: u64,
    /// Rings that had it and follow other content by now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<String>,
}

/// A rollout that the answer is about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RolloutOverview {
    pub id: u64,
    pub environment: String,
    pub lane: String,
    pub state: String,
    #[serde(flatten)]
    pub cause: RolloutCause,
    pub rings: Vec<RingProgress>,
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub late_failed: u64,
}

/// What a rollout's status counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum StatusUnit {
    #[default]
    Clusters,
    /// An assignment on a cluster, when some clusters run several.
    Placements,
}

impl StatusUnit {
    /// As JSON has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            StatusUnit::Clusters => "clusters",
            StatusUnit::Placements => "placements",
        }
    }
}
