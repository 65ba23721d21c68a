//! What a document says, for its owner: the agent compares before it writes, and its commands show it without a hub.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;

use crate::document::{CLOCK, FACT, HOLD, REPORT, StatusDocument, WARNING};
use crate::report::{Hold, Report, Warning};

impl StatusDocument {
    pub fn reports(&self) -> BTreeMap<String, Report> {
        self.all(REPORT)
    }

    pub fn facts(&self) -> BTreeMap<String, String> {
        self.all(FACT)
    }

    pub fn warnings(&self) -> BTreeMap<String, Warning> {
        self.all(WARNING)
    }

    pub fn holds(&self) -> BTreeMap<String, Hold> {
        self.all(HOLD)
    }

    /// Milliseconds to add to a clock's times, where a contact told them.
    pub fn clock(&self, clock: u64) -> Option<i64> {
        self.all(CLOCK).remove(&clock.to_string())
    }

    /// Clocks whose times are somewhere in the document.
    pub fn clocks_in_use(&self) -> BTreeSet<u64> {
        let reports = self.reports().into_values().map(|report| report.clock);
        let warnings = self.warnings().into_values().map(|warning| warning.clock);
        let holds = self.holds().into_values().map(|hold| hold.clock);
        let events = self.events().events.iter().map(|event| event.clock);
        reports.chain(warnings).chain(holds).chain(events).collect()
    }

    fn all<T: DeserializeOwned>(&self, kind: &str) -> BTreeMap<String, T> {
        let named = |(name, value): (String, String)| {
            Some((name.strip_prefix(kind)?.to_owned(), serde_json::from_str(&value).ok()?))
        };
        self.registers().into_iter().filter_map(named).collect()
    }
}
