//! Every page of a hub with a hundred thousand clusters, as a browser asks for it: the slowest of their medians.

use std::time::{Duration, Instant};

use kedge_status::Condition;
use kedge_tests::world::cluster::Cluster;
use kedge_tests::world::{Database, World};
use serde_json::json;

use super::rows::cluster::PROMISE;
use super::rows::fleet::{Mix, fill};

const CLUSTERS: usize = 100_000;

/// Of which the median is a page's figure.
const LOOKS: usize = 11;

/// Two in a hundred failed, one moves, three are silent.
const MIX: Mix = Mix {
    condition: |number| match number % 100 {
        0 | 1 => {
            Condition::Failed { reason: "HealthCheckFailed".to_owned(), message: "the probe answered 503".to_owned() }
        }
        2 => Condition::Converging,
        _ => Condition::Converged,
    },
    promise: |number| if (3..6).contains(&(number % 100)) { -1000 } else { PROMISE },
};

/// The hub has seen that the silent ones are silent.
const NOTICED_WITHIN: Duration = Duration::from_secs(120);

/// So many clusters, and the slowest page in milliseconds.
pub fn measure(scale: f64) -> (usize, f64) {
    let count = ((CLUSTERS as f64 * scale).round() as usize).max(100);
    let mut world = World::start(Database::Sqlite).expect("a hub");
    world.await_first_states();
    let mut drone: Cluster = world.join("drone", "drone-of-the-bench");
    drone.await_generation(1);
    drone.converge();
    let key = drone.agent.state.as_ref().expect("it has one").entries[0].packages_key();
    world.hub.stop();
    fill(&world, key, 0, count, &MIX);
    world.hub.start_again();
    await_silence(&world, count / 100 * 3);

    let cookie = log_in(&world);
    let cluster = world.api.get("/api/v1/clusters/cluster-000000")["id"].as_str().expect("an id").to_owned();
    let mut slowest = 0.0_f64;
    for path in addresses(&cluster) {
        let (time, bytes) = look(&world, &cookie, &path);
        eprintln!("{time:7.1} ms {:6.1} kB  {path}", bytes as f64 / 1000.0);
        slowest = slowest.max(time);
    }
    (count + 1, slowest)
}

fn addresses(cluster: &str) -> Vec<String> {
    let fixed = [
        "/",
        "/environments/dev",
        "/types/dev/drone",
        "/clusters",
        "/clusters?environment=dev&clusterType=drone",
        "/clusters?namePrefix=cluster-0999",
        "/clusters?labelSelector=site%3Dsite-499",
        "/clusters?condition=Unknown",
        "/conditions?environment=dev",
        "/conditions?environment=dev&condition=Failed",
        "/conditions?environment=dev&condition=Unknown",
        "/workloads",
        "/workloads/hello",
        "/assignments/dev/drone/hello-functional-test",
        "/rollouts",
        "/problems",
        "/drift",
        "/history",
        "/history?workload=hello",
        "/compare?left=dev&right=prod",
        "/plan",
        "/search?q=cluster-09",
        "/search?q=hello",
    ];
    let mut all: Vec<String> = fixed.into_iter().map(str::to_owned).collect();
    all.push(format!("/clusters/{cluster}"));
    all
}

/// The median time of a page, and its size.
fn look(world: &World, cookie: &str, path: &str) -> (f64, usize) {
    let mut times = Vec::new();
    let mut bytes = 0;
    for _ in 0..LOOKS {
        let began = Instant::now();
        let answer = world.api.client().get(world.api.url(path)).header("cookie", cookie).send().unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        bytes = answer.bytes().unwrap().len();
        times.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    times.sort_by(f64::total_cmp);
    (times[LOOKS / 2], bytes)
}

/// The link answers with a cookie and the way to the fleet's page.
fn log_in(world: &World) -> String {
    let link = world.api.post("/api/v1/login-links", json!({}));
    let client = reqwest::blocking::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
    let client = client.build().unwrap();
    let answer = client.get(world.api.url(link["path"].as_str().expect("a path"))).send().unwrap();
    let known = answer.headers().get("set-cookie").expect("a session").to_str().unwrap().to_owned();
    known.split(';').next().unwrap_or_default().to_owned()
}

fn await_silence(world: &World, silent: usize) {
    let began = Instant::now();
    loop {
        let fleet = world.api.get("/api/v1/fleet");
        let unknown = fleet["environments"].as_array().into_iter().flatten().find(|one| one["name"] == "dev");
        let unknown = unknown.and_then(|one| one["clusters"]["unknown"].as_u64()).unwrap_or_default();
        if unknown >= silent as u64 {
            return;
        }
        assert!(began.elapsed() < NOTICED_WITHIN, "{unknown} of {silent} are known to be silent");
        std::thread::sleep(Duration::from_millis(100));
    }
}
