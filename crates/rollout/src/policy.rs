//! In which ways a new policy is looser than the one in force. Called by the hub before a policy takes over: a looser one waits for a
//! person. What can't be compared counts as looser.

mod calendar;
mod ring;

use std::collections::BTreeSet;

use kedge_model::kinds::{EnvironmentPolicy, Late, Offline, Promoter, PromotionPolicy};

/// Each way as a sentence; empty: it may take over at once.
pub fn loosens(old: Option<&PromotionPolicy>, new: Option<&PromotionPolicy>) -> Vec<String> {
    let Some(old) = old else { return Vec::new() };
    let Some(new) = new else { return vec!["the policy is gone: nothing would be gated any more".to_owned()] };
    let mut ways = Vec::new();
    if old.promoter != new.promoter {
        let by = |promoter| match promoter {
            Promoter::Kedge => "kedge",
            Promoter::External => "an external workflow",
        };
        ways.push(format!("promoted by {} instead of {}", by(new.promoter), by(old.promoter)));
    }
    for before in &old.environments {
        match new.environment(&before.name) {
            None => ways.push(format!("environment {} is gone", before.name)),
            Some(after) => {
                let dropped = required(old, before);
                let kept = required(new, after);
                for name in dropped.difference(&kept) {
                    ways.push(format!("environment {} no longer comes after {name}", before.name));
                }
                environment(before, after, &mut ways);
            }
        }
    }
    ways
}

/// Every environment that must have passed before, near and far.
fn required<'a>(policy: &'a PromotionPolicy, environment: &'a EnvironmentPolicy) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = environment.after.iter().map(String::as_str).collect();
    while let Some(name) = open.pop() {
        if found.insert(name) {
            let further = policy.environment(name).map(|environment| environment.after.as_slice()).unwrap_or_default();
            open.extend(further.iter().map(String::as_str));
        }
    }
    found
}

fn environment(old: &EnvironmentPolicy, new: &EnvironmentPolicy, ways: &mut Vec<String>) {
    let name = &old.name;
    let narrower = |old: &[String], new: &[String]| {
        !new.is_empty() && (old.is_empty() || old.iter().any(|counted| !new.contains(counted)))
    };
    if narrower(&old.counts.cluster_types, &new.counts.cluster_types) {
        ways.push(format!("environment {name} counts fewer cluster types"));
    }
    if narrower(&old.counts.workloads, &new.counts.workloads) {
        ways.push(format!("environment {name} counts fewer workloads"));
    }
    if old.offline == Offline::Incomplete && new.offline == Offline::Complete {
        ways.push(format!("environment {name} is complete without its offline clusters"));
    }
    if new.override_people < old.override_people {
        let (new, old) = (new.override_people, old.override_people);
        ways.push(format!("environment {name} may be overridden by {new} instead of {old}"));
    }
    if old.late == Late::Reopen && new.late == Late::Show {
        ways.push(format!("environment {name} is no longer open again after late failures"));
    }
    calendar::windows(name, &old.windows, &new.windows, ways);
    calendar::freezes(name, &old.freezes, &new.freezes, ways);
    ring::rings(name, &old.rings, &new.rings, ways);
}

#[cfg(test)]
mod tests;
