//! Clusters: who they are, where they belong and what they last reported; and the requests that change them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::conditions::AssignmentCondition;
use crate::holds::HoldSummary;
use crate::rollouts::{PinnedAssignment, RolloutReference};

/// A cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterSummary {
    /// The hash of its public key.
    pub id: String,
    pub name: String,
    pub environment: String,
    pub cluster_type: String,
    pub ring: String,
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// `active`, `retired`, `revoked` or `replaced`
    pub state: String,
    /// The last generation that it accepted, as it reported.
    pub generation: i64,
    pub joined_at: String,
    /// Its last check-in, also where somebody else carried that later.
    pub last_contact: String,
    /// Who carried its last check-in; absent when it came itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Carrier>,
    /// It may fetch for the other streams of its site.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub relay: bool,
    /// The next check-in is expected before this.
    pub check_in_deadline: String,
    /// It missed its check-in and is offline since then: nothing is known of what it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_since: Option<String>,
    /// When it last looked at everything it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked_at: Option<String>,
    pub certificate_until: String,
    /// It was offline for too long: a person has to let it in again (`kedge cluster readmit`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_readmission: bool,
    /// Two hosts with this identity were seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloned_since: Option<String>,
    pub facts: ClusterFacts,
    /// Absent: it has never reported. Of a cluster that is offline it is what was last reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issues: Option<IssueCounts>,
    /// Assignments that somebody holds there, in lists; a single cluster has `holds`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<String>,
}

/// Who carries for a cluster that doesn't reach the hub itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Carrier {
    /// The id of another cluster of its site; absent: a person brought a file, or the caller doesn't see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The other cluster's name, `file`, or `another cluster`.
    pub name: String,
}

/// Assignments on a cluster that aren't as they should be; of an application team's view its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct IssueCounts {
    pub converging: u64,
    pub failed: u64,
    pub drifted: u64,
}

/// Facts that the host reported about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterFacts {
    pub agent_version: String,
    pub architecture: String,
    pub system: String,
}

/// A cluster with what it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterDetail {
    #[serde(flatten)]
    pub cluster: ClusterSummary,
    /// The number of its membership.
    pub membership: i64,
    /// The id of the join token it came in with.
    pub token: String,
    pub conditions: Vec<AssignmentCondition>,
    /// What people hold there.
    pub holds: Vec<HoldSummary>,
    /// What the cluster warns of, as a whole.
    pub warnings: Vec<WarningSummary>,
    /// Since when it has permission to change, within its ring's `maxUnavailable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changing_since: Option<String>,
    /// Rollouts that haven't ended and move something here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rollouts: Vec<RolloutReference>,
    /// What a Pin holds on other content here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<PinnedAssignment>,
}

/// What should change about a cluster; what is left out stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChangeClusterRequest {
    /// Another environment, cluster type or ring that it should follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<String>,
    /// Labels to set; `null` takes a label away.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, Option<String>>,
    /// Its site; empty: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// Whether it may fetch for the other streams of its site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<bool>,
}

/// Something that a cluster warns of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WarningSummary {
    pub code: String,
    /// `Warning` or `Error`
    pub severity: String,
    pub message: String,
    /// What to do, as a sentence.
    pub hint: String,
    /// RFC 3339
    pub since: String,
}
