//! The whole fleet at a glance, environment by environment.

use serde::{Deserialize, Serialize};

use crate::counts::ConditionCounts;

/// Everything at a glance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FleetSummary {
    /// Along the promotion chain.
    pub environments: Vec<FleetEnvironment>,
    pub problems: ProblemCounts,
    pub repositories: RepositoryCounts,
    /// Repositories that can't be read, or of which an environment can't read its branch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing_repositories: Vec<FailingRepository>,
    /// RFC 3339
    pub at: String,
}

/// An environment in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FleetEnvironment {
    pub name: String,
    /// The commits of `main` that its clusters run, as they last reported it; several while a rollout is on its way, or where
    /// clusters are held or offline. Not for application teams.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<RunningCommit>,
    /// Why it doesn't run what Git contains, or might not; the most urgent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<StandingNotice>,
    /// The commit of `main` that Git names for it; not for application teams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promoted_commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promoted_subject: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promoted_author: Option<String>,
    /// RFC 3339: when it entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promoted_at: Option<String>,
    /// `Waiting`, `Entered`, `Passed`, … of that commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<String>,
    /// A newer commit that waits to enter, and what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextCommit>,
    /// Why its branch doesn't name the promoted commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Position along the promotion chain.
    pub order: usize,
    /// Environments that must have passed before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    pub clusters: PresenceCounts,
    /// Assignments on clusters.
    pub conditions: ConditionCounts,
    /// RFC 3339: since when the cluster that has been offline the longest is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_unknown: Option<String>,
    pub rollouts: RolloutCounts,
    /// Assignments that can't be rendered or packed.
    pub quarantined: u64,
    /// Assignments on online clusters that report drift.
    pub drifted: u64,
    pub problems: ProblemCounts,
    /// In the order of the policy.
    pub rings: Vec<FleetRing>,
    pub types: Vec<FleetType>,
}

/// A commit of `main` on its way in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct NextCommit {
    pub commit: String,
    pub subject: String,
    pub waits_for: Vec<String>,
}

/// A cluster type of an environment in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FleetType {
    pub name: String,
    pub clusters: PresenceCounts,
    pub conditions: ConditionCounts,
    /// When one environment is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rings: Vec<FleetRing>,
}

/// A ring of an environment, or of one of its cluster types, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FleetRing {
    pub name: String,
    pub clusters: PresenceCounts,
    pub conditions: ConditionCounts,
}

/// Clusters by whether anything is known of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PresenceCounts {
    pub known: u64,
    /// They missed their check-in.
    pub unknown: u64,
    pub total: u64,
    /// Of the known: those that have reported nothing yet.
    pub joined: u64,
}

/// Rollouts that haven't ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RolloutCounts {
    /// In state `Active`.
    pub moving: u64,
    pub stopped: u64,
    pub paused: u64,
    /// Newer content that waits behind them.
    pub waiting: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProblemCounts {
    pub errors: u64,
    pub warnings: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RepositoryCounts {
    pub good: u64,
    pub failing: u64,
}

/// A repository that fails, and for whom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FailingRepository {
    pub url: String,
    pub environments: Vec<String>,
}

/// A commit of `main` that clusters run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunningCommit {
    /// Empty: what they had before the oldest rollout that is known.
    pub commit: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// The rings that run it; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rings: Vec<String>,
    /// So many clusters, where the environment runs several commits.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub clusters: u64,
    /// Of them: those that are offline and ran it when they last reported.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub offline: u64,
}

/// Why an environment doesn't run what Git contains, or might not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct StandingNotice {
    /// `rolledBack`, `aborted`, `stopped`, `paused`, `publish`, `stale` or `held`
    pub kind: String,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<u64>,
    /// RFC 3339
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}
