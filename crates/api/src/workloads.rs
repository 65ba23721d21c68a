//! Workloads: as Git describes them, and across all environments.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::counts::ConditionCounts;
use crate::drift::{RunningPackages, WantedPackages};
use crate::rollouts::RolloutReference;
use crate::source::SourceLocation;

/// A workload in all environments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkloadDetail {
    pub name: String,
    /// The teams that it belongs to; one, unless environments say otherwise.
    pub workspaces: Vec<String>,
    /// Along the promotion chain.
    pub environments: Vec<WorkloadEnvironment>,
}

/// A workload in one environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkloadEnvironment {
    pub name: String,
    #[serde(flatten)]
    pub workload: WorkloadDescription,
    pub conditions: ConditionCounts,
    pub assignments: Vec<WorkloadAssignment>,
    /// The rollouts that move it, or last did; at most one that has ended for each lane.
    pub rollouts: Vec<RolloutReference>,
}

/// Git's value there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkloadDescription {
    pub workspace: String,
    pub labels: BTreeMap<String, String>,
    /// Full names.
    pub targets: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration: Option<String>,
    pub origin: SourceLocation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_since: Option<String>,
}

/// A target of it on a cluster type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkloadAssignment {
    /// `<cluster type>/<workload>-<target>`
    pub name: String,
    pub cluster_type: String,
    /// Full name.
    pub target: String,
    /// `rendered`, `quarantined`, or `removed`: Git doesn't describe it any more, and it is still desired or reported
    pub state: String,
    /// What each ring should run.
    pub desired: Vec<WantedPackages>,
    /// What runs, the most frequent first.
    pub running: Vec<RunningPackages>,
    pub conditions: ConditionCounts,
}

/// A workload in all environments, in brief.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkloadOverview {
    pub name: String,
    /// The teams that it belongs to; one, unless environments say otherwise.
    pub workspaces: Vec<String>,
    /// Along the promotion chain.
    pub environments: Vec<WorkloadPlace>,
}

/// A workload in one environment, in brief.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkloadPlace {
    pub name: String,
    /// Full names.
    pub targets: Vec<String>,
    pub conditions: ConditionCounts,
    /// What runs, the most frequent first.
    pub versions: Vec<VersionCount>,
}

/// So many run this version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct VersionCount {
    /// Absent: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub count: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSummary {
    pub environment: String,
    pub name: String,
    pub workspace: String,
    pub labels: BTreeMap<String, String>,
    /// Full names of its targets in this environment.
    pub targets: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration: Option<String>,
    pub origin: SourceLocation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_since: Option<String>,
}
