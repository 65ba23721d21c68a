//! What can be fetched again: indexes over what is on disk anyway. It may be lost at any time, and is then filled again; nothing
//! precious is in it. `sled` is the real one, `memory` the fake, `index` the one use on a host: which objects are here and why.

pub mod index;
pub mod memory;
pub mod sled;

use std::fmt::Debug;
use std::io;

/// Named trees of keys and values.
pub trait Store: Debug + Send + Sync {
    fn get(&self, tree: &str, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;
    fn put(&self, tree: &str, key: &[u8], value: &[u8]) -> Result<(), StoreError>;
    fn remove(&self, tree: &str, key: &[u8]) -> Result<(), StoreError>;
    /// In the order of the keys' bytes.
    fn each(&self, tree: &str, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError>;
    /// What was put before is on disk when it returns.
    fn flush(&self) -> Result<(), StoreError>;
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It is empty now and has to be filled again; a person may want to look at what was set aside.
    #[error("the cache was broken; it began anew and will be filled again: {0}")]
    Lost(String),
    #[error("the cache can't be used now")]
    Io(#[from] io::Error),
    /// An earlier loss could not be mended.
    #[error("the cache is closed")]
    Closed,
}
