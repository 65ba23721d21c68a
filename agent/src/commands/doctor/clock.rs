//! The clock, compared with the hub's at the last contact and with when this program was built. Part of `doctor`.

use kedge_model::wire::Timestamp;

use super::Finding;
use crate::commands::output::{duration, time};
use crate::link::era::built;
use crate::overview::Hub;

/// Certificates and times in reports bear this much.
const TOLERANCE_MS: u64 = 60_000;
const WAY_OUT: &str = "sudo timedatectl set-ntp true, or set it by hand: sudo timedatectl set-time 'YYYY-MM-DD HH:MM:SS'; \
                       workloads run all the same, and reports are corrected by the hub's time";

pub fn check(hub: &Hub, now: Timestamp) -> Finding {
    if now < built() {
        return Finding::problem(
            "clock",
            format!("it shows {}, which is before this program was built", time(now)),
            WAY_OUT,
        );
    }
    match hub.clock_offset_ms {
        None => Finding::ok("clock", format!("it shows {}; the hub's time isn't known yet", time(now))),
        Some(offset) if offset.unsigned_abs() > TOLERANCE_MS => {
            let side = if offset > 0 { "behind" } else { "ahead of" };
            let apart = duration(offset.unsigned_abs());
            Finding::problem("clock", format!("it was {apart} {side} the hub's at the last contact"), WAY_OUT)
        }
        Some(offset) => {
            Finding::ok("clock", format!("within {} of the hub's at the last contact", duration(offset.unsigned_abs())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_at_1970_and_one_that_is_hours_off_are_problems() {
        let now = Timestamp(4_000_000_000_000);
        let hub = |offset| Hub { clock_offset_ms: offset, ..Hub::default() };
        assert!(check(&hub(None), Timestamp(1000)).problem);
        assert!(!check(&hub(None), now).problem);
        assert!(!check(&hub(Some(-900)), now).problem);
        let behind = check(&hub(Some(6 * 3_600_000)), now);
        assert_eq!(behind.message, "it was 6 h behind the hub's at the last contact");
        assert!(check(&hub(Some(-6 * 3_600_000)), now).message.contains("ahead of"));
    }
}
