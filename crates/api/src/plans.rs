//! What a change would do, before anybody commits it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::findings::Finding;

/// What is to be planned: a revision, files, or both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanRequest {
    pub environment: String,
    /// A branch, a tag or a commit of the control plane, of main or of the environment's branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// `main` or `environment`: what the revision is of, and where the files belong. Default: what its history and the
    /// files' paths say; the answer names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Text by path, over the revision or what is in force; null deletes a file. For the platform team.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pasted: BTreeMap<String, Option<String>>,
}

/// What a change would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlanDetail {
    pub environment: String,
    /// What is in force.
    pub from: PlanSide,
    /// What would be.
    pub to: PlanSide,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pasted: Vec<PastedFile>,
    /// `3 of 41 assignments on 2 of 5 cluster types`; for an application team of its own.
    pub summary: String,
    /// The blast radius: clusters of the types that change.
    pub clusters: PlannedClusters,
    pub per_type: Vec<PlannedType>,
    /// In order, at most a thousand.
    pub assignments: Vec<PlannedAssignment>,
    /// How many more there are.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub left_off: u64,
    /// Assignments that would seem to go, and stay because something can't be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptInput>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_types_added: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_types_removed: Vec<String>,
    /// What would be wrong; new problems first.
    pub problems: Vec<PlanProblem>,
}

/// The commits that an environment is read at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlanSide {
    /// Of the environment's branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// Of main.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main: Option<String>,
    /// The revision that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// What it was taken for, `main` or `environment`, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
}

/// A pasted file, and where it was put.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PastedFile {
    pub path: String,
    /// `main` or `environment`
    pub of: String,
    /// `replaced`, `added` or `removed`
    pub change: String,
}

/// Clusters that a change would reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlannedClusters {
    /// In touch with the hub.
    pub online: u64,
    /// Unknown: they get it when they return.
    pub offline: u64,
    pub total: u64,
    /// Of all, those that get nothing of their type before a person confirms its removals.
    pub waiting: u64,
}

/// What happens to a cluster type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlannedType {
    pub cluster_type: String,
    pub added: u64,
    pub changed: u64,
    pub removed: u64,
    pub quarantined: u64,
    pub released: u64,
    pub clusters: PlannedClusters,
    /// More than half would go: nothing of the type is published before `kedge publish confirm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<PlannedRemovals>,
}

/// Removals that a person has to confirm.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlannedRemovals {
    /// Targets that would go.
    pub removed: Vec<String>,
    /// How many the last confirmed set has.
    pub confirmed: u64,
}

/// What happens to an assignment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlannedAssignment {
    /// `<cluster type>/<workload>-<target>`
    pub name: String,
    pub cluster_type: String,
    pub target: String,
    pub workload: String,
    pub workspace: String,
    /// `added`, `changed`, `removed`, `quarantined` (keeps what is published) or `released` (from quarantine)
    pub change: String,
    /// Why it is quarantined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Finding>,
    /// Configuration values that differ.
    pub values: Vec<PlannedValue>,
    pub files: Vec<PlannedFile>,
}

/// A configuration value before and after.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlannedValue {
    pub key: String,
    /// Absent: it isn't set.
    #[serde(default, deserialize_with = "crate::present", skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    #[serde(default, deserialize_with = "crate::present", skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// It, or a part of it, is shown to the platform team only.
    pub redacted: bool,
}

/// A published file that differs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlannedFile {
    pub name: String,
    /// `added`, `changed` or `removed`
    pub change: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct KeptInput {
    pub name: String,
    pub reason: String,
}

/// What would be wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlanProblem {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<String>,
    /// It isn't there now.
    pub new: bool,
    #[serde(flatten)]
    pub finding: Finding,
}

impl PlannedType {
    /// A quarantine changes nothing on a cluster.
    #[must_use]
    pub fn reaches(&self) -> bool {
        self.added + self.changed + self.removed + self.released > 0
    }
}

impl PlannedClusters {
    pub fn add(&mut self, other: &PlannedClusters) {
        self.online += other.online;
        self.offline += other.offline;
        self.total += other.total;
        self.waiting += other.waiting;
    }
}
