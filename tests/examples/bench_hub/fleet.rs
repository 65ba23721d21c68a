//! A hundred thousand clusters in the database: how fast a hub starts, shows a page of them, and counts. The rows are
//! written by the hub's own library while no hub runs; every one has a signed membership and a signed document.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kedge_hub::config::Config;
use kedge_hub::keys::Keys;
use kedge_hub::store::agents::{CertificateNote, ClusterRow, ClusterState, NewCluster};
use kedge_hub::store::{Store, now};
use kedge_hub::truth::Truth;
use kedge_model::Labels;
use kedge_model::wire::{ClusterId, Membership, PackagesKey, Sequence, SigningKey, Stream, Timestamp};
use kedge_status::{Condition, Nonce, StatusDocument};
use kedge_tests::world::cluster::{Cluster, block_on, report};
use kedge_tests::world::{Database, World};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{Figures, median, millis, rounded, scaled};

const CLUSTERS: usize = 100_000;
/// What counting is compared with.
const FEW: usize = 1_000;

/// Rows in one transaction.
const BATCH: usize = 2_000;

/// No promise ends during the measurement.
const PROMISE: i64 = 24 * 3600 * 1000;

const LOOKS: usize = 30;

pub fn measure(scale: f64, figures: &mut Figures) {
    let (all, few) = (scaled(CLUSTERS, scale), scaled(FEW, scale));
    let mut world = World::start(Database::Sqlite).expect("a hub");
    world.await_first_states();
    let mut drone = world.join("drone", "drone-of-the-bench");
    drone.await_generation(1);
    drone.converge();
    let key = drone.agent.state.as_ref().expect("it has one").entries[0].packages_key();
    world.hub.stop();

    fill(&world, key, 0, few);
    start(&mut world, &mut drone);
    let (_, few_ms) = look(&world, key, few + 1);
    world.hub.stop();
    fill(&world, key, few, all);
    let start_s = start(&mut world, &mut drone).as_secs_f64();
    let (page_ms, count_ms) = look(&world, key, all + 1);
    eprintln!(
        "fleet: {all} clusters; serving after {start_s:.2} s; a page in {page_ms:.1} ms; counting in {count_ms:.2} ms, and {few_ms:.2} ms with {few} clusters"
    );
    figures.insert("clusters".to_owned(), (all + 1).into());
    figures.insert("start_s".to_owned(), rounded(start_s, 2));
    figures.insert("page_ms".to_owned(), rounded(page_ms, 2));
    figures.insert("count_ms".to_owned(), rounded(count_ms, 2));
}

/// Starts the hub; how long until it is ready and answers an agent.
fn start(world: &mut World, drone: &mut Cluster) -> Duration {
    drone.agent.disconnect();
    let began = Instant::now();
    world.hub.spawn();
    while world.api.try_ask(http::Method::GET, "/readyz", None, &[]).map_or(0, |answer| answer.status) != 200 {
        std::thread::sleep(Duration::from_millis(2));
    }
    drone.look().unwrap();
    began.elapsed()
}

/// Medians: the first page of clusters, and how many of dev's clusters run these packages.
fn look(world: &World, key: PackagesKey, expected: usize) -> (f64, f64) {
    let timed = |path: &str| {
        let times = (0..LOOKS).map(|_| {
            let began = Instant::now();
            let answer = world.api.get(path);
            (millis(began.elapsed()), answer)
        });
        let (times, mut answers): (Vec<f64>, Vec<_>) = times.unzip();
        (median(times), answers.pop().expect("there are some"))
    };
    let (page_ms, page) = timed("/api/v1/clusters");
    assert!(!page["items"].as_array().unwrap().is_empty());
    let (count_ms, counts) = timed(&format!("/api/v1/counts?environment=dev&packages={key}"));
    assert_eq!(counts["total"].as_u64(), Some(expected as u64), "{counts}");
    (page_ms, count_ms)
}

fn fill(world: &World, key: PackagesKey, from: usize, to: usize) {
    let config = Config::load(&world.hub.config()).expect("the hub's settings");
    let began = Instant::now();
    block_on(async {
        let store = Store::open(&config.database.url).await.unwrap();
        let keys = Keys::open(&config.keys, &store).await.unwrap();
        for first in (from..to).step_by(BATCH) {
            let range = first..(first + BATCH).min(to);
            let mut tx = store.write().await.unwrap();
            for number in range {
                add(&mut tx, &keys, number).await;
            }
            tx.commit().await.unwrap();
        }
        report_all(&store, key, from, to).await;
        store.close().await;
    });
    eprintln!("fleet: {} clusters written in {:.1} s", to - from, began.elapsed().as_secs_f64());
}

fn signing_key(number: usize) -> SigningKey {
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&(number as u64).to_le_bytes());
    SigningKey::from_seed(&seed).unwrap()
}

async fn add(tx: &mut kedge_hub::store::Tx, keys: &Keys, number: usize) {
    let public = *signing_key(number).public().as_bytes();
    let (id, at) = (ClusterId::of_public_key(&public), now());
    let name = format!("cluster-{number:06}");
    let labels = Labels::from([("site".to_owned(), format!("site-{}", number % 500))]);
    let stream = Stream::new("dev", "drone", Stream::ALL);
    let membership = Membership {
        cluster: id,
        name: name.clone(),
        stream: stream.clone(),
        labels: labels.clone(),
        site: None,
        sequence: Sequence(1),
        issued_at: at,
        remove: Vec::new(),
        unmanage: Vec::new(),
        retired: false,
        requires: Vec::new(),
    };
    let row = ClusterRow {
        id,
        name,
        stream,
        labels,
        site: None,
        machine: None,
        state: ClusterState::Active,
        sequence: Sequence(1),
        membership: keys.sign(&membership).unwrap().to_json().unwrap(),
        token: "bench".to_owned(),
    };
    let certificate = CertificateNote { serial: format!("{number:x}"), until: Timestamp(at.0 + PROMISE) };
    let new = NewCluster {
        row: &row,
        public_key: &public,
        facts: r#"{"agentVersion":"bench","architecture":"arm64","system":"Debian 12"}"#,
        certificate: &certificate,
        joined_at: at,
        promise_until: Timestamp(at.0 + PROMISE),
    };
    assert!(tx.add_cluster(new).await.unwrap());
}

/// One document of each, through the same intake as over the wire.
async fn report_all(store: &Store, key: PackagesKey, from: usize, to: usize) {
    let (stop, shutdown) = watch::channel(false);
    let (truth, mut tasks) = Truth::start(store.clone(), shutdown).await.unwrap();
    let truth = Arc::new(truth);
    let mut sending = JoinSet::new();
    for number in from..to {
        let truth = Arc::clone(&truth);
        sending.spawn(async move {
            let signer = signing_key(number);
            let mut document = StatusDocument::new(signer.public(), 1, Nonce([1; 16]));
            let converged = report(Condition::Converged, Some(key), Some(key), kedge_model::wire::Generation(1));
            document.set_report("hello-functional-test", &converged).unwrap();
            let envelope = document.seal(&signer, now(), None).unwrap();
            truth.take(None, envelope).await.unwrap();
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
