//! What should run against what runs, in groups.

use serde::{Deserialize, Serialize};

/// Desired against reality.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DriftSummary {
    /// Of everything that is asked for, whatever page this is.
    pub totals: RealityCounts,
    /// Where "as desired" isn't what Git asks for: environments in which rollouts were rolled back or aborted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Those that differ first.
    pub groups: Vec<DriftGroup>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Assignments on clusters by reality.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RealityCounts {
    pub as_desired: u64,
    pub differs: u64,
    pub drifted: u64,
    pub unknown: u64,
}

/// One assignment of one environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DriftGroup {
    pub environment: String,
    /// `<cluster type>/<workload>-<target>`
    pub assignment: String,
    pub cluster_type: String,
    /// Absent if the target is no longer in Git and no rollout records its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// What most rings should run; empty: nothing.
    pub desired_packages: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_version: Option<String>,
    /// What each ring should run, where they differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rings: Vec<WantedPackages>,
    /// What runs, the most frequent first.
    pub running: Vec<RunningPackages>,
    #[serde(flatten)]
    pub reality: RealityCounts,
    pub converging: u64,
    pub failed: u64,
}

/// What a ring should run of an assignment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WantedPackages {
    pub ring: String,
    /// Empty: nothing.
    pub packages: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// So many clusters run this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunningPackages {
    /// Empty: nothing.
    pub packages: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Of the workload's source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    pub count: u64,
    /// Of these: last reported by clusters that are offline now.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub unknown: u64,
}
