//! What files held when they were last read, by their content: a commit that changes one file costs one file. Given to
//! `load` by whoever reads again and again; owns no files.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use kedge_model::{Broken, Object, Problem, Source};

use crate::read::Batch;
use crate::tree::{ContentId, Tree};

/// Files of a few large platforms; what wasn't asked for meanwhile goes when there are more.
const FILES: usize = 50_000;

/// Paths of repositories that are read as a whole: an environment has one, and one for each base and application.
const BATCHES: usize = 10_000;

/// Remembers decoded files and whole batches.
#[derive(Debug)]
pub struct Cache {
    files: Mutex<Recent<Key, Arc<Read>>>,
    batches: Mutex<Recent<Key, Arc<Batch>>>,
}

/// A file as it was decoded. Its places name the commit at which it was first seen with this content.
#[derive(Debug, Default)]
pub struct Read {
    pub objects: Vec<Arc<Object>>,
    pub broken: Vec<Broken>,
    pub problems: Vec<Problem>,
}

/// The content, and all that decides about what is made of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    content: ContentId,
    repo: String,
    /// The branch or tag, which places name.
    name: Option<String>,
    path: String,
    application: Option<String>,
    /// Whether tool folders are left out.
    rules: u8,
}

/// A map that forgets what wasn't asked for lately: when the young half is full the old one goes.
#[derive(Debug)]
struct Recent<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    limit: usize,
}

impl Default for Cache {
    fn default() -> Cache {
        Cache { files: Mutex::new(Recent::new(FILES)), batches: Mutex::new(Recent::new(BATCHES)) }
    }
}

impl Cache {
    /// The batch of a path when the tree's root is known, read by `read` when it is new.
    pub(crate) fn batch<E>(
        &self,
        tree: &dyn Tree,
        (path, application, rules): (&str, Option<&str>, u8),
        read: impl FnOnce() -> Result<Batch, E>,
    ) -> Result<Arc<Batch>, E> {
        // By the root's id: ignore files above the path count too.
        let Some(content) = tree.content_id("") else { return read().map(Arc::new) };
        let key = Key::new(content, &tree.source(), path, application, rules);
        if let Some(known) = lock(&self.batches).get(&key) {
            return Ok(known);
        }
        let batch = Arc::new(read()?);
        lock(&self.batches).insert(key, Arc::clone(&batch));
        Ok(batch)
    }

    pub(crate) fn file(
        &self,
        tree: &dyn Tree,
        path: &str,
        application: Option<&str>,
        read: impl FnOnce() -> Read,
    ) -> Arc<Read> {
        let Some(content) = tree.content_id(path) else { return Arc::new(read()) };
        let key = Key::new(content, &tree.source(), path, application, 0);
        if let Some(known) = lock(&self.files).get(&key) {
            return known;
        }
        let file = Arc::new(read());
        lock(&self.files).insert(key, Arc::clone(&file));
        file
    }
}

impl Key {
    fn new(content: ContentId, source: &Source, path: &str, application: Option<&str>, rules: u8) -> Key {
        let name = source.revision.as_deref().and_then(|revision| revision.rsplit_once("@sha1:"));
        Key {
            content,
            repo: source.repo.clone(),
            name: name.map(|(name, _)| name.to_owned()),
            path: path.to_owned(),
            application: application.map(str::to_owned),
            rules,
        }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Recent<K, V> {
    fn new(limit: usize) -> Recent<K, V> {
        Recent { young: HashMap::new(), old: HashMap::new(), limit }
    }

    fn get(&mut self, key: &K) -> Option<V> {
        if let Some(found) = self.young.get(key) {
            return Some(found.clone());
        }
        let found = self.old.remove(key)?;
        self.insert(key.clone(), found.clone());
        Some(found)
    }

    fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.limit {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }
}

/// A panic elsewhere left the map as it was: it is only a memory.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_asked_for_lately_is_forgotten() {
        let mut recent = Recent::new(2);
        for key in 0..3 {
            recent.insert(key, key);
        }
        assert_eq!(recent.get(&0), Some(0), "still in the old half, and young again");
        recent.insert(3, 3);
        assert_eq!(recent.get(&1), None);
        assert_eq!(recent.get(&0), Some(0));
        assert!(recent.young.len() + recent.old.len() <= 4);
    }
}
