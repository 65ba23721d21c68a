//! The statements of `api`: who may ask (`access`), what was written by whom (`audit`), clusters and desired states as
//! people look at them, and the four questions about the whole fleet.

pub mod access;
pub mod audit;
pub mod clusters;
pub mod compare;
pub mod conditions;
pub mod contents;
pub mod drift;
pub mod fleet;
pub mod names;
pub mod problems;
pub mod rollouts;
pub mod search;
pub mod states;
pub mod targets;
pub mod warnings;
pub mod workloads;
