//! The applier of a Kubernetes cluster.

pub mod ready;
