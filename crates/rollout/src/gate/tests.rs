//! The rules of a gate, each alone.

use kedge_model::kinds::{Members, Probe};

use super::*;

const NOW: Timestamp = Timestamp(1_794_830_400_000);

fn counts(converged: u64, converging: u64, failed: u64, offline: u64, waiting: u64) -> Counts {
    Counts { converged, converging, failed, offline, waiting }
}

fn ring() -> Ring {
    Ring::new("canary", Members::Rest)
}

fn sight(counts: Counts) -> Sight<'static> {
    Sight { cluster_type: "large", assignment: "web-prod", counts }
}

fn ask(ring: &Ring, seen: &[Sight<'_>]) -> Verdict {
    judge(ring, seen, 0, &BTreeMap::new(), NOW)
}

fn waits(why: &str) -> Verdict {
    Verdict::Waits { why: vec![why.to_owned()] }
}

#[test]
fn offline_clusters_do_not_block_and_too_few_reached_do() {
    assert_eq!(ask(&ring(), &[sight(counts(5, 0, 0, 5, 0))]), Verdict::Holds);
    assert_eq!(
        ask(&ring(), &[sight(counts(4, 0, 0, 5, 1))]),
        waits("4 of 10 reached, at least 5 (50 %) are needed; 5 offline, 1 waiting")
    );
    let mut number = ring();
    number.gate.reached = Amount::Number(7);
    assert_eq!(
        ask(&number, &[sight(counts(6, 0, 0, 4, 0))]),
        waits("6 of 10 reached, at least 7 are needed; 4 offline, 0 waiting")
    );
}

#[test]
fn the_converged_share_is_of_those_reached() {
    assert_eq!(
        ask(&ring(), &[sight(counts(8, 1, 0, 1, 0))]),
        waits("large/web-prod: 8 of 9 reached are converged, 100 % are needed; 1 converging, 0 failed")
    );
    let mut most = ring();
    most.gate.converged = 8_750;
    assert_eq!(
        ask(&most, &[sight(counts(7, 1, 0, 10, 0))]),
        Verdict::Waits { why: vec!["8 of 18 reached, at least 9 (50 %) are needed; 10 offline, 0 waiting".to_owned()] }
    );
    assert_eq!(ask(&most, &[sight(counts(7, 1, 0, 8, 0))]), Verdict::Holds);
    assert_eq!(
        ask(&most, &[sight(counts(6, 1, 0, 0, 0))]),
        waits("large/web-prod: 6 of 7 reached are converged, 87.5 % are needed; 1 converging, 0 failed")
    );
}

#[test]
fn failures_beyond_the_budget_fail_and_those_within_it_wait_for_the_gate() {
    assert_eq!(
        ask(&ring(), &[sight(counts(9, 0, 1, 0, 0))]),
        Verdict::Fails { why: vec!["ring canary: 1 of 10 failed, the budget is 0".to_owned()] }
    );
    let mut patient = ring();
    patient.failure.budget = Amount::Share(1_000);
    patient.gate.converged = 9_000;
    assert_eq!(ask(&patient, &[sight(counts(9, 0, 1, 0, 0))]), waits("1 of 10 failed, at most 0 may"));
    patient.gate.failed = Amount::Number(1);
    assert_eq!(ask(&patient, &[sight(counts(9, 0, 1, 0, 0))]), Verdict::Holds);
    assert_eq!(
        judge(&ring(), &[sight(counts(6, 0, 4, 0, 0))], 3, &BTreeMap::new(), NOW),
        Verdict::Fails { why: vec!["ring canary: 1 of 10 failed beside 3 forgiven, the budget is 0".to_owned()] }
    );
}

#[test]
fn nobody_to_observe_is_never_a_pass_by_itself() {
    for seen in [vec![], vec![sight(Counts::default())]] {
        assert!(matches!(ask(&ring(), &seen), Verdict::Nothing { .. }), "{seen:?}");
        let mut explicit = ring();
        explicit.gate.empty = Empty::Pass;
        assert_eq!(ask(&explicit, &seen), Verdict::Holds);
    }
    let mut anyone = ring();
    anyone.gate.reached = Amount::Number(0);
    assert_eq!(
        ask(&anyone, &[sight(counts(0, 0, 0, 3, 0))]),
        Verdict::Nothing { why: "nothing to observe in ring canary: none of 3 was reached".to_owned() }
    );
    assert!(matches!(ask(&ring(), &[sight(counts(0, 0, 0, 3, 0))]), Verdict::Waits { .. }));
}

#[test]
fn clusters_of_one_type_count_once_and_types_add_up() {
    let seen = [
        Sight { cluster_type: "large", assignment: "a", counts: counts(8, 0, 2, 0, 0) },
        Sight { cluster_type: "large", assignment: "b", counts: counts(7, 2, 1, 0, 0) },
        Sight { cluster_type: "small", assignment: "a", counts: counts(3, 0, 1, 1, 0) },
    ];
    assert_eq!(clusters(&seen), counts(10, 1, 3, 1, 0));
    assert_eq!(clusters(&[]), Counts::default());
}

#[test]
fn a_check_must_have_answered_well_and_lately() {
    let mut checked = ring();
    checked.gate.checks = vec![Check {
        name: "slo".to_owned(),
        probe: Probe::CommitStatus { context: "slo".to_owned() },
        every: Duration::from_secs(30),
        timeout: Duration::from_secs(5),
    }];
    let seen = [sight(counts(3, 0, 0, 0, 0))];
    let with = |ok, ago: i64| {
        let fact = CheckFact { ok, said: "burning".to_owned(), at: Timestamp(NOW.0 - ago * 1_000) };
        judge(&checked, &seen, 0, &BTreeMap::from([("slo".to_owned(), fact)]), NOW)
    };
    assert_eq!(ask(&checked, &seen), waits("check slo has not answered yet"));
    assert_eq!(with(false, 0), waits("check slo says: burning"));
    assert_eq!(with(true, 95), Verdict::Holds);
    assert_eq!(with(true, 96), waits("check slo answered last at 2026-11-16T11:58:24Z"));
}
