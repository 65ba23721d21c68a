//! From an assignment's two packages to its goal on a cluster.

pub mod kinds;

pub use kinds::{KindInfo, Kinds};
