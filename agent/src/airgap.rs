//! What crosses by file where no network does: a join (`enrol`), bundles of the hub (`import`) and what is told back (`export`). The
//! commands of those names call them; the daemon takes what was brought from the `inbox` and notes when it `looked`.

pub mod carried;
pub mod enrol;
pub mod export;
pub mod import;
pub mod inbox;
pub mod looked;
#[cfg(test)]
mod tests;
