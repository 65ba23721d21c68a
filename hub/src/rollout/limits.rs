//! How many clusters of each ring may be changing at once, from the rollouts in it. Pure; the controller writes it down before it
//! issues, polls are answered by it.

use std::collections::BTreeMap;

use kedge_model::kinds::EnvironmentPolicy;
use kedge_model::wire::Timestamp;
use kedge_rollout::{Phase, RingState, permits};

use super::running::Running;

/// Of one ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// None: everybody at once.
    pub permits: Option<u64>,
    /// Nobody begins now.
    pub closed: bool,
}

pub fn limits(
    policy: &EnvironmentPolicy,
    rollouts: &[&Running],
    members: impl Fn(&str) -> u64,
    now: Timestamp,
) -> BTreeMap<String, Limit> {
    let mut limits = BTreeMap::new();
    for ring in &policy.rings {
        let (mut limited, mut open) = (false, false);
        for running in rollouts {
            match running.ring_state(&ring.name) {
                Some(RingState::Rolling) => limited = true,
                // Who hasn't the failing content yet doesn't get it by itself.
                Some(RingState::Stopped) => limited |= running.is_unfinished(),
                _ => continue,
            }
            let serves = running.is_unfinished() || matches!(running.rollout.phase, Phase::Aborted { .. });
            open |= serves && running.rollout.closed(&ring.name, now).is_none();
        }
        let limit = match limited {
            true => Limit { permits: Some(permits(ring.max_unavailable, members(&ring.name))), closed: !open },
            false => Limit { permits: None, closed: false },
        };
        limits.insert(ring.name.clone(), limit);
    }
    limits
}

impl Limit {
    pub fn permits_column(&self) -> i64 {
        self.permits.map_or(-1, |permits| i64::try_from(permits).unwrap_or(i64::MAX))
    }
}
