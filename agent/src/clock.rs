//! The time, behind a trait: a host's clock may be at 1970, hours off, or jump.

use std::fmt::Debug;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kedge_model::wire::Timestamp;
use serde::{Serialize, Serializer};

pub trait Clock: Debug + Send + Sync {
    /// The wall clock, whatever it says.
    fn now(&self) -> Timestamp;

    /// Since the host started, sleep included: nobody can set it. None where it can't be told.
    fn uptime(&self) -> Option<Duration> {
        None
    }

    /// Another word after each start of the host.
    fn boot(&self) -> Option<String> {
        None
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// A time that documents spell as RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub Timestamp);

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).map(|past| past.as_millis());
        Timestamp(since(SystemTime::now()).map_or(0, |past| i64::try_from(past).unwrap_or(i64::MAX)))
    }

    fn uptime(&self) -> Option<Duration> {
        nix::time::clock_gettime(nix::time::ClockId::CLOCK_BOOTTIME).ok().map(Duration::from)
    }

    fn boot(&self) -> Option<String> {
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok().map(|id| id.trim().to_owned())
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match jiff::Timestamp::from_millisecond(self.0.0) {
            Ok(at) => serializer.collect_str(&at),
            Err(_) => serializer.serialize_i64(self.0.0),
        }
    }
}
