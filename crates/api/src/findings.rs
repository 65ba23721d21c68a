//! What loading, rendering, publishing or packing found wrong, with its place.

use kedge_model::Problem;
use serde::{Deserialize, Serialize};

use crate::source::SourceLocation;

/// What is wrong, or worth a warning. Values that look secret are redacted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// `error` or `warning`
    pub severity: String,
    /// A stable code for programs.
    pub code: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<SourceLocation>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<SourceLocation>,
    /// `load`, `render`, `publish`, `pack`
    pub stage: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FindingSummary {
    pub environment: String,
    /// Stable as long as the problem is the same.
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<String>,
    /// The assignment keeps what is published until this is fixed.
    pub quarantines: bool,
    #[serde(flatten)]
    pub finding: Finding,
}

impl Finding {
    /// A problem as it is, for texts that quote no values.
    #[must_use]
    pub fn of(problem: &Problem, stage: &str) -> Finding {
        Finding {
            severity: problem.severity.as_str().to_owned(),
            code: problem.code.to_owned(),
            message: problem.message.clone(),
            hint: problem.hint.clone(),
            origin: problem.origin.as_ref().map(SourceLocation::from),
            related: problem.related.iter().map(SourceLocation::from).collect(),
            stage: stage.to_owned(),
        }
    }
}
