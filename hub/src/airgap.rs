//! Across an air gap: bundles for clusters that no network reaches (`export`), and what their agents send back (`import`). People
//! ask for both through the API; `run` makes one. The files themselves are `kedge_bundle`'s.

pub mod export;
pub mod import;

pub use export::{Export, ExportError, Order, Since, Whom};
pub use import::{Import, ImportError, Imported, Outcome, What};

use crate::keys::Keys;
use crate::pack::Blobs;
use crate::status::StatusIntake;
use crate::store::Store;

/// What files are made from and read into. Cheap to clone.
#[derive(Clone, Debug)]
pub struct AirGap {
    pub store: Store,
    pub keys: Keys,
    pub blobs: Blobs,
    pub intake: StatusIntake,
}

#[cfg(test)]
mod tests;
