//! A large fleet of drones in the database of a hub that doesn't run: rows by the hub's own library, and one signed document of each
//! cluster through the same intake as over the wire.

use std::sync::Arc;
use std::time::Instant;

use kedge_hub::config::Config;
use kedge_hub::keys::Keys;
use kedge_hub::status::StatusIntake;
use kedge_hub::store::status::check_ins::ContactRow;
use kedge_hub::store::{Store, now};
use kedge_model::Labels;
use kedge_model::wire::{ClusterId, Generation, PackagesKey, SigningKey, Stream, Timestamp};
use kedge_status::{Condition, Nonce, StatusDocument};
use kedge_tests::world::World;
use kedge_tests::world::cluster::{block_on, report};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::cluster::{self, BATCH};

/// How the clusters are.
pub struct Mix {
    pub condition: fn(usize) -> Condition,
    /// Milliseconds until the next contact is due; below zero it is overdue.
    pub promise: fn(usize) -> i64,
}

/// The assignment that they report.
const ASSIGNMENT: &str = "hello-functional-test";

/// Adds the clusters of these numbers, all with these packages.
pub fn fill(world: &World, key: PackagesKey, from: usize, to: usize, mix: &Mix) {
    let config = Config::load(&world.hub.config()).expect("the hub's settings");
    let began = Instant::now();
    block_on(async {
        let store = Store::open(&config.database.url).await.unwrap();
        let keys = Keys::open(&config.keys, &store).await.unwrap();
        for first in (from..to).step_by(BATCH) {
            let mut tx = store.write().await.unwrap();
            for number in first..(first + BATCH).min(to) {
                let public = *signing_key(number).public().as_bytes();
                let labels = Labels::from([("site".to_owned(), format!("site-{}", number % 500))]);
                let stream = Stream::new("dev", "drone", Stream::ALL);
                cluster::add(&mut tx, &keys, number, &public, stream, labels, (mix.promise)(number)).await;
            }
            tx.commit().await.unwrap();
        }
        report_all(&store, key, from, to, mix.condition).await;
        miss_check_ins(&store, from, to, mix.promise).await;
        store.close().await;
    });
    eprintln!("fleet: {} clusters written in {:.1} s", to - from, began.elapsed().as_secs_f64());
}

fn signing_key(number: usize) -> SigningKey {
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&(number as u64).to_le_bytes());
    SigningKey::from_seed(&seed).unwrap()
}

/// A document is a sign of life, so those that should be silent were heard just now: their next contact is overdue again.
async fn miss_check_ins(store: &Store, from: usize, to: usize, promise: fn(usize) -> i64) {
    let silent: Vec<usize> = (from..to).filter(|number| promise(*number) < 0).collect();
    for some in silent.chunks(BATCH) {
        let mut tx = store.write().await.unwrap();
        for number in some {
            let (id, at) = (ClusterId::of_public_key(signing_key(*number).public().as_bytes()), now());
            let check_in_deadline = Timestamp(at.0 + promise(*number));
            let contact = ContactRow {
                at,
                check_in_deadline,
                look_at: at,
                generation: Generation(1),
                via: None,
                epoch: 0,
                epoch_at: at,
            };
            assert!(tx.put_contact(&id, &contact).await.unwrap().is_some());
        }
        tx.commit().await.unwrap();
    }
}

/// One document of each, through the same intake as over the wire.
async fn report_all(store: &Store, key: PackagesKey, from: usize, to: usize, condition: fn(usize) -> Condition) {
    let (stop, shutdown) = watch::channel(false);
    let (intake, mut tasks) = StatusIntake::start(store.clone(), shutdown).await.unwrap();
    let intake = Arc::new(intake);
    let mut sending = JoinSet::new();
    for number in from..to {
        let intake = Arc::clone(&intake);
        sending.spawn(async move {
            let signer = signing_key(number);
            let mut document = StatusDocument::new(signer.public(), 1, Nonce([1; 16]));
            let said = report(condition(number), Some(key), Some(key), Generation(1));
            document.set_report(ASSIGNMENT, &said).unwrap();
            let envelope = document.seal(&signer, now(), None).unwrap();
            intake.take(None, envelope).await.unwrap();
        });
        if sending.len() >= 512 {
            sending.join_next().await.expect("there are some").unwrap();
        }
    }
    while let Some(sent) = sending.join_next().await {
        sent.unwrap();
    }
    stop.send_replace(true);
    while tasks.join_next().await.is_some() {}
}
