//! A plan as the API, the page and the CLI show it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::catalog::view::FindingView;

/// What a change would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanView {
    pub environment: String,
    /// What is in force.
    pub from: PlanSideView,
    /// What would be.
    pub to: PlanSideView,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pasted: Vec<PastedView>,
    /// `3 of 41 assignments on 2 of 5 cluster types`; for an application team of its own.
    pub summary: String,
    /// The blast radius: clusters of the types that change.
    pub clusters: ClustersView,
    pub per_type: Vec<TypeView>,
    /// In order, at most a thousand.
    pub assignments: Vec<PlannedView>,
    /// How many more there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_off: u64,
    /// Assignments that would seem to go, and stay because something can't be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptView>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_types_added: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_types_removed: Vec<String>,
    /// What would be wrong; new problems first.
    pub problems: Vec<PlanProblemView>,
    /// False for an application team: it sees its own part.
    #[serde(skip)]
    pub is_whole: bool,
}

/// The commits that an environment is read at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanSideView {
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PastedView {
    pub path: String,
    /// `main` or `environment`
    pub of: String,
    /// `replaced`, `added` or `removed`
    pub change: String,
}

/// Clusters that a change would reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClustersView {
    /// In touch with the hub.
    pub online: u64,
    /// Unknown: they get it when they come back.
    pub offline: u64,
    pub total: u64,
    /// Of all, those that get nothing of their type before a person confirms its removals.
    pub waiting: u64,
}

/// What happens to a cluster type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TypeView {
    pub cluster_type: String,
    pub added: u64,
    pub changed: u64,
    pub removed: u64,
    pub quarantined: u64,
    pub released: u64,
    pub clusters: ClustersView,
    /// More than half would go: nothing of the type is published before `kedge publish confirm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<WaitsView>,
}

/// Removals that a person has to confirm.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitsView {
    /// Targets that would go.
    pub removed: Vec<String>,
    /// How many the last confirmed set has.
    pub confirmed: u64,
}

/// What happens to an assignment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedView {
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
    pub reasons: Vec<FindingView>,
    /// Configuration values that differ.
    pub values: Vec<PlannedValueView>,
    pub files: Vec<PlannedFileView>,
}

/// A configuration value before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedValueView {
    pub key: String,
    /// Absent: it isn't set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<serde_json::Value>,
    /// It, or a part of it, is shown to the platform team only.
    pub redacted: bool,
}

/// A published file that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedFileView {
    pub name: String,
    /// `added`, `changed` or `removed`
    pub change: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeptView {
    pub name: String,
    pub reason: String,
}

/// What would be wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanProblemView {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<String>,
    /// It isn't there now.
    pub new: bool,
    #[serde(flatten)]
    pub finding: FindingView,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
