//! Everything that needs somebody, in one list.

use serde::{Deserialize, Serialize};

use crate::source::SourceLocation;

/// What needs somebody.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProblemList {
    /// The number of problems with these filters. 0: nothing needs attention.
    pub total: u64,
    pub errors: u64,
    pub warnings: u64,
    /// Those that wait for a person's decision.
    pub waiting: u64,
    /// By kind, then along the promotion chain.
    pub items: Vec<ProblemSummary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// RFC 3339
    pub at: String,
}

/// Something that needs a person: one cause, with its effects and what to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProblemSummary {
    /// Stable as long as the problem is the same.
    pub id: String,
    pub kind: ProblemKind,
    pub severity: ProblemSeverity,
    /// A stable code for programs, such as `RolloutStopped`.
    pub code: String,
    /// Empty: it concerns the hub as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environments: Vec<String>,
    /// How many clusters, assignments or findings it is about.
    pub count: u64,
    pub message: String,
    /// What it brings with it; those are no problems of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub brings: Vec<String>,
    /// What to do, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The command that shows more or fixes it.
    pub command: String,
    /// The page of the hub that shows more.
    pub link: String,
    /// RFC 3339: since when; of several, the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// A few of those that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<ProblemExample>,
}

/// One of those that a problem is about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProblemExample {
    /// Of a finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<SourceLocation>,
}

/// Where the cause is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum ProblemKind {
    /// Somebody's decision is all that is missing.
    Approvals,
    Rollouts,
    Clusters,
    /// Rendered, and can't be packed or published.
    Delivery,
    /// Described in Git, and can't be rendered.
    Schedule,
    /// Repositories that can't be read.
    Git,
    #[default]
    Hub,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum ProblemSeverity {
    #[default]
    Error,
    /// It waits for a person's decision.
    Waiting,
    Warning,
}

impl ProblemKind {
    pub const ALL: [ProblemKind; 7] = [
        ProblemKind::Approvals,
        ProblemKind::Rollouts,
        ProblemKind::Clusters,
        ProblemKind::Delivery,
        ProblemKind::Schedule,
        ProblemKind::Git,
        ProblemKind::Hub,
    ];

    /// As JSON has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ProblemKind::Approvals => "approvals",
            ProblemKind::Rollouts => "rollouts",
            ProblemKind::Clusters => "clusters",
            ProblemKind::Delivery => "delivery",
            ProblemKind::Schedule => "schedule",
            ProblemKind::Git => "git",
            ProblemKind::Hub => "hub",
        }
    }
}

impl ProblemSeverity {
    pub const ALL: [ProblemSeverity; 3] = [ProblemSeverity::Error, ProblemSeverity::Waiting, ProblemSeverity::Warning];

    /// As JSON has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ProblemSeverity::Error => "error",
            ProblemSeverity::Waiting => "waiting",
            ProblemSeverity::Warning => "warning",
        }
    }
}
