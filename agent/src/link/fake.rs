//! A hub of the tests, in process: an authority that signs like one, and a TLS listener whose answers and faults a test scripts.

pub mod authority;
pub mod hub;

pub use authority::Authority;
pub use hub::{FakeHub, Reply, Request};
