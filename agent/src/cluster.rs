//! The API server of the cluster that the agent lives in: one connection for everything that asks it. The Kubernetes applier, the
//! watches, the lease, the ledgers in Secrets and the observer use it.

pub mod access;
pub mod asking;
pub mod client;
#[cfg(test)]
pub mod fake;
pub mod kinds;
pub mod lease;
pub mod metadata;
pub mod request;
pub mod retry;
pub mod secret_ledger;
pub mod stream;
pub mod watches;

pub use client::{Cluster, ClusterError};

/// Whose field an applied field is.
pub const MANAGER: &str = "kedge";
/// The label that every applied object carries, and the annotation with the assignment's whole name.
pub const ASSIGNMENT: &str = "kedge.dev/assignment";
