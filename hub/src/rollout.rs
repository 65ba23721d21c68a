//! Rollouts of environments.

pub mod policy;
pub mod signal;
