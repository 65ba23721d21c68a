//! `./tests/bench rollout`: a hundred thousand simulated clusters in twenty rings of one environment, in the database of a real
//! hub: how long a step of a rollout takes to be decided, saved and signed for the next ring (the hub's own code on that
//! database, in this process); how fast "how far is it?" is answered over HTTP; and how soon after a person's word the last ring
//! has a signed state with the old content. Clusters and their counts are rows, see `fill`. Progress on stderr, one line of
//! JSON on stdout. `KEDGE_BENCH_SCALE` (1 by default) shrinks the fleet.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program of its own"
)]

mod fill;
#[path = "../rows/cluster.rs"]
mod row;
mod steps;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use kedge_model::kinds::{Amount, Members as RingMembers, Ring, WHOLE};
use kedge_model::wire::{Digest, PackagesKey};
use kedge_tests::world::plant::{Lane, Plant, assignment};
use kedge_tests::world::policy::Policy;
use serde_json::json;

use fill::{ENVIRONMENT, TYPES};

const CLUSTERS: usize = 100_000;
const RINGS: usize = 20;

/// Of which the median is the figure.
const LOOKS: usize = 101;

/// A rollback that isn't signed by then is not slow but lost.
const SIGNED_WITHIN: Duration = Duration::from_secs(60);

fn main() {
    let scale = env::var("KEDGE_BENCH_SCALE").map_or(1.0, |text| text.parse().expect("KEDGE_BENCH_SCALE is a number"));
    let count = ((CLUSTERS as f64 * scale).round() as usize).max(RINGS * TYPES.len());
    let mut plant = Plant::start(Some(&policy())).expect("a hub");
    await_streams(&plant);
    let now = keys_of(&plant, &ring(0));
    plant.world.hub.stop();
    let began = Instant::now();
    let members = fill::clusters(&plant.world, &rings(), count);
    steps::report(&plant, &members, &now);
    eprintln!("{count} clusters in {} streams written in {:.1} s", members.len(), began.elapsed().as_secs_f64());
    plant.world.hub.start_again();

    // The hub reads, packs and begins; the steps from ring to ring are this process's.
    let commit = plant.push_app(ENVIRONMENT, "version 2");
    plant.await_so("the first ring has it", SIGNED_WITHIN, |plant| {
        let has = |cluster_type: &&str| {
            let entry = plant.entry(ENVIRONMENT, cluster_type, &ring(0));
            entry.is_some_and(|(_, entry)| entry["workload"]["commit"] == commit.as_str())
        };
        TYPES.iter().all(has)
    });
    let target = keys_of(&plant, &ring(0));
    plant.world.hub.stop();
    let mut step = steps::measure(&plant, rings(), &members, &target);
    step.sort_by(f64::total_cmp);
    let step_ms = step[step.len() / 2];
    eprintln!("a step: {step_ms:.2} ms, at most {:.2} ms, in {} steps", step.last().unwrap(), step.len());

    plant.world.hub.start_again();
    let rollout = plant.await_state(ENVIRONMENT, Lane::Source, "Complete");
    await_quiet(plant.world.hub.part().pid());
    let status_ms = status(&plant, count);
    eprintln!("its status: {status_ms:.2} ms");
    let before = generations(&plant);
    let began = Instant::now();
    let said = plant.say(&plant.world.api, &rollout, "rollback", "the benchmark goes back");
    assert!(said.status < 300, "{}", said.text);
    while generations(&plant).iter().any(|(stream, generation)| before[stream] >= *generation) {
        assert!(began.elapsed() < SIGNED_WITHIN, "the rollback isn't signed");
        thread::sleep(Duration::from_millis(5));
    }
    let rollback_s = began.elapsed().as_secs_f64();
    eprintln!("{} streams are back after {rollback_s:.3} s", before.len());
    let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
    let figures =
        [("clusters", json!(count)), ("step_ms", json!(rounded(step_ms))), ("status_ms", json!(rounded(status_ms)))];
    let fields: Vec<String> = figures.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
    println!("{{{}, \"rollback_s\": {}}}", fields.join(", "), rounded(rollback_s));
}

fn ring(number: usize) -> String {
    format!("ring-{:02}", number + 1)
}

/// Twenty rings of a twentieth each.
fn policy() -> Policy {
    let share = format!("share: {}%", 100 / RINGS);
    let policy = Policy::chain(&[ENVIRONMENT]).with(ENVIRONMENT, &["gate: {reached: 50%}"]);
    (0..RINGS).fold(policy, |policy, number| {
        let lines: &[&str] = if number + 1 == RINGS { &[] } else { &[&share] };
        policy.ring(ENVIRONMENT, &ring(number), lines)
    })
}

/// The same as the hub reads them.
fn rings() -> Vec<Ring> {
    let share = u32::try_from(WHOLE as usize / RINGS).unwrap();
    let members = |number: usize| if number + 1 == RINGS { RingMembers::Rest } else { RingMembers::Share(share) };
    let rules = |number: usize| Ring {
        soak: Duration::ZERO,
        max_unavailable: Amount::Share(WHOLE),
        ..Ring::new(&ring(number), members(number))
    };
    (0..RINGS).map(rules).collect()
}

/// Every ring of every type has its first state.
fn await_streams(plant: &Plant) {
    plant.await_so("all rings have states", SIGNED_WITHIN, |plant| generations(plant).len() == RINGS * TYPES.len());
}

/// The newest generation of each stream.
fn generations(plant: &Plant) -> BTreeMap<(String, String), u64> {
    let states = plant.world.api.list(&format!("/api/v1/desired-states?environment={ENVIRONMENT}"));
    let text = |state: &serde_json::Value, name: &str| state[name].as_str().unwrap_or_default().to_owned();
    let of = |state: &serde_json::Value| {
        ((text(state, "clusterType"), text(state, "ring")), state["generation"].as_u64().unwrap_or_default())
    };
    let mut newest = BTreeMap::new();
    for (stream, generation) in states.iter().map(of).filter(|((_, ring), _)| ring.starts_with("ring-")) {
        let known = newest.entry(stream).or_default();
        *known = generation.max(*known);
    }
    newest
}

/// The packages that a ring's state names for each type, as reports name them.
fn keys_of(plant: &Plant, ring: &str) -> BTreeMap<String, String> {
    let key = |cluster_type: &&str| {
        let (_, entry) = plant.entry(ENVIRONMENT, cluster_type, ring).expect("the stream has a state");
        let digest = |part: &str| entry[part]["digest"].as_str().unwrap().parse::<Digest>().unwrap();
        let key = PackagesKey::of_packages(&digest("platform"), &digest("workload"));
        ((*cluster_type).to_owned(), key.to_string())
    };
    TYPES.iter().map(key).collect()
}

/// A hub that has just begun to lead looks once at all clusters: that is another figure's matter.
fn await_quiet(hub: u32) {
    let ticks = || {
        let text = fs::read_to_string(format!("/proc/{hub}/stat")).unwrap();
        let fields: Vec<&str> = text.rsplit(") ").next().unwrap().split(' ').collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let began = Instant::now();
    loop {
        let before = ticks();
        thread::sleep(Duration::from_secs(1));
        // Of a hundred in a second.
        if ticks() - before < 10 {
            eprintln!("the hub is quiet after {:.1} s", began.elapsed().as_secs_f64());
            return;
        }
        assert!(began.elapsed() < SIGNED_WITHIN * 2, "the hub doesn't come to rest");
    }
}

/// The median of asking how far it is.
fn status(plant: &Plant, count: usize) -> f64 {
    let path = format!("/api/v1/rollout-status?environment={ENVIRONMENT}&workload=hello");
    let mut times = Vec::new();
    for _ in 0..LOOKS {
        let began = Instant::now();
        let answer = plant.world.api.get(&path);
        times.push(began.elapsed().as_secs_f64() * 1000.0);
        assert_eq!(answer["converged"].as_u64(), Some(count as u64), "{}: {answer}", assignment(ENVIRONMENT));
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
