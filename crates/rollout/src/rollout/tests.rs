//! A rollout through two rings, step by step.

use std::time::Duration;

use kedge_model::kinds::{Amount, Approval, ApproverRole, Empty, Late, Members, Ring, Then, Window};

use super::*;
use crate::word::{Person, Refused};

const START: i64 = 1_794_830_400_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp(START + seconds * 1_000)
}

fn policy() -> EnvironmentPolicy {
    let mut policy = EnvironmentPolicy::new("prod", Vec::new());
    policy.rings = vec![Ring::new("canary", Members::Share(1_000)), Ring::new("rest", Members::Rest)];
    for ring in &mut policy.rings {
        ring.soak = Duration::from_secs(60);
    }
    policy
}

fn item(cluster_type: &str, workload: &str) -> Item {
    Item {
        cluster_type: cluster_type.to_owned(),
        assignment: format!("{workload}-prod"),
        workload: workload.to_owned(),
        removes: false,
    }
}

fn rollout(policy: EnvironmentPolicy, items: &[Item]) -> Rollout {
    let cause = Cause {
        subject: "change".to_owned(),
        author: "Anna Berg <anna@example.com>".to_owned(),
        ..Cause::of_commit("c1")
    };
    Rollout::new(RolloutId(1), "prod", Lane::Platform, cause, Arc::new(policy), items.into(), at(0))
}

fn counts(converged: u64, failed: u64, offline: u64, waiting: u64) -> Counts {
    Counts { converged, converging: 0, failed, offline, waiting }
}

fn facts(canary: Counts, rest: Counts) -> Facts {
    let ring = |counts| RingFacts { counts: vec![counts], checks: BTreeMap::new() };
    let rings = BTreeMap::from([("canary".to_owned(), ring(canary)), ("rest".to_owned(), ring(rest))]);
    Facts { rings, quarantined: Vec::new() }
}

/// The next value, which must be at rest.
fn step(rollout: &Rollout, facts: &Facts, now: Timestamp) -> Rollout {
    let next = advance(rollout, facts, now).unwrap_or_else(|| rollout.clone());
    assert_eq!(advance(&next, facts, now), None);
    next
}

fn say(rollout: &Rollout, who: &str, say: Say) -> Result<Rollout, Refused> {
    let (role, reason) = ("platform".to_owned(), "because".to_owned());
    let email = format!("{who}@example.org");
    let person = Person::new(&who.to_lowercase(), &[&email]);
    let word = Word { who: who.to_owned(), person, role, at: at(1), reason, say, new_token: false };
    hear(rollout, word)
}

fn states(rollout: &Rollout) -> Vec<RingState> {
    rollout.rings.iter().map(|ring| ring.state).collect()
}

const DONE: Counts = Counts { converged: 5, converging: 0, failed: 0, offline: 0, waiting: 0 };
const IDLE: Counts = Counts { converged: 0, converging: 0, failed: 0, offline: 0, waiting: 5 };
const BAD: Counts = Counts { converged: 4, converging: 0, failed: 1, offline: 0, waiting: 0 };

#[test]
fn rings_follow_each_other_after_their_soak() {
    let first = step(&rollout(policy(), &[item("large", "web")]), &facts(IDLE, IDLE), at(0));
    assert_eq!(states(&first), [RingState::Rolling, RingState::Waiting]);
    assert_eq!(first.rings[0].waits_for, ["0 of 5 reached, at least 3 (50 %) are needed; 0 offline, 5 waiting"]);
    assert_eq!(first.rings[1].waits_for, ["the ring canary before it"]);
    let soaking = step(&first, &facts(DONE, IDLE), at(10));
    assert_eq!(
        soaking.rings[0].waits_for,
        ["soaks 1m: its gate holds since 2026-11-16T12:00:10Z, until 2026-11-16T12:01:10Z"]
    );
    assert_eq!(step(&soaking, &facts(DONE, IDLE), at(69)), soaking);
    let second = step(&soaking, &facts(DONE, IDLE), at(70));
    assert_eq!(states(&second), [RingState::Passed, RingState::Rolling]);
    assert_eq!(second.rings[0].counts, [DONE]);
    let done = step(&step(&second, &facts(DONE, DONE), at(80)), &facts(DONE, DONE), at(140));
    assert_eq!(done.phase, Phase::Complete { at: at(140) });
    assert!(done.yields() && !second.yields() && first.yields());
}

#[test]
fn a_break_starts_the_soak_again() {
    let first = step(&rollout(policy(), &[item("large", "web")]), &facts(DONE, IDLE), at(0));
    let broken = step(&first, &facts(Counts { converging: 1, ..DONE }, IDLE), at(50));
    assert_eq!(broken.rings[0].steady_since, None);
    let again = step(&broken, &facts(DONE, IDLE), at(55));
    assert_eq!(states(&step(&again, &facts(DONE, IDLE), at(61)))[0], RingState::Rolling);
    assert_eq!(states(&step(&again, &facts(DONE, IDLE), at(115)))[0], RingState::Passed);
}

#[test]
fn numbers_that_leave_the_gate_open_do_not_touch_the_soak() {
    let first = step(&rollout(policy(), &[item("large", "web")]), &facts(DONE, IDLE), at(0));
    let joined = step(&first, &facts(counts(6, 0, 1, 0), IDLE), at(30));
    assert_eq!(joined.rings[0].steady_since, Some(at(0)));
}

#[test]
fn failures_beyond_the_budget_stop_the_ring_and_resume_forgives_them() {
    let first = step(&rollout(policy(), &[item("large", "web")]), &facts(IDLE, IDLE), at(0));
    let stopped = step(&first, &facts(BAD, IDLE), at(5));
    let why = "ring canary: 1 of 5 failed, the budget is 0".to_owned();
    assert_eq!(stopped.phase, Phase::Stopped { ring: "canary".to_owned(), why: why.clone(), at: at(5) });
    assert_eq!(states(&stopped), [RingState::Stopped, RingState::Waiting]);
    assert_eq!(stopped.closed("canary", at(6)), Some(why));
    assert_eq!(step(&stopped, &facts(DONE, IDLE), at(500)), stopped);
    let resumed = step(&say(&stopped, "ben", Say::Resume).unwrap(), &facts(BAD, IDLE), at(6));
    assert_eq!((resumed.phase.clone(), resumed.rings[0].forgiven), (Phase::Active, 1));
    let worse = step(&resumed, &facts(counts(3, 2, 0, 0), IDLE), at(7));
    assert!(matches!(worse.phase, Phase::Stopped { .. }));
    let mended = step(&resumed, &facts(DONE, IDLE), at(8));
    assert_eq!(mended.rings[0].forgiven, 0);
}

#[test]
fn the_policy_may_roll_back_what_was_reached() {
    let mut careful = policy();
    careful.rings[1].failure.then = Then::Rollback;
    careful.rings[0].soak = Duration::ZERO;
    let second = step(&rollout(careful, &[item("large", "web")]), &facts(DONE, IDLE), at(0));
    assert_eq!(states(&second), [RingState::Passed, RingState::Rolling]);
    let back = step(&second, &facts(DONE, BAD), at(5));
    assert_eq!(states(&back), [RingState::Returned, RingState::Returned]);
    assert!(matches!(&back.phase, Phase::RolledBack { why, .. } if why == "ring rest: 1 of 5 failed, the budget is 0"));
}

#[test]
fn a_late_failure_in_a_ring_that_passed_stops_the_next() {
    let mut quick = policy();
    quick.rings[0].soak = Duration::ZERO;
    let second = step(&rollout(quick, &[item("large", "web")]), &facts(DONE, IDLE), at(0));
    let stopped = step(&second, &facts(BAD, IDLE), at(5));
    assert_eq!(states(&stopped), [RingState::Stopped, RingState::Stopped]);
    let resumed = say(&stopped, "ben", Say::Resume).unwrap();
    assert_eq!(states(&resumed), [RingState::Passed, RingState::Rolling]);
}

#[test]
fn a_quarantine_stops_it_until_a_person_overrides() {
    let quarantined = Facts { quarantined: vec!["large/web-prod".to_owned()], ..facts(IDLE, IDLE) };
    let stopped = step(&rollout(policy(), &[item("large", "web")]), &quarantined, at(0));
    assert_eq!(states(&stopped), [RingState::Waiting, RingState::Waiting]);
    assert!(matches!(&stopped.phase, Phase::Stopped { why, .. } if why.ends_with("large/web-prod into quarantine")));
    let again = step(&say(&stopped, "ben", Say::Resume).unwrap(), &quarantined, at(1));
    assert!(matches!(again.phase, Phase::Stopped { .. }));
    let taken = step(&say(&stopped, "ben", Say::Override { ring: None }).unwrap(), &quarantined, at(2));
    assert_eq!(states(&taken), [RingState::Rolling, RingState::Waiting]);
    assert_eq!(taken.accepted, ["large/web-prod"]);
}

#[test]
fn nothing_to_observe_waits_for_a_person() {
    let empty = facts(Counts::default(), DONE);
    let first = step(&rollout(policy(), &[item("large", "web")]), &empty, at(0));
    assert!(first.rings[0].empty);
    assert_eq!(step(&first, &empty, at(9_999)), first);
    let approved = step(&say(&first, "ben", Say::Approve { ring: None }).unwrap(), &empty, at(10));
    assert_eq!(states(&approved), [RingState::Passed, RingState::Rolling]);
    let mut explicit = policy();
    explicit.rings[0].gate.empty = Empty::Pass;
    let passed = step(&rollout(explicit, &[item("large", "web")]), &empty, at(0));
    assert_eq!(states(&passed), [RingState::Passed, RingState::Rolling]);
}

#[test]
fn an_assignment_that_no_cluster_has_is_not_passed_by_the_others() {
    let items = [item("large", "web"), item("small", "web")];
    let ring = RingFacts { counts: vec![DONE, Counts::default()], checks: BTreeMap::new() };
    let rings = BTreeMap::from([("canary".to_owned(), ring.clone()), ("rest".to_owned(), ring)]);
    let facts = Facts { rings, quarantined: Vec::new() };
    let mut rollout = rollout(policy(), &items);
    for seconds in [0, 60, 120, 9_999] {
        rollout = step(&rollout, &facts, at(seconds));
    }
    assert_eq!(states(&rollout), [RingState::Passed, RingState::Rolling]);
    assert!(rollout.rings[1].waits_for[0].starts_with("nothing to observe of small/web-prod: no cluster of prod"));
    let done = step(&say(&rollout, "ben", Say::Approve { ring: None }).unwrap(), &facts, at(10_000));
    assert_eq!(done.phase, Phase::Complete { at: at(10_000) });
}

#[test]
fn removals_alone_are_nothing_to_observe_and_beside_others_do_not_count() {
    let gone = Item { removes: true, ..item("large", "old") };
    let alone = step(&rollout(policy(), std::slice::from_ref(&gone)), &facts(Counts::default(), IDLE), at(0));
    assert!(alone.rings[0].waits_for[0].contains("no assignment that changed counts"));
    let ring = RingFacts { counts: vec![Counts::default(), DONE], checks: BTreeMap::new() };
    let rings = BTreeMap::from([("canary".to_owned(), ring)]);
    let both = rollout(policy(), &[gone, item("large", "web")]);
    let passed = step(&step(&both, &Facts { rings, quarantined: Vec::new() }, at(0)), &Facts::default(), at(1));
    assert_eq!(passed.rings[0].waits_for, ["its clusters have not been counted yet"]);
}

#[test]
fn what_does_not_count_decides_nothing() {
    let mut narrow = policy();
    narrow.counts.workloads = vec!["web".to_owned()];
    let ring = RingFacts { counts: vec![DONE, BAD], checks: BTreeMap::new() };
    let rings = BTreeMap::from([("canary".to_owned(), ring.clone()), ("rest".to_owned(), ring)]);
    let first = rollout(narrow, &[item("large", "web"), item("large", "other")]);
    let facts = Facts { rings, quarantined: Vec::new() };
    assert_eq!(states(&step(&step(&first, &facts, at(0)), &facts, at(60)))[0], RingState::Passed);
}

#[test]
fn a_ring_begins_with_its_approvals_inside_its_window() {
    let mut guarded = policy();
    guarded.rings[0].approval = Some(Approval { people: 2, role: ApproverRole::Platform, not_author: true });
    // Monday from 13:00.
    guarded.windows = vec![Window { days: vec![1], from: 780, to: 840, time_zone: "UTC".to_owned() }];
    let first = step(&rollout(guarded, &[item("large", "web")]), &facts(IDLE, IDLE), at(0));
    assert_eq!(
        first.rings[0].waits_for,
        [
            "needs 2 approvals from the platform team, not from its author",
            "outside its time windows; it opens 2026-11-16T13:00:00Z"
        ]
    );
    assert_eq!(say(&first, "anna berg", Say::Approve { ring: None }).unwrap_err().reason, "OwnChange");
    let one = say(&first, "ben", Say::Approve { ring: None }).unwrap();
    assert_eq!(say(&one, "Ben", Say::Approve { ring: None }).unwrap_err().reason, "AlreadyApproved");
    let two = say(&one, "carl", Say::Approve { ring: Some("canary".to_owned()) }).unwrap();
    let two = step(&two, &facts(IDLE, IDLE), at(2));
    assert_eq!(states(&two)[0], RingState::Waiting);
    assert_eq!(states(&step(&two, &facts(IDLE, IDLE), at(3_600)))[0], RingState::Rolling);
    let now = say(&two, "ben", Say::Now).unwrap();
    let rolling = step(&now, &facts(IDLE, IDLE), at(3));
    assert_eq!(states(&rolling)[0], RingState::Rolling);
    assert_eq!(rolling.closed("canary", at(4)), None);
}

#[test]
fn a_ring_that_rolls_is_closed_outside_its_window() {
    let mut guarded = policy();
    guarded.windows = vec![Window { days: vec![1], from: 720, to: 721, time_zone: "UTC".to_owned() }];
    let first = step(&rollout(guarded, &[item("large", "web")]), &facts(IDLE, IDLE), at(0));
    assert_eq!(first.closed("canary", at(59)), None);
    assert!(first.closed("canary", at(60)).is_some());
}

#[test]
fn late_failures_are_shown_and_reopen_where_the_policy_says_so() {
    let complete = |late| {
        let mut policy = policy();
        policy.late = late;
        policy.rings.iter_mut().for_each(|ring| ring.soak = Duration::ZERO);
        step(&rollout(policy, &[item("large", "web")]), &facts(counts(4, 0, 1, 0), DONE), at(0))
    };
    let shown = step(&complete(Late::Show), &facts(BAD, DONE), at(99));
    assert_eq!((shown.late_failed, &shown.phase), (1, &Phase::Complete { at: at(0) }));
    let open = step(&complete(Late::Reopen), &facts(BAD, DONE), at(99));
    assert!(matches!(&open.phase, Phase::Stopped { why, .. } if why.ends_with("after it was complete")));
    let closed = step(&say(&open, "ben", Say::Resume).unwrap(), &facts(BAD, DONE), at(100));
    assert_eq!(closed.phase, Phase::Complete { at: at(100) });
}

#[test]
fn pausing_holds_everything_but_failures() {
    let first = step(&rollout(policy(), &[item("large", "web")]), &facts(DONE, IDLE), at(0));
    let paused = step(&say(&first, "ben", Say::Pause).unwrap(), &facts(DONE, IDLE), at(70));
    assert_eq!(states(&paused)[0], RingState::Rolling);
    assert_eq!(paused.rings[0].waits_for, ["paused by ben since 2026-11-16T12:00:01Z"]);
    assert!(!paused.yields());
    assert_eq!(paused.halted_by().as_deref(), Some("ben: because"));
    assert_eq!(first.halted_by(), None);
    assert!(matches!(step(&paused, &facts(BAD, IDLE), at(71)).phase, Phase::Stopped { .. }));
    let resumed = step(&say(&paused, "ben", Say::Resume).unwrap(), &facts(DONE, IDLE), at(72));
    assert_eq!(states(&resumed), [RingState::Passed, RingState::Rolling]);
}

#[test]
fn an_override_passes_the_ring_that_waits_and_needs_a_reason_and_a_role() {
    let mut quiet = policy();
    quiet.rings[0].gate.reached = Amount::Number(9);
    let first = step(&rollout(quiet, &[item("large", "web")]), &facts(DONE, IDLE), at(0));
    let word = |role: &str, reason: &str, ring: Option<&str>| Word {
        who: "ben".to_owned(),
        person: Person::new("ben", &[]),
        role: role.to_owned(),
        at: at(1),
        reason: reason.to_owned(),
        say: Say::Override { ring: ring.map(str::to_owned) },
        new_token: false,
    };
    assert_eq!(hear(&first, word("platform", " ", None)).unwrap_err().reason, "ReasonNeeded");
    assert_eq!(hear(&first, word("application", "x", None)).unwrap_err().reason, "RoleNeeded");
    assert_eq!(hear(&first, word("platform", "x", Some("rest"))).unwrap_err().reason, "NotItsTurn");
    assert_eq!(hear(&first, word("platform", "x", Some("moon"))).unwrap_err().reason, "NoSuchRing");
    let over = step(&hear(&first, word("platform", "x", None)).unwrap(), &facts(DONE, IDLE), at(2));
    assert_eq!(states(&over), [RingState::Passed, RingState::Rolling]);
}

#[test]
fn words_that_do_not_fit_the_phase_are_refused() {
    let first = step(&rollout(policy(), &[item("large", "web")]), &facts(IDLE, IDLE), at(0));
    let reason = |rollout: &Rollout, word| say(rollout, "ben", word).unwrap_err().reason;
    assert_eq!(reason(&first, Say::Resume), "NothingToResume");
    assert_eq!(reason(&first, Say::Approve { ring: None }), "NothingToApprove");
    let aborted = say(&first, "ben", Say::Abort).unwrap();
    assert_eq!(states(&aborted), [RingState::Rolling, RingState::Waiting]);
    assert_eq!(reason(&aborted, Say::Pause), "Ended");
    let back = say(&aborted, "ben", Say::Rollback).unwrap();
    assert_eq!(states(&back), [RingState::Returned, RingState::Waiting]);
    assert_eq!(back.phase, Phase::RolledBack { why: "by ben: because".to_owned(), at: at(1) });
    assert_eq!(reason(&back, Say::Rollback), "AlreadyRolledBack");
    let superseded = first.superseded(RolloutId(7), at(1)).unwrap();
    assert_eq!(
        say(&superseded, "ben", Say::Rollback).unwrap_err().message,
        "superseded by rollout 7: rollback that one"
    );
    assert_eq!(back.superseded(RolloutId(7), at(1)), None);
}

#[test]
fn a_promotion_s_approval_is_one_of_the_first_ring() {
    let mut guarded = policy();
    guarded.rings[0].approval = Some(Approval { people: 1, role: ApproverRole::Platform, not_author: true });
    let word = |say| Word {
        who: "ben".to_owned(),
        person: Person::new("ben", &["ben@example.org"]),
        role: "platform".to_owned(),
        at: at(1),
        reason: "because".to_owned(),
        say,
        new_token: false,
    };
    let words = [word(Say::Approve { ring: None }), word(Say::Override { ring: None })];
    let seeded = rollout(guarded.clone(), &[item("large", "web")]).with_words(&words[..1]);
    assert_eq!(states(&step(&seeded, &facts(IDLE, IDLE), at(2)))[0], RingState::Rolling);
    // An override of the gates before lets it begin here, and doesn't pass its gate here.
    let over = rollout(guarded, &[item("large", "web")]).with_words(&words[1..]);
    assert_eq!(states(&step(&over, &facts(IDLE, IDLE), at(2))), [RingState::Rolling, RingState::Waiting]);
}
