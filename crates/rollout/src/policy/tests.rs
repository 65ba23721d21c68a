//! Every way to loosen a policy is found, and what is stricter isn't one.

use std::time::Duration;

use kedge_model::Selector;
use kedge_model::kinds::{
    Amount, Approval, ApproverRole, Check, Empty, Failure, Freeze, Members, Probe, Ring, Then, Window,
};

use super::*;

fn check() -> Check {
    Check {
        name: "slo".to_owned(),
        probe: Probe::CommitStatus { context: "slo".to_owned() },
        every: Duration::from_secs(30),
        timeout: Duration::from_secs(5),
    }
}

fn window(days: &[u8], from: u16, to: u16) -> Window {
    Window { days: days.to_vec(), from, to, time_zone: "Europe/Berlin".to_owned() }
}

/// Strict in everything.
fn strict() -> PromotionPolicy {
    let mut canary = Ring::new("canary", Members::Share(1_000));
    canary.approval = Some(Approval { people: 2, role: ApproverRole::Platform, not_author: true });
    canary.failure = Failure { budget: Amount::Number(1), then: Then::Rollback };
    canary.gate.checks = vec![check()];
    let mut prod = EnvironmentPolicy::new("prod", vec!["qa".to_owned(), "perf".to_owned()]);
    prod.rings = vec![canary, Ring::new("rest", Members::Rest)];
    prod.windows = vec![window(&[1, 2, 3], 540, 960)];
    prod.freezes = vec![Freeze {
        from: "2026-12-20".to_owned(),
        to: "2027-01-03".to_owned(),
        time_zone: "Europe/Berlin".to_owned(),
        reason: String::new(),
    }];
    (prod.offline, prod.late) = (Offline::Incomplete, Late::Reopen);
    let first = |name: &str, after: &[&str]| {
        EnvironmentPolicy::new(name, after.iter().map(|name| (*name).to_owned()).collect())
    };
    PromotionPolicy {
        promoter: Promoter::Kedge,
        environments: vec![first("dev", &[]), first("qa", &["dev"]), first("perf", &["dev"]), prod],
    }
}

fn ways(change: impl FnOnce(&mut PromotionPolicy)) -> Vec<String> {
    let mut new = strict();
    change(&mut new);
    loosens(Some(&strict()), Some(&new))
}

fn of_canary(change: impl FnOnce(&mut Ring)) -> String {
    let mut found = ways(|policy| change(&mut policy.environments[3].rings[0]));
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn the_same_policy_and_the_first_one_are_not_looser() {
    assert_eq!(ways(|_| {}), Vec::<String>::new());
    assert_eq!(loosens(None, Some(&strict())), Vec::<String>::new());
    assert_eq!(loosens(None, None), Vec::<String>::new());
}

#[test]
fn each_way_to_loosen_a_ring_is_found() {
    assert_eq!(of_canary(|ring| ring.soak = Duration::from_secs(60)), "ring canary of prod soaks 1m instead of 10m");
    assert_eq!(
        of_canary(|ring| ring.gate.converged = 9_500),
        "ring canary of prod asks for 95 % converged instead of 100 %"
    );
    assert_eq!(
        of_canary(|ring| ring.gate.reached = Amount::Share(4_950)),
        "ring canary of prod asks for reached clusters: 49.5 % instead of 50 %"
    );
    assert_eq!(
        of_canary(|ring| ring.gate.reached = Amount::Number(3)),
        "ring canary of prod asks for reached clusters: 3 instead of 50 %"
    );
    assert_eq!(
        of_canary(|ring| ring.gate.failed = Amount::Number(2)),
        "ring canary of prod allows failed clusters: 2 instead of 0"
    );
    assert_eq!(
        of_canary(|ring| ring.gate.empty = Empty::Pass),
        "ring canary of prod passes when there is nothing to observe"
    );
    assert_eq!(of_canary(|ring| ring.gate.checks.clear()), "ring canary of prod no longer asks the check slo");
    assert_eq!(
        of_canary(|ring| ring.gate.checks[0].probe = Probe::CommitStatus { context: "yes".to_owned() }),
        "ring canary of prod asks something else in the check slo"
    );
    assert_eq!(of_canary(|ring| ring.approval = None), "ring canary of prod needs no approval any more");
    let approval = |people, role, not_author| {
        move |ring: &mut Ring| {
            ring.approval = Some(Approval { people, role, not_author });
        }
    };
    assert_eq!(
        of_canary(approval(1, ApproverRole::Platform, true)),
        "ring canary of prod needs 1 to approve instead of 2"
    );
    assert_eq!(
        of_canary(approval(2, ApproverRole::Application, true)),
        "ring canary of prod may be approved by application teams"
    );
    assert_eq!(
        of_canary(approval(2, ApproverRole::Platform, false)),
        "ring canary of prod may be approved by the author of the change"
    );
    assert_eq!(of_canary(approval(0, ApproverRole::Platform, true)), "ring canary of prod needs no approval any more");
    assert_eq!(
        of_canary(|ring| ring.failure.budget = Amount::Number(2)),
        "ring canary of prod has a failure budget of 2 instead of 1"
    );
    assert_eq!(
        of_canary(|ring| ring.failure.then = Then::Pause),
        "ring canary of prod no longer rolls back after failures"
    );
    assert_eq!(
        of_canary(|ring| ring.max_unavailable = Amount::Share(10_000)),
        "ring canary of prod changes at once 100 % instead of 25 %"
    );
    assert_eq!(
        of_canary(|ring| ring.members = Members::Share(2_000)),
        "ring canary of prod takes 20 % instead of 10 %"
    );
    assert_eq!(
        of_canary(|ring| ring.members = Members::Selected(Selector::label("a", "b"))),
        "ring canary of prod has other members"
    );
}

#[test]
fn each_way_to_loosen_an_environment_is_found() {
    let one = |change: fn(&mut EnvironmentPolicy)| {
        let found = ways(|policy| change(&mut policy.environments[3]));
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().unwrap()
    };
    assert_eq!(one(|prod| prod.windows.clear()), "environment prod has no time windows any more");
    assert_eq!(
        one(|prod| prod.windows[0].to = 970),
        "environment prod is open 30 minutes of the week more (Europe/Berlin)"
    );
    assert_eq!(
        one(|prod| prod.windows[0].time_zone = "UTC".to_owned()),
        "environment prod has time windows in another time zone, UTC"
    );
    assert_eq!(
        one(|prod| prod.freezes[0].to = "2027-01-02".to_owned()),
        "environment prod is no longer frozen from 2026-12-20 to 2027-01-03 (Europe/Berlin)"
    );
    assert_eq!(one(|prod| prod.counts.workloads = vec!["web".to_owned()]), "environment prod counts fewer workloads");
    assert_eq!(
        one(|prod| prod.counts.cluster_types = vec!["large".to_owned()]),
        "environment prod counts fewer cluster types"
    );
    assert_eq!(
        one(|prod| prod.offline = Offline::Complete),
        "environment prod is complete without its offline clusters"
    );
    assert_eq!(one(|prod| prod.late = Late::Show), "environment prod is no longer open again after late failures");
    assert_eq!(one(|prod| prod.after = vec!["qa".to_owned()]), "environment prod no longer comes after perf");
    assert_eq!(one(|prod| drop(prod.rings.remove(0))), "ring canary of prod is gone");
    assert_eq!(one(|prod| prod.rings.reverse()), "ring rest of prod comes earlier than before");
}

#[test]
fn a_chain_that_loses_an_environment_is_looser() {
    assert_eq!(loosens(Some(&strict()), None), ["the policy is gone: nothing would be gated any more"]);
    let found = ways(|policy| {
        policy.environments.remove(2);
        policy.environments[2].after = vec!["qa".to_owned()];
    });
    assert_eq!(found, ["environment perf is gone", "environment prod no longer comes after perf"]);
    assert_eq!(
        ways(|policy| policy.promoter = Promoter::External),
        ["promoted by an external workflow instead of kedge"]
    );
}

#[test]
fn a_new_ring_may_not_be_looser_than_the_one_it_takes_from() {
    let careful = ways(|policy| {
        let mut first = policy.environments[3].rings[0].clone();
        first.name = "lab".to_owned();
        policy.environments[3].rings.insert(0, first);
    });
    assert_eq!(careful, Vec::<String>::new());
    let loose = ways(|policy| {
        let mut all = policy.environments[3].rings[0].clone();
        (all.name, all.members, all.soak) = ("everyone".to_owned(), Members::Share(10_000), Duration::ZERO);
        policy.environments[3].rings.insert(0, all);
    });
    assert_eq!(loose, ["the new ring everyone of prod, measured by canary, soaks 0s instead of 10m"]);
}

#[test]
fn what_is_stricter_is_not_looser() {
    let found = ways(|policy| {
        let prod = &mut policy.environments[3];
        prod.windows = vec![window(&[1], 600, 700), window(&[3], 600, 700)];
        prod.freezes[0].from = "2026-12-01".to_owned();
        prod.after = vec!["qa".to_owned(), "perf".to_owned(), "dev".to_owned()];
        let canary = &mut prod.rings[0];
        canary.soak = Duration::from_secs(3_600);
        canary.gate.reached = Amount::Share(9_000);
        canary.members = Members::Share(500);
        canary.failure.budget = Amount::Number(0);
        canary.max_unavailable = Amount::Share(1_000);
    });
    assert_eq!(found, Vec::<String>::new());
    let implied = ways(|policy| policy.environments[3].after.push("dev".to_owned()));
    assert_eq!(implied, Vec::<String>::new());
}
