//! The suite `peers`: sites whose agents carry for each other, and the way by file where there is no network at all.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod by_file;
mod halves;
mod island;
mod turns;
mod uplink;
mod wrong_files;
