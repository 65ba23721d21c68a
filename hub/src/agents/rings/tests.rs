//! Clusters go where the policy in force says.

use kedge_hub_types::state::Issued;
use kedge_hub_types::testing::{ours, packed_type, source};
use kedge_model::kinds::{EnvironmentPolicy, Members, Promoter, PromotionPolicy, Ring};
use kedge_model::wire::{Envelope, Generation};

use super::*;
use crate::agents::Changes;
use crate::agents::testing::fleet;
use crate::state::plan;
use crate::store::agents::ClusterRow;

fn policy(environment: &str) -> PromotionPolicy {
    let canary = Ring::new("canary", Members::Selected("size=small".parse().unwrap()));
    let rings = vec![canary, Ring::new("rest", Members::Rest)];
    let environment = EnvironmentPolicy { rings, ..EnvironmentPolicy::new(environment, Vec::new()) };
    PromotionPolicy { promoter: Promoter::Kedge, environments: vec![environment] }
}

/// What the promotion module does when a policy comes into force.
async fn enforce(store: &Store, policies: &Policies, policy: Option<&PromotionPolicy>) {
    let body = policy.map(|policy| serde_json::to_string(policy).unwrap()).unwrap_or_default();
    let mut tx = store.write().await.unwrap();
    sqlx::query(
        "INSERT INTO policies (slot, body, digest, commit_id, subject, author, reasons, words, since) \
         VALUES ('force', $1, '', '', '', '', '[]', '[]', 0) ON CONFLICT (slot) DO UPDATE SET body = excluded.body",
    )
    .bind(body)
    .execute(tx.connection())
    .await
    .unwrap();
    tx.commit().await.unwrap();
    policies.set(policy);
}

async fn rings(store: &Store) -> Vec<String> {
    store.placed_after("", 100).await.unwrap().into_iter().map(|one| one.stream.ring).collect()
}

async fn row(store: &Store, cluster: &ClusterId) -> ClusterRow {
    store.cluster(cluster).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_policy_moves_clusters_to_its_rings_and_its_end_moves_them_back() {
    let world = fleet().await;
    let small = world.member(1, "small").await;
    let large = world.member(2, "large").await;
    let (fleet, store, policies) = (&world.fleet, &world.store, &world.policies);
    assert_eq!(pass(fleet, store, &policies.all(), Term(0)).await.unwrap(), Pass::Done(0));

    enforce(store, policies, Some(&policy("dev"))).await;
    assert_eq!(pass(fleet, store, &InForce::default(), Term(0)).await.unwrap(), Pass::NotYet, "not known here yet");
    assert_eq!(pass(fleet, store, &policies.all(), Term(0)).await.unwrap(), Pass::Done(2));
    assert_eq!(
        (row(store, &small).await.stream.ring.as_str(), row(store, &large).await.stream.ring.as_str()),
        ("canary", "rest")
    );
    assert_eq!(row(store, &small).await.sequence.0, 2, "it is told by a membership of its own");
    assert_eq!(pass(fleet, store, &policies.all(), Term(0)).await.unwrap(), Pass::Done(0));
    let members = store.population("dev").await.unwrap();
    assert_eq!(
        members.iter().map(|of| (of.stream.ring.as_str(), of.count)).collect::<Vec<_>>(),
        [("canary", 1), ("rest", 1)]
    );

    enforce(store, policies, None).await;
    assert_eq!(pass(fleet, store, &policies.all(), Term(0)).await.unwrap(), Pass::Done(2));
    assert_eq!(rings(store).await, ["all", "all"]);
}

#[tokio::test]
async fn labels_decide_the_ring_and_a_person_cannot_name_another_one() {
    let world = fleet().await;
    let drone = world.member(1, "large").await;
    let (fleet, store) = (&world.fleet, &world.store);
    enforce(store, &world.policies, Some(&policy("dev"))).await;
    let labels = Labels::from([("size".to_owned(), "small".to_owned())]);
    let mut tx = store.write().await.unwrap();
    let moved = fleet.relabel(&mut tx, &drone, Changes { labels: Some(labels), ..Changes::default() }).await.unwrap();
    assert_eq!(moved.stream.ring, "canary");
    let refused = fleet.relocate(&mut tx, &drone, None, None, Some("rest")).await;
    assert!(matches!(refused, Err(FleetError::RingGiven { ring, .. }) if ring == "canary"));
    let typed = fleet.relocate(&mut tx, &drone, None, Some("truck"), None).await.unwrap();
    assert_eq!(typed.stream, Stream::new("dev", "truck", "canary"));
    let away = fleet.relocate(&mut tx, &drone, Some("lab"), None, None).await.unwrap();
    assert_eq!(away.stream, Stream::new("lab", "truck", Stream::ALL), "no policy names it");
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn rings_that_people_named_stay_where_there_never_was_a_policy() {
    let world = fleet().await;
    let drone = world.member(1, "small").await;
    let mut tx = world.store.write().await.unwrap();
    world.fleet.relocate(&mut tx, &drone, None, None, Some("mine")).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(pass(&world.fleet, &world.store, &InForce::default(), Term(0)).await.unwrap(), Pass::Done(0));
    assert_eq!(rings(&world.store).await, ["mine"]);
}

#[tokio::test]
async fn a_ring_without_a_state_yet_takes_nothing_away() {
    let world = fleet().await;
    let drone = world.member(1, "small").await;
    let stream = Stream::new("dev", "drone", Stream::ALL);
    let entries = packed_type(&[("hello", ours("1"))]);
    let settled = std::collections::BTreeSet::new();
    let inputs = plan::Inputs {
        stream: &stream,
        generation: Generation(1),
        packed: &entries,
        confirmed: None,
        source: Some(&source("c1")),
        settled: &settled,
        restarts: &std::collections::BTreeMap::new(),
    };
    let envelope = world.fleet.sign(&plan::next(None, &inputs)).unwrap().to_json().unwrap();
    world.desired_states.show(&stream, Issued::of(Generation(1), envelope.into()));
    enforce(&world.store, &world.policies, Some(&policy("dev"))).await;
    assert_eq!(pass(&world.fleet, &world.store, &world.policies.all(), Term(0)).await.unwrap(), Pass::Done(1));
    let envelope = Envelope::from_json(&row(&world.store, &drone).await.membership).unwrap();
    let told: kedge_model::wire::Membership = serde_json::from_slice(&envelope.payload).unwrap();
    assert_eq!((told.stream.ring.as_str(), told.remove.len()), ("canary", 0));
}

#[tokio::test]
async fn a_hub_that_leads_no_longer_moves_nobody() {
    let world = fleet().await;
    world.member(1, "small").await;
    enforce(&world.store, &world.policies, Some(&policy("dev"))).await;
    let stale = pass(&world.fleet, &world.store, &world.policies.all(), Term(7)).await;
    assert!(matches!(stale, Err(FleetError::Store(StoreError::Fenced(_)))));
    assert_eq!(rings(&world.store).await, ["all"]);
}
