//! Environments: where each comes from, how much is in it, and how its last publish ended.

use serde::{Deserialize, Serialize};

use crate::source::{InputCommit, RepositoryFolder};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentSummary {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<RepositoryFolder>,
    /// Where the rendered files go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gitops: Option<RepositoryFolder>,
    /// The commit of main that was promoted to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promoted_commit: Option<String>,
    /// Absent for an application team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totals: Option<EnvironmentTotals>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputCommit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish: Option<PublishSummary>,
    /// Cluster types whose publish waits for `kedge publish confirm`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingRemovals>,
}

/// How much there is in an environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentTotals {
    pub cluster_types: u64,
    pub targets: u64,
    pub assignments: u64,
    pub quarantined: u64,
    /// Inputs that fail to load: while one is here, nothing is removed.
    pub failing_inputs: u64,
}

/// How the last publish ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PublishSummary {
    /// `unchanged`, `committed`, `pullRequest`, `branchPushed`, `declined`, `waiting`, `failing`
    pub outcome: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The pull request's address, or the name of the pushed branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A cluster type that would lose more than half of its assignments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WaitingRemovals {
    pub cluster_type: String,
    /// Assignments that would go.
    pub removed: Vec<String>,
    /// How many the last confirmed set has.
    pub confirmed: u64,
}
