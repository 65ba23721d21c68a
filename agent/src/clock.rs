//! The time, behind a trait: a host's clock may be at 1970, hours off, or jump.

use std::fmt::Debug;
use std::time::{SystemTime, UNIX_EPOCH};

use kedge_model::wire::Timestamp;

pub trait Clock: Debug + Send + Sync {
    /// The wall clock, whatever it says.
    fn now(&self) -> Timestamp;
}

#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).map(|past| past.as_millis());
        Timestamp(since(SystemTime::now()).map_or(0, |past| i64::try_from(past).unwrap_or(i64::MAX)))
    }
}
