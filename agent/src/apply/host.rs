//! The real host: debs, files, artifacts, units, users.

pub mod artifacts;
pub mod debs;
pub mod files;
pub mod units;
pub mod users;
