//! When changes may begin: windows of the week and frozen days, in their own time zones. Called by `advance` and `promote`.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp as Instant};
use kedge_model::kinds::{Freeze, Window};
use kedge_model::wire::Timestamp;

use crate::moment::Utc;

/// Whether something may begin now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    Open,
    /// Why not, and when it opens as far as that can be said within a month.
    Closed {
        why: String,
        until: Option<Timestamp>,
    },
}

/// What is closed at a moment, and when that ends.
struct Shut {
    why: String,
    until: Option<Instant>,
}

/// How far ahead the next opening is looked for.
const AHEAD_DAYS: i32 = 31;
/// Freezes and windows may follow each other; more steps than this within a month are not worth a look.
const STEPS: usize = 64;

/// How the reasons begin.
const FROZEN: &str = "frozen";
const OUTSIDE: &str = "outside its time windows";

/// Whether a reason to wait is that its time hasn't come.
pub fn is_of_calendar(why: &str) -> bool {
    why.starts_with(FROZEN) || why.starts_with(OUTSIDE)
}

/// What is waited for, behind "waits for"; none: another reason than the time.
pub fn awaited(why: &str) -> Option<String> {
    if why.starts_with(FROZEN) {
        return Some(format!("the freeze to end ({why})"));
    }
    why.starts_with(OUTSIDE).then(|| format!("its time window ({why})"))
}

pub fn opening(windows: &[Window], freezes: &[Freeze], now: Timestamp) -> Opening {
    let Ok(now) = Instant::from_millisecond(now.0) else {
        return Opening::Closed { why: "the clock shows a time beyond the calendar".to_owned(), until: None };
    };
    let Some(first) = shut(windows, freezes, now) else { return Opening::Open };
    let until = next(windows, freezes, now, first.until);
    let why = match until {
        Some(until) => format!("{}; it opens {}", first.why, Utc(until)),
        None => first.why,
    };
    Opening::Closed { why, until }
}

/// From one end of what is shut to the next, until nothing is.
fn next(windows: &[Window], freezes: &[Freeze], now: Instant, first: Option<Instant>) -> Option<Timestamp> {
    let horizon = now.checked_add(Span::new().hours(i64::from(AHEAD_DAYS) * 24)).ok()?;
    let mut at = first?;
    for _ in 0..STEPS {
        if at > horizon {
            return None;
        }
        match shut(windows, freezes, at) {
            None => return Some(Timestamp(at.as_millisecond())),
            Some(Shut { until: Some(until), .. }) if until > at => at = until,
            Some(_) => return None,
        }
    }
    None
}

fn shut(windows: &[Window], freezes: &[Freeze], at: Instant) -> Option<Shut> {
    freezes.iter().find_map(|freeze| frozen(freeze, at)).or_else(|| outside(windows, at))
}

/// A freeze that can't be read holds everything: nobody knows when it ends.
fn frozen(freeze: &Freeze, at: Instant) -> Option<Shut> {
    let Ok(zone) = TimeZone::get(&freeze.time_zone) else { return Some(unknown(&freeze.time_zone)) };
    let (Ok(from), Ok(to)) = (freeze.from.parse::<Date>(), freeze.to.parse::<Date>()) else {
        let why = format!("the freeze from `{}` to `{}` has no readable days", freeze.from, freeze.to);
        return Some(Shut { why, until: None });
    };
    let today = zone.to_datetime(at).date();
    if today < from || today > to {
        return None;
    }
    let until = to.tomorrow().ok().and_then(|day| instant(day.to_datetime(Time::midnight()), &zone));
    let reason = if freeze.reason.is_empty() { String::new() } else { format!(" ({})", freeze.reason) };
    Some(Shut { why: format!("{FROZEN} from {from} to {to}{reason}"), until })
}

fn outside(windows: &[Window], at: Instant) -> Option<Shut> {
    let mut soonest: Option<Instant> = None;
    for window in windows {
        let Ok(zone) = TimeZone::get(&window.time_zone) else { return Some(unknown(&window.time_zone)) };
        let today = zone.to_datetime(at).date();
        // From yesterday, whose window may reach over midnight, to the same day of the next week.
        for offset in -1..=8 {
            let Ok(day) = today.checked_add(Span::new().days(offset)) else { continue };
            if !window.days.iter().any(|wanted| i8::try_from(*wanted) == Ok(day.weekday().to_monday_one_offset())) {
                continue;
            }
            let Some((start, end)) = hours(window, day, &zone) else { continue };
            if start <= at && at < end {
                return None;
            }
            if start > at {
                soonest = Some(soonest.map_or(start, |known| known.min(start)));
            }
        }
    }
    (!windows.is_empty()).then(|| Shut { why: OUTSIDE.to_owned(), until: soonest })
}

/// The window that begins on this day. Where a clock change skips or repeats its hours, it begins late rather than early and ends
/// early rather than late.
fn hours(window: &Window, day: Date, zone: &TimeZone) -> Option<(Instant, Instant)> {
    let end_day = if window.to <= window.from { day.tomorrow().ok()? } else { day };
    let start = zone.to_ambiguous_zoned(minute(day, window.from)?).later().ok()?.timestamp();
    let end = zone.to_ambiguous_zoned(minute(end_day, window.to)?).earlier().ok()?.timestamp();
    Some((start, end))
}

/// 1440 is the midnight that ends the day.
fn minute(day: Date, minutes: u16) -> Option<DateTime> {
    day.to_datetime(Time::midnight()).checked_add(Span::new().minutes(i64::from(minutes))).ok()
}

fn instant(local: DateTime, zone: &TimeZone) -> Option<Instant> {
    zone.to_ambiguous_zoned(local).compatible().ok().map(|zoned| zoned.timestamp())
}

fn unknown(time_zone: &str) -> Shut {
    Shut { why: format!("the time zone `{time_zone}` is unknown"), until: None }
}

#[cfg(test)]
mod tests;
