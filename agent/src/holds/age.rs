//! How long holds of peers have been obeyed here. Time is counted, never read off a clock: what passed while the agent ran, by the
//! kernel's monotonic clock, or what passed between two words of the hub, whichever is more. So a clock that is set wrongly neither
//! ends a hold nor keeps it; time in which the host was off counts once the hub is heard again. Called by the daemon.

use std::time::Duration;

use kedge_model::wire::{ClusterId, HoldEntry, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Held, HoldError, Holds, Kept, Writer, content};

/// What is known of a hold's age.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Age {
    /// Which hold: one that was made anew begins again.
    since: Timestamp,
    /// Seconds.
    lasted: u64,
    /// The hub's time when it was last counted; none: the hub wasn't heard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hub: Option<Timestamp>,
    /// What of it was counted since, without the hub: that isn't counted again.
    #[serde(default)]
    unheard: u64,
}

/// People are told so long before.
const WARNED: Duration = Duration::from_secs(24 * 3600);

impl Holds {
    /// So much time has passed since this was last asked, and that is the newest word of the hub's clock. Those that peers hold here
    /// and that end soon.
    pub fn count(&self, passed: Duration, hub: Option<Timestamp>) -> Result<Vec<Held>, HoldError> {
        if self.kept()?.peers.is_empty() {
            return Ok(Vec::new());
        }
        let (_lock, mut ledger, mut kept) = self.open()?;
        let before = kept.ages.clone();
        kept.forget_ages();
        for (writer, envelope) in kept.peers.clone() {
            let holds = content(Some(&envelope)).map(|document| document.holds).unwrap_or_default();
            for entry in holds {
                let ages = kept.ages.entry(writer).or_default();
                match ages.get_mut(&entry.assignment) {
                    Some(age) => age.add(passed, hub),
                    None => _ = ages.insert(entry.assignment, Age { since: entry.since, lasted: 0, hub, unheard: 0 }),
                }
            }
        }
        if kept.ages != before {
            ledger.write(&kept)?;
        }
        let soon = |held: &Held| held.ends_in.is_some_and(|left| left <= WARNED);
        Ok(kept.held_by_peers().into_iter().filter(soon).collect())
    }

    /// Whether anything here ends by itself.
    pub fn has_peers(&self) -> bool {
        self.read().is_ok_and(|held| held.iter().any(|held| matches!(held.writer, Writer::Peer(_))))
    }
}

impl Age {
    fn add(&mut self, passed: Duration, hub: Option<Timestamp>) {
        self.lasted = self.lasted.saturating_add(passed.as_secs());
        self.unheard = self.unheard.saturating_add(passed.as_secs());
        if let Some(now) = hub.filter(|now| self.hub != Some(*now)) {
            // A hub whose clock was set back is followed from there on.
            let by_hub = self.hub.map_or(0, |then| now.0.saturating_sub(then.0));
            let by_hub = u64::try_from(by_hub / 1000).unwrap_or(0);
            self.lasted = self.lasted.saturating_add(by_hub.saturating_sub(self.unheard));
            (self.hub, self.unheard) = (Some(now), 0);
        }
    }
}

impl Kept {
    pub(super) fn lasted(&self, writer: ClusterId, entry: &HoldEntry) -> Duration {
        let age = self.ages.get(&writer).and_then(|ages| ages.get(&entry.assignment));
        let age = age.filter(|age| age.since == entry.since);
        Duration::from_secs(age.map_or(0, |age| age.lasted))
    }

    /// What nobody holds any more, or holds anew, has no age.
    pub(super) fn forget_ages(&mut self) {
        let peers = &self.peers;
        self.ages.retain(|writer, ages| {
            let holds = content(peers.get(writer)).map(|document| document.holds).unwrap_or_default();
            ages.retain(|name, age| holds.iter().any(|entry| entry.assignment == *name && entry.since == age.since));
            !ages.is_empty()
        });
    }
}
