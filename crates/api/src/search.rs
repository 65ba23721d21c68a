//! What a search finds.

use serde::{Deserialize, Serialize};

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SearchResult {
    /// `cluster`, `workload`, `deployment-target`, `assignment`, `cluster-type`, `environment`, `commit`, `rollout`, `problem`
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    pub name: String,
    /// A short text that distinguishes it from others of the same name.
    pub detail: String,
    /// The page that shows it.
    pub link: String,
}
