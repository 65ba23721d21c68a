//! The suite `up`: `kedge up` as a person types it, with its real hub and real agents, and the commands that it suggests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod ends;
mod fleet;
mod story;
