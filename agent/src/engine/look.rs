//! The look at what runs: what differs is told, and repaired where that is wanted. What breaks again and again is repaired less and less
//! often.

use std::collections::BTreeSet;
use std::time::Duration;

use kedge_model::wire::Timestamp;
use kedge_status::Severity;

use super::{Engine, Repairs};
use crate::goal::{Goal, OnDrift};
use crate::observed::{Observed, Subjects};
use crate::plan::difference::{differences, only_told, sentence};
use crate::plan::{owners, subjects};
use crate::record::Cause;
use crate::tasks::wait;
use crate::told::Told;

/// What to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything, as at every interval.
    All,
    /// These, since something happened to them.
    Only(BTreeSet<String>),
}

/// The same damage is repaired at once, then after this, then after twice as long…
const FIRST_REPAIR_GAP: Duration = Duration::from_secs(5);
/// …up to this. After so long without it, it is new again.
const LONGEST_REPAIR_GAP: Duration = Duration::from_secs(3600);

/// A change may wait for minutes; a look that finds it still under way costs nothing.
const AFTER_CHANGE: Duration = Duration::from_secs(1);

/// Longer than systemd lets a start take.
const LONG_START: Duration = Duration::from_secs(100);

impl Engine {
    /// When to look again because a repair waits; none: at the next interval.
    pub fn look(&mut self, scope: &Scope, held: &BTreeSet<String>) -> Option<Timestamp> {
        if let Err(why) = self.records.save() {
            self.note_disk(Err(why));
        } else {
            self.warn("RecordUnsaved", Severity::Error, None);
        }
        let within = |name: &str| match scope {
            Scope::All => true,
            Scope::Only(names) => names.contains(name),
        };
        let (mut names, mut all) = (Vec::new(), Subjects::default());
        let mut again: Option<Timestamp> = None;
        for record in self.records.all().values().filter(|record| within(&record.assignment)) {
            // Somebody may touch what a change has done and now waits for: that is seen once it has ended.
            if record.transaction.is_some() && self.host.is_patient() {
                again = Some(self.later(AFTER_CHANGE));
            }
            let Some(running) = record.running.as_ref().filter(|_| record.transaction.is_none()) else { continue };
            let Subjects { paths, debs, units, own_units, users, objects } = subjects::of(Some(&running.goal), None);
            all.paths.extend(paths);
            all.debs.extend(debs);
            all.units.extend(units);
            all.own_units.extend(own_units);
            all.users.extend(users);
            all.objects.extend(objects);
            names.push(record.assignment.clone());
        }
        let observed = match self.host.look(&all) {
            Ok(observed) => observed,
            Err(failure) => {
                tracing::warn!(reason = failure.reason, message = failure.message, "can't look at what runs");
                self.warn("LookFailed", Severity::Warning, Some(failure.message));
                return None;
            }
        };
        self.warn("LookFailed", Severity::Warning, None);
        let all_names = self.names();
        for name in names {
            if self.pause.stopping() {
                return None;
            }
            let Some(running) = self.records.get(&name).and_then(|record| record.running.as_ref()) else { continue };
            let mut found = differences(&running.goal, &observed, &self.objects);
            found.extend(owners::differences(&name, &running.goal, &all_names));
            let told = !found.is_empty() && only_told(&running.goal, &observed) == found.len();
            let hopeless = found.is_empty() && {
                let goal = running.goal.clone();
                found = self.unsteady(&goal, &observed);
                !found.is_empty()
            };
            // systemd starts such a unit again by itself: there is nothing to repair.
            let next = self.settle_drift(&name, &found, hopeless || told || held.contains(&name));
            again = [again, next].into_iter().flatten().min();
            if *scope == Scope::All {
                self.measure(&name);
            }
        }
        if *scope == Scope::All {
            self.send(Told::Looked { at: self.now() });
        }
        again
    }

    /// Tells what differs and repairs it, or says when it may.
    fn settle_drift(&mut self, assignment: &str, found: &[String], held: bool) -> Option<Timestamp> {
        let record = self.records.get(assignment)?;
        let running = record.running.clone()?;
        let what = sentence(found);
        if found.is_empty() || running.goal.bounds.drift == OnDrift::Ignore {
            let repair_failed = record.upkeep.is_some()
                && record.last.as_ref().is_some_and(|last| matches!(last.cause, Cause::Drift(_)));
            let healthy = found.is_empty() && repair_failed && self.is_healthy(&running.goal);
            if healthy {
                let written = self.records.change(assignment, |record| record.upkeep = None);
                self.note_disk(written);
            }
            if self.drift.remove(assignment).is_some() || healthy {
                self.tell_status(assignment);
            }
            return None;
        }
        if self.drift.insert(assignment.to_owned(), what.clone()).as_ref() != Some(&what) {
            tracing::info!(assignment, what, "drift");
            self.tell_status(assignment);
        }
        // A change that failed and was to stay is left to the people who said so.
        let left = record_left(self, assignment);
        if held || left || running.goal.bounds.drift == OnDrift::Report {
            return None;
        }
        let upkeep = self.records.get(assignment).and_then(|record| record.upkeep.as_ref());
        if let Some(until) = upkeep.and_then(|failed| wait(assignment, failed, self.now())) {
            return Some(until);
        }
        if let Some(left) = self.repair_gap(assignment, &what) {
            return Some(self.later(left));
        }
        self.transact(assignment, Cause::Drift(what), Some(running));
        None
    }

    fn later(&self, after: Duration) -> Timestamp {
        let millis = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
        Timestamp(self.now().0.saturating_add(millis))
    }

    /// Units that were starting at the last look too: they don't stay up.
    fn unsteady(&mut self, goal: &Goal, observed: &Observed) -> Vec<String> {
        let now = self.pause.elapsed();
        let mut found = Vec::new();
        for unit in goal.units.iter().filter(|unit| unit.running) {
            let starting = observed.units.get(&unit.name).is_some_and(|state| state.active == "activating");
            if !starting {
                self.starting.remove(&unit.name);
            } else if now.saturating_sub(*self.starting.entry(unit.name.clone()).or_insert(now)) >= LONG_START {
                found.push(format!("unit {} is starting again and again", unit.name));
            }
        }
        found
    }

    /// How long the same repair still has to wait; none: it is counted and may begin.
    fn repair_gap(&mut self, assignment: &str, what: &str) -> Option<Duration> {
        let now = self.pause.elapsed();
        let new = || Repairs { what: what.to_owned(), times: 0, last: now };
        let repairs = self.repairs.entry(assignment.to_owned()).or_insert_with(new);
        let since = now.saturating_sub(repairs.last);
        if repairs.what != what || since > LONGEST_REPAIR_GAP {
            *repairs = new();
        }
        let gap = match repairs.times {
            0 => Duration::ZERO,
            times => (FIRST_REPAIR_GAP * 2_u32.saturating_pow((times - 1).min(12))).min(LONGEST_REPAIR_GAP),
        };
        if since < gap {
            return Some(gap - since);
        }
        repairs.times += 1;
        repairs.last = now;
        None
    }

    /// Warns of folders that hold more than their namespace allows.
    fn measure(&self, assignment: &str) {
        let Some(running) = self.records.get(assignment).and_then(|record| record.running.as_ref()) else { return };
        let Some(limit) = running.goal.disk else { return };
        let folders: Vec<&str> = running.goal.folders.iter().map(|folder| folder.path.as_str()).collect();
        if let Ok(Some(used)) = self.host.usage(&folders) {
            let over = (used > limit).then(|| {
                let mib = |bytes: u64| bytes / (1024 * 1024);
                format!("the folders of {assignment} hold {} MiB; its namespace allows {} MiB", mib(used), mib(limit))
            });
            self.warn(&disk_code(assignment), Severity::Warning, over);
        }
    }
}

pub(super) fn disk_code(assignment: &str) -> String {
    format!("DiskLimit.{assignment}")
}

fn record_left(engine: &Engine, assignment: &str) -> bool {
    let Some(record) = engine.records.get(assignment) else { return false };
    let running = record.running.as_ref().map(|running| running.key);
    record.failed.as_ref().is_some_and(|failed| Some(failed.key) == running && !failed.failure.passes)
}
