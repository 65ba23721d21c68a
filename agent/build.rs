//! Tells the program when it was built: no host's clock is right that says less.

use std::time::{SystemTime, UNIX_EPOCH};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let told = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.trim().parse::<u64>().ok());
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    println!("cargo::rustc-env=KEDGE_BUILT_AT={}", told.unwrap_or_else(now));
}
