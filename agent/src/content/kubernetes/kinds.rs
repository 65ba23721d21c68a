//! What the API server knows of kinds, as far as a goal needs it: a trait, so that goals are made without a server in tests.

use std::fmt::Debug;

use crate::record::Failure;

pub trait Kinds: Debug + Send + Sync {
    /// None: nobody serves such a kind.
    fn find(&self, api_version: &str, kind: &str) -> Result<Option<KindInfo>, Failure>;
}

/// How a kind is addressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindInfo {
    /// Empty: the core group.
    pub group: String,
    pub version: String,
    pub kind: String,
    /// As it stands in addresses: `deployments`.
    pub plural: String,
    pub namespaced: bool,
}
