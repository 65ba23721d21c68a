//! Cluster types, as Git describes them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::source::SourceLocation;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterTypeSummary {
    pub environment: String,
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub reconciler: String,
    pub namespace_service: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_type: Option<String>,
    pub origin: SourceLocation,
    /// Set when its file can't be read any more and this is the last good version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_since: Option<String>,
}
