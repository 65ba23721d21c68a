//! How many clusters of each ring may be changing at once, from the rollouts in it. Pure; the controller writes it down before it
//! issues, polls are answered by it.

use std::collections::BTreeMap;

use kedge_hub_types::permits::RingLimit;
use kedge_hub_types::rollout::running::Running;
use kedge_model::kinds::EnvironmentPolicy;
use kedge_model::wire::Timestamp;
use kedge_rollout::{Phase, RingState, permits};

pub fn limits(
    policy: &EnvironmentPolicy,
    rollouts: &[&Running],
    members: impl Fn(&str) -> u64,
    now: Timestamp,
) -> BTreeMap<String, RingLimit> {
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
            true => RingLimit { permits: Some(permits(ring.max_unavailable, members(&ring.name))), closed: !open },
            false => RingLimit { permits: None, closed: false },
        };
        limits.insert(ring.name.clone(), limit);
    }
    limits
}
