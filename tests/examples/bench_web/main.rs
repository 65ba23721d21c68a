//! `./tests/bench web`: how fast people are answered when there is much to look at. Progress on stderr, one line of JSON on stdout.
//! `KEDGE_BENCH_SCALE` (1 by default) shrinks all of it; arguments name single parts.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program of its own"
)]

mod history;

use std::env;
use std::time::Duration;

use serde_json::{Map, Value};

/// What is measured, by its name in the result.
pub type Figures = Map<String, Value>;

type Part = (&'static str, fn(f64, &mut Figures));

const PARTS: [Part; 1] = [("history", history::measure)];

/// The order of the result.
const NAMES: [&str; 4] = ["entries", "history_sqlite_ms", "history_postgres_ms", "history_ms"];

fn main() {
    let scale = env::var("KEDGE_BENCH_SCALE").map_or(1.0, |text| text.parse().expect("KEDGE_BENCH_SCALE is a number"));
    let wanted: Vec<String> = env::args().skip(1).collect();
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

pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
