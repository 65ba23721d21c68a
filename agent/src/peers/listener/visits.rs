//! How much one peer may cost: connections at a time, requests and bytes in a minute. Shared by the connections of a listener.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kedge_model::wire::ClusterId;
use tokio::time::Instant;

#[derive(Clone, Debug, Default)]
pub struct Visits(Arc<Mutex<BTreeMap<Who, Account>>>);

/// A cluster; with an address a pod of the own one.
pub type Who = (ClusterId, Option<IpAddr>);

/// One connection; its place is free again when it is dropped.
#[derive(Debug)]
pub struct Visit {
    visits: Visits,
    who: Who,
}

#[derive(Debug)]
struct Account {
    open: usize,
    minute: Instant,
    requests: u32,
    bytes: u64,
}

/// One for messages and four for content, of which some are still closing.
const CONNECTIONS_EACH: usize = 6;
const MINUTE: Duration = Duration::from_secs(60);
/// A sync has two round trips, and content comes in chunks of a MiB: a gigabyte in a minute and a half.
const REQUESTS: u32 = 1200;
/// Messages in and out. A store of 16 MiB is handed on within a minute.
const BYTES: u64 = 32 * 1024 * 1024;
/// Accounts without a connection are kept so that nobody begins anew by reconnecting.
const MOST: usize = 256;

impl Visits {
    /// None: it has connections enough.
    pub fn enter(&self, who: Who) -> Option<Visit> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST && !all.contains_key(&who) {
            all.retain(|_, account| account.open > 0 || account.minute.elapsed() < MINUTE);
            if all.len() >= MOST {
                return None;
            }
        }
        let account = all.entry(who).or_insert_with(Account::new);
        if account.open >= CONNECTIONS_EACH {
            return None;
        }
        account.open += 1;
        Some(Visit { visits: self.clone(), who })
    }
}

impl Visit {
    /// One more request with so many bytes. False: it is too much for a minute.
    pub fn spend(&self, requests: u32, bytes: u64) -> bool {
        let mut all = self.visits.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(account) = all.get_mut(&self.who) else { return false };
        if account.minute.elapsed() >= MINUTE {
            (account.minute, account.requests, account.bytes) = (Instant::now(), 0, 0);
        }
        account.requests = account.requests.saturating_add(requests);
        account.bytes = account.bytes.saturating_add(bytes);
        account.requests <= REQUESTS && account.bytes <= BYTES
    }
}

impl Account {
    fn new() -> Account {
        Account { open: 0, minute: Instant::now(), requests: 0, bytes: 0 }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut all = self.visits.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = all.get_mut(&self.who) {
            account.open -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn cluster(number: u8) -> Who {
        (ClusterId::of_public_key(&[number; 32]), None)
    }

    #[test]
    fn one_peer_has_a_few_connections_and_others_have_theirs() {
        let visits = Visits::default();
        let mut open: Vec<Visit> = (0..CONNECTIONS_EACH).map(|_| visits.enter(cluster(1)).unwrap()).collect();
        assert!(visits.enter(cluster(1)).is_none() && visits.enter(cluster(2)).is_some());
        let pod = |last: u8| (cluster(1).0, Some(IpAddr::from([10, 0, 0, last])));
        assert!((0..20).all(|last| visits.enter(pod(last)).is_some()));
        open.pop();
        assert!(visits.enter(cluster(1)).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_minute_has_its_bound_also_over_several_connections() {
        let visits = Visits::default();
        let first = visits.enter(cluster(1)).unwrap();
        assert!(first.spend(1, BYTES));
        drop(first);
        let again = visits.enter(cluster(1)).unwrap();
        assert!(!again.spend(1, 1));
        tokio::time::advance(MINUTE).await;
        assert!(again.spend(REQUESTS, 1) && !again.spend(1, 0));
    }
}
