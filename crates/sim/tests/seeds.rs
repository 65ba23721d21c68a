//! What must hold, over many seeds: 2,000 fleets of up to 100 clusters, and five of 5,000; some small sites, and 200 with a thousand agents.
#![allow(clippy::panic, reason = "a test")]

use kedge_sim::{Broken, many, replay, run, size_of};

fn assert_none(broken: &[(u64, Broken)], size: impl Fn(u64) -> usize) {
    let mut text = String::new();
    for (seed, broken) in broken.iter().take(5) {
        text += &format!("seed {seed}: {}\n  {}\n", broken.0, replay(*seed, size(*seed)));
    }
    assert!(broken.is_empty(), "{} runs broke:\n{text}", broken.len());
}

#[test]
fn two_thousand_fleets_keep_every_promise() {
    let (reports, broken) = many(0..2_000, |seed| run(seed, size_of(seed), false));
    assert_none(&broken, size_of);
    // The runs are about something: things were rolled out, hubs died, people overrode.
    assert!(reports.iter().map(|report| report.rollouts).sum::<u64>() > 10_000);
    assert!(reports.iter().map(|report| report.deaths).sum::<u64>() > 1_000);
}

#[test]
fn five_fleets_of_five_thousand_keep_every_promise() {
    let (reports, broken) = many(0..5, |seed| run(seed, 5_000, false));
    assert_none(&broken, |_| 5_000);
    assert_eq!(reports.len(), 5);
}

#[test]
fn the_same_seed_is_the_same_run() {
    let (one, other) = (kedge_sim::run(7, 20, false), kedge_sim::run(7, 20, false));
    assert_eq!(one, other);
}

#[test]
fn sites_with_splits_and_liars_keep_every_promise() {
    let (reports, broken) =
        many(0..20, |seed| kedge_sim::sites::run(seed, 1 + usize::from(seed.is_multiple_of(4)), false));
    let shown: Vec<String> = broken.iter().map(|(seed, broken)| format!("seed {seed}: {}", broken.0)).collect();
    assert!(broken.is_empty(), "{}", shown.join("\n"));
    assert!(reports.iter().any(|report| report.misbehaving > 0 && report.drops > 0));
    assert!(reports.iter().map(|report| report.splits).sum::<u64>() > 20);
}

#[test]
fn two_hundred_sites_with_a_thousand_agents_keep_every_promise() {
    let report = kedge_sim::sites::run(0, 200, false).unwrap_or_else(|broken| panic!("{}", broken.0));
    assert_eq!(report.sites, 200);
    assert!(report.agents >= 950 && report.misbehaving > 50 && report.splits > 500, "{report:?}");
}

#[test]
fn the_same_seed_is_the_same_site() {
    assert_eq!(kedge_sim::sites::run(7, 1, false), kedge_sim::sites::run(7, 1, false));
}
