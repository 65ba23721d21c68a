//! Rings that come and go, new cluster types, other reconcilers, pins, limits, and what a pass costs.

use std::sync::Arc;
use std::time::Instant;

use kedge_hub_types::pack::{PackedEntry, PackedType};
use kedge_hub_types::testing::observed;
use kedge_model::kinds::Amount;
use kedge_model::wire::{Mode, Stream, Timestamp};
use kedge_rollout::{Phase, RingState, Say};

use crate::pack::{Packed, Pinned};
use crate::rollout::testing::{Lab, Says, TERM, at, content, key_of, occasion, policy};

async fn settled(rings: &[&str]) -> (Lab, PackedEntry) {
    let lab = Lab::new(Some(policy(rings))).await;
    let first = content("p1", "w1");
    for ring in rings {
        lab.members(ring, "Reporting", 1).await;
    }
    lab.head("c1", &[("a", first.clone())]).await;
    for ring in rings {
        lab.through(ring, "a", &first, 1).await;
    }
    (lab, first)
}

#[tokio::test]
async fn a_new_ring_is_never_ahead_of_its_order_and_gets_the_change_in_its_turn() {
    let (lab, first) = settled(&["canary", "rest"]).await;
    let second = content("p2", "w1");
    lab.head("c2", &[("a", second.clone())]).await;
    lab.govern(Some(policy(&["canary", "early", "rest", "last"])));
    lab.members("early", "Reporting", 1).await;
    lab.members("last", "Reporting", 1).await;
    lab.pass().await;
    for ring in ["early", "rest", "last"] {
        assert!(lab.has(ring, "a", &first).await, "{ring}");
    }
    // The one that began with two rings ends with them; the others get it by the next.
    for ring in ["canary", "rest"] {
        lab.through(ring, "a", &second, 1).await;
    }
    lab.pass().await;
    assert!(matches!(lab.rollouts().await[1].rollout.phase, Phase::Complete { .. }));
    for ring in ["canary", "early"] {
        assert_eq!(lab.newest().await.rollout.id.0, 3);
        lab.through(ring, "a", &second, 1).await;
    }
    assert!(lab.has("early", "a", &second).await && lab.has("last", "a", &first).await);
}

#[tokio::test]
async fn a_ring_that_is_gone_keeps_its_last_state_and_an_environment_without_a_policy_follows_again() {
    let (lab, first) = settled(&["canary", "rest"]).await;
    lab.govern(Some(policy(&["rest"])));
    let second = content("p2", "w1");
    lab.head("c2", &[("a", second.clone())]).await;
    assert!(lab.has("canary", "a", &first).await && lab.has("rest", "a", &second).await);
    lab.govern(None);
    lab.pass().await;
    assert!(lab.has("canary", "a", &second).await && lab.has("all", "a", &second).await);
    assert!(matches!(lab.newest().await.rollout.phase, Phase::Aborted { .. }));
    assert!(lab.store.ring_limits("dev").await.unwrap().values().all(|limit| limit.permits.is_none()));
}

#[tokio::test]
async fn a_rollout_whose_ring_is_gone_begins_anew_in_the_rings_that_are_left() {
    let (lab, first) = settled(&["canary", "early", "rest"]).await;
    let second = content("p2", "w1");
    lab.head("c2", &[("a", second.clone())]).await;
    lab.through("canary", "a", &second, 1).await;
    assert!(lab.has("early", "a", &second).await, "beyond its first ring");
    lab.govern(Some(policy(&["canary", "rest"])));
    lab.pass().await;
    let all = lab.rollouts().await;
    assert!(matches!(all[1].rollout.phase, Phase::Superseded { by, .. } if by == all[0].rollout.id), "{:?}", all[1]);
    assert!(lab.has("rest", "a", &first).await);
    for ring in ["canary", "rest"] {
        lab.through(ring, "a", &second, 1).await;
    }
    assert!(matches!(lab.newest().await.rollout.phase, Phase::Complete { .. }));
}

#[tokio::test]
async fn a_new_cluster_type_goes_through_the_rings_too() {
    let (lab, first) = settled(&["canary", "rest"]).await;
    let drone = [("a", first)];
    lab.head_of("c2", None, &[("drone", &drone), ("truck", &[("a", content("p7", "w1"))])]).await;
    let newest = lab.newest().await.rollout;
    assert_eq!(lab.store.rollout_items(newest.id).await.unwrap()[0].item.cluster_type, "truck");
    assert_eq!(lab.state(&Stream::new("dev", "truck", "canary")).await.entries.len(), 1);
    assert!(lab.state(&Stream::new("dev", "truck", "rest")).await.entries.is_empty());
}

#[tokio::test]
async fn other_reconcilers_are_at_the_head_in_every_ring_and_are_counted_in_their_order() {
    let (lab, first) = settled(&["canary", "rest"]).await;
    let seen = observed("1");
    lab.head("c2", &[("a", first.clone()), ("b", seen.clone())]).await;
    for ring in ["canary", "rest"] {
        let state = lab.state_of(ring).await;
        assert!(state.entries.iter().any(|entry| matches!(entry.mode, Mode::Observe(_))), "{ring}");
        assert_eq!(state.source.unwrap().commit, "c2");
    }
    assert_eq!(lab.newest().await.rollout.id.0, 2);
    lab.through("canary", "b", &seen, 1).await;
    assert_eq!(lab.ring(2, "canary").await, RingState::Passed);
    lab.through("rest", "b", &seen, 1).await;
    assert!(matches!(lab.newest().await.rollout.phase, Phase::Complete { .. }));
    lab.head("c3", &[("a", first)]).await;
    assert_eq!(lab.state_of("rest").await.entries.len(), 1, "it goes at once");
    assert_eq!(lab.rollouts().await.len(), 2);
}

#[tokio::test]
async fn a_ring_is_limited_while_it_rolls_and_free_afterwards() {
    let mut rules = policy(&["canary", "rest"]);
    rules.rings[0].max_unavailable = Amount::Number(3);
    let lab = Lab::new(Some(rules)).await;
    lab.members("canary", "Reporting", 8).await;
    lab.members("rest", "Reporting", 8).await;
    let first = content("p1", "w1");
    lab.head("c1", &[("a", first.clone())]).await;
    let limits = lab.store.ring_limits("dev").await.unwrap();
    assert_eq!((limits["canary"].permits, limits["rest"].permits), (Some(3), None));
    lab.through("canary", "a", &first, 8).await;
    let limits = lab.store.ring_limits("dev").await.unwrap();
    assert_eq!((limits["canary"].permits, limits["rest"].permits), (None, Some(2)));
}

#[tokio::test]
async fn failures_count_by_content_also_after_the_hub_was_replaced() {
    let (mut lab, _) = settled(&["canary", "rest"]).await;
    let second = content("p2", "w1");
    lab.head("c2", &[("a", second.clone())]).await;
    lab.restart();
    lab.report("canary", "a", &second, Says::Failed, 1).await;
    lab.pass().await;
    assert!(matches!(lab.newest().await.rollout.phase, Phase::Stopped { .. }));
}

fn pinned(workload: &str, rings: &[&str], until: Option<Timestamp>) -> Packed {
    let PackedEntry::Apply(packages) = content("p9", workload) else { panic!() };
    let mut packed = at("c2", &[("drone", &[("a", content("p2", "w2"))])]);
    let pin = Pinned {
        name: "hold-back".to_owned(),
        reason: "the line is slow".to_owned(),
        rings: rings.iter().map(|ring| (*ring).to_owned()).collect(),
        packages,
        until,
    };
    packed.pinned.insert(("drone".to_owned(), "a".to_owned()), vec![pin]);
    packed
}

#[tokio::test]
async fn a_pin_holds_its_version_on_its_rings_until_its_date_and_rollouts_go_on_below_it() {
    let (lab, first) = settled(&["canary", "rest"]).await;
    let until = Timestamp(lab.now().0 + 10 * 60_000);
    lab.controller.issue(TERM, &pinned("w0", &["rest"], Some(until)), &occasion(None)).await.unwrap();
    let (second, kept) = (content("p2", "w2"), content("p1", "w0"));
    assert!(lab.has("canary", "a", &second).await, "the change begins");
    assert!(lab.has("rest", "a", &kept).await, "the pinned version, with the platform's part of the ring");
    // Both lanes go on; where the pin is, its content is what should run.
    lab.report("rest", "a", &kept, Says::Converged, 1).await;
    lab.report("rest", "a", &first, Says::Converged, 0).await;
    lab.through("canary", "a", &second, 1).await;
    let kept = content("p2", "w0");
    assert!(lab.has("rest", "a", &kept).await);
    lab.through("rest", "a", &kept, 1).await;
    lab.pass().await;
    for stored in lab.rollouts().await {
        assert!(matches!(stored.rollout.phase, Phase::Complete { .. }), "{:?}", stored.rollout);
    }
    let mut lab = lab;
    lab.restart();
    lab.pass().await;
    assert!(lab.has("rest", "a", &kept).await, "whether it ended isn't known before the head is");
    lab.controller.issue(TERM, &pinned("w0", &["rest"], Some(until)), &occasion(None)).await.unwrap();
    lab.wait(std::time::Duration::from_secs(600));
    assert!(lab.pass().await.issued.len() == 1, "its date came");
    assert!(lab.has("rest", "a", &second).await);
    assert!(lab.store.pinned_of("dev").await.unwrap().is_empty());
    assert_eq!(lab.rollouts().await.len(), 3);
}

#[tokio::test]
async fn a_pin_counts_without_a_policy_too() {
    let lab = Lab::new(None).await;
    lab.controller.issue(TERM, &pinned("w0", &[], None), &occasion(None)).await.unwrap();
    assert!(lab.has("all", "a", &content("p2", "w0")).await);
    lab.head("c3", &[("a", content("p2", "w2"))]).await;
    assert!(lab.has("all", "a", &content("p2", "w2")).await);
}

/// Twenty rings of five types: rows as a hundred thousand clusters leave them.
#[tokio::test]
async fn a_pass_over_a_hundred_thousand_clusters_costs_milliseconds_and_a_rollback_of_all_rings_less_than_a_second() {
    let names: Vec<String> = (0..20).map(|number| format!("ring-{number:02}")).collect();
    let rings: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut rules = policy(&rings);
    rules.rings.iter_mut().for_each(|ring| ring.soak = std::time::Duration::ZERO);
    let lab = Lab::new(Some(rules)).await;
    let types = ["t0", "t1", "t2", "t3", "t4"];
    for ring in &rings {
        for cluster_type in types {
            lab.members_of(cluster_type, ring, "Reporting", 1000).await;
        }
    }
    let head = |content: &PackedEntry, commit: &str| {
        let mut packed = at(commit, &[]);
        for cluster_type in types {
            let entries: PackedType = (0..20).map(|number| (format!("app-{number}"), content.clone())).collect();
            packed.types.insert(cluster_type.to_owned(), Arc::new(entries));
        }
        packed
    };
    let count = async |entry: &PackedEntry, ring: &str| {
        for cluster_type in types {
            for number in 0..20 {
                sqlx::query(
                    "INSERT INTO counts (environment, cluster_type, ring, assignment, packages, running, condition, count) \
                     VALUES ('dev', $1, $2, $3, $4, $4, 'Converged', 1000)",
                )
                .bind(cluster_type)
                .bind(ring)
                .bind(format!("app-{number}"))
                .bind(key_of(entry).to_string())
                .execute(lab.store.pool())
                .await
                .unwrap();
            }
        }
    };
    let first = content("p1", "w1");
    lab.controller.issue(TERM, &head(&first, "c1"), &occasion(None)).await.unwrap();
    for ring in &rings {
        count(&first, ring).await;
        lab.pass().await;
    }
    assert!(matches!(lab.newest().await.rollout.phase, Phase::Complete { .. }));
    let begun = Instant::now();
    assert!(lab.pass().await.moved.is_empty());
    let idle = begun.elapsed();
    lab.say(1, Say::Rollback).await.unwrap();
    let begun = Instant::now();
    let back = lab.pass().await;
    let took = begun.elapsed();
    assert_eq!(back.issued.len(), 100);
    println!("a pass: {idle:?}; 100 streams of 20 rolled back: {took:?}");
    // Unoptimised and beside other tests; `./tests/bench rollout` has the figures.
    assert!(idle.as_millis() < 500, "{idle:?}");
    assert!(took.as_secs() < 10, "{took:?}");
}
