//! `./tests/bench web`: every page of a hub with a hundred thousand clusters, and the first page of one workload's history over ninety
//! days among ten million entries. Progress on stderr, one line of JSON on stdout. `KEDGE_BENCH_SCALE` (1 by default) shrinks both.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program of its own"
)]

mod pages;
#[path = "../rows/all.rs"]
mod rows;

use std::env;

fn main() {
    let scale = env::var("KEDGE_BENCH_SCALE").map_or(1.0, |text| text.parse().expect("KEDGE_BENCH_SCALE is a number"));
    let (clusters, slowest) = pages::measure(scale);
    println!("{{\"clusters\": {clusters}, \"slowest_page_ms\": {slowest:.1}}}");
}
