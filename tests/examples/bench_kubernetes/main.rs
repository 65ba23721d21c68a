//! `./tests/bench kubernetes`: what the agent costs in a real Kubernetes, and how quick it is: its memory while it owns 200 and 2,000
//! objects, the time until a deleted Deployment is back, and until a hundred assignments are accepted by the API server and then ready
//! (which is mostly the lab's controllers). Progress on stderr, one line of JSON on stdout. `KEDGE_BENCH_SCALE` (1 by default)
//! shortens the times for which it is watched.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program of its own"
)]

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use kedge_tests::lab::kubernetes::{Audited, Kubernetes};
use kedge_tests::world::harbour::manifests::{Manifests, config_map};
use kedge_tests::world::harbour::{CLUSTER, CLUSTER_TYPE, Harbour, Terms};

/// Of five objects each: a Namespace and the platform's ConfigMap; a Deployment, a Service and a ConfigMap.
const OBJECTS: usize = 5;
const FEW: usize = 40;
const HUNDRED: usize = 100;
const MANY: usize = 2_000;

/// After the last change: buffers are given back, watches are quiet.
const SETTLED: f64 = 20.0;
/// For which requests are counted.
const WATCHED: f64 = 60.0;
/// Of which the median is the figure.
const REPAIRS: usize = 5;

/// Nothing takes so long when all is well.
const LOST: Duration = Duration::from_secs(600);

const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Only the Namespace: what a platform adds is its own matter.
const NAMESPACE: &str = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {{ .Namespace }}\n";

fn main() {
    let scale = env::var("KEDGE_BENCH_SCALE").map_or(1.0, |text| text.parse().expect("KEDGE_BENCH_SCALE is a number"));
    let kubernetes = Kubernetes::start().expect("what is missing was said above");
    let terms = Terms {
        namespace: Some(NAMESPACE.to_owned()),
        impersonate: false,
        direct: true,
        timeout: "10m".to_owned(),
        ..Terms::default()
    };
    let few: Vec<String> = (0..FEW).map(|number| format!("few{number}")).collect();
    let few: Vec<(&str, Manifests)> = few.iter().map(|name| (name.as_str(), small())).collect();
    let harbour = Harbour::prepare(kubernetes, &terms, &few, |settings, _| settings.wait = "4m".to_owned());
    let mut harbour = harbour.expect("what is missing was said above");
    harbour.add_agent();
    await_converged(&harbour, FEW);
    assert_eq!(owned(&harbour), FEW * OBJECTS);
    rest(SETTLED * scale);
    let pss_few = memory(&mut harbour);
    eprintln!("idle with {} objects: {pss_few:.2} MiB", FEW * OBJECTS);

    let idle = idle_requests(&harbour, WATCHED * scale);
    eprintln!("requests while idle, in {:.0} s: {idle:?}", WATCHED * scale);

    let mut repairs: Vec<f64> = (0..REPAIRS).map(|number| repair(&harbour, &format!("few{number}"))).collect();
    repairs.sort_by(f64::total_cmp);
    let drift_repair = repairs[REPAIRS / 2];
    eprintln!("a deleted Deployment is back after {drift_repair:.2} s ({repairs:.2?})");

    let (accepted, ready) = hundred(&harbour);
    eprintln!("{HUNDRED} assignments: accepted after {accepted:.2} s, ready after {ready:.2} s");

    let more = MANY - owned(&harbour) - 2;
    let large = (0..more).fold(Manifests::default(), |all, number| {
        all.with(&config_map(&format!("part{number}"), "number", &number.to_string()))
    });
    harbour.add_target("large", &large);
    await_converged(&harbour, FEW + HUNDRED + 1);
    assert_eq!(owned(&harbour), MANY);
    rest(SETTLED * scale);
    let pss_many = memory(&mut harbour);
    eprintln!("idle with {MANY} objects: {pss_many:.2} MiB");
    let idle_many = idle_requests(&harbour, WATCHED * scale);
    eprintln!("requests while idle, in {:.0} s: {idle_many:?}", WATCHED * scale);
    let others: usize = [&idle, &idle_many].into_iter().map(polls).sum();
    println!(
        "{{\"pss_200_mib\": {pss_few:.2}, \"pss_2000_mib\": {pss_many:.2}, \"drift_repair_s\": {drift_repair:.2}, \
         \"accepted_100_s\": {accepted:.2}, \"ready_100_s\": {ready:.2}, \"idle_polls\": {others}}}"
    );
}

fn small() -> Manifests {
    Manifests::web("1").with(&config_map("settings", "key", "value"))
}

/// The agent's share of memory now, in MiB.
fn memory(harbour: &mut Harbour) -> f64 {
    let pid = harbour.agents[0].part().pid();
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text.lines().find(|line| line.starts_with("Pss:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

/// How many objects with our label the API server has.
fn owned(harbour: &Harbour) -> usize {
    let lists = ["/api/v1/namespaces", "/api/v1/configmaps", "/api/v1/services", "/apis/apps/v1/deployments"];
    let count = |list: &&str| {
        let found = harbour.kubernetes.get(&format!("{list}?labelSelector=kedge.dev/assignment")).unwrap();
        found["items"].as_array().map_or(0, Vec::len)
    };
    lists.iter().map(count).sum()
}

/// The hub knows that so many assignments are Converged.
fn await_converged(harbour: &Harbour, count: usize) {
    let began = Instant::now();
    let mut said = Instant::now();
    loop {
        let cluster =
            harbour.world.api.ask(http::Method::GET, &format!("/api/v1/clusters/{CLUSTER}"), None, &[]).json();
        let conditions = cluster["conditions"].as_array().cloned().unwrap_or_default();
        let converged = conditions.iter().filter(|one| one["condition"] == "Converged").count();
        if converged >= count {
            return;
        }
        if said.elapsed() > Duration::from_secs(10) {
            eprintln!("{converged} of {count} are Converged");
            said = Instant::now();
        }
        assert!(began.elapsed() < LOST, "{converged} of {count} are Converged after {LOST:?}\n{}", harbour.story());
        thread::sleep(Duration::from_millis(200));
    }
}

/// Seconds from kubectl's answer until the Deployment is there again.
fn repair(harbour: &Harbour, target: &str) -> f64 {
    let path = harbour.path(target, "/apis/apps/v1", "deployments", "web");
    let uid = harbour.kubernetes.get(&path).unwrap()["metadata"]["uid"].clone();
    harbour.kubernetes.ask(http::Method::DELETE, &path, None);
    let began = Instant::now();
    loop {
        if harbour.kubernetes.get(&path).is_some_and(|object| object["metadata"]["uid"] != uid) {
            return began.elapsed().as_secs_f64();
        }
        assert!(began.elapsed() < LOST, "it isn't back");
        thread::sleep(LOOK_AGAIN);
    }
}

/// Seconds from the hub's desired state of a hundred more assignments until the API server has accepted their objects, and until the
/// hub knows that all are ready.
fn hundred(harbour: &Harbour) -> (f64, f64) {
    let (before, generation) = (owned(harbour), harbour.world.api.generation("dev", CLUSTER_TYPE).unwrap());
    let names: Vec<String> = (0..HUNDRED).map(|number| format!("more{number}")).collect();
    let targets: Vec<(&str, Manifests)> = names.iter().map(|name| (name.as_str(), small())).collect();
    harbour.add_targets(&targets);
    let began = loop {
        let state = harbour.world.api.state("dev", CLUSTER_TYPE, None);
        let count = state["entries"].as_array().map_or(0, Vec::len);
        if state["generation"].as_u64() > Some(generation) && count >= FEW + HUNDRED {
            break Instant::now();
        }
        thread::sleep(LOOK_AGAIN);
    };
    let wanted = before + HUNDRED * OBJECTS;
    while owned(harbour) < wanted {
        assert!(began.elapsed() < LOST, "{} of {wanted} objects", owned(harbour));
        thread::sleep(Duration::from_millis(100));
    }
    let accepted = began.elapsed().as_secs_f64();
    await_converged(harbour, FEW + HUNDRED);
    (accepted, began.elapsed().as_secs_f64())
}

/// What the agent's account asks for while nothing happens, by verb and kind; the Lease isn't counted.
fn idle_requests(harbour: &Harbour, seconds: f64) -> BTreeMap<String, usize> {
    let asked = || harbour.kubernetes.audited(&harbour.own_namespace());
    let before = asked().len();
    rest(seconds);
    let mut counts = BTreeMap::new();
    for Audited { verb, uri, .. } in asked().split_off(before) {
        let path = uri.split('?').next().unwrap_or_default();
        if !path.contains("/leases") {
            *counts.entry(format!("{verb} {path}")).or_default() += 1;
        }
    }
    counts
}

/// Those that aren't watches.
fn polls(counts: &BTreeMap<String, usize>) -> usize {
    counts.iter().filter(|(what, _)| !what.starts_with("watch ")).map(|(_, count)| count).sum()
}

fn rest(seconds: f64) {
    thread::sleep(Duration::from_secs_f64(seconds));
}
