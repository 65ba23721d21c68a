//! Deployment targets, as Git describes them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::source::SourceLocation;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeploymentTargetSummary {
    pub environment: String,
    /// `<workload>-<target>`
    pub name: String,
    pub workload: String,
    pub workspace: String,
    pub labels: BTreeMap<String, String>,
    /// Values that look secret are redacted.
    pub manifests: BTreeMap<String, String>,
    pub origin: SourceLocation,
}
