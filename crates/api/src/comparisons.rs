//! Two sides of the fleet, compared workload by workload.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `GET /compare`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    pub left: ComparedSide,
    pub right: ComparedSide,
    /// Of the workloads on this page.
    pub totals: ComparisonTotals,
    /// By name.
    pub workloads: Vec<WorkloadComparison>,
    /// Clusters with drift: the values there aren't known, and aren't compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// More workloads: ask again with `cursor` set to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ComparedSide {
    /// As a query names it: `prod/drone@2026-11-01T00:00:00Z`
    pub name: String,
    pub environment: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_type: Option<String>,
    /// RFC 3339; absent: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The commit of the environment's GitOps branch that it came from; absent for an application team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ComparisonTotals {
    pub same: u64,
    pub differ: u64,
    pub only_left: u64,
    pub only_right: u64,
}

/// One workload on both sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkloadComparison {
    pub workload: String,
    pub same: bool,
    /// `onlyLeft`, `onlyRight`, `version`, `content` (of the same version), `platform` (its other files),
    /// `configuration`, `clusterTypes` (both sides have one, and the workload is on it on one of them), `targets`
    pub differs: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<SideSummary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<SideSummary>,
    /// Keys with different values.
    pub configuration: Vec<KeyComparison>,
    /// The configuration of some place can't be known: it isn't compared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub configuration_unknown: bool,
}

/// What a side runs of a workload, as its clusters reported it; where none has, and at an earlier time, what was delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SideSummary {
    /// Full names of its deployment targets.
    pub targets: Vec<String>,
    pub cluster_types: Vec<String>,
    /// Set when everything runs the same version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Present if everything is from the same commit of the workload's source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The packages, as `counts` names them.
    pub packages: Vec<String>,
    /// Every version with where it runs.
    pub versions: Vec<RunningVersion>,
    /// Assignments of which nothing was delivered yet: their configuration is Git's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only_in_git: Vec<String>,
    /// Assignments that keep what is published because they can't be rendered or packed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<String>,
}

/// A version, and where it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunningVersion {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    pub cluster_types: Vec<String>,
    pub rings: Vec<String>,
    pub targets: Vec<String>,
}

/// A configuration key whose values differ.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct KeyComparison {
    pub key: String,
    /// On these cluster types, which both sides have; empty when they share none.
    pub cluster_types: Vec<String>,
    /// The values of each side; empty: it isn't set there. Several when its targets or rings have different ones.
    pub left: Vec<PlacedValue>,
    pub right: Vec<PlacedValue>,
    /// Something is shown to the platform team only.
    pub redacted: bool,
}

/// A value, and the targets and rings that have it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlacedValue {
    pub value: Value,
    pub targets: Vec<String>,
    /// Empty: nothing was delivered there yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rings: Vec<String>,
}

impl ComparisonTotals {
    #[must_use]
    pub fn of(workloads: &[WorkloadComparison]) -> ComparisonTotals {
        let mut totals = ComparisonTotals::default();
        for one in workloads {
            match (one.same, &one.left, &one.right) {
                (true, _, _) => totals.same += 1,
                (false, Some(_), None) => totals.only_left += 1,
                (false, None, Some(_)) => totals.only_right += 1,
                (false, _, _) => totals.differ += 1,
            }
        }
        totals
    }
}
