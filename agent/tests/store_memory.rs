//! What the cache costs in memory, in a process of its own. Without its feature `miri_optimizations` sled takes 20 MiB.
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use kedge_agent::store::Store as _;
use kedge_agent::store::sled::SledStore;

/// An idle agent has 8 MiB for everything.
const MOST_KIB: u64 = 4 * 1024;

fn pss_kib() -> Option<u64> {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[test]
fn the_cache_takes_little_memory() {
    let Some(before) = pss_kib() else { return };
    let place = tempfile::tempdir().unwrap();
    let (store, warning) = SledStore::open(&place.path().join("cache")).unwrap();
    assert_eq!(warning, None);
    for number in 0..500_u32 {
        store.put("objects", &number.to_be_bytes(), &[7; 80]).unwrap();
    }
    store.flush().unwrap();
    let taken = pss_kib().unwrap().saturating_sub(before);
    assert!(taken < MOST_KIB, "{taken} KiB");
    // For who looks at the figures with --nocapture.
    println!("cache: {taken} KiB");
}
