//! What people do to clusters, as the clusters see it.

use std::sync::Arc;
use std::time::Duration;

use kedge_hub::agents::{Changes, TokenOrder};
use kedge_hub::store::agents::ClusterState;
use kedge_hub::store::now;
use kedge_model::Labels;
use kedge_model::wire::{Generation, Sequence, Stream, Timestamp};
use kedge_tests::agent::Agent;

use crate::hub::{Hub, drones, entry};

#[tokio::test]
async fn a_move_reaches_a_held_poll_and_says_what_goes() {
    let hub = Hub::start().await;
    let blob = hub.put(b"content");
    let trucks = Stream::new("dev", "truck", Stream::ALL);
    let both = |names: &[&str]| names.iter().map(|name| entry(name, &blob, &blob, Vec::new())).collect::<Vec<_>>();
    hub.issue(&drones(), 7, both(&["camera", "flight"])).await;
    hub.issue(&trucks, 2, both(&["camera", "brakes"])).await;
    let mut agent = hub.agent().await;
    agent.poll().await.unwrap();
    let cluster = agent.identity.cluster;
    let (answer, ()) = tokio::join!(agent.poll(), async {
        hub.held(1).await;
        hub.change(async |fleet, tx| drop(fleet.move_to(tx, &cluster, trucks.clone()).await.unwrap())).await;
    });
    let answer = answer.unwrap();
    assert_eq!((answer.next, answer.state.is_none()), (0, true));
    assert_eq!((agent.sequence(), &agent.membership.stream), (Sequence(2), &trucks));
    assert_eq!(agent.membership.remove, ["flight"]);
    agent.poll().await.unwrap();
    assert_eq!(agent.generation, Generation(2));
}

#[tokio::test]
async fn new_labels_reach_the_cluster_in_the_same_stream() {
    let hub = Hub::start().await;
    let mut agent = hub.agent().await;
    let cluster = agent.identity.cluster;
    let labels = Labels::from([("region".to_owned(), "south".to_owned())]);
    hub.change(async |fleet, tx| {
        let (labels, name) = (Some(labels.clone()), Some("drone-9".to_owned()));
        let changes = Changes { labels, name, ..Changes::default() };
        drop(fleet.relabel(tx, &cluster, changes).await.unwrap());
    })
    .await;
    agent.poll().await.unwrap();
    assert_eq!((&agent.membership.labels, agent.membership.name.as_str()), (&labels, "drone-9"));
    assert_eq!((&agent.membership.stream, agent.membership.site.as_deref()), (&drones(), Some("harbour")));
}

#[tokio::test]
async fn a_retired_cluster_is_told_so_and_gets_no_state_until_it_joins_again() {
    let hub = Hub::with(|config| config.wait = Duration::from_millis(50)).await;
    hub.issue(&drones(), 1, Vec::new()).await;
    let mut agent = hub.agent().await;
    let cluster = agent.identity.cluster;
    hub.change(async |fleet, tx| drop(fleet.retire(tx, &cluster).await.unwrap())).await;
    let answer = agent.poll().await.unwrap();
    assert!(answer.state.is_none() && agent.membership.retired);
    assert!(agent.poll().await.unwrap().state.is_none());
    let token = hub.token(1).await;
    let mut back = Agent::join_as(Arc::clone(&agent.identity), &token, "drone-1", None).await.unwrap();
    assert_eq!((back.sequence(), back.membership.retired), (Sequence(3), false));
    assert!(back.poll().await.unwrap().state.is_some());
}

#[tokio::test]
async fn a_replacement_takes_the_whole_place_and_the_old_one_is_shut_out() {
    let hub = Hub::with(|config| config.wait = Duration::from_millis(50)).await;
    let mut old = hub.agent().await;
    let cluster = old.identity.cluster;
    let later = Timestamp(now().0 + 60_000);
    let order = TokenOrder {
        environment: "dev".to_owned(),
        cluster_type: "drone".to_owned(),
        labels: Labels::new(),
        site: None,
        replaces: Some(cluster),
        uses: 1,
        expires_at: later,
        created_by: "ada".to_owned(),
    };
    let mut tx = hub.store.write().await.unwrap();
    let token = hub.fleet.create_join_token(&mut tx, order).await.unwrap();
    tx.commit().await.unwrap();
    assert!(old.poll().await.is_ok());
    let new = Agent::join(&token, "whatever-the-new-box-says").await.unwrap();
    assert_eq!((new.membership.name.as_str(), &new.membership.stream), ("drone-1", &drones()));
    assert_eq!(old.poll().await.unwrap_err().reason(), Some("Revoked"));
    assert_eq!(hub.store.cluster(&cluster).await.unwrap().unwrap().state, ClusterState::Replaced);
}

#[tokio::test]
async fn a_revoked_identity_never_joins_again() {
    let hub = Hub::start().await;
    let agent = hub.agent().await;
    let cluster = agent.identity.cluster;
    hub.change(async |fleet, tx| drop(fleet.revoke(tx, &cluster).await.unwrap())).await;
    let refused = Agent::join_as(Arc::clone(&agent.identity), &hub.token(1).await, "x", None).await.unwrap_err();
    assert_eq!((refused.status(), refused.reason()), (Some(403), Some("Revoked")));
}

#[tokio::test]
async fn a_membership_that_a_restored_backup_forgot_is_issued_again_above_it() {
    let hub = Hub::with(|config| config.wait = Duration::from_millis(50)).await;
    let mut agent = hub.agent().await;
    agent.membership.sequence = Sequence(8);
    agent.poll().await.unwrap();
    assert_eq!((agent.sequence(), &agent.membership.stream), (Sequence(9), &drones()));
}

#[tokio::test]
async fn a_membership_that_no_hub_issued_is_not_believed() {
    let hub = Hub::with(|config| config.wait = Duration::from_millis(50)).await;
    let mut agent = hub.agent().await;
    let issued = agent.sequence();
    agent.membership.sequence = Sequence((1 << 53) - 1);
    let refused = agent.poll().await.unwrap_err();
    assert_eq!((refused.status(), refused.reason()), (Some(400), Some("Malformed")));
    agent.membership.sequence = issued;
    agent.poll().await.unwrap();
    assert_eq!(agent.sequence(), issued);
}

#[tokio::test]
async fn clusters_count_where_they_are_and_nowhere_once_they_are_gone() {
    let hub = Hub::start().await;
    let population = async || {
        let query = sqlx::query_scalar::<_, i64>(
            "SELECT CAST(COALESCE(SUM(count), 0) AS BIGINT) FROM population WHERE cluster_type = $1",
        );
        let drones = query.bind("drone").fetch_one(hub.store.pool()).await.unwrap();
        let query = sqlx::query_scalar::<_, i64>(
            "SELECT CAST(COALESCE(SUM(count), 0) AS BIGINT) FROM population WHERE cluster_type = $1",
        );
        (drones, query.bind("truck").fetch_one(hub.store.pool()).await.unwrap())
    };
    let (one, two) = (hub.agent().await.identity.cluster, hub.agent().await.identity.cluster);
    assert_eq!(population().await, (2, 0));
    let trucks = Stream::new("dev", "truck", Stream::ALL);
    hub.change(async |fleet, tx| drop(fleet.move_to(tx, &one, trucks).await.unwrap())).await;
    assert_eq!(population().await, (1, 1));
    hub.change(async |fleet, tx| drop(fleet.retire(tx, &one).await.unwrap())).await;
    hub.change(async |fleet, tx| drop(fleet.revoke(tx, &two).await.unwrap())).await;
    assert_eq!(population().await, (0, 0));
}
