//! What people start for many clusters at once: a rollout, a restart, another try.

use serde::{Deserialize, Serialize};

/// Which clusters, by what they have in common.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OperationSelector {
    pub environment: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<String>,
}

/// A part of a selector that can't be done, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct NotApplicable {
    pub cluster_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<String>,
    pub why: String,
}

/// A cluster that keeps what it has, because a person held it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct HeldAssignment {
    pub cluster: String,
    pub cluster_type: String,
    pub ring: String,
    pub assignment: String,
    pub by: String,
}

/// A stream that was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChosenStream {
    pub cluster_type: String,
    pub ring: String,
    pub assignments: Vec<String>,
    /// Members of the stream.
    pub clusters: u64,
}

/// What should be started, where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StartRolloutRequest {
    pub environment: String,
    pub workload: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<String>,
    /// Of the workload: a Pin is written to the environment's branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Of the workload's source: the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// With a version or commit: until this day or moment. Without: until the Pin is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    pub reason: String,
}

/// What a bulk operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum OperationKind {
    /// Restarts the workload on every cluster of the streams.
    Restart,
    /// Tries again where something failed.
    Reapply,
    /// Lets rollouts that haven't ended go on outside their windows and freezes.
    Now,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OperationRequest {
    pub kind: OperationKind,
    pub selector: OperationSelector,
    /// With `restart` and `reapply`: windows and freezes don't hold it up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub now: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What a bulk command came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct OperationResult {
    /// One sentence.
    pub done: String,
    /// Whole streams.
    pub streams: Vec<ChosenStream>,
    /// What the selector names and can't be done.
    pub not_applicable: Vec<NotApplicable>,
    /// Clusters that keep what they have, because a person holds it.
    pub held: Vec<HeldAssignment>,
    /// Rollouts that were resumed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rollouts: Vec<u64>,
    /// The file and commit that were written to the environment's branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<WrittenFile>,
}

/// What was written to Git.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WrittenFile {
    pub repo: String,
    pub branch: String,
    pub file: String,
    /// None: the branch already contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}
