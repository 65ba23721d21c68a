//! Lists: a page, what went since, and the date of a stored object.

use serde::{Deserialize, Serialize};

/// An object and when it last changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Stored<T> {
    #[serde(flatten)]
    pub object: T,
    pub updated_at: String,
}

/// A page of a list. With `next`, ask again with `cursor` set to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    pub items: Vec<T>,
    /// What went since `after`; only in answers to a watch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<Removed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl<T> Default for Page<T> {
    fn default() -> Page<T> {
        Page { items: Vec::new(), removed: Vec::new(), next: None }
    }
}

/// Something that is no longer there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Removed {
    pub environment: String,
    pub name: String,
}
