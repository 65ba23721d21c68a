//! Logins that were refused, in the audit log: the first from an address or with a known token at once, what follows as a sum.
//! However much is tried, an hour writes a bounded number of entries. Told by the login page and by the gate of the API;
//! `ApiState::write_sums` writes the sums.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kedge_model::wire::Timestamp;
use serde_json::json;

use super::answer::NamedToken;
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
    /// No more than the hub has tokens.
    by_token: HashMap<String, Refused>,
    by_address: HashMap<IpAddr, Refused>,
    /// Of addresses that came too fast to be told apart, or that were forgotten.
    others: Refused,
    /// Entries of new addresses are paid for until then.
    paid_until: i64,
}

/// Refusals after the one that was written at once.
#[derive(Clone, Debug, Default)]
struct Refused {
    more: u64,
    last: i64,
    reason: &'static str,
    /// The one that was seen last.
    address: String,
    token: Option<NamedToken>,
}

/// Addresses that are told apart at a time: the one that was silent for longest makes place.
const ADDRESSES: usize = 50;
/// New addresses are written at once at this pace, and a few without one.
const PACE_MS: i64 = 1000;
const BURST_MS: i64 = 10 * PACE_MS;
const WINDOW: Duration = Duration::from_secs(3600);

impl FailedLogins {
    /// Notes a refusal. The entry is to be written, if it is the first of its token or of its address in this hour.
    pub fn note(
        &self,
        address: Option<IpAddr>,
        reason: &'static str,
        token: Option<&NamedToken>,
        at: Timestamp,
    ) -> Option<AuditEntry> {
        let mut hour = self.hour.lock().unwrap_or_else(PoisonError::into_inner);
        hour.begun.get_or_insert(at);
        let text = address.map(|address| address.to_canonical().to_string()).unwrap_or_default();
        let network = network(address.unwrap_or(IpAddr::from([0, 0, 0, 0])));
        let known = match token {
            Some(token) => hour.by_token.get_mut(&token.id),
            None => hour.by_address.get_mut(&network),
        };
        if let Some(known) = known {
            known.address = text;
            known.count(reason, at);
            return None;
        }
        let refused = Refused { last: at.0, reason, address: text, token: token.cloned(), more: 0 };
        let first = refused.entry(serde_json::Map::new());
        match token {
            Some(token) => hour.by_token.insert(token.id.clone(), refused),
            None if !hour.pay(at) => {
                hour.others.count(reason, at);
                return None;
            }
            None => {
                hour.make_place();
                hour.by_address.insert(network, refused)
            }
        };
        Some(first)
    }

    /// What is left to say, when the hour is over or the hub stops; then a new hour begins.
    pub fn sums(&self, at: Timestamp, stops: bool) -> Vec<AuditEntry> {
        let mut hour = self.hour.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(begun) = hour.begun else { return Vec::new() };
        let over = at.0.saturating_sub(begun.0) >= i64::try_from(WINDOW.as_millis()).unwrap_or(i64::MAX);
        if !over && !stops {
            return Vec::new();
        }
        let Hour { by_token, by_address, others, paid_until, .. } = std::mem::take(&mut *hour);
        hour.paid_until = paid_until;
        let mut refused: Vec<Refused> = by_token.into_values().chain(by_address.into_values()).collect();
        refused.push(Refused { address: "other addresses".to_owned(), ..others });
        refused.retain(|refused| refused.more > 0);
        refused.sort_by(|one, other| (one.token_id(), &one.address).cmp(&(other.token_id(), &other.address)));
        refused.iter().map(|refused| refused.sum(begun)).collect()
    }
}

impl Hour {
    /// Whether a new address may have an entry of its own now.
    fn pay(&mut self, at: Timestamp) -> bool {
        // A clock that was set back doesn't silence anybody for long.
        let until = self.paid_until.clamp(at.0, at.0.saturating_add(BURST_MS));
        let pays = until.saturating_sub(at.0) <= BURST_MS - PACE_MS;
        self.paid_until = if pays { until.saturating_add(PACE_MS) } else { until };
        pays
    }

    /// Forgets the address that was silent for longest; what it did still counts.
    fn make_place(&mut self) {
        if self.by_address.len() < ADDRESSES {
            return;
        }
        let oldest = self.by_address.iter().min_by_key(|(address, refused)| (refused.last, **address));
        let Some(oldest) = oldest.map(|(address, _)| *address) else { return };
        if let Some(Refused { more, last, reason, .. }) = self.by_address.remove(&oldest)
            && more > 0
        {
            self.others.more = self.others.more.saturating_add(more);
            if self.others.last <= last {
                (self.others.last, self.others.reason) = (last, reason);
            }
        }
    }
}

impl Refused {
    fn count(&mut self, reason: &'static str, at: Timestamp) {
        self.more = self.more.saturating_add(1);
        (self.last, self.reason) = (at.0, reason);
    }

    fn token_id(&self) -> Option<&str> {
        self.token.as_ref().map(|token| token.id.as_str())
    }

    fn sum(&self, since: Timestamp) -> AuditEntry {
        let detail = [
            ("more".to_owned(), json!(self.more)),
            ("since".to_owned(), json!(moment(since.0))),
            ("last".to_owned(), json!(moment(self.last))),
        ];
        self.entry(detail.into_iter().collect())
    }

    /// Nobody knows who it was. A token that was named is what it was about.
    fn entry(&self, mut detail: serde_json::Map<String, serde_json::Value>) -> AuditEntry {
        if let Some(token) = &self.token {
            detail.insert("person".to_owned(), json!(token.person));
            detail.insert("personName".to_owned(), json!(token.person_name));
        }
        AuditEntry {
            token: String::new(),
            person: String::new(),
            who: "unknown".to_owned(),
            role: String::new(),
            action: "login".to_owned(),
            object: self.token_id().unwrap_or_default().to_owned(),
            environment: String::new(),
            detail: if detail.is_empty() { serde_json::Value::Null } else { detail.into() },
            address: self.address.clone(),
            result: format!("refused: {}", self.reason),
        }
    }
}

impl super::ApiState {
    /// A login that is refused stands in the audit log.
    pub(crate) async fn note_failed_login(&self, address: Option<IpAddr>, refused: &super::ApiError) {
        if let Some(entry) = self.failed_logins.note(address, refused.reason, refused.named.as_deref(), now()) {
            write(&self.store, &entry).await;
        }
    }
}

pub async fn write(store: &Store, entry: &AuditEntry) {
    if let Err(error) = store.audit(entry).await {
        tracing::warn!(%error, address = entry.address, "a refused login isn't in the audit log");
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
        let first = logins.note(address(1), "UnknownToken", None, Timestamp(0)).unwrap();
        assert_eq!((first.address.as_str(), first.result.as_str()), ("0.0.0.1", "refused: UnknownToken"));
        assert_eq!(first.detail, serde_json::Value::Null);
        for at in 1..=100 {
            assert_eq!(logins.note(address(1), "BadToken", None, Timestamp(at)), None);
        }
        assert_eq!(logins.sums(Timestamp(3_599_999), false), []);
        let sums = logins.sums(Timestamp(3_600_000), false);
        assert_eq!(sums.len(), 1);
        assert_eq!((&sums[0].detail["more"], sums[0].result.as_str()), (&json!(100), "refused: BadToken"));
        assert_eq!(logins.sums(Timestamp(9_000_000), true), []);
        assert!(logins.note(address(1), "UnknownToken", None, Timestamp(9_000_000)).is_some(), "a new hour");
    }

    #[test]
    fn an_hour_of_a_million_addresses_writes_a_bounded_number_of_entries() {
        let logins = FailedLogins::default();
        let (mut written, mut told) = (0, 0);
        for number in 0..1_000_000_u32 {
            // 100 seconds.
            let at = Timestamp(i64::from(number / 10));
            written += u64::from(logins.note(address(number), "UnknownToken", None, at).is_some());
        }
        let sums = logins.sums(Timestamp(1), true);
        for sum in &sums {
            told += sum.detail["more"].as_u64().unwrap();
        }
        assert!((100..=110).contains(&written), "{written}");
        assert!(sums.len() <= ADDRESSES + 1, "{}", sums.len());
        assert_eq!(written + told, 1_000_000, "none is lost");
    }

    #[test]
    fn after_many_addresses_a_new_one_is_still_said_at_once() {
        let logins = FailedLogins::default();
        for number in 0..500 {
            logins.note(address(number), "UnknownToken", None, Timestamp(0));
        }
        for number in 500..1000 {
            let at = Timestamp(i64::from(number) * PACE_MS);
            assert!(logins.note(address(number), "UnknownToken", None, at).is_some(), "{number}");
            assert!(logins.note(address(number), "UnknownToken", None, at).is_none(), "{number}");
        }
        let sums = logins.sums(Timestamp(0), true);
        assert_eq!(sums.len(), ADDRESSES + 1);
        assert_eq!(sums.last().unwrap().address, "other addresses");
        // Also after the clock was set back by a year.
        assert!(logins.note(address(7), "UnknownToken", None, Timestamp(0)).is_none());
        assert!(logins.note(address(8), "UnknownToken", None, Timestamp(PACE_MS)).is_some());
    }

    #[test]
    fn guesses_at_a_known_token_are_named_whatever_else_comes() {
        let logins = FailedLogins::default();
        let token = NamedToken { id: "aa".to_owned(), person: "p1".to_owned(), person_name: "anna".to_owned() };
        for number in 0..500 {
            logins.note(address(number), "UnknownToken", None, Timestamp(0));
        }
        let first = logins.note(address(900), "UnknownToken", Some(&token), Timestamp(0)).unwrap();
        assert_eq!((first.object.as_str(), &first.detail["personName"]), ("aa", &json!("anna")));
        assert_eq!((first.who.as_str(), first.token.as_str()), ("unknown", ""));
        for number in 901..930 {
            assert_eq!(logins.note(address(number), "UnknownToken", Some(&token), Timestamp(5)), None);
        }
        let sums = logins.sums(Timestamp(9), true);
        let sum = sums.iter().find(|sum| sum.object == "aa").unwrap();
        assert_eq!((&sum.detail["more"], &sum.detail["person"]), (&json!(29), &json!("p1")));
    }
}
