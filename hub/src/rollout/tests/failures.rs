//! Failures, ways back, quarantines, and what became of a main commit.

use kedge_hub_types::pack::PackedEntry;
use kedge_model::kinds::{Late, Then};
use kedge_rollout::chain::OutcomeState;
use kedge_rollout::{Phase, RingState, Say};

use crate::rollout::outcome;
use crate::rollout::testing::{Lab, SOAK, Says, content, policy};
use crate::rollout::words::SayError;

async fn settled(then: Then) -> (Lab, PackedEntry) {
    let mut rules = policy(&["canary", "rest"]);
    rules.rings.iter_mut().for_each(|ring| ring.failure.then = then);
    let lab = Lab::new(Some(rules)).await;
    lab.members("canary", "Reporting", 2).await;
    lab.members("rest", "Reporting", 2).await;
    let first = content("p1", "w1");
    lab.head_of("c1", Some("m1"), &[("drone", &[("a", first.clone())])]).await;
    lab.through("canary", "a", &first, 2).await;
    lab.through("rest", "a", &first, 2).await;
    lab.pass().await;
    (lab, first)
}

#[tokio::test]
async fn a_failure_stops_the_ring_and_other_assignments_go_on() {
    let (lab, first) = settled(Then::Pause).await;
    let bad = content("p2", "w1");
    lab.head("c2", &[("a", bad.clone())]).await;
    lab.report("canary", "a", &bad, Says::Failed, 1).await;
    lab.pass().await;
    assert!(matches!(lab.newest().await.rollout.phase, Phase::Stopped { .. }));
    assert!(lab.has("canary", "a", &bad).await && lab.has("rest", "a", &first).await);
    let limits = lab.store.ring_limits("dev").await.unwrap();
    assert!(limits["canary"].closed, "nobody else gets it: {limits:?}");

    lab.head("c3", &[("a", bad.clone()), ("b", content("p1", "w1"))]).await;
    assert_eq!(lab.rollouts().await.len(), 3);
    assert!(lab.has("canary", "b", &content("p1", "w1")).await);
    assert!(!lab.store.ring_limits("dev").await.unwrap()["canary"].closed);
    // New content of the one that failed takes its place.
    let mended = content("p3", "w1");
    lab.head("c4", &[("a", mended.clone()), ("b", content("p1", "w1"))]).await;
    assert!(lab.has("canary", "a", &mended).await);
    let all = lab.rollouts().await;
    assert!(matches!(all[2].rollout.phase, Phase::Superseded { by, .. } if by == all[0].rollout.id));
    assert_eq!(all[1].rollout.phase, Phase::Active, "the unrelated one isn't disturbed");
}

#[tokio::test]
async fn a_failure_counts_in_the_lane_whose_package_does_not_run() {
    let (lab, first) = settled(Then::Pause).await;
    let (good, bad) = (content("p2", "w1"), content("p2", "w2"));
    lab.head("c2", &[("a", good.clone())]).await;
    lab.report("canary", "a", &good, Says::Converged, 2).await;
    lab.pass().await;
    // A bad commit of the application comes while the platform's soaks: the boxes go back to the platform's new package.
    lab.head("c2", &[("a", bad.clone())]).await;
    lab.report("canary", "a", &good, Says::Converged, 0).await;
    lab.report_running("canary", "a", [&bad, &good], Says::Failed, 2).await;
    lab.pass().await;
    let phases = async || lab.rollouts().await.into_iter().map(|stored| stored.rollout.phase).collect::<Vec<_>>();
    assert!(matches!(phases().await[..2], [Phase::Stopped { .. }, Phase::Active]), "{:?}", phases().await);
    lab.wait(SOAK);
    lab.pass().await;
    assert_eq!(lab.ring(2, "canary").await, RingState::Passed, "the soak of the platform's goes on");

    // Both came at once, and the old of both runs: which one it was can't be told, so neither goes on.
    lab.report_running("canary", "a", [&bad, &good], Says::Failed, 0).await;
    lab.report_running("rest", "a", [&good, &first], Says::Failed, 1).await;
    lab.pass().await;
    assert!(matches!(phases().await[..2], [Phase::Stopped { .. }, Phase::Stopped { .. }]), "{:?}", phases().await);
}

#[tokio::test]
async fn going_back_by_policy_is_a_new_generation_with_the_old_content_and_is_not_tried_again() {
    let (lab, first) = settled(Then::Rollback).await;
    let before = lab.state_of("canary").await.generation;
    let bad = content("p2", "w1");
    lab.head("c2", &[("a", bad.clone())]).await;
    lab.report("canary", "a", &bad, Says::Failed, 2).await;
    lab.pass().await;
    assert!(matches!(lab.newest().await.rollout.phase, Phase::RolledBack { .. }));
    assert!(lab.has("canary", "a", &first).await);
    assert_eq!(lab.state_of("canary").await.generation.0, before.0 + 2);
    lab.head("c3", &[("a", bad.clone())]).await;
    lab.pass().await;
    assert_eq!(lab.rollouts().await.len(), 2, "the same content isn't started again");
    // Until a person says so. The clusters run the old content by then.
    lab.report("canary", "a", &bad, Says::Failed, 0).await;
    let mut tx = lab.store.write().await.unwrap();
    assert_eq!(tx.unblock("dev", None, Some("workload-a")).await.unwrap(), 1);
    tx.commit().await.unwrap();
    lab.pass().await;
    assert_eq!(lab.newest().await.rollout.id.0, 3);
    assert!(lab.has("canary", "a", &bad).await);
}

#[tokio::test]
async fn the_way_back_leads_past_content_that_never_passed() {
    let (lab, first) = settled(Then::Pause).await;
    lab.head("c2", &[("a", content("p2", "w1"))]).await;
    lab.head("c3", &[("a", content("p3", "w1"))]).await;
    lab.say(3, Say::Rollback).await.unwrap();
    lab.pass().await;
    assert!(lab.has("canary", "a", &first).await);
    assert_eq!(lab.ring(3, "canary").await, RingState::Returned);
}

#[tokio::test]
async fn a_newcomer_that_goes_back_is_removed_and_the_other_lane_keeps_its_part() {
    let (lab, first) = settled(Then::Pause).await;
    lab.head("c2", &[("a", first.clone()), ("b", content("p1", "w1"))]).await;
    lab.say(2, Say::Rollback).await.unwrap();
    lab.pass().await;
    let state = lab.state_of("canary").await;
    assert_eq!((state.entries.len(), state.removed.len()), (1, 1));

    lab.head("c3", &[("a", content("p2", "w1"))]).await;
    lab.head("c3", &[("a", content("p2", "w2"))]).await;
    lab.say(3, Say::Rollback).await.unwrap();
    lab.pass().await;
    assert!(lab.has("canary", "a", &content("p1", "w2")).await, "the application's part stays");
}

#[tokio::test]
async fn offline_clusters_are_counted_apart_and_a_late_failure_is_shown() {
    let (lab, _) = settled(Then::Pause).await;
    lab.members("canary", "Reporting", 1).await;
    lab.members("canary", "Unknown", 1).await;
    let second = content("p2", "w1");
    lab.head_of("c2", Some("m2"), &[("drone", &[("a", second.clone())])]).await;
    assert_eq!(outcome(&lab.store, "dev", "m2").await.unwrap().state, OutcomeState::Moving);
    lab.through("canary", "a", &second, 1).await;
    lab.through("rest", "a", &second, 2).await;
    lab.pass().await;
    let state = outcome(&lab.store, "dev", "m2").await.unwrap();
    assert_eq!(state.state, OutcomeState::Complete { late_failed: 0 });
    let counts = lab.newest().await.rollout.rings[0].counts[0];
    assert_eq!((counts.converged, counts.offline), (1, 1));
    // It comes back and fails.
    lab.members("canary", "Reporting", 2).await;
    lab.members("canary", "Unknown", 0).await;
    lab.report("canary", "a", &second, Says::Failed, 1).await;
    lab.pass().await;
    let state = outcome(&lab.store, "dev", "m2").await.unwrap();
    assert_eq!(state.state, OutcomeState::Complete { late_failed: 1 });
}

#[tokio::test]
async fn a_late_failure_reopens_where_the_policy_says_so() {
    let (lab, _) = settled(Then::Pause).await;
    let mut rules = policy(&["canary", "rest"]);
    rules.late = Late::Reopen;
    lab.govern(Some(rules));
    let second = content("p2", "w1");
    lab.head_of("c2", Some("m2"), &[("drone", &[("a", second.clone())])]).await;
    lab.through("canary", "a", &second, 2).await;
    lab.through("rest", "a", &second, 2).await;
    lab.report("rest", "a", &second, Says::Failed, 1).await;
    lab.report("rest", "a", &second, Says::Converged, 1).await;
    lab.pass().await;
    assert!(matches!(lab.newest().await.rollout.phase, Phase::Stopped { .. }));
    let state = outcome(&lab.store, "dev", "m2").await.unwrap().state;
    assert!(matches!(state, OutcomeState::Failed { .. }), "{state:?}");
}

#[tokio::test]
async fn a_quarantine_fails_the_commit_that_caused_it_and_those_on_top_until_it_is_mended() {
    let (lab, _) = settled(Then::Pause).await;
    let stuck = [("a", content("p2", "w1")), ("b", PackedEntry::Quarantined)];
    lab.head_of("c2", Some("m2"), &[("drone", &stuck)]).await;
    assert!(matches!(lab.newest().await.rollout.phase, Phase::Stopped { .. }));
    let state = outcome(&lab.store, "dev", "m2").await.unwrap().state;
    assert!(matches!(state, OutcomeState::Failed { .. }), "{state:?}");
    // The next commit leaves it as it is: it contains the break, which hasn't passed.
    lab.head_of("c3", Some("m3"), &[("drone", &[("a", content("p3", "w1")), ("b", PackedEntry::Quarantined)])]).await;
    let OutcomeState::Failed { why } = outcome(&lab.store, "dev", "m3").await.unwrap().state else {
        panic!("m3 contains what m2 broke");
    };
    assert!(why.starts_with("drone/b is broken since m2, which it contains and which hasn't passed"), "{why}");
    // The one after that mends it.
    let (mended, still) = ([("a", content("p3", "w1"))], content("p3", "w1"));
    lab.head_of("c3", Some("m3"), &[("drone", &mended)]).await;
    for ring in ["canary", "rest"] {
        lab.through(ring, "a", &still, 2).await;
    }
    let state = outcome(&lab.store, "dev", "m3").await.unwrap().state;
    assert_eq!(state, OutcomeState::Complete { late_failed: 0 });
    // An application's commit that can't be packed is not the platform's.
    lab.head_of("c3", Some("m3"), &[("drone", &[("a", PackedEntry::Quarantined), ("b", PackedEntry::Quarantined)])])
        .await;
    let found = outcome(&lab.store, "dev", "m3").await.unwrap();
    assert_eq!(found.state, OutcomeState::Complete { late_failed: 0 });
    assert_eq!(found.remark.unwrap(), "2 assignments are in quarantine, and not because of this commit");
}

#[tokio::test]
async fn a_main_commit_that_changes_nothing_is_unchanged_once_it_was_compared() {
    let (lab, first) = settled(Then::Pause).await;
    assert_eq!(outcome(&lab.store, "dev", "m2").await.unwrap().state, OutcomeState::Moving);
    lab.head_of("c2", Some("m2"), &[("drone", &[("a", first)])]).await;
    assert_eq!(outcome(&lab.store, "dev", "m2").await.unwrap().state, OutcomeState::Unchanged);
    let before = outcome(&lab.store, "dev", "m1").await.unwrap();
    assert_eq!((before.rollout.map(|id| id.0), before.state), (Some(1), OutcomeState::Complete { late_failed: 0 }));
    lab.wait(SOAK);
}

#[tokio::test]
async fn an_aborted_rollout_whose_content_every_ring_has_needs_a_person_until_it_goes_on() {
    let (lab, first) = settled(Then::Pause).await;
    let second = content("p2", "w1");
    lab.head_of("c2", Some("m2"), &[("drone", &[("a", second.clone())])]).await;
    lab.through("canary", "a", &second, 2).await;
    assert!(lab.has("rest", "a", &second).await, "every ring has it; the last one soaks");
    let id = lab.newest().await.rollout.id;
    lab.say(id.0, Say::Abort).await.unwrap();
    for _ in 0..3 {
        lab.pass().await;
    }
    assert_eq!(lab.store.halted_rollouts().await.unwrap(), [id], "Git asks for it as before");
    let OutcomeState::Failed { why } = outcome(&lab.store, "dev", "m2").await.unwrap().state else { panic!() };
    assert!(why.contains("`kedge rollout start`"), "{why}");

    lab.say(id.0, Say::Resume).await.unwrap();
    lab.pass().await;
    assert!(lab.store.rollouts_blocked("dev").await.unwrap().is_empty());
    lab.through("rest", "a", &second, 2).await;
    let newest = lab.newest().await.rollout;
    assert!(newest.id == id && matches!(newest.phase, Phase::Complete { .. }), "{newest:?}");

    // Git asks for something else: nothing is owed, and there is nothing to resume.
    let third = content("p3", "w1");
    lab.head_of("c3", Some("m3"), &[("drone", &[("a", third.clone())])]).await;
    lab.through("canary", "a", &third, 2).await;
    let id = lab.newest().await.rollout.id;
    lab.say(id.0, Say::Abort).await.unwrap();
    lab.pass().await;
    lab.head_of("c4", Some("m4"), &[("drone", &[("a", first)])]).await;
    lab.pass().await;
    assert!(lab.store.halted_rollouts().await.unwrap().is_empty());
    let Err(SayError::Refused(refused)) = lab.say(id.0, Say::Resume).await else { panic!() };
    assert_eq!(refused.reason, "Ended");
}
