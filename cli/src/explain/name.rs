//! From what was typed to an assignment, with near names when there is none.

use std::collections::BTreeSet;

use anyhow::{Error, Result};
use kedge_model::{Kind, Spec};
use kedge_scheduler::{Explanation, Scheduler, explain};

use crate::error::{NotFound, UsageError};

/// So many names are suggested.
const SUGGESTED: usize = 4;

/// So many are listed when none is near.
const LISTED: usize = 10;

pub(super) fn find(scheduler: &Scheduler, typed: &str) -> Result<Explanation> {
    match typed.split_once('/') {
        Some((cluster_type, target)) => {
            explain(scheduler, cluster_type, target).ok_or_else(|| unknown(scheduler, typed))
        }
        None => find_target(scheduler, typed),
    }
}

/// A target alone, when there is no doubt which cluster type is meant.
fn find_target(scheduler: &Scheduler, target: &str) -> Result<Explanation> {
    if !targets(scheduler).contains(target) {
        return Err(unknown(scheduler, target));
    }
    let schedule = scheduler.schedule();
    let assigned: Vec<&str> =
        schedule.assignments.keys().filter(|id| &*id.target == target).map(|id| &*id.cluster_type).collect();
    let all: Vec<&str> = schedule.cluster_types.iter().map(|name| &**name).collect();
    let (message, choices) = match (assigned.as_slice(), all.as_slice()) {
        ([only], _) | ([], [only]) => {
            return explain(scheduler, only, target).ok_or_else(|| unknown(scheduler, target));
        }
        ([], _) => (format!("`{target}` isn't assigned to any cluster type"), all),
        _ => (format!("`{target}` is on {} cluster types", assigned.len()), assigned),
    };
    let names: Vec<String> = choices.iter().take(SUGGESTED).map(|name| format!("{name}/{target}")).collect();
    Err(UsageError::new(message, format!("name one to see why: {}", names.join(", "))).into())
}

/// A name that isn't one is wrong usage; one that is broken isn't.
fn unknown(scheduler: &Scheduler, typed: &str) -> Error {
    let environment = &scheduler.platform().environment;
    let (cluster_types, targets) = (&scheduler.schedule().cluster_types, targets(scheduler));
    let target = typed.split_once('/').map_or(typed, |(_, target)| target);
    let known_type = typed.split_once('/').is_none_or(|(name, _)| cluster_types.contains(name));
    if known_type && targets.contains(target) {
        let message = format!("the deployment target `{target}` can't be used");
        return NotFound::new(message, "`kedge validate` shows what is wrong with it").into();
    }
    let message = match typed.split_once('/') {
        Some((cluster_type, _)) if !cluster_types.contains(cluster_type) => {
            format!("there is no cluster type `{cluster_type}` in {environment}")
        }
        Some((_, target)) => format!("there is no deployment target `{target}` in {environment}"),
        None => format!("there is no deployment target `{typed}` in {environment}"),
    };
    let names: Vec<String> = match typed.contains('/') {
        true => {
            cluster_types.iter().flat_map(|name| targets.iter().map(move |target| format!("{name}/{target}"))).collect()
        }
        false => targets.iter().cloned().collect(),
    };
    let near = nearest(typed, names.iter().map(String::as_str));
    let hint = match (near.is_empty(), known_type) {
        (false, _) => format!("did you mean {}?", near.join(", ")),
        (true, true) => some("the deployment targets are", targets.iter().map(String::as_str)),
        (true, false) => some("the cluster types are", cluster_types.iter().map(|name| &**name)),
    };
    UsageError::new(message, hint).into()
}

/// The first names, when there are many; of none there is nothing to say.
fn some<'a>(words: &str, names: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<&str> = names.collect();
    match all.len() {
        0 => String::new(),
        count if count > LISTED => format!("{words} {} and {} more", all[..LISTED].join(", "), count - LISTED),
        _ => format!("{words} {}", all.join(", ")),
    }
}

/// Full names of the environment's targets, whether they are in force or not.
fn targets(scheduler: &Scheduler) -> BTreeSet<String> {
    let platform = scheduler.platform();
    let mut names = BTreeSet::new();
    for object in platform.of_kind(Kind::Workload) {
        let Spec::Workload(workload) = &object.spec else { continue };
        let here = workload.targets.iter().filter(|target| target.environment == platform.environment);
        names.extend(here.map(|target| format!("{}-{}", object.meta.name, target.name)));
    }
    names
}

pub(super) fn check_key(explanation: &Explanation, key: &str) -> Result<(), UsageError> {
    let keys = &explanation.config.keys;
    if keys.contains_key(key) {
        return Ok(());
    }
    let near = nearest(key, keys.keys().map(|key| &**key));
    let hint = match near.is_empty() {
        true => "without KEY all of them are shown".to_owned(),
        false => format!("did you mean {}?", near.join(", ")),
    };
    Err(UsageError::new(format!("no ConfigMap of this environment has the key `{key}`"), hint))
}

/// The names that need the fewest edits, when these aren't most of the name.
pub fn nearest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let lower = typed.to_lowercase();
    let mut scored: Vec<(usize, &str)> = names
        .filter_map(|name| {
            let other = name.to_lowercase();
            let edits = if other.contains(&lower) { 1 } else { distance(&lower, &other) };
            (edits <= other.chars().count() / 2).then_some((edits, name))
        })
        .collect();
    scored.sort();
    let best = scored.first().map_or(0, |(edits, _)| *edits);
    scored.into_iter().take_while(|(edits, _)| *edits <= best + 2).take(SUGGESTED).map(|(_, name)| name).collect()
}

/// How many letters to add, drop or change.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], above + 1);
        for (index, candidate) in other.iter().enumerate() {
            let change = diagonal + usize::from(*candidate != letter);
            diagonal = row[index + 1];
            row[index + 1] = change.min(row[index] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (one, other, edits) in
            [("", "abc", 3), ("drone", "drone", 0), ("drnoe", "drone", 2), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(one, other), edits, "{one} {other}");
        }
    }

    #[test]
    fn near_names_come_first_and_far_ones_never() {
        let names = ["drone/hello-test", "large/hello-test", "vm/other"];
        assert_eq!(nearest("dron/hello-test", names.into_iter()), ["drone/hello-test"]);
        assert_eq!(nearest("zzzzzzz", names.into_iter()), Vec::<&str>::new());
    }
}
