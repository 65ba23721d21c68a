//! The types of the API against their own descriptions.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

mod document;
mod round_trip;
