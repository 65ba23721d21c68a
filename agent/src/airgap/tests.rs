//! A host and a hub that know each other by files only.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod bundles;
mod joins;
mod world;
