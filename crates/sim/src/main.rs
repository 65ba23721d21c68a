//! Runs simulated fleets and sites by their seeds: `kedge-sim --seed 7 -v`, `kedge-sim --seeds 0..2000`, `kedge-sim sites --seeds 0..2000`. Ends
//! with 1 if one of them breaks.

use std::process::ExitCode;
use std::time::Instant;

use kedge_sim::{many, replay, run, sites, size_of};

const USAGE: &str = "Run simulated fleets, each from its seed.

  kedge-sim --seed N [--clusters N] [-v]     one run; -v tells what happens
  kedge-sim --seeds A..B [--clusters N]      many, B not included
  kedge-sim sites --seed N [--sites N] [-v]  one run of sites whose agents carry for each other
  kedge-sim sites --seeds A..B [--sites N]   many
";

#[derive(Default)]
struct Arguments {
    seeds: Option<std::ops::Range<u64>>,
    /// Clusters of a fleet, or sites.
    size: Option<usize>,
    verbose: bool,
    sites: bool,
}

fn main() -> ExitCode {
    let Some(Arguments { seeds: Some(seeds), size, verbose, sites }) = arguments(std::env::args().skip(1)) else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    if sites { run_sites(seeds, size, verbose) } else { run_fleets(seeds, size, verbose) }
}

fn run_sites(seeds: std::ops::Range<u64>, size: Option<usize>, verbose: bool) -> ExitCode {
    let began = Instant::now();
    let size = |seed| size.unwrap_or_else(|| sites::size_of(seed));
    if verbose && seeds.end - seeds.start == 1 {
        return match sites::run(seeds.start, size(seeds.start), true) {
            Ok(report) => {
                println!("{report:?} in {} ms", began.elapsed().as_millis());
                ExitCode::SUCCESS
            }
            Err(broken) => {
                println!("seed {}: {}", seeds.start, broken.0);
                ExitCode::FAILURE
            }
        };
    }
    let (reports, broken) = many(seeds, |seed| sites::run(seed, size(seed), false));
    for (seed, broken) in &broken {
        println!("seed {seed}: {}\n  {}", broken.0, sites::replay(*seed, size(*seed)));
    }
    let sum = |of: fn(&sites::Report) -> u64| reports.iter().map(of).sum::<u64>();
    println!(
        "{} runs in {:.1} s, {} broken: {} sites, {} agents, {} liars, {} requests ({} lost), {} documents taken, {} restarts, {} splits, {} lies found, \
         at most {} requests of an agent in ten quiet minutes, the hub heard of everybody within {} s",
        reports.len() + broken.len(),
        began.elapsed().as_secs_f64(),
        broken.len(),
        sum(|report| report.sites as u64),
        sum(|report| report.agents as u64),
        sum(|report| report.misbehaving as u64),
        sum(|report| report.messages),
        sum(|report| report.lost),
        sum(|report| report.taken),
        sum(|report| report.restarts),
        sum(|report| report.splits),
        sum(|report| report.drops),
        reports.iter().map(|report| report.idle).max().unwrap_or_default(),
        reports.iter().map(|report| report.silent).max().unwrap_or_default(),
    );
    if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_fleets(seeds: std::ops::Range<u64>, clusters: Option<usize>, verbose: bool) -> ExitCode {
    let began = Instant::now();
    let size = |seed| clusters.unwrap_or_else(|| size_of(seed));
    if seeds.end - seeds.start == 1 {
        return match run(seeds.start, size(seeds.start), verbose) {
            Ok(report) => {
                println!("{report:?} in {} ms", began.elapsed().as_millis());
                ExitCode::SUCCESS
            }
            Err(broken) => {
                println!("seed {}: {}", seeds.start, broken.0);
                ExitCode::FAILURE
            }
        };
    }
    let (reports, broken) = many(seeds, |seed| run(seed, size(seed), false));
    for (seed, broken) in &broken {
        println!("seed {seed}: {}\n  {}", broken.0, replay(*seed, size(*seed)));
    }
    let sum = |of: fn(&kedge_sim::Report) -> u64| reports.iter().map(of).sum::<u64>();
    println!(
        "{} runs in {:.1} s, {} broken: {} steps, {} rollouts, {} states, {} deaths of hubs",
        reports.len() + broken.len(),
        began.elapsed().as_secs_f64(),
        broken.len(),
        sum(|report| report.steps),
        sum(|report| report.rollouts),
        sum(|report| report.states),
        sum(|report| report.deaths),
    );
    if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn arguments(mut given: impl Iterator<Item = String>) -> Option<Arguments> {
    let mut found = Arguments::default();
    while let Some(name) = given.next() {
        match name.as_str() {
            "--seed" => {
                let seed: u64 = given.next()?.parse().ok()?;
                found.seeds = Some(seed..seed.checked_add(1)?);
            }
            "--seeds" => {
                let text = given.next()?;
                let (from, to) = text.split_once("..")?;
                let (from, to): (u64, u64) = (from.parse().ok()?, to.parse().ok()?);
                found.seeds = Some(from..to.max(from));
            }
            "sites" => found.sites = true,
            "--clusters" | "--sites" => found.size = Some(given.next()?.parse().ok().filter(|number| *number > 0)?),
            "-v" | "--verbose" => found.verbose = true,
            _ => return None,
        }
    }
    Some(found)
}
