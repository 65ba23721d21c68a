//! Simulated sites that drive the real `kedge-peer`: agents that are cut off, restart, lose messages and lie to each other, and a hub that some of
//! them reach now and then. Everything follows from one seed; a run that breaks a promise says which.

mod agent;
mod check;
mod hub;
mod liar;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Broken;
use crate::chance::Chance;
use world::World;

/// How a run went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub seed: u64,
    pub sites: usize,
    pub agents: usize,
    pub liars: usize,
    /// Requests that were sent.
    pub messages: u64,
    pub lost: u64,
    /// Documents that somebody took from a peer.
    pub taken: u64,
    pub restarts: u64,
    pub splits: u64,
    /// Lies that were found.
    pub drops: u64,
    /// The most requests that an agent sent in a minute of rest, over ten.
    pub idle: u64,
}

/// One run to its end, or the first promise that was broken.
pub fn run(seed: u64, sites: usize, verbose: bool) -> Result<Report, Broken> {
    World::new(seed, sites, verbose)?.run()
}

/// Up to eight sites, by the seed.
pub fn size_of(seed: u64) -> usize {
    1 + Chance::new(seed ^ 0x517e).below(8)
}

/// The command that shows a run again.
pub fn replay(seed: u64, sites: usize) -> String {
    let sites = if sites == size_of(seed) { String::new() } else { format!(" --sites {sites}") };
    format!("cargo run -p kedge-sim --release -- sites --seed {seed}{sites} -v")
}

/// Many runs on all cores; those that broke come with what broke.
pub fn many(seeds: std::ops::Range<u64>, size: impl Fn(u64) -> usize + Sync) -> (Vec<Report>, Vec<(u64, Broken)>) {
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
                done.push((seed, run(seed, size(seed), false)));
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
