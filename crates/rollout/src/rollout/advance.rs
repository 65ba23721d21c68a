//! One step of a rollout, from what is true now. Called by the hub after every change and every few seconds, and by the simulation.

use std::collections::BTreeMap;

use kedge_model::kinds::{Empty, Late, Ring, Then};
use kedge_model::wire::Timestamp;

use super::{Facts, Phase, RingState, Rollout};
use crate::approval::{ONE_OF_PLATFORM, missing, overridden, override_missing};
use crate::gate::{CheckFact, Counts, Sight, Verdict, broken, clusters, judge};
use crate::moment::{Span, Utc, later};
use crate::word::Say;

/// What a ring's gate means for the ring.
enum Leave {
    Go,
    /// The rules hold: only the soak is left.
    Soak,
    Stay(Vec<String>),
}

/// The next value; none: nothing changes. The caller saves it, then makes the desired states follow. The value it returns is at rest:
/// the same facts at the same time change nothing more.
pub fn advance(rollout: &Rollout, facts: &Facts, now: Timestamp) -> Option<Rollout> {
    let mut next = rollout.clone();
    if matches!(next.phase, Phase::Active | Phase::Paused { .. }) {
        forgive(&mut next, facts);
        if !fail(&mut next, facts, now) {
            go_on(&mut next, facts, now);
        }
    }
    // A ring that has just begun is asked too.
    if matches!(next.phase, Phase::Active | Phase::Paused { .. }) {
        fail(&mut next, facts, now);
    }
    if matches!(next.phase, Phase::Complete { .. }) {
        look_back(&mut next, facts, now);
    }
    if matches!(next.phase, Phase::RolledBack { .. }) {
        go_back(&mut next, facts);
    }
    (next != *rollout).then_some(next)
}

/// What a person forgave, once it is known how much that is.
fn forgive(next: &mut Rollout, facts: &Facts) {
    for place in 0..next.rings.len() {
        let ring = &next.rings[place];
        if !ring.forgive && ring.forgiven == 0 {
            continue;
        }
        let Some(all) = next.sights(facts, &ring.ring).map(|seen| clusters(&seen)) else { continue };
        let ring = &mut next.rings[place];
        if ring.forgive {
            ring.forgiven = all.failed;
            ring.forgive = false;
        } else if all.failed == 0 && all.offline == 0 && all.converging == 0 {
            // Everybody was mended: a failure from here on is a new one.
            ring.forgiven = 0;
        }
    }
    if next.accept {
        next.accepted.extend(facts.quarantined.iter().cloned());
        next.accepted.sort();
        next.accepted.dedup();
        next.accept = false;
    }
}

/// Quarantines and failures beyond the budget, in any ring that has started. Whether it ended here.
fn fail(next: &mut Rollout, facts: &Facts, now: Timestamp) -> bool {
    let quarantined: Vec<&str> =
        facts.quarantined.iter().filter(|name| !next.accepted.contains(name)).map(String::as_str).collect();
    if !quarantined.is_empty() {
        let why = format!("the change put {} into quarantine", quarantined.join(", "));
        let ring = next.current().or(next.rings.last()).map(|ring| ring.ring.clone()).unwrap_or_default();
        stop(next, facts, ring, why, now);
        return true;
    }
    let failing = failing(next, facts);
    let Some((ring, why, _)) = failing.first() else { return false };
    if failing.iter().any(|(_, _, then)| *then == Then::Rollback) {
        for place in 0..next.rings.len() {
            if next.rings[place].state.is_new() {
                record(next, facts, place);
                next.rings[place].state = RingState::Returned;
            }
        }
        settle(next);
        next.phase = Phase::RolledBack { why: why.clone(), at: now };
    } else {
        stop(next, facts, ring.clone(), why.clone(), now);
    }
    true
}

fn failing(rollout: &Rollout, facts: &Facts) -> Vec<(String, String, Then)> {
    let started = rollout.rings.iter().filter(|ring| ring.state.is_new() && !ring.forgive);
    started
        .filter_map(|ring| {
            let rules = rollout.rules(&ring.ring)?;
            let all = clusters(&rollout.sights(facts, &ring.ring)?);
            Some((ring.ring.clone(), broken(rules, &all, ring.forgiven)?, rules.failure.then))
        })
        .collect()
}

/// This ring and those after it keep what they have, and nothing further begins.
fn stop(next: &mut Rollout, facts: &Facts, ring: String, why: String, now: Timestamp) {
    let from = next.rings.iter().position(|progress| progress.ring == ring).unwrap_or_default();
    settle(next);
    for place in from..next.rings.len() {
        let here = next.rings[place].ring == ring;
        if next.rings[place].state == RingState::Rolling || (here && next.rings[place].state.is_new()) {
            record(next, facts, place);
            next.rings[place].state = RingState::Stopped;
        }
        if here {
            next.rings[place].waits_for = vec![why.clone()];
        }
    }
    next.phase = Phase::Stopped { ring, why, at: now };
}

/// From ring to ring, as far as it goes now.
fn go_on(next: &mut Rollout, facts: &Facts, now: Timestamp) {
    let paused = match &next.phase {
        Phase::Paused { by, at } => Some(format!("paused by {by} since {}", Utc(*at))),
        _ => None,
    };
    let mut before: Option<String> = None;
    for place in 0..next.rings.len() {
        let name = next.rings[place].ring.clone();
        if let Some(before) = &before {
            next.rings[place].waits_for = vec![format!("the ring {before} before it")];
            continue;
        }
        if next.rings[place].state == RingState::Waiting {
            let why: Vec<String> = paused.iter().cloned().chain(held(next, &name, now)).collect();
            if why.is_empty() {
                let heard = next.words.len();
                let ring = &mut next.rings[place];
                (ring.state, ring.started_at, ring.heard) = (RingState::Rolling, Some(now), heard);
            }
            next.rings[place].waits_for = why;
        }
        if next.rings[place].state == RingState::Rolling {
            watch(next, facts, place, paused.as_deref(), now);
        }
        if next.rings[place].state != RingState::Passed {
            before = Some(name);
        }
    }
    if before.is_none() && paused.is_none() {
        next.phase = Phase::Complete { at: now };
    }
}

/// What keeps a ring from beginning.
fn held(rollout: &Rollout, ring: &str, now: Timestamp) -> Vec<String> {
    let needed = rollout.policy.override_people;
    let about = |say: &Say| says_override(say, ring);
    let approval = rollout.approval(ring).filter(|_| !overridden(&rollout.words, needed, about));
    let unapproved = approval.and_then(|rule| missing(&rule, &rollout.words, ring, &[&rollout.cause.author]));
    let half = override_missing(&rollout.words, needed, about);
    unapproved.into_iter().chain(half).chain(rollout.shut(now)).collect()
}

/// A ring that is rolling: its gate, its soak.
fn watch(next: &mut Rollout, facts: &Facts, place: usize, paused: Option<&str>, now: Timestamp) {
    let soak = next.rules(&next.rings[place].ring).map(|rules| rules.soak).unwrap_or_default();
    let leave = leave(next, facts, place, now);
    let half = {
        let (ring, needed) = (&next.rings[place], next.policy.override_people);
        override_missing(&next.overrides_of(ring), needed, |say| says_override(say, &ring.ring))
    };
    let ring = &mut next.rings[place];
    ring.empty = matches!(&leave, (_, true));
    let mut why = match leave.0 {
        Leave::Stay(why) => {
            ring.steady_since = None;
            why
        }
        Leave::Go => Vec::new(),
        Leave::Soak => {
            let since = *ring.steady_since.get_or_insert(now);
            let until = later(since, soak);
            if until <= now {
                Vec::new()
            } else {
                vec![format!("soaks {}: its gate holds since {}, until {}", Span(soak), Utc(since), Utc(until))]
            }
        }
    };
    if !why.is_empty() {
        why.extend(half);
    }
    why.extend(paused.map(str::to_owned));
    if why.is_empty() {
        ring.state = RingState::Passed;
        ring.passed_at = Some(now);
        ring.empty = false;
        record(next, facts, place);
    }
    next.rings[place].waits_for = why;
}

/// Whether the ring may be left, and whether that waits for a person because there is nothing to observe.
fn leave(rollout: &Rollout, facts: &Facts, place: usize, now: Timestamp) -> (Leave, bool) {
    let ring = &rollout.rings[place];
    let said = rollout.words.get(ring.heard..).unwrap_or_default();
    let needed = rollout.policy.override_people;
    if overridden(said, needed, |say| says_override(say, &ring.ring)) {
        return (Leave::Go, false);
    }
    let (Some(rules), Some(seen)) = (rollout.rules(&ring.ring), rollout.sights(facts, &ring.ring)) else {
        return (Leave::Stay(vec!["its clusters have not been counted yet".to_owned()]), false);
    };
    let no_checks = Default::default();
    let checks = facts.rings.get(&ring.ring).map_or(&no_checks, |facts| &facts.checks);
    let verdict = match judge(rules, &seen, ring.forgiven, checks, now) {
        Verdict::Holds if place + 1 == rollout.rings.len() && rules.gate.empty == Empty::Wait => {
            unobserved(rollout, facts).map_or(Verdict::Holds, |why| Verdict::Nothing { why })
        }
        verdict => verdict,
    };
    match verdict {
        Verdict::Holds if clusters(&seen).members() == 0 => (Leave::Go, false),
        Verdict::Holds => (Leave::Soak, false),
        Verdict::Waits { why } | Verdict::Fails { why } => (Leave::Stay(why), false),
        Verdict::Nothing { why } => {
            let rule = rollout.approval(&ring.ring).unwrap_or(ONE_OF_PLATFORM);
            match missing(&rule, said, &ring.ring, &[&rollout.cause.author]) {
                None => (agreed(rules, &seen, ring.forgiven, checks, now), false),
                Some(missing) => (Leave::Stay(vec![format!("{why}: approve or override it ({missing})")]), true),
            }
        }
    }
}

/// A person said that nothing to observe is fine; checks and failures are asked all the same.
fn agreed(
    rules: &Ring,
    seen: &[Sight<'_>],
    forgiven: u64,
    checks: &BTreeMap<String, CheckFact>,
    now: Timestamp,
) -> Leave {
    let mut rules = rules.clone();
    rules.gate.empty = Empty::Pass;
    match judge(&rules, seen, forgiven, checks, now) {
        Verdict::Holds => Leave::Go,
        Verdict::Waits { why } | Verdict::Fails { why } => Leave::Stay(why),
        Verdict::Nothing { why } => Leave::Stay(vec![why]),
    }
}

/// Assignments that no cluster of any ring has: a change that nobody tried has not passed.
fn unobserved(rollout: &Rollout, facts: &Facts) -> Option<String> {
    let mut reached = vec![0u64; rollout.items.len()];
    for ring in &rollout.rings {
        let Some(counts) = facts.rings.get(&ring.ring).map(|facts| &facts.counts) else { continue };
        for (sum, counts) in reached.iter_mut().zip(counts) {
            *sum = sum.saturating_add(counts.reached());
        }
    }
    let sums: Vec<Counts> = reached.iter().map(|sum| Counts { converged: *sum, ..Counts::default() }).collect();
    let none: Vec<String> = rollout
        .counted(&sums)
        .filter(|sight| sight.counts.converged == 0)
        .map(|sight| format!("{}/{}", sight.cluster_type, sight.assignment))
        .collect();
    match none.as_slice() {
        [] => None,
        [one] => Some(format!("nothing to observe of {one}: no cluster of {} was reached", rollout.environment)),
        [first, rest @ ..] => Some(format!(
            "nothing to observe of {first} and {} more: no cluster of {} was reached",
            rest.len(),
            rollout.environment
        )),
    }
}

/// After it was complete: failures are shown, and open it again where the policy says so.
fn look_back(next: &mut Rollout, facts: &Facts, now: Timestamp) {
    let mut late = 0u64;
    for ring in &next.rings {
        let Some(seen) = next.sights(facts, &ring.ring) else { return };
        let then = clusters(&next.counted(&ring.counts).collect::<Vec<_>>());
        late = late.saturating_add(clusters(&seen).failed.saturating_sub(then.failed));
    }
    next.late_failed = late;
    if next.policy.late == Late::Reopen
        && let Some((ring, why, _)) = failing(next, facts).into_iter().next()
    {
        stop(next, facts, ring, format!("{why}, after it was complete"), now);
    }
}

/// After it was rolled back: a ring has gone back when nobody in it reports the new content any more.
fn go_back(next: &mut Rollout, facts: &Facts) {
    for place in 0..next.rings.len() {
        let ring = &next.rings[place];
        if ring.state != RingState::Returned {
            continue;
        }
        let Some(counts) = facts.rings.get(&ring.ring).map(|facts| &facts.counts) else { continue };
        let have = counts.iter().map(Counts::reached).max().unwrap_or_default();
        next.rings[place].waits_for = match have {
            0 => Vec::new(),
            1 => vec!["1 cluster has not taken the rollback yet".to_owned()],
            more => vec![format!("{more} clusters have not taken the rollback yet")],
        };
    }
}

/// The numbers of this moment, for the evidence.
fn record(next: &mut Rollout, facts: &Facts, place: usize) {
    if let Some(facts) = facts.rings.get(&next.rings[place].ring) {
        next.rings[place].counts.clone_from(&facts.counts);
    }
}

/// Nothing waits any more.
fn settle(next: &mut Rollout) {
    for ring in &mut next.rings {
        ring.waits_for.clear();
        ring.empty = false;
        if ring.passed_at.is_none() {
            ring.steady_since = None;
        }
    }
}

fn says_override(say: &Say, name: &str) -> bool {
    matches!(say, Say::Override { ring: Some(ring) } if ring == name)
}
