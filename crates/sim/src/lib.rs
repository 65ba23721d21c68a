//! Simulated fleets that drive the real decisions of `kedge-rollout`: agents, links, hubs and clocks are simulated and everything
//! follows from one seed. A run checks what must hold after every step; one that breaks says how to see it again.

pub mod agent;
pub mod chance;
mod check;
pub mod database;
pub mod git;
mod hub;
mod people;
pub mod plan;
pub mod sites;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};

use plan::{MINUTE, Plan, START};
pub use world::{Broken, World};

/// How a run went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub seed: u64,
    pub clusters: usize,
    /// Things that happened.
    pub steps: u64,
    pub rollouts: u64,
    pub states: u64,
    pub deaths: u64,
    pub overrides: u64,
    /// Simulated, until everything was at rest.
    pub minutes: i64,
}

/// One run to its end, or the first thing that must not be.
pub fn run(seed: u64, clusters: usize, verbose: bool) -> Result<Report, Broken> {
    let mut world = World::new(Plan::draw(seed, clusters), verbose);
    world.run()?;
    Ok(Report { minutes: (world.now - START) / MINUTE, ..world.report })
}

/// Up to 100 clusters, by the seed: small fleets have the strangest corners.
pub fn size_of(seed: u64) -> usize {
    let mut chance = chance::Chance::new(seed ^ 0x5eed);
    let most = [8, 30, 100][chance.below(3)];
    1 + chance.below(most)
}

/// The command that shows a run again.
pub fn replay(seed: u64, clusters: usize) -> String {
    let clusters = if clusters == size_of(seed) { String::new() } else { format!(" --clusters {clusters}") };
    format!("cargo run -p kedge-sim --release -- --seed {seed}{clusters} -v")
}

/// Many runs on all cores; those that broke come with what broke.
pub fn many<R: Send>(
    seeds: std::ops::Range<u64>,
    run: impl Fn(u64) -> Result<R, Broken> + Sync,
) -> (Vec<R>, Vec<(u64, Broken)>) {
    let next = AtomicU64::new(seeds.start);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut reports, mut broken) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        let work = || {
            let mut done = Vec::new();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds.end {
                    return done;
                }
                done.push((seed, run(seed)));
            }
        };
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            match thread.join() {
                Ok(done) => done.into_iter().for_each(|(seed, result)| match result {
                    Ok(report) => reports.push(report),
                    Err(what) => broken.push((seed, what)),
                }),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    broken.sort_by_key(|(seed, _)| *seed);
    (reports, broken)
}
