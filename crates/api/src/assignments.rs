//! Assignments: a deployment target on a cluster type, with its provenance, what should run of it and what runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::counts::{ConditionCounts, CountSummary};
use crate::desired_states::DesiredEntry;
use crate::findings::Finding;
use crate::rollouts::{PinnedAssignment, RolloutReference};
use crate::source::SourceLocation;

/// An assignment with its provenance: why it is there, where each value comes from, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct AssignmentDetail {
    #[serde(flatten)]
    pub assignment: AssignmentSummary,
    pub provenance: Provenance,
    /// Git's values, with the origin of each. What runs is in `running` and `configurations`.
    pub configuration: Vec<ValueSummary>,
    /// What each ring should run.
    pub desired: Vec<DesiredAssignment>,
    /// What runs in each ring, as clusters reported it.
    pub running: Vec<RunningAssignment>,
    /// The configurations that run or should, as they were delivered.
    pub configurations: Vec<RunningConfiguration>,
    /// How many clusters are in which condition.
    pub counts: Vec<CountSummary>,
    /// The rollouts that move it, or last did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rollouts: Vec<RolloutReference>,
    /// Rings that a Pin holds on other content.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<PinnedAssignment>,
    /// That Git doesn't describe it any more: a ring should still run it, or a cluster reports it. Its state is `removed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub updated_at: String,
}

/// What a ring should run of an assignment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DesiredAssignment {
    pub ring: String,
    pub generation: u64,
    /// One of `configurations`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    #[serde(flatten)]
    pub entry: DesiredEntry,
}

/// So many clusters of a ring run the same of an assignment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunningAssignment {
    pub ring: String,
    /// As clusters report them; empty: nothing runs.
    pub packages: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Of the workload's source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Of the environment's GitOps branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform_commit: Option<String>,
    /// One of `configurations`; absent: nothing runs, or the hub never delivered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    /// Whether the ring should run it, and nothing of it was changed there.
    pub as_desired: bool,
    pub count: u64,
    /// Somebody changed it on these clusters: what is delivered is known, and the values there aren't.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drifted: bool,
    /// Names of some of the clusters where it was changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drifted_on: Vec<String>,
    #[serde(flatten)]
    pub conditions: ConditionCounts,
    /// RFC 3339: since when the cluster of this ring that is offline the longest is. What runs there is what it last reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offline_since: Option<String>,
}

/// A configuration as it was delivered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunningConfiguration {
    /// The digest of the platform's package that it is in.
    pub id: String,
    /// The commit of the environment's GitOps branch that it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether it is what Git contains now.
    pub as_in_git: bool,
    /// By key. Values that a cluster binds itself (`${cluster.name}`) are shown unbound.
    pub values: Vec<ConfigurationValue>,
    /// Why its values can't be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

/// A value as it was delivered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfigurationValue {
    pub key: String,
    /// Absent: it isn't set there, and Git sets it now.
    #[serde(default, deserialize_with = "crate::present", skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// It, or a part of it, is shown to the platform team only.
    pub secret: bool,
    /// Git contains something else now.
    pub differs: bool,
    /// Git's value, where it differs. Absent there: Git no longer sets it.
    #[serde(default, deserialize_with = "crate::present", skip_serializing_if = "Option::is_none")]
    pub git: Option<Value>,
}

/// A deployment target on a cluster type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct AssignmentSummary {
    pub environment: String,
    /// `<cluster type>/<workload>-<target>`
    pub name: String,
    pub cluster_type: String,
    pub target: String,
    pub workload: String,
    pub workspace: String,
    pub labels: BTreeMap<String, String>,
    /// The policies that chose it.
    pub policies: Vec<String>,
    /// `rendered` or `quarantined`; of one that is asked for by its name also `removed`: Git doesn't describe it any more
    pub state: String,
    /// Why it is quarantined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantine: Vec<Finding>,
}

/// Further details of a single assignment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    pub policies: Vec<SchedulingPolicySummary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_origin: Option<SourceLocation>,
    pub manifests: BTreeMap<String, String>,
    /// The files it publishes, with the digest of their text.
    pub files: Vec<PublishedFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Finding>,
}

/// A policy that chose an assignment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SchedulingPolicySummary {
    pub name: String,
    pub cluster_types: String,
    pub targets: String,
    pub origin: SourceLocation,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PublishedFile {
    pub path: String,
    pub digest: String,
}

/// One configuration value of an assignment and where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ValueSummary {
    pub key: String,
    pub value: Value,
    /// It, or a part of it, is shown to the platform team only.
    pub secret: bool,
    /// In the order of merging; the last one that isn't overridden wins.
    pub candidates: Vec<ValueCandidate>,
}

/// A ConfigMap that sets a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ValueCandidate {
    pub config_map: String,
    pub text: String,
    /// `wins`, `merged` or `overridden`
    pub effect: String,
    pub origin: SourceLocation,
}
