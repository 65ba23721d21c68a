//! What people say, on whatever hub, and restarts.

use kedge_model::kinds::{Approval, ApproverRole};
use kedge_model::wire::Stream;
use kedge_rollout::{Phase, RingState, Say};

use crate::rollout::testing::{Lab, content, policy};
use crate::rollout::words::SayError;

async fn rolling() -> Lab {
    let lab = Lab::new(Some(policy(&["canary", "rest"]))).await;
    lab.members("canary", "Reporting", 1).await;
    lab.members("rest", "Reporting", 1).await;
    lab.head("c1", &[("a", content("p1", "w1"))]).await;
    lab
}

#[tokio::test]
async fn a_word_is_taken_once_and_what_became_of_it_is_known() {
    let lab = rolling().await;
    let said = lab.say(1, Say::Pause).await.unwrap();
    assert_eq!(lab.store.word(said).await.unwrap().unwrap().taken_at, None);
    assert_eq!(lab.store.environments_with_words().await.unwrap(), ["dev"]);
    // Another one, before the first is taken, fits the stored value and not the next one.
    let twice = lab.say(1, Say::Pause).await.unwrap();
    lab.pass().await;
    assert!(matches!(lab.newest().await.rollout.phase, Phase::Paused { .. }));
    assert_eq!(lab.store.word(said).await.unwrap().unwrap().refused, None);
    assert!(lab.store.word(twice).await.unwrap().unwrap().refused.is_some());
    assert!(lab.store.environments_with_words().await.unwrap().is_empty());
    assert!(lab.store.ring_limits("dev").await.unwrap()["canary"].closed);
    lab.say(1, Say::Resume).await.unwrap();
    lab.pass().await;
    assert!(!lab.store.ring_limits("dev").await.unwrap()["canary"].closed);
}

#[tokio::test]
async fn an_approval_lets_a_ring_begin() {
    let lab = rolling().await;
    let mut rules = policy(&["canary", "rest"]);
    rules.rings[0].approval = Some(Approval { people: 1, role: ApproverRole::Platform, not_author: true });
    lab.govern(Some(rules));
    lab.head("c2", &[("a", content("p2", "w1"))]).await;
    assert_eq!(lab.ring(2, "canary").await, RingState::Waiting);
    lab.say(2, Say::Approve { ring: None }).await.unwrap();
    lab.pass().await;
    assert_eq!(lab.ring(2, "canary").await, RingState::Rolling);
    assert_eq!(lab.newest().await.rollout.words[0].who, "grace");
}

#[tokio::test]
async fn a_complete_rollout_goes_back_unless_a_newer_one_builds_on_it() {
    let lab = rolling().await;
    let first = content("p1", "w1");
    for ring in ["canary", "rest"] {
        lab.through(ring, "a", &first, 1).await;
    }
    lab.head("c2", &[("a", content("p2", "w1"))]).await;
    let refused = lab.say(1, Say::Rollback).await;
    let Err(SayError::Refused(refused)) = refused else { panic!("{refused:?}") };
    assert_eq!(refused.reason, "NewerRollout");
    assert!(refused.message.contains("rollout 2"), "{}", refused.message);
    lab.say(2, Say::Abort).await.unwrap();
    lab.pass().await;
    assert!(lab.has("canary", "a", &content("p2", "w1")).await, "what was reached stays");
    lab.say(2, Say::Rollback).await.unwrap();
    lab.pass().await;
    assert!(lab.has("canary", "a", &first).await);
    lab.say(1, Say::Rollback).await.unwrap();
    lab.pass().await;
    assert!(lab.state_of("canary").await.entries.is_empty(), "it was the first: it goes");
    assert!(lab.state_of("rest").await.entries.is_empty());
}

#[tokio::test]
async fn a_restart_raises_the_counter_of_whole_streams_with_and_without_a_policy() {
    for rules in [None, Some(policy(&["all"]))] {
        let lab = Lab::new(rules).await;
        lab.members("all", "Reporting", 1).await;
        lab.head("c1", &[("a", content("p1", "w1")), ("b", content("p1", "w1"))]).await;
        let mut tx = lab.store.write().await.unwrap();
        let tick = tx.tick().await.unwrap();
        tx.raise_restart(&Stream::new("dev", "drone", "all"), "a", tick).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(lab.store.restarts_after(0).await.unwrap(), (vec!["dev".to_owned()], tick));
        assert_eq!(lab.pass().await.issued.len(), 1);
        let state = lab.state_of("all").await;
        assert_eq!(state.entries.iter().map(|entry| entry.restart).collect::<Vec<_>>(), [1, 0]);
        assert_eq!(lab.pass().await.issued.len(), 0);
    }
}
