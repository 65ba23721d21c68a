//! Zones by name, from the tz database that is built into the program: the machine's own could differ.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// The calendar repeats after this many seconds: 400 years.
const CYCLE: i64 = 12_622_780_800;

/// A zone by its exact name; empty and `Local` are UTC. Unknown ones are UTC too, as in sprig.
pub(crate) fn load(name: &str) -> TimeZone {
    match name {
        "" | "UTC" | "Local" => TimeZone::UTC,
        _ => DATABASE.get(name).ok().filter(|zone| zone.iana_name() == Some(name)).unwrap_or(TimeZone::UTC),
    }
}

/// The zone's abbreviation and its offset in seconds at a moment.
pub(super) fn look_up(zone: &TimeZone, seconds: i64) -> (String, i32) {
    // Beyond the years that jiff knows: far in the past nothing changes, far in the future the rules repeat.
    let last = Timestamp::MAX.as_second();
    let seconds = if seconds > last {
        last - CYCLE + (seconds - last).rem_euclid(CYCLE)
    } else {
        seconds.max(Timestamp::MIN.as_second())
    };
    let moment = Timestamp::from_second(seconds).unwrap_or_default();
    let info = zone.to_offset_info(moment);
    (info.abbreviation().to_owned(), info.offset().seconds())
}
