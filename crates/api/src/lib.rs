//! What people and programs ask the hub, and what it answers: the types of `/api/v1`, one noun a file. Used by the hub, which fills
//! them, and by the CLI and the tests, which read them. No I/O.

pub mod access_tokens;
pub mod assignments;
pub mod audit;
#[cfg(feature = "client")]
pub mod client;
pub mod cluster_types;
pub mod clusters;
pub mod comparisons;
pub mod conditions;
pub mod counts;
pub mod deployment_targets;
pub mod desired_states;
pub mod drift;
pub mod environments;
pub mod error;
pub mod evidence;
pub mod findings;
pub mod fleet;
pub mod history;
pub mod holds;
pub mod imports;
pub mod join_tokens;
pub mod operations;
pub mod page;
pub mod people;
pub mod plans;
pub mod problems;
pub mod promotions;
pub mod repositories;
pub mod rollout_status;
pub mod rollouts;
pub mod search;
pub mod source;
pub mod workloads;

/// Numbers that are left out where there is nothing to count.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A value that is there, also when it is `null`.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<serde_json::Value>, D::Error> {
    serde::Deserialize::deserialize(from).map(Some)
}
