//! What people type at the host. One command is one file; all but `run` and `join` work without a network and without the daemon.

pub mod completions;
pub mod daemon;
pub mod doctor;
pub mod error;
pub mod logs;
pub mod man;
pub mod names;
pub mod output;
pub mod overview;
#[cfg(test)]
mod sample;
pub mod status;
pub mod why;
