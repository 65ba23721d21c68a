//! The real host: debs, files, units, users.

pub mod debs;
//! The real host: its parts.
pub mod artifacts;
pub mod debs;
pub mod files;
pub mod units;
pub mod users;
