//! What people say, on whatever hub, and restarts.

use kedge_model::kinds::{Approval, ApproverRole};
use kedge_model::wire::Stream;
use kedge_rollout::{Person, Phase, RingState, Say, Standing, Word};
use serde_json::json;

use crate::rollout::head::Occasion;
use crate::rollout::testing::{Lab, TERM, at, content, occasion, policy};
use crate::rollout::words::SayError;
use crate::store::promotion::{PromotionRow, PromotionSave};

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

/// A commit of main that eve let in.
async fn lets_in(lab: &Lab, main: &str, phase: &str) {
    let said = Word {
        who: "eve".to_owned(),
        person: Person::new("eve", &["eve@example.org"]),
        role: "platform".to_owned(),
        at: lab.now(),
        reason: "fine".to_owned(),
        say: Say::Approve { ring: None },
        new_token: false,
    };
    let promotion = json!({"commit": main, "subject": "s", "author": "a", "phase": {"phase": phase}, "createdAt": 1,
        "words": [serde_json::to_value(&said).unwrap()]});
    let standing: Standing = serde_json::from_value(json!({"promotions": [promotion]})).unwrap();
    let row = PromotionRow { standing, in_force: Some(main.to_owned()), trouble: None };
    let save = PromotionSave { rows: [("dev".to_owned(), row)].into(), ..PromotionSave::default() };
    lab.store.save_promotions(TERM, &save).await.unwrap();
}

#[tokio::test]
async fn an_environments_own_change_never_has_the_approval_of_a_main_commit() {
    let lab = rolling().await;
    for ring in ["canary", "rest"] {
        lab.through(ring, "a", &content("p1", "w1"), 1).await;
    }
    let mut rules = policy(&["canary", "rest"]);
    rules.rings[0].approval = Some(Approval { people: 1, role: ApproverRole::Platform, not_author: true });
    lab.govern(Some(rules));
    lets_in(&lab, "m1", "entered").await;
    lab.head_of("c2", Some("m1"), &[("drone", &[("a", content("p2", "w1"))])]).await;
    assert_eq!(lab.ring(2, "canary").await, RingState::Rolling, "what eve let in begins");
    assert_eq!(lab.newest().await.rollout.words[0].who, "eve");

    // Somebody pushes to the environment's branch meanwhile.
    let own = Occasion { subject_of: Some("own".to_owned()), ..occasion(Some("m1")) };
    lab.controller.issue(TERM, &at("c3", &[("drone", &[("a", content("p3", "w1"))])]), &own).await.unwrap();
    assert_eq!(lab.ring(3, "canary").await, RingState::Waiting);
    assert!(lab.newest().await.rollout.words.is_empty(), "nobody agreed to this");

    // The next commit of main brings it along.
    lets_in(&lab, "m2", "entered").await;
    lab.head_of("c4", Some("m2"), &[("drone", &[("a", content("p4", "w1"))])]).await;
    assert_eq!(lab.ring(4, "canary").await, RingState::Waiting);
    lab.say(4, Say::Approve { ring: None }).await.unwrap();
    for ring in ["canary", "rest"] {
        lab.pass().await;
        lab.through(ring, "a", &content("p4", "w1"), 1).await;
    }
    assert!(matches!(lab.newest().await.rollout.phase, Phase::Complete { .. }));

    // It has passed: whatever comes is another change, also where nobody knows any more who wrote it.
    lets_in(&lab, "m2", "passed").await;
    lab.head_of("c5", Some("m2"), &[("drone", &[("a", content("p5", "w1"))])]).await;
    assert_eq!(lab.ring(5, "canary").await, RingState::Waiting);
    assert!(lab.newest().await.rollout.words.is_empty());
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

#[tokio::test]
async fn the_leaders_task_takes_words_restarts_and_policies_by_itself() {
    let lab = rolling().await;
    let controller = std::sync::Arc::clone(&lab.controller);
    let task = tokio::spawn(async move { controller.lead(crate::rollout::testing::TERM).await });
    let mut moved = lab.shared.moved.listen();
    lab.say(1, Say::Pause).await.unwrap();
    lab.shared.nudge.nudge();
    moved.changed().await.unwrap();
    assert!(matches!(lab.newest().await.rollout.phase, Phase::Paused { .. }));
    // Without a nudge: another hub took it.
    lab.say(1, Say::Resume).await.unwrap();
    moved.changed().await.unwrap();
    assert_eq!(lab.newest().await.rollout.phase, Phase::Active);
    let mut shown = lab.desired_states.watch(&Stream::new("dev", "drone", "canary"));
    shown.mark_unchanged();
    let mut tx = lab.store.write().await.unwrap();
    let tick = tx.tick().await.unwrap();
    tx.raise_restart(&Stream::new("dev", "drone", "canary"), "a", tick).await.unwrap();
    tx.commit().await.unwrap();
    shown.changed().await.unwrap();
    lab.govern(None);
    moved.changed().await.unwrap();
    assert!(matches!(lab.newest().await.rollout.phase, Phase::Aborted { .. }));
    task.abort();
}

#[tokio::test]
async fn rollouts_words_and_ways_back_work_on_postgres() {
    let Some(lab) = Lab::on_postgres(Some(policy(&["canary", "rest"]))).await else { return };
    lab.members("canary", "Reporting", 1).await;
    lab.members("rest", "Reporting", 1).await;
    let (first, second) = (content("p1", "w1"), content("p2", "w2"));
    lab.head("c1", &[("a", first.clone()), ("b", first.clone())]).await;
    for ring in ["canary", "rest"] {
        lab.report(ring, "b", &first, crate::rollout::testing::Says::Converged, 1).await;
        lab.through(ring, "a", &first, 1).await;
    }
    assert!(matches!(lab.newest().await.rollout.phase, Phase::Complete { .. }));
    lab.head("c2", &[("a", second.clone())]).await;
    assert_eq!(lab.rollouts().await.len(), 3);
    assert!(lab.has("canary", "a", &second).await);
    lab.say(2, Say::Rollback).await.unwrap();
    lab.pass().await;
    assert!(lab.has("canary", "a", &content("p1", "w2")).await);
    assert_eq!(lab.state_of("canary").await.entries.len(), 2);
    assert_eq!(lab.store.rollouts_blocked("dev").await.unwrap().len(), 2);
    let mut tx = lab.store.write().await.unwrap();
    assert_eq!(tx.unblock("dev", Some("drone"), None).await.unwrap(), 2);
    let tick = tx.tick().await.unwrap();
    tx.raise_restart(&Stream::new("dev", "drone", "rest"), "a", tick).await.unwrap();
    tx.commit().await.unwrap();
    lab.pass().await;
    assert_eq!(lab.rollouts().await.len(), 4);
    assert!(!lab.store.rolling_blobs().await.unwrap().is_empty());
    let filter = crate::store::rollout::RolloutFilter {
        source_commit: Some("commit-w2"),
        workload: Some("workload-a"),
        unfinished: true,
        limit: 5,
        ..Default::default()
    };
    assert_eq!(lab.store.rollouts(&filter).await.unwrap().len(), 1);
    crate::rollout::outcome(&lab.store, "dev", "m1").await.unwrap();
}
