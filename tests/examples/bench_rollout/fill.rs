//! The rows that a large fleet leaves in the hub's database, written while no hub runs. Every cluster is a row with a signed
//! membership, in the ring that its id belongs to; what they report is written as the sums that the hub keeps (`counts`,
//! `population`): a hundred thousand documents would only make the same numbers.

use std::collections::BTreeMap;

use kedge_hub::config::Config;
use kedge_hub::keys::Keys;
use kedge_hub::store::{Store, Tx};
use kedge_model::Labels;
use kedge_model::kinds::Ring;
use kedge_model::wire::{ClusterId, Stream};
use kedge_tests::world::World;
use kedge_tests::world::cluster::block_on;
use kedge_tests::world::plant::{LINE, PRESS};
use sqlx::AnyPool;

use crate::row::{self, BATCH, PROMISE};

pub const ENVIRONMENT: &str = "dev";
pub const TYPES: [&str; 2] = [LINE, PRESS];

/// Clusters of each stream.
pub type Members = BTreeMap<(String, String), i64>;

/// Adds so many clusters; how many each stream has.
pub fn clusters(world: &World, rings: &[Ring], count: usize) -> Members {
    let config = Config::load(&world.hub.config()).expect("the hub's settings");
    let mut members = Members::new();
    block_on(async {
        let store = Store::open(&config.database.url).await.unwrap();
        let keys = Keys::open(&config.keys, &store).await.unwrap();
        for first in (0..count).step_by(BATCH) {
            let mut tx = store.write().await.unwrap();
            for number in first..(first + BATCH).min(count) {
                let (ring, cluster_type) = add(&mut tx, &keys, rings, number).await;
                *members.entry((cluster_type, ring)).or_default() += 1;
            }
            tx.commit().await.unwrap();
        }
        store.close().await;
    });
    members
}

async fn add(tx: &mut Tx, keys: &Keys, rings: &[Ring], number: usize) -> (String, String) {
    let mut public = [7; 32];
    public[..8].copy_from_slice(&(number as u64).to_le_bytes());
    let (id, labels) = (ClusterId::of_public_key(&public), Labels::new());
    let cluster_type = TYPES[number % TYPES.len()];
    let ring = kedge_rollout::ring_of(rings, &id, &labels).to_owned();
    let stream = Stream::new(ENVIRONMENT, cluster_type, &ring);
    row::add(tx, keys, number, &public, stream, labels, PROMISE).await;
    (ring, cluster_type.to_owned())
}

/// All members of these streams report these packages of an assignment as Converged, and no others.
pub async fn converge(pool: &AnyPool, assignment: &str, packages: &str, members: &Members) {
    let mut tx = pool.begin().await.unwrap();
    for ((cluster_type, ring), count) in members {
        for (sql, presence) in [
            ("DELETE FROM population WHERE environment = $1 AND cluster_type = $2 AND ring = $3", None),
            (
                "INSERT INTO population (environment, cluster_type, ring, presence, count) VALUES ($1, $2, $3, $4, $5)",
                Some("Reporting"),
            ),
        ] {
            let mut query = sqlx::query(sql).bind(ENVIRONMENT).bind(cluster_type).bind(ring);
            if let Some(presence) = presence {
                query = query.bind(presence).bind(count);
            }
            query.execute(&mut *tx).await.unwrap();
        }
        sqlx::query(
            "DELETE FROM counts WHERE environment = $1 AND cluster_type = $2 AND ring = $3 AND assignment = $4",
        )
        .bind(ENVIRONMENT)
        .bind(cluster_type)
        .bind(ring)
        .bind(assignment)
        .execute(&mut *tx)
        .await
        .unwrap();
        sqlx::query(
            "INSERT INTO counts (environment, cluster_type, ring, assignment, packages, running, condition, count) VALUES ($1, $2, $3, $4, $5, $5, 'Converged', $6)",
        )
        .bind(ENVIRONMENT)
        .bind(cluster_type)
        .bind(ring)
        .bind(assignment)
        .bind(packages)
        .bind(count)
        .execute(&mut *tx)
        .await
        .unwrap();
    }
    tx.commit().await.unwrap();
}
