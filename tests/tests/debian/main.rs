//! The agent on booted Debian hosts, with a real hub, an apt repository and power cuts. One process a test; `./tests/run debian`
//! prepares what they need.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "all of this is test code")]

mod ansible;
mod artifacts;
mod commands;
mod drift;
mod escapes;
mod faults;
mod journey;
mod lab_host;
mod lab_line;
mod lies;
mod offline;
mod package;
mod power;
mod renderers;
mod stick;
mod unit_escapes;
mod unit_files;
