//! How often an address may be refused: guessing at tokens gets slower and then stops, whoever has a good token isn't held up.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::connections::address::network;

/// Refused joins per address, forgotten with time.
#[derive(Debug, Default)]
pub struct Attempts {
    by_address: Mutex<HashMap<IpAddr, Refused>>,
}

#[derive(Clone, Copy, Debug)]
struct Refused {
    count: f64,
    at: Instant,
}

/// A person who mistypes a few times is let go on.
const ALLOWED: f64 = 20.0;
/// One is forgotten in this time.
const FORGET_ONE: Duration = Duration::from_secs(6);
/// Addresses that are remembered; the oldest go first.
const ADDRESSES: usize = 20_000;

impl Attempts {
    /// The seconds to wait, for who was refused too often.
    pub fn check(&self, address: IpAddr, now: Instant) -> Result<(), u64> {
        let refused = self.by_address.lock().unwrap_or_else(PoisonError::into_inner).get(&network(address)).copied();
        match refused.map(|known| known.left(now)) {
            Some(left) if left > ALLOWED - 1.0 => {
                Err(((left - ALLOWED + 1.0) * FORGET_ONE.as_secs_f64()).ceil() as u64)
            }
            _ => Ok(()),
        }
    }

    pub fn refused(&self, address: IpAddr, now: Instant) {
        let mut by_address = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        if by_address.len() >= ADDRESSES {
            by_address.retain(|_, known| known.left(now) > 0.0);
        }
        if by_address.len() >= ADDRESSES {
            let oldest = by_address.iter().min_by_key(|(_, known)| known.at).map(|(address, _)| *address);
            oldest.map(|address| by_address.remove(&address));
        }
        let known = by_address.entry(network(address)).or_insert(Refused { count: 0.0, at: now });
        *known = Refused { count: (known.left(now) + 1.0).min(2.0 * ALLOWED), at: now };
    }
}

impl Refused {
    fn left(&self, now: Instant) -> f64 {
        let forgotten = now.saturating_duration_since(self.at).as_secs_f64() / FORGET_ONE.as_secs_f64();
        (self.count - forgotten).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guessing_is_stopped_and_forgiven_after_a_while() {
        let attempts = Attempts::default();
        let (guesser, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let now = Instant::now();
        for _ in 0..20 {
            assert_eq!(attempts.check(guesser, now), Ok(()));
            attempts.refused(guesser, now);
        }
        assert_eq!(attempts.check(guesser, now), Err(6));
        assert_eq!(attempts.check(other, now), Ok(()));
        assert_eq!(attempts.check(guesser, now + Duration::from_secs(7)), Ok(()));
    }

    #[test]
    fn a_million_addresses_take_no_more_room_than_the_table() {
        let attempts = Attempts::default();
        let now = Instant::now();
        for number in 0..(ADDRESSES as u32 + 50) {
            attempts.refused(IpAddr::from(number.to_be_bytes()), now);
        }
        assert!(attempts.by_address.lock().unwrap().len() <= ADDRESSES);
    }
}
