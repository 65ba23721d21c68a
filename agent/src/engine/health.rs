//! Whether what was applied works: every check must pass within the timeout, and then stay so for the soak.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Engine;
use crate::goal::{Check, Goal, Probe};
use crate::record::{Failure, Traced};

/// How the wait for health ended.
#[derive(Debug)]
pub(super) enum Health {
    Good,
    Bad(Failure),
    /// The agent should stop: the next start checks again.
    Stopped,
}

/// Between two tries of the checks.
const RETRY: Duration = Duration::from_secs(1);
/// A long soak looks this often at least…
const LONGEST_GAP: Duration = Duration::from_secs(10);
/// …and about this many times.
const LOOKS_PER_SOAK: u32 = 60;
/// For units that the workload wants running and doesn't check itself.
const UNIT_TIMEOUT_SECONDS: u64 = 10;

impl Engine {
    pub(super) fn become_healthy(&mut self, goal: &Goal, trace: &mut Vec<Traced>) -> Health {
        let checks = checks_of(goal);
        if checks.is_empty() {
            return Health::Good;
        }
        let (at, began) = (self.now(), self.pause.elapsed());
        let line = |engine: &Engine, what: String, failed: Option<String>| {
            let took = engine.pause.elapsed().saturating_sub(began).as_millis();
            Traced { at, what, took_ms: u64::try_from(took).unwrap_or(u64::MAX), failed, output: String::new() }
        };
        let timeout = Duration::from_secs(goal.bounds.timeout_seconds);
        while let Err(why) = self.check_all(&checks) {
            if self.pause.elapsed().saturating_sub(began) + RETRY > timeout {
                let message = format!("not healthy within {} s: {why}", goal.bounds.timeout_seconds);
                trace.push(line(self, "wait for health".to_owned(), Some(message.clone())));
                return Health::Bad(Failure::new("HealthCheck", message));
            }
            if !self.pause.wait(RETRY) {
                return Health::Stopped;
            }
        }
        let soak = Duration::from_secs(goal.bounds.soak_seconds);
        let gap = (soak / LOOKS_PER_SOAK).clamp(RETRY, LONGEST_GAP);
        let healthy = self.pause.elapsed();
        loop {
            let left = soak.saturating_sub(self.pause.elapsed().saturating_sub(healthy));
            if left.is_zero() {
                break;
            }
            if !self.pause.wait(left.min(gap)) {
                return Health::Stopped;
            }
            if let Err(why) = self.check_all(&checks) {
                let so_far = self.pause.elapsed().saturating_sub(healthy).as_secs();
                let message = format!("healthy, but not for the soak of {} s: after {so_far} s {why}", soak.as_secs());
                trace.push(line(self, "soak".to_owned(), Some(message.clone())));
                return Health::Bad(Failure::new("HealthCheck", message));
            }
        }
        trace.push(line(self, format!("healthy: {} checks, soak {} s", checks.len(), soak.as_secs()), None));
        Health::Good
    }

    /// One try of everything.
    pub(super) fn is_healthy(&mut self, goal: &Goal) -> bool {
        self.check_all(&checks_of(goal)).is_ok()
    }

    fn check_all(&mut self, checks: &[Check]) -> Result<(), String> {
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
    implied.chain(goal.health.iter().cloned()).collect()
}
