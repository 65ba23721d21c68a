//! Rollouts over a real database: heads come in, clusters are counts, and the desired states are what is looked at.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod failures;
mod lanes;
mod rings;
mod words;

use kedge_model::wire::Generation;
use kedge_rollout::{Phase, RingState};

use super::testing::{Lab, SOAK, Says, content, policy};

#[tokio::test]
async fn a_change_reaches_ring_after_ring_as_their_gates_hold() {
    let lab = Lab::new(Some(policy(&["canary", "rest"]))).await;
    lab.members("canary", "Reporting", 4).await;
    lab.members("rest", "Reporting", 10).await;
    let first = content("p1", "w1");
    lab.head("c1", &[("a", first.clone())]).await;
    assert!(lab.has("canary", "a", &first).await);
    assert!(lab.state_of("rest").await.entries.is_empty());
    assert_eq!(lab.newest().await.rollout.cause.author, "Ada <ada@example.org>");

    lab.report("canary", "a", &first, Says::Converged, 4).await;
    lab.pass().await;
    assert_eq!(lab.ring(1, "canary").await, RingState::Rolling, "it soaks");
    lab.wait(SOAK);
    lab.pass().await;
    assert!(lab.has("rest", "a", &first).await);
    lab.through("rest", "a", &first, 10).await;
    let done = lab.newest().await;
    assert!(matches!(done.rollout.phase, Phase::Complete { .. }), "{:?}", done.rollout);
    assert!(done.ended_at.is_some());
    assert_eq!(lab.rollouts().await.len(), 1, "nothing is left to do");
    assert_eq!(lab.state_of("rest").await.generation, Generation(2));
}

#[tokio::test]
async fn an_environment_without_a_policy_follows_its_head_at_once() {
    let lab = Lab::new(None).await;
    let first = content("p1", "w1");
    assert_eq!(lab.head("c1", &[("a", first.clone())]).await.issued.len(), 1);
    assert!(lab.has("all", "a", &first).await);
    assert!(lab.rollouts().await.is_empty());
    let second = content("p2", "w1");
    lab.head("c2", &[("a", second.clone())]).await;
    assert!(lab.has("all", "a", &second).await);
}

#[tokio::test]
async fn a_policy_adopts_what_runs_and_rings_begin_with_it() {
    let lab = Lab::new(None).await;
    let first = content("p1", "w1");
    lab.head("c1", &[("a", first.clone())]).await;
    lab.govern(Some(policy(&["canary", "rest"])));
    lab.pass().await;
    assert!(lab.has("canary", "a", &first).await && lab.has("rest", "a", &first).await);
    assert!(lab.rollouts().await.is_empty(), "nothing changed");
}

#[tokio::test]
async fn a_hub_that_dies_between_saving_and_issuing_goes_on_where_it_was() {
    let mut lab = Lab::new(Some(policy(&["canary", "rest"]))).await;
    lab.members("canary", "Reporting", 1).await;
    lab.members("rest", "Reporting", 1).await;
    let (first, second) = (content("p1", "w1"), content("p2", "w1"));
    lab.head("c1", &[("a", first.clone())]).await;
    lab.through("canary", "a", &first, 1).await;
    lab.through("rest", "a", &first, 1).await;
    lab.break_pen();
    let packed = super::testing::at("c2", &[("drone", &[("a", second.clone())])]);
    let died = lab.controller.issue(super::testing::TERM, &packed, &super::testing::occasion(None)).await;
    assert!(died.is_err());
    assert_eq!(lab.ring(2, "canary").await, RingState::Rolling, "saved");
    assert!(lab.has("canary", "a", &first).await, "and not issued");
    lab.restart();
    // Without a head: Git may be away.
    lab.pass().await;
    assert!(lab.has("canary", "a", &second).await);
    assert!(lab.has("rest", "a", &first).await);

    // The same with the last step: the rollout is complete in the database, and one ring lags.
    lab.head("c2", &[("a", second.clone())]).await;
    lab.report("canary", "a", &first, Says::Converged, 0).await;
    lab.report("canary", "a", &second, Says::Converged, 1).await;
    lab.pass().await;
    lab.wait(SOAK);
    lab.break_pen();
    assert!(lab.controller.pass(super::testing::TERM, "dev").await.is_err());
    lab.restart();
    lab.head("c2", &[("a", second.clone())]).await;
    assert!(lab.has("rest", "a", &second).await);
    assert_eq!(lab.rollouts().await.len(), 2, "no other rollout is made of it");
}
