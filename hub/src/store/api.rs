//! The statements of `api`: who may ask (`access`), what was written by whom (`audit`), clusters and desired states as
//! people look at them.

pub mod access;
pub mod audit;
pub mod clusters;
pub mod compare;
pub mod rollouts;
pub mod states;
