//! The caches on a cluster's nodes: pods without any right at the API server, which keep what the cluster runs so that an agent that
//! begins on another node has it without the hub. They and the agent that works share a key that is good for nothing else
//! (`CacheKey`, in a Secret that is mounted). A cache finds the agent by a name of the cluster's network, asks it what to keep, and
//! fetches that (`cache`); the agent answers (`CacheDoor`) and takes from caches what it lacks (`Caches`). What comes is believed for
//! its digest on both sides.

pub mod cache;
mod door;
mod held;
mod key;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use kedge_model::wire::{BlobRef, Digest};
use serde::{Deserialize, Serialize};

pub use door::CacheDoor;
pub use held::Caches;
pub use key::CacheKey;

/// Beside the port of the pods that stand by.
pub const PORT: u16 = 7445;

/// A cache tells what it has, and where it gives that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Has {
    port: u16,
    blobs: BTreeSet<Digest>,
}

/// The agent tells what is to be kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Keep {
    blobs: Vec<BlobRef>,
}
