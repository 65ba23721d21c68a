//! How long one step of a promotion takes to decide: 100,000 simulated clusters in 20 rings. Prints JSON for `./tests/bench rollout`.
//!
//! Counts are kept as documents arrive, so a step costs rings × changed assignments, never clusters; what is timed is the whole
//! step: facts out of the counts, every ring's gate, the rollout's next value, and the chain's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kedge_model::Labels;
use kedge_model::kinds::{EnvironmentPolicy, Members, Promoter, PromotionPolicy, Ring};
use kedge_model::wire::{ClusterId, Timestamp};
use kedge_rollout::{
    Cause, Chain, ChainFacts, Counts, EnvironmentFacts, Facts, Item, Lane, MainCommit, Outcome, RingFacts, Rollout,
    RolloutId, advance, promote, ring_of,
};

const CLUSTERS: u32 = 100_000;
const RINGS: usize = 20;
const TYPES: usize = 50;
const ASSIGNMENTS: usize = 10;
/// Of main, as far back as a chain looks.
const COMMITS: usize = 1_000;

fn main() {
    let rings: Vec<Ring> = (0..RINGS).map(ring).collect();
    let mut policy = EnvironmentPolicy::new("prod", vec!["dev".to_owned()]);
    policy.rings = rings;
    let members = fleet(&policy.rings);
    let items: Vec<Item> = (0..TYPES * ASSIGNMENTS).map(item).collect();
    let cause = Cause::of_commit("c");
    let rules = Arc::new(policy.clone());
    let mut rollout = Rollout::new(RolloutId(1), "prod", Lane::Platform, cause, rules, items.into(), Timestamp(0));
    let environments = vec![EnvironmentPolicy::new("dev", Vec::new()), policy];
    let policy = PromotionPolicy { promoter: Promoter::Kedge, environments };
    let mut chain = Chain::new(Arc::new(policy));
    let main = (0..COMMITS).map(|number| MainCommit {
        commit: format!("{number:040}"),
        subject: String::new(),
        author: String::new(),
    });
    let mut chain_facts = ChainFacts { main: main.collect(), environments: BTreeMap::new() };
    for name in ["dev", "prod"] {
        chain_facts.environments.insert(name.to_owned(), EnvironmentFacts::default());
    }
    let (mut worst, mut all, mut steps) = (Duration::ZERO, Duration::ZERO, 0u32);
    // Ring by ring: half of it converged, then all of it, then its soak is over.
    let mut now = 0;
    while !rollout.ended() && steps < 1_000 {
        now += 601_000;
        let began = Instant::now();
        let facts = facts(&rollout, &members);
        if let Some(next) = advance(&rollout, &facts, Timestamp(now)) {
            rollout = next;
        }
        let commit = format!("{:040}", 0);
        let outcome = Outcome { commit, rollout: Some(rollout.id), state: rollout.outcome(), remark: None };
        if let Some(of_prod) = chain_facts.environments.get_mut("prod") {
            of_prod.outcome = Some(outcome);
        }
        if let Some(next) = promote(&chain, &chain_facts, Timestamp(now)) {
            chain = next;
        }
        let took = began.elapsed();
        (worst, all, steps) = (worst.max(took), all + took, steps + 1);
    }
    let step_ms = worst.as_secs_f64() * 1_000.0;
    let mean_ms = all.as_secs_f64() * 1_000.0 / f64::from(steps.max(1));
    println!(
        r#"{{"clusters": {CLUSTERS}, "rings": {RINGS}, "assignments": {}, "steps": {steps}, "step_ms": {step_ms:.3}, "step_mean_ms": {mean_ms:.3}}}"#,
        TYPES * ASSIGNMENTS
    );
}

fn ring(number: usize) -> Ring {
    let members = if number + 1 == RINGS { Members::Rest } else { Members::Share(500) };
    Ring::new(&format!("ring-{number:02}"), members)
}

fn item(number: usize) -> Item {
    let workload = format!("work-{}", number % ASSIGNMENTS);
    Item {
        cluster_type: format!("type-{:02}", number / ASSIGNMENTS),
        assignment: format!("{workload}-prod"),
        workload,
        removes: false,
    }
}

/// How many clusters of each type each ring has.
fn fleet(rings: &[Ring]) -> BTreeMap<String, Vec<u64>> {
    let mut members: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for number in 0..CLUSTERS {
        let mut key = [0; 32];
        key[..4].copy_from_slice(&number.to_be_bytes());
        let ring = ring_of(rings, &ClusterId::of_public_key(&key), &Labels::new());
        let counts = members.entry(ring.to_owned()).or_insert_with(|| vec![0; TYPES]);
        counts[number as usize % TYPES] += 1;
    }
    members
}

/// What the hub's counts say: a ring that has begun is converged, but for one in ten that is away.
fn facts(rollout: &Rollout, members: &BTreeMap<String, Vec<u64>>) -> Facts {
    let of_ring = |ring: &kedge_rollout::Progress| {
        let members = members.get(&ring.ring).map(Vec::as_slice).unwrap_or_default();
        let counts = (0..TYPES * ASSIGNMENTS).map(|item| {
            let all = members.get(item / ASSIGNMENTS).copied().unwrap_or_default();
            let offline = all / 10;
            match ring.state.is_new() {
                true => Counts { converged: all - offline, offline, ..Counts::default() },
                false => Counts { waiting: all - offline, offline, ..Counts::default() },
            }
        });
        (ring.ring.clone(), RingFacts { counts: counts.collect(), checks: BTreeMap::new() })
    };
    Facts { rings: rollout.rings.iter().map(of_ring).collect(), quarantined: Vec::new() }
}
