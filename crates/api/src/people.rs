//! People who use the hub, who the caller is, and links that log somebody in.

use serde::{Deserialize, Serialize};

/// `GET /whoami`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WhoAmI {
    pub token: String,
    /// The id of the person whose it is.
    pub person: String,
    pub name: String,
    /// What the authors of commits are compared with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub emails: Vec<String>,
    /// `viewer`, `application`, `platform` or `administrator`
    pub role: String,
    pub workspaces: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// The hub's version.
    pub hub: String,
}

/// A link that works once.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoginLink {
    /// On the hub's address.
    pub path: String,
    pub expires_at: String,
}

/// Somebody new.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewPersonRequest {
    /// As the audit log and approvals show it; unique.
    pub name: String,
    /// The addresses under which this person writes commits: the author of a change can't approve it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub emails: Vec<String>,
}

/// What changes; what isn't written stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetPersonRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// All of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emails: Option<Vec<String>>,
}

/// A person whom tokens belong to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PersonSummary {
    /// Never changes.
    pub id: String,
    pub name: String,
    pub emails: Vec<String>,
    pub created_at: String,
    /// The id of the person who added this person. Absent: added on the hub's host.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub created_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_at: Option<String>,
}

impl std::fmt::Debug for LoginLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginLink").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}
