//! The past, bounded: what changed on a cluster, when, oldest first. It travels beside the document, so that weeks offline
//! are told afterwards, and it outlives epochs.

use std::collections::VecDeque;

use kedge_model::wire::{PackagesKey, Timestamp};
use serde::{Deserialize, Serialize};

/// One change of an assignment's condition, or its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Counts every event that the cluster ever had.
    pub number: u64,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clock: u64,
    pub assignment: String,
    /// The condition's word, or `Removed`.
    pub condition: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<PackagesKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<PackagesKey>,
    /// With `Converging`, what somebody changed and is being repaired; with `Converged`, what was. A repair takes seconds: the
    /// reports may never show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventLog {
    /// How many older events are gone.
    #[serde(default)]
    pub dropped: u64,
    #[serde(default)]
    pub events: VecDeque<Event>,
}

/// A week of a busy cluster; about 40 KiB, and twice that when all of them are repairs.
pub const MAX_EVENTS: usize = 200;

impl EventLog {
    /// The number that the next event gets: 1 is the first.
    pub fn next_number(&self) -> u64 {
        self.events.back().map_or(self.dropped, |last| last.number).saturating_add(1)
    }

    pub(crate) fn push(&mut self, event: Event) {
        self.events.push_back(event);
        while self.events.len() > MAX_EVENTS {
            self.events.pop_front();
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    /// The events of both, each once: two documents of one epoch give the same log in any order.
    pub(crate) fn merge(mut self, other: EventLog) -> EventLog {
        let rank = |event: &Event| (event.number, event.at, event.assignment.clone(), event.condition.clone());
        let dropped = self.dropped.max(other.dropped);
        self.events.extend(other.events);
        let mut events: Vec<Event> = self.events.into_iter().filter(|event| event.number > dropped).collect();
        events.sort_by_key(rank);
        events.dedup();
        let mut log = EventLog { dropped, events: VecDeque::new() };
        events.into_iter().for_each(|event| log.push(event));
        log
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
