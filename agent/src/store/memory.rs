//! A store that is gone with the process: for tests, and for a host whose disk takes no cache.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Store, StoreError};

type Trees = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

#[derive(Debug, Default)]
pub struct MemoryStore {
    trees: Mutex<Trees>,
}

impl MemoryStore {
    fn trees(&self) -> MutexGuard<'_, Trees> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn get(&self, tree: &str, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.trees().get(tree).and_then(|tree| tree.get(key)).cloned())
    }

    fn put(&self, tree: &str, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.trees().entry(tree.to_owned()).or_default().insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    fn remove(&self, tree: &str, key: &[u8]) -> Result<(), StoreError> {
        if let Some(tree) = self.trees().get_mut(tree) {
            tree.remove(key);
        }
        Ok(())
    }

    fn each(&self, tree: &str, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        let entries = self.trees().get(tree).cloned().unwrap_or_default();
        entries.iter().for_each(|(key, value)| visit(key, value));
        Ok(())
    }

    fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
