//! End-to-end tests and the lab that starts their real parts: Git over HTTP, Gitea, PostgreSQL, hubs and simulated agents.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "all of this is test code: a part that can't be started ends the test, with that part's log"
)]

pub mod agent;
pub mod lab;
pub mod world;
