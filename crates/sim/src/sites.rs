//! Simulated sites that drive the real `kedge-peer`: agents that are cut off, restart, lose messages and lie to each other, and a hub that some of
//! them reach now and then. Everything follows from one seed; a run that breaks a promise says which.

mod agent;
mod check;
mod hub;
mod misbehaving;
mod world;

use crate::Broken;
use crate::chance::Chance;
use world::World;

/// How a run went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub seed: u64,
    pub sites: usize,
    pub agents: usize,
    pub misbehaving: usize,
    /// Requests that were sent.
    pub messages: u64,
    pub lost: u64,
    /// Documents that somebody took from a peer.
    pub taken: u64,
    pub restarts: u64,
    pub splits: u64,
    /// Misbehavior that was found.
    pub drops: u64,
    /// The most requests that an agent sent in the last ten minutes, which are quiet.
    pub idle: u64,
    /// For how many seconds the hub had not heard of one at the end, where somebody honest reaches it.
    pub silent: u64,
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
