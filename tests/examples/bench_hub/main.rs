//! `./tests/bench hub`: how the hub bears many agents, many clusters, many documents and a large platform. Everything is on
//! loopback, with a real hub in a process of its own; this process is the load. Progress on stderr, one line of JSON on
//! stdout. `KEDGE_BENCH_SCALE` (1 by default) shrinks all of it; arguments name single parts.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program of its own"
)]

mod fanout;
mod fleet;
mod intake;
mod push;
#[path = "../rows/all.rs"]
mod rows;

use std::env;
use std::fs;
use std::time::Duration;

use kedge_tests::world::World;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::{Map, Value};

/// What is measured, by its name in the result.
pub type Figures = Map<String, Value>;

type Part = (&'static str, fn(f64, &mut Figures));

const PARTS: [Part; 4] =
    [("fanout", fanout::measure), ("fleet", fleet::measure), ("intake", intake::measure), ("push", push::measure)];

/// The order of the result.
const NAMES: [&str; 9] =
    ["agents", "fanout_s", "rss_mb", "clusters", "start_s", "page_ms", "count_ms", "intake_per_s", "push_to_desired_s"];

fn main() {
    let scale = env::var("KEDGE_BENCH_SCALE").map_or(1.0, |text| text.parse().expect("KEDGE_BENCH_SCALE is a number"));
    let wanted: Vec<String> = env::args().skip(1).collect();
    // The hub inherits it: ten thousand connections are as many files, in each of the two processes.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
    let mut figures = Figures::new();
    for (name, measure) in PARTS {
        if wanted.is_empty() || wanted.iter().any(|part| part == name) {
            measure(scale, &mut figures);
        }
    }
    let fields: Vec<String> =
        NAMES.iter().filter_map(|name| Some(format!("\"{name}\": {}", figures.get(*name)?))).collect();
    println!("{{{}}}", fields.join(", "));
}

/// So many, at this scale.
pub fn scaled(full: usize, scale: f64) -> usize {
    ((full as f64 * scale).round() as usize).max(1)
}

/// Rounded, as figures are read.
pub fn rounded(value: f64, digits: i32) -> Value {
    let factor = 10f64.powi(digits);
    Value::from((value * factor).round() / factor)
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// The hub's resident memory, in MB: `VmRSS` is now, `VmHWM` the most that it ever was.
pub fn hub_memory(world: &mut World, field: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{}/status", world.hub.part().pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

/// A value of `/metrics`, summed over its labels.
pub fn metric(world: &World, name: &str) -> f64 {
    let text = world.api.ask(http::Method::GET, "/metrics", None, &[]).text;
    let value = |line: &str| {
        let (series, value) = line.rsplit_once(' ')?;
        let known = series.split('{').next()? == name;
        known.then(|| value.parse::<f64>().ok())?
    };
    text.lines().filter_map(value).sum()
}
