//! Holds: an assignment that keeps what it has on one cluster.

use serde::{Deserialize, Serialize};

/// What is held, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HoldRequest {
    /// `<workload>-<target>`, without the cluster type.
    pub assignment: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What is released.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReleaseRequest {
    pub assignment: String,
    /// Release the holds of other clusters of the site instead of the hub's own; for the platform team.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub peers: bool,
    /// With `peers`: why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A hold of somebody on a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct HoldSummary {
    pub assignment: String,
    /// The person at the hub, the user on the host, or `USER@HOST` at another cluster of the site.
    pub by: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// RFC 3339
    pub since: String,
    /// `hub`, `cluster`, or `peer`: another cluster of the site
    pub writer: String,
    /// Whether the cluster has reported that the hold is in force.
    pub obeyed: bool,
}
