//! The real host: debs, files, units, users.

pub mod debs;
