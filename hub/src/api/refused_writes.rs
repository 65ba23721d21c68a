//! Writes that were refused, in the audit log: of each token the first of an action at once, what follows as a sum each minute.
//! However much is tried, a minute writes a bounded number of entries. Told by the gate of the API; `ApiState::write_sums`
//! writes the sums.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kedge_model::wire::Timestamp;
use serde_json::json;
use tokio::sync::watch;

use super::page::moment;
use super::{ApiState, failed_logins};
use crate::store::api::audit::AuditEntry;
use crate::store::now;

/// What was refused within the last minute, by the tokens that tried.
#[derive(Debug, Default)]
pub struct RefusedWrites {
    tokens: Mutex<HashMap<String, BTreeMap<Kind, Refused>>>,
}

/// Refusals that are summed up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Of {
        action: String,
        environment: String,
    },
    /// Those of a token that tries more actions than are told apart.
    Various,
}

/// Refusals after the one that was written at once.
#[derive(Debug)]
struct Refused {
    /// The newest.
    entry: AuditEntry,
    more: u64,
    objects: BTreeSet<String>,
    /// When something was written of it.
    since: i64,
    last: i64,
}

/// Kinds of a token that are told apart: people try a few, and strange routes are without number.
const KINDS: usize = 20;
/// Objects that a sum names.
const OBJECTS: usize = 10;
const WINDOW_MS: i64 = 60_000;
/// How often somebody looks whether there is something to sum up.
const LOOK: Duration = Duration::from_secs(20);

impl RefusedWrites {
    /// Notes a refusal. The entry is to be written now, if it is the first of its kind.
    pub fn note(&self, entry: AuditEntry, at: Timestamp) -> Option<AuditEntry> {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let kinds = tokens.entry(entry.token.clone()).or_default();
        let kind = Kind::Of { action: entry.action.clone(), environment: entry.environment.clone() };
        let kind = if kinds.len() < KINDS || kinds.contains_key(&kind) { kind } else { Kind::Various };
        if let Some(known) = kinds.get_mut(&kind) {
            known.count(entry, at);
            return None;
        }
        let first = Refused { entry: entry.clone(), more: 0, objects: BTreeSet::new(), since: at.0, last: at.0 };
        kinds.insert(kind, first);
        Some(entry)
    }

    /// What is left to say of kinds whose minute is over, or of all when the hub stops.
    pub fn sums(&self, at: Timestamp, stops: bool) -> Vec<AuditEntry> {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sums = Vec::new();
        tokens.retain(|_, kinds| {
            kinds.retain(|kind, refused| {
                // A clock that was set back ends the minute too.
                let over = !(0..WINDOW_MS).contains(&at.0.saturating_sub(refused.since));
                if !over && !stops {
                    return true;
                }
                let silent = refused.more == 0;
                if !silent {
                    sums.push(refused.sum(kind, at));
                }
                !silent
            });
            !kinds.is_empty()
        });
        sums.sort_by(|one, other| (&one.token, &one.action).cmp(&(&other.token, &other.action)));
        sums
    }
}

impl Refused {
    fn count(&mut self, entry: AuditEntry, at: Timestamp) {
        self.more = self.more.saturating_add(1);
        self.last = at.0;
        if self.objects.len() < OBJECTS && !entry.object.is_empty() {
            self.objects.insert(entry.object.clone());
        }
        self.entry = entry;
    }

    /// And begins anew.
    fn sum(&mut self, kind: &Kind, at: Timestamp) -> AuditEntry {
        let mut entry = self.entry.clone();
        entry.detail = json!({"more": self.more, "since": moment(self.since), "last": moment(self.last)});
        let objects = std::mem::take(&mut self.objects);
        if objects.len() > 1 {
            entry.object = String::new();
            entry.detail["objects"] = json!(objects);
        }
        if *kind == Kind::Various {
            "various".clone_into(&mut entry.action);
            entry.environment = String::new();
        }
        (self.more, self.since) = (0, at.0);
        entry
    }
}

impl ApiState {
    /// A write that is refused stands in the audit log.
    pub(super) async fn note_refused_write(&self, entry: AuditEntry) {
        if let Some(entry) = self.refused_writes.note(entry, now()) {
            self.write_refused(&entry).await;
        }
    }

    async fn write_refused(&self, entry: &AuditEntry) {
        if let Err(error) = self.store.audit(entry).await {
            tracing::warn!(%error, action = entry.action, "a refused write isn't in the audit log");
        }
    }

    /// Writes the sums of refused logins and writes as they are due, and what is left at the end.
    pub(crate) async fn write_sums(&self, mut shutdown: watch::Receiver<bool>) {
        let mut timer = tokio::time::interval(LOOK);
        loop {
            let stops = tokio::select! {
                _ = shutdown.wait_for(|stop| *stop) => true,
                _ = timer.tick() => false,
            };
            for entry in self.failed_logins.sums(now(), stops) {
                failed_logins::write(&self.store, &entry).await;
            }
            for entry in self.refused_writes.sums(now(), stops) {
                self.write_refused(&entry).await;
            }
            if stops {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(token: &str, action: &str, object: &str) -> AuditEntry {
        AuditEntry {
            token: token.to_owned(),
            person: "p1".to_owned(),
            who: "victor".to_owned(),
            role: "viewer".to_owned(),
            action: action.to_owned(),
            object: object.to_owned(),
            environment: "dev".to_owned(),
            detail: serde_json::Value::Null,
            address: "10.0.0.7".to_owned(),
            result: "refused: Forbidden".to_owned(),
        }
    }

    #[test]
    fn the_first_is_said_at_once_and_the_rest_once_a_minute() {
        let refused = RefusedWrites::default();
        let first = refused.note(entry("t", "person.add", ""), Timestamp(0));
        assert_eq!(first, Some(entry("t", "person.add", "")));
        for at in 1..=1500 {
            assert_eq!(refused.note(entry("t", "person.add", ""), Timestamp(at)), None);
        }
        assert!(refused.note(entry("t", "person.set", ""), Timestamp(5)).is_some(), "another action");
        assert!(refused.note(entry("u", "person.add", ""), Timestamp(5)).is_some(), "another token");
        assert_eq!(refused.sums(Timestamp(59_999), false), []);
        let sums = refused.sums(Timestamp(60_005), false);
        assert_eq!(sums.len(), 1, "{sums:?}");
        let told = (sums[0].token.as_str(), sums[0].action.as_str(), sums[0].result.as_str(), &sums[0].detail["more"]);
        assert_eq!(told, ("t", "person.add", "refused: Forbidden", &json!(1500)));
        // What goes on is said a minute later, and who was silent begins anew.
        assert_eq!(refused.note(entry("t", "person.add", ""), Timestamp(60_006)), None);
        assert!(refused.note(entry("t", "person.set", ""), Timestamp(60_006)).is_some());
        assert_eq!(refused.sums(Timestamp(120_004), false), []);
        assert_eq!(refused.sums(Timestamp(120_005), false)[0].detail["more"], 1);
        assert_eq!(refused.sums(Timestamp(120_006), true), []);
        refused.sums(Timestamp(200_000), false);
        assert!(refused.tokens.lock().unwrap().is_empty());
    }

    #[test]
    fn actions_without_number_write_a_bounded_number_of_entries() {
        let refused = RefusedWrites::default();
        let mut written = 0;
        for number in 0..10_000 {
            let one = entry("t", &format!("POST /{number}"), "");
            written += u64::from(refused.note(one, Timestamp(number)).is_some());
        }
        assert_eq!(written, KINDS as u64 + 1);
        let sums = refused.sums(Timestamp(0), true);
        assert_eq!((sums.len(), sums[0].action.as_str()), (1, "various"));
        assert_eq!(sums[0].detail["more"], 10_000 - written);
    }

    #[test]
    fn a_sum_names_what_it_was_about() {
        let refused = RefusedWrites::default();
        for object in ["a", "b", "c", "c"] {
            refused.note(entry("t", "cluster.move", object), Timestamp(1));
        }
        let sum = refused.sums(Timestamp(2), true).remove(0);
        assert_eq!((&sum.detail["objects"], sum.environment.as_str()), (&json!(["b", "c"]), "dev"));
        refused.note(entry("t", "cluster.move", "d"), Timestamp(3));
        assert_eq!(refused.sums(Timestamp(4), true)[0].object, "d");
    }
}
