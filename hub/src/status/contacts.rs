//! Contacts that aren't written yet: the newest of each cluster. A hundred thousand polling clusters become a few commits.
//! And who was heard behind its own document: a host never goes back to an older epoch, unless its disk was put back.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use kedge_model::wire::{ClusterId, Timestamp};

use super::Contact;
use crate::store::status::check_ins::ContactRow;

#[derive(Debug, Default)]
pub struct Contacts {
    waiting: Mutex<BTreeMap<ClusterId, ContactRow>>,
    behind: Mutex<HashMap<ClusterId, Behind>>,
}

/// Since then at the latest the hub has a document of this epoch.
#[derive(Clone, Copy, Debug)]
struct Behind {
    epoch: u64,
    since: Timestamp,
}

/// What was on its way may have been said before the document came.
const ON_ITS_WAY_MS: i64 = 30_000;
/// The clock of a cluster that others speak for may be ahead by so much.
const AHEAD_MS: i64 = 5 * 60 * 1000;
/// Clusters that are remembered as behind; they are few, or something is very wrong.
const REMEMBERED: usize = 20_000;

impl Contacts {
    pub fn put(&self, cluster: &ClusterId, contact: &Contact, at: Timestamp) {
        let look_age = i64::try_from(contact.look_age.saturating_mul(1000)).unwrap_or(i64::MAX);
        let mut row = ContactRow {
            at,
            check_in_deadline: contact.check_in_deadline,
            look_at: Timestamp(at.0.saturating_sub(look_age).max(0)),
            generation: contact.generation,
            via: contact.carried.map(|carried| carried.by),
            epoch: contact.heads.epoch,
            epoch_at: Timestamp(at.0.saturating_sub(if contact.carried.is_some() { AHEAD_MS } else { 0 })),
        };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // What others carry may be older than what the cluster said itself.
        if row.via.is_some() && waiting.get(cluster).is_some_and(|known| known.at >= row.at) {
            return;
        }
        // Of two who speak as one cluster the last word hides no other.
        if let Some(known) = waiting.get(cluster).filter(|known| known.epoch != 0 && known.epoch < row.epoch) {
            (row.epoch, row.epoch_at) = (known.epoch, known.epoch_at);
        }
        waiting.insert(*cluster, row);
    }

    /// Whether the cluster went back behind the document of this epoch that the hub has: what was said once, before the document was
    /// there, tells nothing.
    pub fn went_back(&self, cluster: &ClusterId, contact: &ContactRow, stored: u64, now: Timestamp) -> bool {
        if contact.epoch == 0 || contact.epoch >= stored {
            return false;
        }
        let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        if behind.len() >= REMEMBERED {
            behind.clear();
        }
        let first = behind.entry(*cluster).or_insert(Behind { epoch: stored, since: now });
        contact.epoch < first.epoch && contact.epoch_at.0 > first.since.0.saturating_add(ON_ITS_WAY_MS)
    }

    /// Takes so many, in the order of their ids.
    pub fn take(&self, most: usize) -> Vec<(ClusterId, ContactRow)> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() <= most {
            return std::mem::take(&mut *waiting).into_iter().collect();
        }
        let mut taken = Vec::with_capacity(most);
        while taken.len() < most {
            let Some(first) = waiting.pop_first() else { break };
            taken.push(first);
        }
        taken
    }

    /// The database was away: what came meanwhile is newer.
    pub fn give_back(&self, contacts: Vec<(ClusterId, ContactRow)>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        for (cluster, row) in contacts {
            waiting.entry(cluster).or_insert(row);
        }
    }
}
