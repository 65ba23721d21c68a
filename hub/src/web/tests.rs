//! The page as a browser without a script sees it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]

mod actions;
mod browser;
mod changes;
mod doors;
mod glances;
mod outside;
mod running;
mod sessions;
mod words;
