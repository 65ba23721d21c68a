//! The suite `peers`: sites whose agents carry for each other, and the way by file where there is no network at all.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod away;
mod by_file;
mod copied;
mod flood;
mod hall;
mod halves;
mod holds;
mod hostile;
mod island;
mod stranger;
mod thin;
mod turns;
mod uplink;
mod wrong_files;
