//! What packing made of an environment's branch, as streams hold it.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_model::wire::{Observation, Packages};

/// The assignments of a cluster type by name.
pub type PackedType = BTreeMap<String, PackedEntry>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackedEntry {
    Apply(Arc<Packages>),
    Observe(Arc<Observation>),
    /// Keeps what it had. The reasons are among the problems.
    Quarantined,
}
