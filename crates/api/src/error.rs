//! The body of every answer that refuses a request: problem details as RFC 9457 has them, with our code and a hint.

use serde::{Deserialize, Serialize};

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorDetail {
    /// `urn:kedge:error:` and the code.
    #[serde(rename = "type", default = "untyped")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub kind: String,
    /// What the status means.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub title: String,
    /// The HTTP status.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub status: u16,
    /// One sentence about this request.
    pub detail: String,
    /// A stable word for programs, such as `NotFound`.
    pub code: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// With `UnknownName`: the nearest known name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
}

/// The media type of such an answer.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// As RFC 9457 reads an answer without a type.
fn untyped() -> String {
    "about:blank".to_owned()
}

impl ErrorDetail {
    #[must_use]
    pub fn new(status: u16, title: &str, code: &str, detail: impl Into<String>) -> ErrorDetail {
        ErrorDetail {
            kind: format!("urn:kedge:error:{code}"),
            title: title.to_owned(),
            status,
            detail: detail.into(),
            code: code.to_owned(),
            hint: None,
            nearest: None,
        }
    }
}
