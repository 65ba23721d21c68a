//! What is in each package that was unpacked here, so that it isn't unpacked again: the index of the objects that it became. It may be
//! lost at any time; then a package is read once more. Content asks it, the applier's thread owns it.

use std::sync::{Arc, Mutex, PoisonError};

use kedge_model::wire::Digest;

use super::{Store, StoreError};
use crate::archive::{self, ArchiveError, Listing};
use crate::objects::Objects;

#[derive(Debug)]
pub struct PackageIndex {
    store: Arc<dyn Store>,
    /// What should be told of the store, once.
    trouble: Mutex<Option<String>>,
}

const TREE: &str = "packages";
/// A listing of 10,000 files is about a megabyte.
const MAX_VALUE: usize = 4 << 20;

impl PackageIndex {
    pub fn new(store: Arc<dyn Store>) -> PackageIndex {
        PackageIndex { store, trouble: Mutex::new(None) }
    }

    /// What a package holds, as objects that are here: from the index, or unpacked.
    pub fn listing(&self, package: &Digest, objects: &Objects) -> Result<Listing, ArchiveError> {
        if let Some(listing) = self.known(package).filter(|listing| is_whole(listing, objects)) {
            return Ok(listing);
        }
        let listing = archive::read(objects.read(package).map_err(ArchiveError::Missing)?, objects)?;
        if let Ok(value) = serde_json::to_vec(&listing) {
            let put = self.store.put(TREE, package.as_bytes(), &value).and_then(|()| self.store.flush());
            self.note(put);
        }
        Ok(listing)
    }

    /// Packages that nobody needs any more.
    pub fn retain(&self, needed: impl Fn(&Digest) -> bool) {
        let mut gone = Vec::new();
        let read = self.store.each(TREE, &mut |key, _| match key.try_into().map(Digest::from_bytes) {
            Ok(digest) if needed(&digest) => {}
            _ => gone.push(key.to_vec()),
        });
        self.note(read);
        for key in gone {
            self.note(self.store.remove(TREE, &key));
        }
    }

    /// What went wrong with the store since the last question: a warning for people, nothing else.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn known(&self, package: &Digest) -> Option<Listing> {
        match self.store.get(TREE, package.as_bytes()) {
            Ok(value) => {
                value.filter(|value| value.len() <= MAX_VALUE).and_then(|value| serde_json::from_slice(&value).ok())
            }
            Err(error) => {
                self.note(Err(error));
                None
            }
        }
    }

    fn note(&self, result: Result<(), StoreError>) {
        if let Err(error) = result {
            *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        }
    }
}

/// Objects are collected one by one: a listing counts only while all of them are here.
fn is_whole(listing: &Listing, objects: &Objects) -> bool {
    listing.files.values().all(|listed| objects.use_again(&listed.digest))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

    use super::*;
    use crate::archive::tests::pack;
    use crate::store::memory::MemoryStore;

    #[test]
    fn a_package_is_unpacked_once_and_again_when_the_index_or_an_object_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::open(&folder.path().join("objects")).unwrap();
        let store = Arc::new(MemoryStore::default());
        let index = PackageIndex::new(Arc::<MemoryStore>::clone(&store));
        let package = objects.put(&pack(&[("a", b"one", false), ("b", b"two", false)])).unwrap();
        let first = index.listing(&package, &objects).unwrap();
        // Without the archive only the index can know it.
        let bytes = objects.read_small(&package, 1 << 20).unwrap();
        objects.remove(&package).unwrap();
        assert_eq!(index.listing(&package, &objects).unwrap(), first);

        objects.put(&bytes).unwrap();
        objects.remove(&first.files["a"].digest).unwrap();
        assert_eq!(index.listing(&package, &objects).unwrap(), first);
        assert!(objects.has(&first.files["a"].digest));

        store.put(TREE, package.as_bytes(), b"garbage").unwrap();
        assert_eq!(index.listing(&package, &objects).unwrap(), first);
        index.retain(|_| false);
        assert!(store.get(TREE, package.as_bytes()).unwrap().is_none() && index.trouble().is_none());
    }
}
