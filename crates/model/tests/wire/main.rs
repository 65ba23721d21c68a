//! The messages between hub and agent: what is written is what is read, what is unknown is ignored, what is hostile is
//! refused, and the vectors in `docs/vectors` are what the code makes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

mod any;
mod chain;
mod envelopes;
mod hostile;
mod round_trips;
mod vectors;
