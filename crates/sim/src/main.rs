//! Runs simulated fleets by their seeds: `kedge-sim --seed 7 -v`, `kedge-sim --seeds 0..2000`. Ends with 1 if one of them breaks.

use std::process::ExitCode;
use std::time::Instant;

use kedge_sim::{many, replay, run, size_of};

const USAGE: &str = "Run simulated fleets, each from its seed.

  kedge-sim --seed N [--clusters N] [-v]     one run; -v tells what happens
  kedge-sim --seeds A..B [--clusters N]      many, B not included
";

#[derive(Default)]
struct Arguments {
    seeds: Option<std::ops::Range<u64>>,
    clusters: Option<usize>,
    verbose: bool,
}

fn main() -> ExitCode {
    let Some(Arguments { seeds: Some(seeds), clusters, verbose }) = arguments(std::env::args().skip(1)) else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
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
    let (reports, broken) = many(seeds, size);
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
            "--clusters" => found.clusters = Some(given.next()?.parse().ok().filter(|number| *number > 0)?),
            "-v" | "--verbose" => found.verbose = true,
            _ => return None,
        }
    }
    Some(found)
}
