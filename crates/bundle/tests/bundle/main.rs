//! Bundles as files: what is written is read again, and what a stranger changed, cut or made is refused.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

mod any;
mod fleet;
mod joins;
mod parts;
mod trust;
