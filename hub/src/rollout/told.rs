//! What the controller decides, as entries of history: they are saved with it. Pure.

use std::collections::BTreeSet;

use kedge_hub_types::history::{Entry, Place, What};
use kedge_model::wire::Timestamp;
use kedge_rollout::{Phase, Progress, RingState, Rollout, Say, Word};

/// A rollout begins.
pub(super) fn begun(rollout: &Rollout) -> Entry {
    entry(rollout, rollout.created_at, "started", None)
}

/// What differs between two values of a rollout.
pub(super) fn moved(before: &Rollout, next: &Rollout, now: Timestamp) -> Vec<Entry> {
    let mut told = Vec::new();
    for (old, new) in before.rings.iter().zip(&next.rings) {
        if old.state != new.state {
            told.push(ring(next, new, old.state, now));
        }
    }
    if std::mem::discriminant(&before.phase) != std::mem::discriminant(&next.phase) {
        told.push(phase(next, now));
    }
    told
}

/// A rollout is in another phase.
pub(super) fn phase(rollout: &Rollout, now: Timestamp) -> Entry {
    let (word, why, at, by) = match &rollout.phase {
        Phase::Active => ("resumed", None, now, None),
        Phase::Paused { by, at } => ("paused", None, *at, Some(by)),
        Phase::Stopped { why, at, .. } => ("stopped", Some(why.clone()), *at, None),
        Phase::Complete { at } => ("complete", None, *at, None),
        Phase::RolledBack { why, at } => ("rolledBack", Some(why.clone()), *at, None),
        Phase::Aborted { by, at } => ("aborted", Some(format!("by {by}")), *at, Some(by)),
        Phase::Superseded { by, at } => ("superseded", Some(format!("by rollout {by}")), *at, None),
    };
    let told = entry(rollout, at, word, why);
    match by {
        Some(by) => told.by(by),
        None => told,
    }
}

/// A person's word, taken or refused.
pub(super) fn word(rollout: &Rollout, word: &Word, refused: Option<&str>) -> Entry {
    let ring = match &word.say {
        Say::Approve { ring } | Say::Override { ring } => ring.clone(),
        _ => None,
    };
    let what = What::Word {
        about: format!("rollout {}", rollout.id),
        say: word.say.verb().to_owned(),
        reason: word.reason.clone(),
        ring,
        refused: refused.map(str::to_owned),
    };
    Entry::new(word.at, place(rollout), what).commit(commit(rollout)).by(&word.who)
}

fn entry(rollout: &Rollout, at: Timestamp, phase: &str, why: Option<String>) -> Entry {
    let what = What::Rollout {
        rollout: rollout.id.0,
        phase: phase.to_owned(),
        lane: rollout.lane.to_string(),
        subject: rollout.cause.subject.clone(),
        items: rollout.items.len() as u64,
        why,
        commit: rollout.cause.commit.clone(),
    };
    Entry::new(at, place(rollout), what).commit(commit(rollout))
}

fn ring(rollout: &Rollout, progress: &Progress, before: RingState, now: Timestamp) -> Entry {
    let (state, at) = match progress.state {
        RingState::Waiting => ("waiting", now),
        RingState::Rolling if before == RingState::Waiting => ("rolling", progress.started_at.unwrap_or(now)),
        // It began before; what is told now happened now.
        RingState::Rolling => ("resumed", now),
        RingState::Passed => ("passed", progress.passed_at.unwrap_or(now)),
        RingState::Stopped => ("stopped", now),
        RingState::Returned => ("returned", now),
    };
    let why = match (&rollout.phase, progress.state) {
        (Phase::Stopped { why, .. }, RingState::Stopped) => Some(why.clone()),
        _ => None,
    };
    let (rollout_id, lane) = (rollout.id.0, rollout.lane.to_string());
    let what = What::Ring { rollout: rollout_id, state: state.to_owned(), lane, why };
    let place = Place { ring: progress.ring.clone(), ..place(rollout) };
    Entry::new(at, place, what).commit(commit(rollout))
}

/// Of one workload or one assignment where it moves no other: then it is that one's history too.
fn place(rollout: &Rollout) -> Place {
    let only =
        |all: BTreeSet<String>| if all.len() == 1 { all.into_iter().next().unwrap_or_default() } else { String::new() };
    let workload = only(rollout.items.iter().map(|item| item.workload.clone()).collect());
    let cluster_type = only(rollout.items.iter().map(|item| item.cluster_type.clone()).collect());
    let assignment = match &*rollout.items {
        [item] => format!("{}/{}", item.cluster_type, item.assignment),
        _ => String::new(),
    };
    Place { workload, cluster_type, assignment, ..Place::environment(&rollout.environment) }
}

/// People know the commit of main, or the one that wrote the subject.
fn commit(rollout: &Rollout) -> &str {
    rollout.cause.named()
}
