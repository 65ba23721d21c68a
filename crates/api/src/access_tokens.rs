//! Access tokens of people and programs: what a list shows of one, and what makes one.

use serde::{Deserialize, Serialize};

/// Whose the token is, and what it may do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AccessTokenRequest {
    /// Whose it is: the id or name of a person. Approvals count persons, not tokens.
    pub person: String,
    /// Tells the person's tokens apart; default: the person's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `viewer`, `application`, `platform` or `administrator`
    pub role: String,
    /// Of an application team: the workspaces it sees and acts on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workspaces: Vec<String>,
    /// How long it is valid, `90d`, or `never`; default: a year (`365d`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// A token that was just made; its text is never shown again.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct AccessTokenCreated {
    pub id: String,
    pub token: String,
    /// Left out when it is good until it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// An access token without its secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct AccessTokenSummary {
    pub id: String,
    /// The id of the person whose it is.
    pub person: String,
    pub person_name: String,
    pub name: String,
    pub role: String,
    pub workspaces: Vec<String>,
    /// `good`, `expired` or `revoked`
    pub state: String,
    pub created_at: String,
    /// The id of the person who created it. Absent: it was created on the hub's host, or before the hub knew people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub created_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<String>,
    /// Within some minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<String>,
}

impl std::fmt::Debug for AccessTokenCreated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccessTokenCreated").field("id", &self.id).finish_non_exhaustive()
    }
}
