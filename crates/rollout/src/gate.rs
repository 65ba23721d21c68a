//! Whether a ring lets a change go on, from what is true of its clusters. Called by `advance`.
//!
//! Assignments of one cluster type are on the same clusters, those of different types never are. So clusters are counted per type
//! (by its assignment that fares worst) and added up; how many of those reached are Converged is asked of each assignment.

use std::collections::BTreeMap;
use std::time::Duration;

use kedge_model::kinds::{Amount, Check, Empty, Ring, WHOLE};
use kedge_model::wire::Timestamp;
use serde::{Deserialize, Serialize};

use crate::moment::{Utc, later};

/// The clusters of one ring for one changed assignment, by the status of its exact packages. Their sum is the members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    pub converged: u64,
    pub converging: u64,
    pub failed: u64,
    /// Unknown: the check-in was missed.
    pub offline: u64,
    /// In contact, and hasn't got the change yet.
    pub waiting: u64,
}

/// What an external check said last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckFact {
    pub ok: bool,
    /// What was answered, or why there was no answer; short.
    pub said: String,
    pub at: Timestamp,
}

/// A changed assignment that counts, as a ring's gate sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sight<'a> {
    pub cluster_type: &'a str,
    pub assignment: &'a str,
    pub counts: Counts,
}

/// What a gate says now, with the numbers for the evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "verdict")]
pub enum Verdict {
    Holds,
    /// What it waits for, each a sentence.
    Waits {
        why: Vec<String>,
    },
    /// Nothing to observe: never a pass by itself; a person says so, or `empty: pass`.
    Nothing {
        why: String,
    },
    /// Beyond the failure budget, or a quarantine.
    Fails {
        why: Vec<String>,
    },
}

/// A check's answer is believed for so many of its intervals: silence doesn't stay green.
const INTERVALS: u32 = 3;

impl Counts {
    pub fn members(&self) -> u64 {
        self.reached().saturating_add(self.offline).saturating_add(self.waiting)
    }

    /// Has the change and isn't away.
    pub fn reached(&self) -> u64 {
        self.converged.saturating_add(self.converging).saturating_add(self.failed)
    }
}

/// The ring's clusters in one set of numbers: for each type its worst assignment, all types added up.
pub fn clusters(seen: &[Sight<'_>]) -> Counts {
    let mut types: BTreeMap<&str, (Counts, u64)> = BTreeMap::new();
    for Sight { cluster_type, counts, .. } in seen {
        let (worst, members) = types.entry(cluster_type).or_insert((*counts, 0));
        worst.failed = worst.failed.max(counts.failed);
        worst.offline = worst.offline.max(counts.offline);
        worst.waiting = worst.waiting.max(counts.waiting);
        worst.converged = worst.converged.min(counts.converged);
        *members = (*members).max(counts.members());
    }
    let mut sum = Counts::default();
    for (worst, members) in types.into_values() {
        // A cluster counts once: what the worse ones leave is Converged, and the rest of it on its way.
        let failed = worst.failed.min(members);
        let offline = worst.offline.min(members - failed);
        let waiting = worst.waiting.min(members - failed - offline);
        let left = members - failed - offline - waiting;
        let converged = worst.converged.min(left);
        sum.failed = sum.failed.saturating_add(failed);
        sum.offline = sum.offline.saturating_add(offline);
        sum.waiting = sum.waiting.saturating_add(waiting);
        sum.converged = sum.converged.saturating_add(converged);
        sum.converging = sum.converging.saturating_add(left - converged);
    }
    sum
}

/// The rules of the ring but its soak, which needs a memory. `forgiven` failures don't count against the budget.
pub fn judge(
    ring: &Ring,
    seen: &[Sight<'_>],
    forgiven: u64,
    checks: &BTreeMap<String, CheckFact>,
    now: Timestamp,
) -> Verdict {
    let all = clusters(seen);
    if let Some(why) = broken(ring, &all, forgiven) {
        return Verdict::Fails { why: vec![why] };
    }
    let nothing = nothing(ring, seen, &all);
    if let (Some(why), Empty::Wait) = (&nothing, ring.gate.empty) {
        return Verdict::Nothing { why: why.clone() };
    }
    let mut why = Vec::new();
    if nothing.is_none() {
        few(ring, seen, &all, &mut why);
    }
    why.extend(ring.gate.checks.iter().filter_map(|check| unanswered(check, checks.get(&check.name), now)));
    if why.is_empty() { Verdict::Holds } else { Verdict::Waits { why } }
}

/// More failures than the budget.
pub fn broken(ring: &Ring, all: &Counts, forgiven: u64) -> Option<String> {
    let budget = ring.failure.budget.at_most(all.members());
    let failed = all.failed.saturating_sub(forgiven);
    (failed > budget).then(|| {
        let but = if forgiven > 0 { format!(" beside {} forgiven", forgiven.min(all.failed)) } else { String::new() };
        format!("ring {}: {failed} of {} failed{but}, the budget is {budget}", ring.name, all.members())
    })
}

fn nothing(ring: &Ring, seen: &[Sight<'_>], all: &Counts) -> Option<String> {
    if seen.is_empty() {
        Some(format!("nothing to observe in ring {}: no assignment that changed counts", ring.name))
    } else if all.members() == 0 {
        Some(format!("nothing to observe in ring {}: it has no cluster that the change concerns", ring.name))
    } else if all.reached() == 0 && ring.gate.reached.at_least(all.members()) == 0 {
        Some(format!("nothing to observe in ring {}: none of {} was reached", ring.name, all.members()))
    } else {
        None
    }
}

/// Too few reached or Converged, or too many Failed.
fn few(ring: &Ring, seen: &[Sight<'_>], all: &Counts, why: &mut Vec<String>) {
    let (gate, members) = (&ring.gate, all.members());
    let needed = gate.reached.at_least(members).max(1);
    if all.reached() < needed {
        let asked = match gate.reached {
            Amount::Number(_) => String::new(),
            Amount::Share(share) => format!(" ({})", percent(share)),
        };
        why.push(format!(
            "{} of {members} reached, at least {needed}{asked} are needed; {} offline, {} waiting",
            all.reached(),
            all.offline,
            all.waiting
        ));
    }
    let most = gate.failed.at_most(members);
    if all.failed > most {
        why.push(format!("{} of {members} failed, at most {most} may", all.failed));
    }
    for sight in seen {
        let (converged, reached) = (sight.counts.converged, sight.counts.reached());
        if u128::from(converged) * u128::from(WHOLE) < u128::from(gate.converged) * u128::from(reached) {
            why.push(format!(
                "{}/{}: {converged} of {reached} reached are converged, {} are needed; {} converging, {} failed",
                sight.cluster_type,
                sight.assignment,
                percent(gate.converged),
                sight.counts.converging,
                sight.counts.failed
            ));
        }
    }
}

fn unanswered(check: &Check, fact: Option<&CheckFact>, now: Timestamp) -> Option<String> {
    let Some(fact) = fact else { return Some(format!("check {} has not answered yet", check.name)) };
    let believed = check.every.saturating_mul(INTERVALS).saturating_add(check.timeout).max(Duration::from_secs(1));
    if later(fact.at, believed) < now {
        return Some(format!("check {} answered last at {}", check.name, Utc(fact.at)));
    }
    (!fact.ok).then(|| format!("check {} says: {}", check.name, fact.said))
}

/// `87.5 %` from hundredths of a percent.
pub(crate) fn percent(share: u32) -> String {
    match (share / 100, share % 100) {
        (whole, 0) => format!("{whole} %"),
        (whole, part) if part % 10 == 0 => format!("{whole}.{} %", part / 10),
        (whole, part) => format!("{whole}.{part:02} %"),
    }
}

#[cfg(test)]
mod tests;
