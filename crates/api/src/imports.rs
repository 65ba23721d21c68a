//! Files from and for clusters without a network: signed requests, and imported status.

use std::collections::BTreeMap;

use kedge_model::wire::Envelope;
use serde::{Deserialize, Serialize};

/// A host's request, and where the host should belong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignRequest {
    /// What `kedge-agent request` wrote: an envelope.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub request: Envelope,
    pub environment: String,
    pub cluster_type: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// Default: as the host calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A host that became a member by file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SignedCluster {
    pub cluster: String,
    pub name: String,
    /// It was a member already: the same answer again.
    pub again: bool,
    /// For `kedge-agent import`: an envelope.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub answer: Envelope,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImportSummary {
    /// The cluster whose agent wrote it.
    pub writer: String,
    pub written_at: String,
    pub items: Vec<ImportedItem>,
}

/// What became of one document in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImportedItem {
    /// Absent: it can't be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `status`, `hold` or `presence`
    pub what: String,
    /// When it was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<String>,
    /// `taken`, `known`, `older` or `refused`
    pub outcome: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
