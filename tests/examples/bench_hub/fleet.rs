//! A hundred thousand clusters in the database: how fast a hub starts, shows a page of them, and counts. The rows are
//! written by the hub's own library while no hub runs; every one has a signed membership and a signed document.

use std::time::{Duration, Instant};

use kedge_model::wire::PackagesKey;
use kedge_status::Condition;
use kedge_tests::world::cluster::Cluster;
use kedge_tests::world::{Database, World};

use super::rows::cluster::PROMISE;
use super::rows::fleet::{Mix, fill};
use super::{Figures, median, millis, rounded, scaled};

const CLUSTERS: usize = 100_000;
/// What counting is compared with.
const FEW: usize = 1_000;

/// All is well with all of them.
const ALL_WELL: Mix = Mix { condition: |_| Condition::Converged, promise: |_| PROMISE };

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

    fill(&world, key, 0, few, &ALL_WELL);
    start(&mut world, &mut drone);
    let (_, few_ms) = look(&world, key, few + 1);
    world.hub.stop();
    fill(&world, key, few, all, &ALL_WELL);
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
