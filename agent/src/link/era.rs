//! How late it is for certain. A host's clock may be at 1970 or years ahead, so it alone never decides whether the hub's certificate
//! has ended: only what both the hub said before and the clock say now, and the time at which this program was built. Everything
//! that the agent follows is signed by pinned keys besides.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use kedge_model::wire::Timestamp;

use crate::clock::Clock;
use crate::identity::certificate::Validity;

#[derive(Debug)]
pub struct Era {
    clock: Arc<dyn Clock>,
    built: Timestamp,
    /// The latest that the hub said; 0 before the first contact.
    hub: AtomicI64,
}

/// Clocks of hub and host differ by hours in practice.
const TOLERANCE: Duration = Duration::from_secs(24 * 60 * 60);

impl Era {
    pub fn new(clock: Arc<dyn Clock>, hub: Timestamp) -> Era {
        Era { clock, built: built(), hub: AtomicI64::new(hub.0) }
    }

    /// The hub told the time.
    pub fn heard(&self, hub: Timestamp) {
        self.hub.store(hub.0, Ordering::Relaxed);
    }

    /// It is at least so late. A hub that once said a far future, or a clock that is there, is outvoted by the other.
    pub fn at_least(&self) -> Timestamp {
        let told = self.hub.load(Ordering::Relaxed).min(self.clock.now().0);
        Timestamp(told).max(self.built)
    }

    /// Whether a certificate may still be in force; the moment at which its chain is looked at, which is within its own dates.
    pub fn judge(&self, validity: Validity) -> Option<Timestamp> {
        let now = self.at_least();
        let tolerance = i64::try_from(TOLERANCE.as_millis()).unwrap_or(i64::MAX);
        let over = validity.until.0.saturating_add(tolerance) < now.0 || validity.until < validity.from;
        (!over).then(|| now.clamp(validity.from, validity.until))
    }
}

/// When this program was built.
pub fn built() -> Timestamp {
    let seconds: i64 = env!("KEDGE_BUILT_AT").parse().unwrap_or(0);
    Timestamp(seconds.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct At(i64);

    impl Clock for At {
        fn now(&self) -> Timestamp {
            Timestamp(self.0)
        }
    }

    const HOUR: i64 = 3_600_000;
    const DAY: i64 = 24 * HOUR;

    fn era(clock: i64, hub: i64) -> Era {
        Era { clock: Arc::new(At(clock)), built: Timestamp(1000 * DAY), hub: AtomicI64::new(hub) }
    }

    fn fresh(now: i64) -> Validity {
        Validity { from: Timestamp(now - HOUR), until: Timestamp(now + 90 * DAY) }
    }

    #[test]
    fn a_fresh_certificate_is_good_whatever_the_clock_says() {
        let now = 1500 * DAY;
        for clock in [0, now - 6 * HOUR, now, now + 6 * HOUR, now + 40_000 * DAY] {
            for hub in [0, 1100 * DAY, now] {
                let at = era(clock, hub).judge(fresh(now)).unwrap();
                assert!(at >= fresh(now).from && at <= fresh(now).until);
            }
        }
    }

    #[test]
    fn a_certificate_that_ended_before_the_hubs_last_word_is_refused() {
        let now = 1500 * DAY;
        let ended = Validity { from: Timestamp(now - 90 * DAY), until: Timestamp(now - 2 * DAY) };
        assert_eq!(era(now, now).judge(ended), None);
        assert_eq!(era(now + 300 * DAY, now).judge(ended), None);
        assert!(era(0, now).judge(ended).is_some(), "a clock before the build says nothing");
    }

    #[test]
    fn a_certificate_that_ended_before_the_build_is_refused_at_any_clock() {
        let ended = Validity { from: Timestamp(800 * DAY), until: Timestamp(990 * DAY) };
        assert_eq!(era(0, 0).judge(ended), None);
        assert_eq!(era(2000 * DAY, 0).judge(ended), None);
    }

    #[test]
    fn a_hub_that_once_said_a_far_future_locks_nobody_out() {
        let now = 1500 * DAY;
        let era = era(now, 0);
        era.heard(Timestamp(i64::MAX));
        assert_eq!(era.at_least(), Timestamp(now));
        assert!(era.judge(fresh(now)).is_some());
    }

    #[test]
    fn the_build_has_a_time() {
        assert!(built() > Timestamp(1_700_000_000_000));
    }
}
