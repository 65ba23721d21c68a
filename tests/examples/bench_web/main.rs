//! `./tests/bench web`: every page of a hub with a hundred thousand clusters, and the first page of one workload's history over ninety
//! days among ten million entries. Progress on stderr, one line of JSON on stdout. `KEDGE_BENCH_SCALE` (1 by default) shrinks
//! both; arguments name single parts: `pages`, `history`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program of its own"
)]

mod history;
mod pages;
#[path = "../rows/all.rs"]
mod rows;

use std::env;

fn main() {
    let scale = env::var("KEDGE_BENCH_SCALE").map_or(1.0, |text| text.parse().expect("KEDGE_BENCH_SCALE is a number"));
    let wanted: Vec<String> = env::args().skip(1).collect();
    let is_wanted = |part: &str| wanted.is_empty() || wanted.iter().any(|name| name == part);
    let mut fields = Vec::new();
    if is_wanted("pages") {
        let (clusters, slowest) = pages::measure(scale);
        fields.push(format!("\"clusters\": {clusters}, \"slowest_page_ms\": {slowest:.1}"));
    }
    if is_wanted("history") {
        let (entries, slowest) = history::measure(scale);
        fields.push(format!("\"entries\": {entries}, \"history_ms\": {slowest:.1}"));
    }
    println!("{{{}}}", fields.join(", "));
}
