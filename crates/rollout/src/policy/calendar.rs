//! Whether a new calendar lets changes begin at times at which the old one didn't. Called by `loosens`.

use std::collections::BTreeMap;

use kedge_model::kinds::{Freeze, Window};

const DAY: usize = 1_440;
const WEEK: usize = 7 * DAY;

/// Windows of one time zone are compared minute by minute; those of another can't be.
pub(super) fn windows(environment: &str, old: &[Window], new: &[Window], ways: &mut Vec<String>) {
    if old.is_empty() {
        return;
    }
    if new.is_empty() {
        ways.push(format!("environment {environment} has no time windows any more"));
        return;
    }
    let (before, after) = (open(old), open(new));
    for (zone, minutes) in &after {
        let Some(known) = before.get(zone) else {
            ways.push(format!("environment {environment} has time windows in another time zone, {zone}"));
            continue;
        };
        let added = minutes.iter().zip(known).filter(|(new, old)| **new && !**old).count();
        if added > 0 {
            ways.push(format!("environment {environment} is open {added} minutes of the week more ({zone})"));
        }
    }
}

/// Each frozen day must stay frozen.
pub(super) fn freezes(environment: &str, old: &[Freeze], new: &[Freeze], ways: &mut Vec<String>) {
    for before in old {
        let covered = new.iter().any(|after| {
            // ISO days are ordered as text.
            after.time_zone == before.time_zone && after.from <= before.from && after.to >= before.to
        });
        if !covered {
            ways.push(format!(
                "environment {environment} is no longer frozen from {} to {} ({})",
                before.from, before.to, before.time_zone
            ));
        }
    }
}

/// The minutes of the week that are open, by time zone.
fn open(windows: &[Window]) -> BTreeMap<&str, Vec<bool>> {
    let mut zones: BTreeMap<&str, Vec<bool>> = BTreeMap::new();
    for window in windows {
        let minutes = zones.entry(window.time_zone.as_str()).or_insert_with(|| vec![false; WEEK]);
        let (from, to) = (usize::from(window.from), usize::from(window.to));
        let length = if to <= from { to + DAY - from } else { to - from };
        for day in window.days.iter().filter(|day| (1..=7).contains(*day)) {
            let start = usize::from(day - 1) * DAY + from;
            for minute in start..start + length.min(WEEK) {
                minutes[minute % WEEK] = true;
            }
        }
    }
    zones
}
