//! Logins that were refused, in the audit log: the first from an address at once, what follows as a sum. However much is tried,
//! an hour writes a bounded number of entries. Told by the login page and by the gate of the API; `run` lets it write its sums.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kedge_model::wire::Timestamp;
use serde_json::json;
use tokio::sync::watch;

use super::page::moment;
use crate::connections::address::network;
use crate::store::api::audit::AuditEntry;
use crate::store::{Store, now};

/// What was refused in this hour.
#[derive(Debug, Default)]
pub struct FailedLogins {
    hour: Mutex<Hour>,
}

#[derive(Debug, Default)]
struct Hour {
    begun: Option<Timestamp>,
    by_address: HashMap<IpAddr, Refused>,
    /// Of addresses beyond those that are told apart.
    others: Refused,
}

/// Refusals after the one that was written at once.
#[derive(Clone, Debug, Default)]
struct Refused {
    more: u64,
    last: i64,
    reason: &'static str,
    address: String,
}

/// Addresses that are told apart in an hour; each writes two entries at most.
const ADDRESSES: usize = 50;
const WINDOW: Duration = Duration::from_secs(3600);
/// How often somebody looks whether the hour is over.
const LOOK: Duration = Duration::from_secs(60);

impl FailedLogins {
    /// Notes a refusal. The entry is to be written, if it is the first of its address in this hour.
    pub fn note(&self, address: Option<IpAddr>, reason: &'static str, at: Timestamp) -> Option<AuditEntry> {
        let mut hour = self.hour.lock().unwrap_or_else(PoisonError::into_inner);
        hour.begun.get_or_insert(at);
        let text = address.map(|address| address.to_canonical().to_string()).unwrap_or_default();
        let address = network(address.unwrap_or(IpAddr::from([0, 0, 0, 0])));
        if let Some(known) = hour.by_address.get_mut(&address) {
            known.count(reason, at);
            return None;
        }
        if hour.by_address.len() >= ADDRESSES {
            hour.others.count(reason, at);
            return None;
        }
        hour.by_address.insert(address, Refused { address: text.clone(), ..Refused::default() });
        Some(entry(&text, reason, serde_json::Value::Null))
    }

    /// What is left to say, when the hour is over or the hub stops; then a new hour begins.
    pub fn sums(&self, at: Timestamp, stops: bool) -> Vec<AuditEntry> {
        let mut hour = self.hour.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(begun) = hour.begun else { return Vec::new() };
        let over = at.0.saturating_sub(begun.0) >= i64::try_from(WINDOW.as_millis()).unwrap_or(i64::MAX);
        if !over && !stops {
            return Vec::new();
        }
        let Hour { by_address, others, .. } = std::mem::take(&mut *hour);
        let mut refused: Vec<Refused> = by_address.into_values().collect();
        refused.push(Refused { address: "other addresses".to_owned(), ..others });
        refused.retain(|refused| refused.more > 0);
        refused.sort_by(|one, other| one.address.cmp(&other.address));
        refused.iter().map(|refused| refused.sum(begun)).collect()
    }

    /// Writes the sums of each hour, and those of the last at the end.
    pub async fn write_sums(&self, store: &Store, mut shutdown: watch::Receiver<bool>) {
        let mut timer = tokio::time::interval(LOOK);
        loop {
            let stops = tokio::select! {
                _ = shutdown.wait_for(|stop| *stop) => true,
                _ = timer.tick() => false,
            };
            for entry in self.sums(now(), stops) {
                write(store, &entry).await;
            }
            if stops {
                return;
            }
        }
    }
}

impl Refused {
    fn count(&mut self, reason: &'static str, at: Timestamp) {
        self.more = self.more.saturating_add(1);
        (self.last, self.reason) = (at.0, reason);
    }

    fn sum(&self, since: Timestamp) -> AuditEntry {
        let detail = json!({"more": self.more, "since": moment(since.0), "last": moment(self.last)});
        entry(&self.address, self.reason, detail)
    }
}

pub async fn write(store: &Store, entry: &AuditEntry) {
    if let Err(error) = store.audit(entry).await {
        tracing::warn!(%error, address = entry.address, "a refused login isn't in the audit log");
    }
}

fn entry(address: &str, reason: &str, detail: serde_json::Value) -> AuditEntry {
    AuditEntry {
        token: String::new(),
        person: String::new(),
        who: "unknown".to_owned(),
        role: String::new(),
        action: "login".to_owned(),
        object: String::new(),
        environment: String::new(),
        detail,
        address: address.to_owned(),
        result: format!("refused: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> Option<IpAddr> {
        Some(IpAddr::from(number.to_be_bytes()))
    }

    #[test]
    fn the_first_is_said_at_once_and_the_rest_as_a_sum() {
        let logins = FailedLogins::default();
        let first = logins.note(address(1), "UnknownToken", Timestamp(0)).unwrap();
        assert_eq!((first.address.as_str(), first.result.as_str()), ("0.0.0.1", "refused: UnknownToken"));
        for at in 1..=100 {
            assert_eq!(logins.note(address(1), "BadToken", Timestamp(at)), None);
        }
        assert_eq!(logins.sums(Timestamp(3_599_999), false), []);
        let sums = logins.sums(Timestamp(3_600_000), false);
        assert_eq!(sums.len(), 1);
        assert_eq!((&sums[0].detail["more"], sums[0].result.as_str()), (&json!(100), "refused: BadToken"));
        assert_eq!(logins.sums(Timestamp(9_000_000), true), []);
        assert!(logins.note(address(1), "UnknownToken", Timestamp(9_000_000)).is_some(), "a new hour");
    }

    #[test]
    fn an_hour_of_a_million_addresses_writes_a_bounded_number_of_entries() {
        let logins = FailedLogins::default();
        let mut written = 0;
        for round in 0..2 {
            for number in 0..500_000 {
                written += usize::from(logins.note(address(number), "UnknownToken", Timestamp(round)).is_some());
            }
        }
        let sums = logins.sums(Timestamp(1), true);
        assert_eq!((written, sums.len()), (ADDRESSES, ADDRESSES + 1));
        let more: u64 = sums.iter().map(|sum| sum.detail["more"].as_u64().unwrap()).sum();
        assert_eq!(more, 1_000_000 - ADDRESSES as u64);
    }
}
