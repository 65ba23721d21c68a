//! Rollouts as people see them.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use kedge_api::rollouts::{
    ItemPart, MemberCounts, RingProgress, RolloutAction, RolloutActionEntry, RolloutCause, RolloutDetail, RolloutItem,
    RolloutSummary, VersionOrder,
};
use kedge_hub_types::rollout::running::state_word;
use kedge_rollout::rollout::stop_words;
use kedge_rollout::version::compare;
use kedge_rollout::{Cause, Counts, Item, Phase, Progress, RingState, Rollout, RolloutId, Say, Word};

use crate::api::page::moment;
use crate::store::rollout::{StoredItem, StoredRollout, Waiting};

pub fn summary(stored: &StoredRollout, moves: usize) -> RolloutSummary {
    let rollout = &stored.rollout;
    RolloutSummary {
        id: rollout.id.0,
        environment: rollout.environment.clone(),
        lane: rollout.lane.to_string(),
        state: state_word(&rollout.phase).to_owned(),
        why: why(rollout),
        settled: false,
        cause: cause(&rollout.cause),
        moves,
        partial: false,
        rings: rollout.rings.iter().map(ring_progress).collect(),
        late_failed: rollout.late_failed,
        created_at: moment(rollout.created_at.0),
        updated_at: moment(stored.updated_at.0),
        ended_at: stored.ended_at.map(|at| moment(at.0)),
    }
}

/// `blocked` are those that went back, and whose content Git still asks for.
pub fn settle(view: &mut RolloutSummary, blocked: &BTreeSet<RolloutId>) {
    view.settled = is_settled(&view.state, RolloutId(view.id), blocked);
}

/// For a team that sees a part of it: numbers and sentences about the rest aren't its business.
pub fn narrow(view: &mut RolloutSummary) {
    view.partial = true;
    view.late_failed = 0;
    if view.state == "Stopped" {
        "more failed than the policy allows".clone_into(&mut view.why);
    }
    // Who did it may be told; what was written about it may be about others.
    if matches!(view.state.as_str(), "Paused" | "Aborted")
        && let Some((who, _)) = view.why.split_once(": ")
    {
        view.why = who.to_owned();
    }
    narrow_rings(&mut view.rings);
}

/// Whether a rollout that went back or was aborted has nothing left to do.
pub fn is_settled(state: &str, id: RolloutId, blocked: &BTreeSet<RolloutId>) -> bool {
    matches!(state, "RolledBack" | "Aborted") && !blocked.contains(&id)
}

/// Numbers and sentences that are about other teams too aren't told.
pub fn narrow_rings(rings: &mut [RingProgress]) {
    for ring in rings {
        ring.counts = None;
        if !ring.waits_for.is_empty() {
            let why = match ring.state.as_str() {
                "returning" => "clusters that have not taken the rollback yet",
                _ => "its gate, which looks at other teams' workloads too",
            };
            ring.waits_for = vec![why.to_owned()];
        }
    }
}

/// `before` tells the version of an assignment that a ring held before.
pub fn detail(
    stored: &StoredRollout,
    items: Vec<StoredItem>,
    before: impl Fn(&Item) -> Option<String>,
    next: Option<&Waiting>,
) -> RolloutDetail {
    let item = |stored: StoredItem| {
        let before = before(&stored.item);
        rollout_item(stored, before)
    };
    RolloutDetail {
        rollout: summary(stored, items.len()),
        items: items.into_iter().map(item).collect(),
        skipped: stored.skipped.iter().map(cause).collect(),
        next: next.map(|waiting| cause(&waiting.cause)),
        actions: stored.rollout.words.iter().map(action_entry).collect(),
        suggestions: Vec::new(),
    }
}

fn rollout_item(stored: StoredItem, before: Option<String>) -> RolloutItem {
    let StoredItem { item, change } = stored;
    let version = change.workload.as_ref().and_then(|part| part.version.clone());
    let before = before.filter(|_| change.workload.is_some());
    let order = before.as_ref().zip(version.as_ref()).map(|(before, version)| match compare(version, before) {
        Ordering::Greater => VersionOrder::Newer,
        Ordering::Less => VersionOrder::Older,
        Ordering::Equal => VersionOrder::Same,
    });
    let parts = [
        (item.removes, ItemPart::Removed),
        (change.platform.is_some(), ItemPart::Platform),
        (change.workload.is_some(), ItemPart::Workload),
        (change.observed.is_some(), ItemPart::Observed),
    ];
    RolloutItem {
        parts: parts.into_iter().filter(|(has, _)| *has).map(|(_, part)| part).collect(),
        version,
        before,
        order,
        source_commit: change.workload.map(|part| part.package.commit),
        cluster_type: item.cluster_type,
        assignment: item.assignment,
        workload: item.workload,
    }
}

pub fn cause(cause: &Cause) -> RolloutCause {
    RolloutCause {
        commit: cause.commit.clone(),
        main: cause.main.clone(),
        subject_of: cause.subject_of.clone(),
        subject: cause.subject.clone(),
        author: cause.author.clone(),
    }
}

pub fn ring_progress(progress: &Progress) -> RingProgress {
    let total = progress.counts.iter().fold(MemberCounts::default(), plus);
    RingProgress {
        ring: progress.ring.clone(),
        state: ring_word(progress).to_owned(),
        started_at: progress.started_at.map(|at| moment(at.0)),
        steady_since: progress.steady_since.map(|at| moment(at.0)),
        passed_at: progress.passed_at.map(|at| moment(at.0)),
        waits_for: progress.waits_for.clone(),
        counts: (!progress.counts.is_empty()).then_some(total),
    }
}

pub fn plus(sum: MemberCounts, counts: &Counts) -> MemberCounts {
    MemberCounts {
        converged: sum.converged + counts.converged,
        converging: sum.converging + counts.converging,
        failed: sum.failed + counts.failed,
        offline: sum.offline + counts.offline,
        waiting: sum.waiting + counts.waiting,
    }
}

pub fn action_entry(word: &Word) -> RolloutActionEntry {
    let (action, ring) = match &word.say {
        Say::Approve { ring } => (RolloutAction::Approve, ring.clone()),
        Say::Override { ring } => (RolloutAction::Override, ring.clone()),
        Say::Now => (RolloutAction::Now, None),
        Say::Pause => (RolloutAction::Pause, None),
        Say::Resume => (RolloutAction::Resume, None),
        Say::Abort => (RolloutAction::Abort, None),
        Say::Rollback => (RolloutAction::Rollback, None),
    };
    RolloutActionEntry {
        who: word.who.clone(),
        person: word.person.id.clone(),
        role: word.role.clone(),
        at: moment(word.at.0),
        action,
        ring,
        reason: word.reason.clone(),
        new_token: word.new_token,
    }
}

pub fn ring_word(progress: &Progress) -> &'static str {
    match progress.state {
        RingState::Waiting => "waiting",
        RingState::Rolling => "rolling",
        RingState::Passed => "passed",
        RingState::Stopped => "stopped",
        RingState::Returned if progress.is_going_back() => "returning",
        RingState::Returned => "returned",
    }
}

fn why(rollout: &Rollout) -> String {
    let by = || rollout.halted_by().unwrap_or_default();
    match &rollout.phase {
        Phase::Active | Phase::Complete { .. } => String::new(),
        Phase::Paused { .. } => format!("paused by {}", by()),
        Phase::Stopped { ring, why, .. } => stop_words(ring, why),
        Phase::RolledBack { why, .. } => why.clone(),
        Phase::Aborted { .. } => format!("aborted by {}", by()),
        Phase::Superseded { by, .. } => format!("superseded by rollout {by}"),
    }
}

/// What a rollout that isn't complete waits for, in its first ring that hasn't passed.
pub fn waits_for(rollout: &Rollout) -> Vec<String> {
    let current = rollout.rings.iter().find(|ring| ring.state != RingState::Passed);
    let ring = current.map(|ring| ring.waits_for.iter().map(|why| stop_words(&ring.ring, why)));
    let told: Vec<String> = ring.into_iter().flatten().collect();
    match why(rollout) {
        why if why.is_empty() => told,
        // A ring that stopped says the same as its rollout.
        why => std::iter::once(why.clone()).chain(told.into_iter().filter(|told| *told != why)).collect(),
    }
}
