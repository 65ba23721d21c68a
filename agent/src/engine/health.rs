//! Whether what was applied works: every check must pass within the timeout, and then stay so for the soak.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Engine;
use crate::goal::{Check, Goal, ObjectId, Probe};
use crate::record::{Failure, Traced};
use kedge_model::wire::Timestamp;

/// A wait for health that is under way.
#[derive(Clone, Debug)]
pub(super) struct Wait {
    at: Timestamp,
    began: Duration,
    /// Since when everything passes; the soak runs from then on.
    healthy: Option<Duration>,
    /// When it is looked at next.
    pub due: Duration,
}

/// What one look at the checks comes to.
#[derive(Debug)]
pub(super) enum Health {
    Good,
    Bad(Failure),
    /// To be looked at again after this time.
    Again(Duration),
}

/// Between two tries of the checks.
const RETRY: Duration = Duration::from_secs(1);
/// A long soak looks this often at least…
const LONGEST_GAP: Duration = Duration::from_secs(10);
/// …and about this many times.
const LOOKS_PER_SOAK: u32 = 60;
/// For units that the workload wants running and doesn't check itself.
const UNIT_TIMEOUT_SECONDS: u64 = 10;

impl Wait {
    pub(super) fn new(at: Timestamp, began: Duration) -> Wait {
        Wait { at, began, healthy: None, due: began }
    }

    fn line(&self, now: Duration, what: String, failed: Option<String>) -> Traced {
        let took = now.saturating_sub(self.began).as_millis();
        Traced { at: self.at, what, took_ms: u64::try_from(took).unwrap_or(u64::MAX), failed, output: String::new() }
    }
}

impl Engine {
    /// One try of everything: within the timeout it must pass once, and then each time until the soak is over.
    pub(super) fn judge_health(&mut self, goal: &Goal, wait: &mut Wait, trace: &mut Vec<Traced>) -> Health {
        let checks = checks_of(goal);
        if checks.is_empty() {
            return Health::Good;
        }
        let checked = self.check_all(&checks);
        let now = self.pause.elapsed();
        let soak = Duration::from_secs(goal.bounds.soak_seconds);
        match (checked, wait.healthy) {
            (Err(why), None) => {
                let timeout = goal.bounds.timeout_seconds;
                if now.saturating_sub(wait.began) + RETRY <= Duration::from_secs(timeout) {
                    return Health::Again(RETRY);
                }
                let message = format!("not healthy within {timeout} s: {}", why.message);
                trace.push(wait.line(now, "wait for health".to_owned(), Some(message.clone())));
                Health::Bad(Failure::new(&why.reason, message))
            }
            (Err(why), Some(healthy)) => {
                let so_far = now.saturating_sub(healthy).as_secs();
                let message =
                    format!("healthy, but not for the soak of {} s: after {so_far} s {}", soak.as_secs(), why.message);
                trace.push(wait.line(now, "soak".to_owned(), Some(message.clone())));
                Health::Bad(Failure::new(&why.reason, message))
            }
            (Ok(()), healthy) => {
                let left = soak.saturating_sub(now.saturating_sub(*wait.healthy.insert(healthy.unwrap_or(now))));
                if !left.is_zero() {
                    return Health::Again(left.min((soak / LOOKS_PER_SOAK).clamp(RETRY, LONGEST_GAP)));
                }
                let what = format!("healthy: {} checks, soak {} s", checks.len(), soak.as_secs());
                trace.push(wait.line(now, what, None));
                Health::Good
            }
        }
    }

    /// One try of everything.
    pub(super) fn is_healthy(&mut self, goal: &Goal) -> bool {
        self.check_all(&checks_of(goal)).is_ok()
    }

    fn check_all(&mut self, checks: &[Check]) -> Result<(), Failure> {
        checks.iter().try_for_each(|check| self.host.check(check))
    }
}

/// The workload's own, and each unit that should run.
fn checks_of(goal: &Goal) -> Vec<Check> {
    let asked: BTreeSet<&str> = goal
        .health
        .iter()
        .filter_map(|check| match &check.probe {
            Probe::Unit(name) => Some(name.as_str()),
            _ => None,
        })
        .collect();
    let units = goal.units.iter().filter(|unit| unit.running && !asked.contains(unit.name.as_str()));
    let implied =
        units.map(|unit| Check { probe: Probe::Unit(unit.name.clone()), timeout_seconds: UNIT_TIMEOUT_SECONDS });
    let objects: Vec<ObjectId> = goal.objects.iter().map(|object| object.id.clone()).collect();
    let ready = (!objects.is_empty()).then_some(Check { probe: Probe::Objects(objects), timeout_seconds: 0 });
    implied.chain(goal.health.iter().cloned()).chain(ready).collect()
}
