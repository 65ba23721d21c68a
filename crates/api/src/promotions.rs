//! The way of commits through the environments, the policy that governs it, and what people decide about it.

use serde::{Deserialize, Serialize};

use crate::rollouts::RolloutActionEntry;

/// The policy in force, and where each of its environments is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PromotionList {
    /// None: no policy, no automatic promotion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PromotionPolicySummary>,
    /// A looser one that waits for an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<PromotionPolicySummary>,
    /// Why the newest can't be read; the one before stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<PromotionPolicySummary>,
    /// Along the promotion chain.
    pub items: Vec<EnvironmentPromotion>,
}

/// A version of the PromotionPolicy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PromotionPolicySummary {
    /// `kedge` or `external`
    pub promoter: String,
    pub environments: Vec<String>,
    /// Of `main`.
    pub commit: String,
    pub subject: String,
    pub author: String,
    /// In which ways it is looser, or what is wrong with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Who agreed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<RolloutActionEntry>,
    /// Of one that waits for several people, or that somebody approved: `1 of 2 approvals given (anna)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvals: Option<String>,
    pub since: String,
}

/// Where an environment is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentPromotion {
    pub environment: String,
    /// Those that must have passed before it.
    pub after: Vec<String>,
    pub rings: Vec<String>,
    /// Whether offline clusters leave a rollout complete.
    pub offline_leaves_complete: bool,
    /// The commit of `main` that entered last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// The one that the environment is read at: its branch has named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_force: Option<String>,
    /// Why the branch doesn't name the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// The branch names a commit that wasn't promoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedCommit>,
    /// The newest first.
    pub promotions: Vec<PromotionSummary>,
}

/// Who named which commit, and why it isn't followed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RefusedCommit {
    pub commit: String,
    pub by: String,
    pub at: String,
    pub why: String,
}

/// One commit of `main` in an environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PromotionSummary {
    pub commit: String,
    pub subject: String,
    pub author: String,
    /// `Waiting`, `Entered`, `Passed`, `Failed`, `Reopened`, `Superseded`, `Adopted`
    pub state: String,
    // Of one that passed: what didn't count against it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    pub created_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entered_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// Commits that it took over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<RolloutActionEntry>,
    /// Failures that came after it had passed.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub late_failed: u64,
}

/// Let a commit in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PromoteRequest {
    /// Of `main`; default: the one that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Agree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApproveRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}
