//! Contacts that aren't written yet: the newest of each cluster. A hundred thousand polling clusters become a few commits.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use kedge_model::wire::{ClusterId, Timestamp};

use super::Contact;
use crate::store::truth::promises::ContactRow;

#[derive(Debug, Default)]
pub struct Contacts {
    waiting: Mutex<BTreeMap<ClusterId, ContactRow>>,
}

impl Contacts {
    pub fn put(&self, cluster: &ClusterId, contact: &Contact, at: Timestamp) {
        let look_age = i64::try_from(contact.look_age.saturating_mul(1000)).unwrap_or(i64::MAX);
        let row = ContactRow {
            at,
            promise_until: contact.promise_until,
            look_at: Timestamp(at.0.saturating_sub(look_age).max(0)),
            generation: contact.generation,
            via: contact.carried.map(|carried| carried.by),
        };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // What others carry may be older than what the cluster said itself.
        if row.via.is_some() && waiting.get(cluster).is_some_and(|known| known.at >= row.at) {
            return;
        }
        waiting.insert(*cluster, row);
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
