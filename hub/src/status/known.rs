//! How far every cluster's document has come, in memory: whether a poll's heads are news is answered without the database.
//! Another hub's intake isn't seen here; then a document is asked for once too often, which is no harm.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use kedge_model::wire::{ClusterId, Heads};

use crate::store::status::StoredHeads;

#[derive(Debug, Default)]
pub struct Known {
    clusters: Mutex<HashMap<ClusterId, Entry>>,
}

/// Forty bytes for each cluster.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    epoch: u64,
    /// The stored document's heads, hashed.
    stored: u64,
    /// Heads that were sent and settled without being the stored ones: part of a merge, older, or a clone's.
    settled: u64,
}

impl Known {
    pub fn put(&self, cluster: &ClusterId, heads: &StoredHeads) {
        let stored = hash(heads.epoch, &heads.nonce, &heads.heads);
        self.with(cluster, |entry| *entry = Entry { epoch: heads.epoch, stored, ..*entry });
    }

    /// A document was answered: this is stored, and that was sent.
    pub fn settle(&self, cluster: &ClusterId, stored: &Heads, sent: &Heads) {
        let entry = Entry { epoch: stored.epoch, stored: hash_of(stored), settled: hash_of(sent) };
        self.with(cluster, |known| *known = entry);
    }

    /// A clone's document isn't asked for again, until it says something else.
    pub fn refuse(&self, cluster: &ClusterId, sent: &Heads) {
        self.with(cluster, |known| known.settled = hash_of(sent));
    }

    pub fn wants(&self, cluster: &ClusterId, heads: &Heads) -> bool {
        if heads.epoch == 0 || heads.heads.is_empty() {
            return false;
        }
        let clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = clusters.get(cluster) else { return true };
        let asked = hash_of(heads);
        heads.epoch >= entry.epoch && asked != entry.stored && asked != entry.settled
    }

    fn with(&self, cluster: &ClusterId, change: impl FnOnce(&mut Entry)) {
        let mut clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        change(clusters.entry(*cluster).or_default());
    }
}

fn hash_of(heads: &Heads) -> u64 {
    hash(heads.epoch, &heads.nonce, &heads.heads)
}

fn hash(epoch: u64, nonce: &str, heads: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (epoch, nonce, heads).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_news_is_wanted() {
        let heads = |epoch, head: &str| Heads { epoch, nonce: "n".to_owned(), heads: vec![head.to_owned()] };
        let cluster = ClusterId::of_public_key(&[1; 32]);
        let known = Known::default();
        assert!(!known.wants(&cluster, &Heads::default()));
        assert!(known.wants(&cluster, &heads(2, "a")));
        known.settle(&cluster, &heads(2, "a"), &heads(2, "a"));
        assert!(!known.wants(&cluster, &heads(2, "a")));
        assert!(known.wants(&cluster, &heads(2, "b")));
        assert!(!known.wants(&cluster, &heads(1, "z")));
        known.refuse(&cluster, &heads(2, "b"));
        assert!(!known.wants(&cluster, &heads(2, "b")));
        assert!(known.wants(&cluster, &heads(3, "c")));
    }
}
