//! The same on PostgreSQL: what its statements and its many writers could do differently.

use std::sync::Arc;

use kedge_hub::store::agents::ClusterState;
use kedge_model::wire::{Generation, Sequence, Stream};
use kedge_tests::agent::Agent;
use kedge_tests::agent::identity::Identity;

use crate::hub::{Hub, drones};

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_twenty_at_once_get_no_more_than_the_tokens_uses() {
    let Some(hub) = Hub::on_postgres().await else { return };
    let token = hub.token(7).await;
    let joins = (0..20).map(|number| {
        let token = token.clone();
        tokio::spawn(async move { Agent::join(&token, &format!("drone-{number}")).await.is_ok() })
    });
    let mut joined = 0;
    for join in joins.collect::<Vec<_>>() {
        joined += usize::from(join.await.unwrap());
    }
    assert_eq!(joined, 7);
    assert_eq!(hub.store.join_token(&token.id).await.unwrap().unwrap().uses_left, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_one_key_in_many_joins_uses_the_token_once() {
    let Some(hub) = Hub::on_postgres().await else { return };
    let token = hub.token(5).await;
    let identity = Arc::new(Identity::generate());
    let joins = (0..10).map(|_| {
        let (token, identity) = (token.clone(), Arc::clone(&identity));
        tokio::spawn(async move { Agent::join_as(identity, &token, "drone-1", None).await })
    });
    for join in joins.collect::<Vec<_>>() {
        // One that met the other in the middle is asked to come back.
        if let Err(error) = join.await.unwrap() {
            assert_eq!(error.status(), Some(503), "{error:?}");
        }
    }
    Agent::join_as(identity, &token, "drone-1", None).await.unwrap();
    assert_eq!(hub.store.join_token(&token.id).await.unwrap().unwrap().uses_left, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_a_cluster_is_served_moved_retired_and_revoked() {
    let Some(hub) = Hub::on_postgres().await else { return };
    let trucks = Stream::new("dev", "truck", Stream::ALL);
    hub.issue(&drones(), 3, Vec::new()).await;
    hub.issue(&trucks, 1, Vec::new()).await;
    let mut agent = hub.agent().await;
    let cluster = agent.identity.cluster;
    agent.poll().await.unwrap();
    assert_eq!(agent.generation, Generation(3));
    agent.renew().await.unwrap();
    hub.change(async |fleet, tx| drop(fleet.move_to(tx, &cluster, trucks.clone()).await.unwrap())).await;
    agent.poll().await.unwrap();
    agent.poll().await.unwrap();
    assert_eq!((agent.generation, agent.sequence()), (Generation(1), Sequence(2)));
    hub.change(async |fleet, tx| drop(fleet.retire(tx, &cluster).await.unwrap())).await;
    agent.poll().await.unwrap();
    assert!(agent.membership.retired);
    hub.change(async |fleet, tx| drop(fleet.revoke(tx, &cluster).await.unwrap())).await;
    assert_eq!(agent.poll().await.unwrap_err().reason(), Some("Revoked"));
    assert_eq!(hub.store.cluster(&cluster).await.unwrap().unwrap().state, ClusterState::Revoked);
    assert_eq!(hub.store.join_tokens(None, 10).await.unwrap().len(), 1);
}
