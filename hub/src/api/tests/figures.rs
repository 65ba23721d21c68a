//! What pages and the catalog cost when there is much: figures of `./tests/bench figures`.

use std::time::Instant;

use kedge_model::wire::ClusterId;
use kedge_scheduler::Scheduler;

use super::fixture::Hub;
use crate::catalog::testing::{large, region};
use crate::catalog::{self, CatalogNotes};
use crate::store::Term;

#[tokio::test]
async fn figure_pages_of_a_hundred_thousand_clusters() {
    let hub = Hub::new().await;
    let mut tx = hub.store.write().await.unwrap();
    for number in 0..100_000u32 {
        let mut key = [0; 32];
        key[..4].copy_from_slice(&number.to_be_bytes());
        let id = ClusterId::of_public_key(&key);
        let query = sqlx::query(
            "INSERT INTO clusters (id, name, environment, cluster_type, ring, labels, public_key, facts, state, sequence, \
             membership, joined_at, token, certificate_serial, certificate_until, last_contact, promise_until, generation, \
             tick) VALUES ($1, $2, $3, 'drone', 'all', $4, $5, '{}', 'active', 1, $5, 1, 't', 's', 2, 1, 1, 7, 1)",
        );
        let query = query.bind(id.to_string()).bind(format!("drone-{number}"));
        let query = query.bind(if number % 100 == 0 { "dev" } else { "prod" });
        let labels = format!(r#"{{"hall":"{}","region":"west"}}"#, number % 1000);
        query.bind(labels).bind(key.to_vec()).execute(tx.connection()).await.unwrap();
    }
    tx.commit().await.unwrap();
    let mut slowest = 0;
    for path in [
        "/clusters",
        "/clusters?limit=500",
        "/clusters?environment=prod",
        "/clusters?environment=dev",
        "/clusters?labelSelector=hall%3D7",
        "/clusters?namePrefix=drone-9999",
        "/clusters/drone-77777",
    ] {
        for token in [&hub.viewer, &hub.team] {
            hub.get(token, path).await;
            let begun = Instant::now();
            hub.get(token, path).await;
            let took = begun.elapsed().as_millis();
            println!("{path} {took} ms");
            slowest = slowest.max(took);
        }
    }
    println!("FIGURE slowest_page_of_clusters {slowest}");
}

#[tokio::test]
async fn figure_ten_thousand_assignments_in_the_catalog() {
    let hub = Hub::new().await;
    let mut scheduler = Scheduler::new(large(100));
    println!("{} assignments", scheduler.schedule().assignments.len());
    let nothing = CatalogNotes::default();
    for what in ["first", "again"] {
        let begun = Instant::now();
        catalog::update(&hub.store, Term(0), "dev", &scheduler, None, &nothing).await.unwrap();
        println!("{what}: {} ms", begun.elapsed().as_millis());
    }
    for value in ["one", "two"] {
        let delta = scheduler.update([region(value)]);
        let begun = Instant::now();
        catalog::update(&hub.store, Term(0), "dev", &scheduler, Some(&delta), &nothing).await.unwrap();
        println!("{} changed", delta.changed.len());
        println!("FIGURE catalog_value_{value} {}", begun.elapsed().as_millis());
    }
    let begun = Instant::now();
    hub.get(&hub.viewer, "/assignments").await.ok();
    println!("FIGURE page_of_assignments {}", begun.elapsed().as_millis());
}
