//! Repositories that environments read, and whether they answer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A repository and the environment that reads it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentRepository {
    /// Stored beside it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub environment: String,
    #[serde(flatten)]
    pub repository: RepositorySummary,
}

/// Which repository.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FetchRequest {
    pub url: String,
}

/// A repository that an environment reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RepositorySummary {
    pub url: String,
    pub branches: BTreeMap<String, String>,
    /// RFC 3339: when it last answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_good: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<RepositoryFailure>,
    /// Branches whose history was rewritten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forced: Vec<String>,
    /// Whose registrations name it; empty for the platform's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workspaces: Vec<String>,
}

/// Why a repository can't be read; its last good commit stays in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RepositoryFailure {
    pub error: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    pub since: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_try: Option<String>,
}
