//! Fleets that benchmarks write into a hub's database.

pub mod cluster;
pub mod fleet;
