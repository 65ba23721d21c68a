//! Which objects are here, what they are, and when they were last used: the collector takes what was unused longest. The index
//! can be lost: what it doesn't know is as old as can be, and the objects that are needed are known from the records.

use std::sync::Arc;

use kedge_model::wire::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Store, StoreError};

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct ObjectIndex {
    store: Arc<dyn Store>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Indexed {
    pub size: u64,
    pub used: Timestamp,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum What {
    Package,
    Artifact,
    Deb,
    /// What a way back needs, and what a newer agent calls otherwise.
    #[serde(other)]
    Content,
}

const TREE: &str = "objects";

impl ObjectIndex {
    pub fn new(store: Arc<dyn Store>) -> ObjectIndex {
        ObjectIndex { store }
    }

    /// It is here, or was used again.
    pub fn note(&self, digest: &Digest, size: u64, what: What, used: Timestamp) -> Result<(), StoreError> {
        let value = serde_json::to_vec(&Indexed { size, used, what }).map_err(std::io::Error::from)?;
        self.store.put(TREE, digest.as_bytes(), &value)
    }

    pub fn get(&self, digest: &Digest) -> Result<Option<Indexed>, StoreError> {
        let value = self.store.get(TREE, digest.as_bytes())?;
        Ok(value.and_then(|value| serde_json::from_slice(&value).ok()))
    }

    pub fn forget(&self, digest: &Digest) -> Result<(), StoreError> {
        self.store.remove(TREE, digest.as_bytes())
    }

    /// Those that were unused longest come first. What can't be read isn't there.
    pub fn by_age(&self) -> Result<Vec<(Digest, Indexed)>, StoreError> {
        let mut all: Vec<(Digest, Indexed)> = Vec::new();
        self.store.each(TREE, &mut |key, value| {
            if let (Ok(key), Ok(indexed)) = (key.try_into(), serde_json::from_slice(value)) {
                all.push((Digest::from_bytes(key), indexed));
            }
        })?;
        all.sort_by_key(|(digest, indexed)| (indexed.used, *digest));
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

    use super::*;
    use crate::store::memory::MemoryStore;

    #[test]
    fn what_was_unused_longest_comes_first_and_garbage_is_not_there() {
        let store = Arc::new(MemoryStore::default());
        let index = ObjectIndex::new(Arc::<MemoryStore>::clone(&store));
        let [one, two, three] = [b"1", b"2", b"3"].map(|bytes| Digest::of(bytes));
        index.note(&one, 10, What::Package, Timestamp(30)).unwrap();
        index.note(&two, 20, What::Deb, Timestamp(20)).unwrap();
        index.note(&three, 30, What::Artifact, Timestamp(10)).unwrap();
        index.note(&three, 30, What::Artifact, Timestamp(40)).unwrap();
        store.put(TREE, b"short", b"{}").unwrap();
        store.put(TREE, Digest::of(b"4").as_bytes(), b"garbage").unwrap();
        let order: Vec<Digest> = index.by_age().unwrap().into_iter().map(|(digest, _)| digest).collect();
        assert_eq!(order, [two, one, three]);
        assert_eq!(index.get(&Digest::of(b"4")).unwrap(), None);
        index.forget(&two).unwrap();
        assert_eq!((index.get(&two).unwrap(), index.get(&one).unwrap().unwrap().what), (None, What::Package));
    }
}
