//! Rollouts: a change on its way through the rings of an environment.

use serde::{Deserialize, Serialize};

/// A rollout that moves, or last moved, something here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RolloutReference {
    pub rollout: u64,
    pub lane: String,
    pub state: String,
    /// It was rolled back or aborted, and Git doesn't ask for its content any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
    /// `canary passed, rest rolling`
    pub rings: String,
    pub commit: String,
    pub subject: String,
    pub author: String,
}

/// What a Pin holds back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PinnedAssignment {
    pub ring: String,
    pub assignment: String,
    /// The Pin's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    /// `version 1.4.2` or `commit 4f2a…`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// RFC 3339; none: until it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its file on the environment's branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What returns when the Pin ends: a version, a commit, or nothing.
    pub below: String,
}

/// Why, and for which ring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RolloutActionRequest {
    /// An override and a rollback need one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// With `approve` and `override`; default: the ring that waits now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<String>,
}

/// A change on its way through the rings of an environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RolloutSummary {
    pub id: u64,
    pub environment: String,
    /// `platform`, or `<repository>@<reference>` of an application's source.
    pub lane: String,
    /// `Active`, `Paused`, `Stopped`, `Complete`, `RolledBack`, `Aborted`, `Superseded`
    pub state: String,
    /// Who paused or aborted it, why it stopped, what superseded it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// It was rolled back or aborted, and Git doesn't ask for its content any more: there is nothing left to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
    #[serde(flatten)]
    pub cause: RolloutCause,
    /// How many assignments of cluster types it moves, as far as the caller may see.
    pub moves: usize,
    /// It contains other teams' assignments too, so the counts of its gates are hidden.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    pub rings: Vec<RingProgress>,
    /// Failures that came after it was complete.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub late_failed: u64,
    pub created_at: String,
    pub updated_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
}

/// Who changed what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RolloutCause {
    /// Of the lane.
    pub commit: String,
    /// Of the control plane's `main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main: Option<String>,
    /// The commit that wrote the subject, where it is neither `main` nor `commit`: such as an application's that changed what the
    /// platform's files say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject_of: Option<String>,
    pub subject: String,
    pub author: String,
}

/// How far one ring is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RingProgress {
    pub ring: String,
    /// `waiting`, `rolling`, `passed`, `stopped`, `returning` (not all its clusters have the old content yet), `returned`
    pub state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// Since when the gate's rules hold: the soak counts from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady_since: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_at: Option<String>,
    /// What it waits for now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// The sum of its assignments when it passed or stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<MemberCounts>,
}

/// Clusters by the condition of the exact packages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct MemberCounts {
    pub converged: u64,
    pub converging: u64,
    pub failed: u64,
    pub offline: u64,
    /// In contact, and hasn't got it yet.
    pub waiting: u64,
}

/// A rollout with everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RolloutDetail {
    #[serde(flatten)]
    pub rollout: RolloutSummary,
    pub items: Vec<RolloutItem>,
    /// Commits that waited and were superseded, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<RolloutCause>,
    /// Newer content that waits behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<RolloutCause>,
    /// What people decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<RolloutActionEntry>,
    /// What can be done, when it was rolled back or aborted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<SuggestedAction>,
}

/// What moves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RolloutItem {
    pub cluster_type: String,
    pub assignment: String,
    pub workload: String,
    pub parts: Vec<ItemPart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The version that a ring held before it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Against the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<VersionOrder>,
    /// Of the application's source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_commit: Option<String>,
}

/// What a person decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RolloutActionEntry {
    pub who: String,
    /// The person's id; empty for what was decided before there were persons.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub person: String,
    pub role: String,
    pub at: String,
    pub action: RolloutAction,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The token that it was done with was made after this had begun.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new_token: bool,
}

/// Something that can be done now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SuggestedAction {
    /// A sentence.
    pub text: String,
    /// To be typed as it is; the reason may be another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// What moves of an assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum ItemPart {
    Removed,
    Platform,
    Workload,
    Observed,
}

/// How a version compares to the one before, by SemVer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum VersionOrder {
    Newer,
    Older,
    Same,
}

/// What a person can do about a rollout or a promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum RolloutAction {
    Approve,
    /// Although its gate hasn't passed.
    Override,
    /// Outside its windows and freezes.
    Now,
    Pause,
    Resume,
    Abort,
    Rollback,
}

impl ItemPart {
    /// As JSON has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ItemPart::Removed => "removed",
            ItemPart::Platform => "platform",
            ItemPart::Workload => "workload",
            ItemPart::Observed => "observed",
        }
    }
}

impl VersionOrder {
    /// As JSON has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            VersionOrder::Newer => "newer",
            VersionOrder::Older => "older",
            VersionOrder::Same => "same",
        }
    }
}

impl RolloutAction {
    pub const ALL: [RolloutAction; 7] = [
        RolloutAction::Approve,
        RolloutAction::Override,
        RolloutAction::Now,
        RolloutAction::Pause,
        RolloutAction::Resume,
        RolloutAction::Abort,
        RolloutAction::Rollback,
    ];

    /// As JSON has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            RolloutAction::Approve => "approve",
            RolloutAction::Override => "override",
            RolloutAction::Now => "now",
            RolloutAction::Pause => "pause",
            RolloutAction::Resume => "resume",
            RolloutAction::Abort => "abort",
            RolloutAction::Rollback => "rollback",
        }
    }
}

impl RolloutCause {
    /// The commit that people know it by.
    #[must_use]
    pub fn named(&self) -> &str {
        self.subject_of.as_deref().or(self.main.as_deref()).unwrap_or(&self.commit)
    }
}
