//! What moves independently, what waits and what takes over.

use std::sync::Arc;

use kedge_hub_types::pack::PackedEntry;
use kedge_model::wire::{Generation, Stream};
use kedge_rollout::{Lane, Phase, RingState, RolloutId, Say};

use crate::pack::Origin;
use crate::rollout::testing::{Lab, SOAK, Says, TERM, at, content, occasion, policy, source_lane};

async fn settled() -> (Lab, PackedEntry) {
    let lab = Lab::new(Some(policy(&["canary", "rest"]))).await;
    lab.members("canary", "Reporting", 2).await;
    lab.members("rest", "Reporting", 2).await;
    let first = content("p1", "w1");
    lab.head("c1", &[("a", first.clone())]).await;
    lab.through("canary", "a", &first, 2).await;
    lab.through("rest", "a", &first, 2).await;
    assert!(matches!(lab.newest().await.rollout.phase, Phase::Complete { .. }));
    (lab, first)
}

#[tokio::test]
async fn a_commit_to_the_platform_moves_only_its_package_and_one_to_the_source_only_the_other() {
    let (lab, first) = settled().await;
    let (PackedEntry::Apply(old), second) = (first, content("p2", "w1")) else { panic!() };
    lab.head("c2", &[("a", second)]).await;
    let (_, held) = lab.holds("canary", "a").await;
    let held = held.unwrap();
    assert_ne!(held.platform.digest, old.platform.digest);
    assert_eq!(held.workload, old.workload);
    assert_eq!(lab.newest().await.rollout.lane, Lane::Platform);

    // The application's commit has a rollout of its own, beside it.
    lab.head("c2", &[("a", content("p2", "w2"))]).await;
    let newest = lab.newest().await.rollout;
    assert_eq!((newest.lane, newest.cause.commit.as_str()), (source_lane(), "commit-w2"));
    assert_eq!(newest.cause.subject, "subject of commit-w2");
    let items = lab.store.rollout_items(newest.id).await.unwrap();
    assert!(items[0].change.platform.is_none() && items[0].change.workload.is_some());
    assert!(lab.has("canary", "a", &content("p2", "w2")).await);
    assert!(lab.has("rest", "a", &content("p1", "w1")).await);
}

#[tokio::test]
async fn an_unrelated_change_does_not_reset_a_soak() {
    let (lab, _) = settled().await;
    lab.head("c2", &[("a", content("p2", "w1"))]).await;
    lab.report("canary", "a", &content("p2", "w1"), Says::Converged, 2).await;
    lab.pass().await;
    lab.wait(SOAK / 2);
    // The application moves meanwhile: the clusters converge under another name.
    lab.head("c2", &[("a", content("p2", "w2"))]).await;
    lab.report("canary", "a", &content("p2", "w1"), Says::Converged, 0).await;
    lab.report("canary", "a", &content("p2", "w2"), Says::Converged, 2).await;
    lab.pass().await;
    // And so does another assignment of the platform.
    lab.head("c3", &[("a", content("p2", "w2")), ("b", content("p1", "w2"))]).await;
    lab.wait(SOAK / 2);
    lab.pass().await;
    assert_eq!(lab.ring(2, "canary").await, RingState::Passed);
    let (_, held) = lab.holds("rest", "a").await;
    let PackedEntry::Apply(wanted) = content("p2", "w1") else { panic!() };
    assert_eq!(held.unwrap().key(), wanted.key(), "the platform's part alone went on");
}

#[tokio::test]
async fn newer_content_takes_over_in_the_first_ring_and_waits_behind_it_later() {
    let (lab, _) = settled().await;
    lab.head("c2", &[("a", content("p2", "w1"))]).await;
    lab.head("c3", &[("a", content("p3", "w1"))]).await;
    let all = lab.rollouts().await;
    assert!(matches!(all[1].rollout.phase, Phase::Superseded { by, .. } if by == all[0].rollout.id));
    assert!(lab.has("canary", "a", &content("p3", "w1")).await);

    lab.through("canary", "a", &content("p3", "w1"), 2).await;
    assert_eq!(lab.ring(3, "rest").await, RingState::Rolling);
    for commit in ["4", "5"] {
        lab.head(&format!("c{commit}"), &[("a", content(&format!("p{commit}"), "w1"))]).await;
    }
    assert_eq!(lab.newest().await.rollout.id.0, 3, "beyond the first ring nothing takes over");
    let waiting = lab.store.rollouts_waiting("dev").await.unwrap();
    assert_eq!(waiting["platform"].cause.commit, "c5");
    assert_eq!(waiting["platform"].skipped[0].commit, "c4");
    lab.through("rest", "a", &content("p3", "w1"), 2).await;
    lab.pass().await;
    let newest = lab.newest().await;
    assert_eq!((newest.rollout.id.0, newest.rollout.cause.commit.as_str()), (4, "c5"));
    assert_eq!(newest.skipped.len(), 1);
    assert!(lab.store.rollouts_waiting("dev").await.unwrap().is_empty());
    assert!(lab.has("canary", "a", &content("p5", "w1")).await);
}

#[tokio::test]
async fn content_that_is_taken_back_before_it_began_is_gone() {
    let (lab, first) = settled().await;
    let mut held = policy(&["canary", "rest"]);
    held.rings[0].approval = Some(kedge_model::kinds::Approval {
        people: 1,
        role: kedge_model::kinds::ApproverRole::Platform,
        not_author: true,
    });
    lab.govern(Some(held));
    lab.head("c2", &[("a", content("p2", "w1"))]).await;
    assert_eq!(lab.ring(2, "canary").await, RingState::Waiting);
    lab.head("c3", &[("a", first.clone())]).await;
    assert!(matches!(lab.newest().await.rollout.phase, Phase::Aborted { .. }));
    assert!(lab.has("canary", "a", &first).await);
    // The same content again is new content.
    lab.head("c4", &[("a", content("p2", "w1"))]).await;
    assert_eq!(lab.newest().await.rollout.phase, Phase::Active);
}

#[tokio::test]
async fn a_source_that_moves_elsewhere_goes_with_the_platform() {
    let (lab, _) = settled().await;
    let PackedEntry::Apply(packages) = content("p2", "w9") else { panic!() };
    let mut packages = (*packages).clone();
    packages.workload.repo = "https://h/other".to_owned();
    lab.head("c2", &[("a", PackedEntry::Apply(packages.into()))]).await;
    let newest = lab.newest().await.rollout;
    let items = lab.store.rollout_items(newest.id).await.unwrap();
    assert_eq!((newest.lane, lab.rollouts().await.len()), (Lane::Platform, 2));
    assert!(items[0].change.platform.is_some() && items[0].change.workload.is_some());
}

#[tokio::test]
async fn another_folder_or_branch_of_the_same_repository_goes_with_the_platform_too() {
    let (lab, _) = settled().await;
    let mut packed = at("c2", &[("drone", &[("a", content("p1", "w2"))])]);
    let elsewhere =
        Origin { repo: "https://h/app".to_owned(), reference: "release".to_owned(), path: "./app".to_owned() };
    packed.origins.insert("drone".to_owned(), Arc::new([("a".to_owned(), elsewhere)].into()));
    lab.controller.issue(TERM, &packed, &occasion(None)).await.unwrap();
    assert_eq!(lab.newest().await.rollout.lane, Lane::Platform);
    let items = lab.store.rollout_items(lab.newest().await.rollout.id).await.unwrap();
    assert!(items[0].change.workload.is_some());
    // The next commit there belongs to it as long as it is on its way.
    let later = at("c2", &[("drone", &[("a", content("p1", "w3"))])]);
    lab.controller
        .issue(TERM, &crate::pack::Packed { origins: packed.origins, ..later }, &occasion(None))
        .await
        .unwrap();
    assert_eq!((lab.newest().await.rollout.lane, lab.rollouts().await.len()), (Lane::Platform, 3));
    assert!(lab.has("canary", "a", &content("p1", "w3")).await);
}

#[tokio::test]
async fn a_commit_that_changes_no_content_begins_nothing_and_is_known() {
    let (lab, first) = settled().await;
    let PackedEntry::Apply(packages) = first else { panic!() };
    let mut packages = (*packages).clone();
    packages.workload.commit = "commit-later".to_owned();
    lab.head("c1", &[("a", PackedEntry::Apply(packages.into()))]).await;
    assert_eq!(lab.rollouts().await.len(), 1);
    let found = lab.store.sources_at(Some("dev"), "commit-later").await.unwrap();
    assert_eq!((found[0].assignment.as_str(), found[0].workload.as_str()), ("a", "workload-a"));
}

#[tokio::test]
async fn what_goes_goes_ring_by_ring() {
    let (lab, first) = settled().await;
    lab.head("c2", &[("a", first.clone()), ("b", content("p1", "w1"))]).await;
    for ring in ["canary", "rest"] {
        lab.through(ring, "b", &content("p1", "w1"), 2).await;
    }
    lab.head("c3", &[("a", first)]).await;
    let canary = lab.state_of("canary").await;
    assert_eq!((canary.entries.len(), canary.removed.len()), (1, 1));
    assert_eq!(lab.state_of("rest").await.entries.len(), 2);
    assert!(lab.store.rollout_items(lab.newest().await.rollout.id).await.unwrap()[0].item.removes);
}

/// Whether who has this generation of canary is told the newest one although the ring is closed.
async fn passes(lab: &Lab, has: Generation) -> bool {
    let mut tx = lab.store.write().await.unwrap();
    let limit = tx.ring_limit("dev", "canary", lab.store.backend()).await.unwrap().unwrap();
    let stream = Stream::new("dev", "drone", "canary");
    limit.closed && limit.returned > 0 && tx.is_issued_before(&stream, has, limit.returned).await.unwrap()
}

#[tokio::test]
async fn a_rollback_reaches_a_ring_in_which_another_lane_is_paused() {
    let (lab, first) = settled().await;
    let (values, both, back) = (content("p2", "w1"), content("p2", "w2"), content("p1", "w2"));
    lab.head("c2", &[("a", values.clone())]).await;
    for ring in ["canary", "rest"] {
        lab.report(ring, "a", &first, Says::Converged, 0).await;
        lab.through(ring, "a", &values, 2).await;
    }
    lab.head("c2", &[("a", both.clone())]).await;
    lab.report("canary", "a", &values, Says::Converged, 0).await;
    lab.report("canary", "a", &both, Says::Converged, 2).await;
    lab.pass().await;
    lab.say(3, Say::Pause).await.unwrap();
    lab.pass().await;
    let (before, _) = lab.holds("canary", "a").await;

    lab.say(2, Say::Rollback).await.unwrap();
    lab.pass().await;
    assert!(lab.has("canary", "a", &back).await && lab.has("rest", "a", &first).await);
    let (newest, _) = lab.holds("canary", "a").await;
    assert!(passes(&lab, before).await, "its clusters are told, although the other lane is still paused");
    assert!(!passes(&lab, newest).await, "what comes later waits");
    // Nobody says that it went back before its clusters did.
    let waits = async |ring: &str| {
        let stored = lab.store.rollout(RolloutId(2)).await.unwrap().unwrap();
        stored.rollout.ring(ring).unwrap().waits_for.clone()
    };
    assert_eq!(waits("canary").await, ["2 clusters have not taken the rollback yet"]);
    lab.report("canary", "a", &both, Says::Converged, 0).await;
    lab.report("canary", "a", &back, Says::Converged, 1).await;
    lab.report("rest", "a", &values, Says::Converged, 1).await;
    lab.pass().await;
    assert!(waits("canary").await.is_empty());
    assert_eq!(waits("rest").await, ["1 cluster has not taken the rollback yet"]);
    lab.report("rest", "a", &values, Says::Converged, 0).await;
    lab.pass().await;
    assert!(waits("rest").await.is_empty());
    assert!(matches!(lab.newest().await.rollout.phase, Phase::Paused { .. }));
}
