//! Rate limits: a bucket per token, and per address for those who come without one. The table is bounded.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Whose bucket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Whose {
    Token(String),
    Address(IpAddr),
}

/// Buckets that fill with time and are emptied by requests.
#[derive(Debug)]
pub struct Limits {
    per_token: f64,
    per_address: f64,
    buckets: Mutex<HashMap<Whose, Bucket>>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

/// A burst is so many seconds' worth: a page of a person's screen asks for several things at once.
const BURST_SECONDS: f64 = 2.0;
/// More different callers than this at once are strangers; about 2 MB.
const MAX_BUCKETS: usize = 20_000;

impl Limits {
    pub fn new(per_token: u32, per_address: u32) -> Limits {
        Limits {
            per_token: f64::from(per_token.max(1)),
            per_address: f64::from(per_address.max(1)),
            buckets: Mutex::new(HashMap::new()),
        }
    }

    /// Takes one request out of the bucket; else the seconds to wait.
    pub fn take(&self, whose: Whose, now: Instant) -> Result<(), u64> {
        let rate = match whose {
            Whose::Token(_) => self.per_token,
            Whose::Address(_) => self.per_address,
        };
        let whole = (rate * BURST_SECONDS).max(1.0);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(&whose) {
            // Who was silent for a burst's time has a full bucket again: forgetting it changes nothing.
            buckets.retain(|_, bucket| now.saturating_duration_since(bucket.at).as_secs_f64() < BURST_SECONDS);
            if buckets.len() >= MAX_BUCKETS {
                return Err(1);
            }
        }
        let bucket = buckets.entry(whose).or_insert(Bucket { left: whole, at: now });
        let gained = now.saturating_duration_since(bucket.at).as_secs_f64() * rate;
        bucket.left = (bucket.left + gained).min(whole);
        bucket.at = now;
        if bucket.left < 1.0 {
            let seconds = ((1.0 - bucket.left) / rate).ceil();
            return Err(if seconds >= 1.0 { seconds as u64 } else { 1 });
        }
        bucket.left -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_burst_passes_then_the_rate_holds() {
        let limits = Limits::new(10, 1);
        let start = Instant::now();
        let token = || Whose::Token("a".to_owned());
        for _ in 0..20 {
            assert_eq!(limits.take(token(), start), Ok(()));
        }
        assert_eq!(limits.take(token(), start), Err(1));
        assert_eq!(limits.take(Whose::Token("b".to_owned()), start), Ok(()), "another token isn't touched");
        assert_eq!(limits.take(token(), start + Duration::from_millis(100)), Ok(()));
        assert_eq!(limits.take(token(), start + Duration::from_millis(150)), Err(1));
    }

    #[test]
    fn the_table_is_bounded() {
        let limits = Limits::new(10, 10);
        let start = Instant::now();
        for number in 0..30_000u32 {
            let _ = limits.take(Whose::Address(IpAddr::from(number.to_be_bytes())), start);
        }
        assert!(limits.buckets.lock().unwrap().len() <= MAX_BUCKETS);
        let later = start + Duration::from_secs(3);
        assert_eq!(limits.take(Whose::Address(IpAddr::from([9, 9, 9, 9])), later), Ok(()));
        assert_eq!(limits.buckets.lock().unwrap().len(), 1);
    }
}
