//! Go's `time.Time`: a moment and the zone it is shown in. `toDate` makes it, `date` and its relatives print it.
//! The zone of the machine is taken to be UTC, so that a template gives the same text everywhere.

mod duration;
mod layout;
mod parse;
mod zone;

use std::cmp::Ordering;
use std::fmt;
use std::rc::Rc;

pub(super) use duration::parse_duration;
pub(crate) use layout::{DAYS, MONTHS};
pub(super) use parse::parse;
pub(super) use zone::load;

/// The seconds from the year that Go counts from, -292277022399, to 1970.
const ABSOLUTE_TO_UNIX: u64 = 9_223_372_028_741_760_000;
const DAY: i128 = 86_400;

/// A moment. The default is not the Unix epoch but the zero time of Go, the start of year 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Time {
    /// Seconds since 1970.
    pub seconds: i64,
    pub nanoseconds: u32,
    pub zone: Zone,
}

/// The zone that a time is shown in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Zone {
    Utc,
    /// The machine's, which is UTC here.
    Local,
    /// An offset in seconds east of UTC and the name it was written with, which may be empty.
    Fixed {
        name: Rc<str>,
        offset: i32,
    },
}

/// A moment as a calendar and a clock show it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    /// 1 for January the 1st.
    pub year_day: i64,
    /// 0 for Sunday.
    pub weekday: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
}

impl Time {
    /// Go's `time.Time{}`.
    pub fn zero() -> Time {
        Time { seconds: -62_135_596_800, nanoseconds: 0, zone: Zone::Utc }
    }

    /// A moment by its seconds since 1970, in the machine's zone.
    pub fn from_unix(seconds: i64) -> Time {
        Time { seconds, nanoseconds: 0, zone: Zone::Local }
    }

    /// A moment by its date and clock, read as UTC.
    fn from_date(year: i64, month: i64, day: i64, seconds: i64, nanoseconds: u32) -> Time {
        let days = days_from_civil(i128::from(year), i128::from(month), i128::from(day));
        Time { seconds: (days * DAY) as i64 + seconds, nanoseconds, zone: Zone::Utc }
    }

    /// Go's `Time.Add`.
    pub fn add(&self, nanoseconds: i64) -> Time {
        let total = i64::from(self.nanoseconds) + nanoseconds % 1_000_000_000;
        let seconds = nanoseconds / 1_000_000_000 + total.div_euclid(1_000_000_000);
        Time {
            seconds: self.seconds.saturating_add(seconds),
            nanoseconds: total.rem_euclid(1_000_000_000) as u32,
            zone: self.zone.clone(),
        }
    }

    /// Go's `Time.Format`.
    pub fn format(&self, layout: &str) -> String {
        let (name, offset) = self.zone.name_and_offset();
        layout::format(self, layout, name, offset)
    }

    /// `Time.Format` after `Time.In` with a zone by its name in the tz database.
    pub(super) fn format_in(&self, layout: &str, zone: &jiff::tz::TimeZone) -> String {
        let (name, offset) = zone::look_up(zone, self.seconds);
        layout::format(self, layout, &name, offset)
    }

    /// The calendar and clock at an offset, over Go's whole range of years.
    fn fields_at(&self, offset: i32) -> Fields {
        let absolute = (self.seconds as u64).wrapping_add(ABSOLUTE_TO_UNIX).wrapping_add(i64::from(offset) as u64);
        let seconds = i128::from(absolute) - i128::from(ABSOLUTE_TO_UNIX);
        let days = seconds.div_euclid(DAY);
        let clock = seconds.rem_euclid(DAY) as i64;
        let (year, month, day) = civil_from_days(days);
        Fields {
            year: year as i64,
            month: month as i64,
            day: day as i64,
            year_day: (days - days_from_civil(year, 1, 1)) as i64 + 1,
            weekday: (days + 4).rem_euclid(7) as i64,
            hour: clock / 3600,
            minute: clock / 60 % 60,
            second: clock % 60,
        }
    }

    /// The calendar and clock of its own zone.
    pub(super) fn fields(&self) -> Fields {
        self.fields_at(self.zone.name_and_offset().1)
    }

    /// Go's `Time.AddDate`: days beyond a month's end run into the next.
    pub(super) fn add_date(&self, years: i64, months: i64, days: i64) -> Time {
        let fields = self.fields();
        let month = i128::from(fields.month) - 1 + i128::from(months);
        let year = i128::from(fields.year) + i128::from(years) + month.div_euclid(12);
        let days = days_from_civil(year, month.rem_euclid(12) + 1, i128::from(fields.day)) + i128::from(days);
        let before = days_from_civil(fields.year.into(), fields.month.into(), fields.day.into());
        Time { seconds: self.seconds.wrapping_add(((days - before) * DAY) as i64), ..self.clone() }
    }

    /// Go's `Time.Sub`, in nanoseconds; what doesn't fit is the longest duration.
    pub(super) fn since(&self, other: &Time) -> i64 {
        let seconds = i128::from(self.seconds) - i128::from(other.seconds);
        let nanoseconds = seconds * 1_000_000_000 + i128::from(self.nanoseconds) - i128::from(other.nanoseconds);
        nanoseconds.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    pub(super) fn order(&self, other: &Time) -> Ordering {
        (self.seconds, self.nanoseconds).cmp(&(other.seconds, other.nanoseconds))
    }

    pub(super) fn is_zero(&self) -> bool {
        self.order(&Time::zero()).is_eq()
    }

    /// How many parts of a second passed since 1970.
    pub(super) fn unix(&self, per_second: i64) -> i64 {
        let part = i64::from(self.nanoseconds) / (1_000_000_000 / per_second);
        self.seconds.wrapping_mul(per_second).wrapping_add(part)
    }

    pub(super) fn in_utc(&self) -> Time {
        Time { zone: Zone::Utc, ..self.clone() }
    }

    pub(super) fn in_local(&self) -> Time {
        Time { zone: Zone::Local, ..self.clone() }
    }

    /// Go's `Time.MarshalBinary`: a version, seconds since year 1, nanoseconds, the offset in minutes or -1 for UTC
    /// itself, and the seconds of the offset if it has any.
    pub(crate) fn binary(&self) -> Vec<u8> {
        let (minutes, seconds) = match &self.zone {
            Zone::Utc => (-1, 0),
            Zone::Local => (0, 0),
            Zone::Fixed { offset, .. } => ((offset / 60) as i16, (offset % 60) as i8),
        };
        let mut bytes = vec![if seconds == 0 { 1 } else { 2 }];
        bytes.extend(self.seconds.wrapping_sub(Time::zero().seconds).to_be_bytes());
        bytes.extend(self.nanoseconds.to_be_bytes());
        bytes.extend(minutes.to_be_bytes());
        if seconds != 0 {
            bytes.extend(seconds.to_be_bytes());
        }
        bytes
    }

    /// What `json.Marshal` writes, or nothing for a year that RFC 3339 has no digits for.
    pub(super) fn json(&self) -> Option<String> {
        let (_, offset) = self.zone.name_and_offset();
        (0..=9999).contains(&self.fields_at(offset).year).then(|| self.format("2006-01-02T15:04:05.999999999Z07:00"))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format("2006-01-02 15:04:05.999999999 -0700 MST"))
    }
}

impl Zone {
    fn name_and_offset(&self) -> (&str, i32) {
        match self {
            Zone::Utc | Zone::Local => ("UTC", 0),
            Zone::Fixed { name, offset } => (name, *offset),
        }
    }
}

/// Days since 1970 of a date of the Gregorian calendar, extended to all years.
fn days_from_civil(year: i128, month: i128, day: i128) -> i128 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i128) -> (i128, i128, i128) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i128::from(month <= 2);
    (year, month, day_of_year - (153 * shifted_month + 2) / 5 + 1)
}
