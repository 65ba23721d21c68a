//! The log on both kinds of database: days, late entries, pages, what goes, and what a dump brings back.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
