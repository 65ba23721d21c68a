//! Signed desired states: what the clusters of a stream should run.

use serde::{Deserialize, Serialize};

/// A generation of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DesiredStateSummary {
    pub environment: String,
    pub cluster_type: String,
    pub ring: String,
    pub generation: u64,
    /// Digest of its content: equal for generations with the same content.
    pub content: String,
    pub created_at: String,
    /// How many assignments the last confirmed set has.
    pub confirmed: u64,
    /// Its keys' ids.
    pub signed_by: Vec<String>,
    /// Where it was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<StateSource>,
    pub entries: Vec<DesiredEntry>,
    /// Assignments that go.
    pub removed: Vec<String>,
    /// Assignments that are no longer managed and stay.
    pub unmanaged: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct StateSource {
    pub repo: String,
    pub branch: String,
    pub path: String,
    pub commit: String,
}

/// What a cluster should run of an assignment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DesiredEntry {
    pub assignment: String,
    /// `apply` or `observe`
    pub mode: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<PackageSummary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<PackageSummary>,
    /// The commit that another reconciler should have reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_commit: Option<String>,
    /// How often people asked for a restart.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub restart: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PackageSummary {
    pub digest: String,
    pub size: u64,
    pub repo: String,
    pub commit: String,
}
