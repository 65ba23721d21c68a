//! How many clusters are in which condition.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    pub environment: String,
    pub items: Vec<CountSummary>,
    /// The sum of all.
    pub total: u64,
}

/// Assignments on clusters by condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConditionCounts {
    pub converged: u64,
    pub converging: u64,
    pub failed: u64,
    pub unknown: u64,
}

/// How many clusters are in one condition with one pair of packages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CountSummary {
    pub cluster_type: String,
    pub ring: String,
    pub assignment: String,
    /// The packages that run there.
    pub packages: String,
    /// `Converged`, `Converging`, `Failed` or `Unknown`
    pub condition: String,
    pub count: u64,
}

impl ConditionCounts {
    #[must_use]
    pub fn plus(self, other: ConditionCounts) -> ConditionCounts {
        ConditionCounts {
            converged: self.converged + other.converged,
            converging: self.converging + other.converging,
            failed: self.failed + other.failed,
            unknown: self.unknown + other.unknown,
        }
    }
}
