//! The scheduler as its callers use it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod containment;
mod incremental;
mod output;
mod platforms;
mod rules;
mod written;
