//! A day of the log, in UTC: the name of its table and the times it covers.

use std::fmt;

use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use kedge_model::wire::Timestamp;

/// Its number is 20261116.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(Date);

/// What a table of a day is called before its number.
const PREFIX: &str = "history_";

impl Day {
    pub fn of(at: Timestamp) -> Day {
        let moment = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default();
        Day(TimeZone::UTC.to_datetime(moment).date())
    }

    pub fn number(self) -> i64 {
        i64::from(self.0.year()) * 10_000 + i64::from(self.0.month()) * 100 + i64::from(self.0.day())
    }

    pub fn from_number(number: i64) -> Option<Day> {
        let part = |value: i64| i8::try_from(value).ok();
        let year = i16::try_from(number / 10_000).ok().filter(|year| *year >= 1970)?;
        Some(Day(Date::new(year, part(number / 100 % 100)?, part(number % 100)?).ok()?))
    }

    /// The day that a table holds; none: the table is another one.
    pub fn of_table(name: &str) -> Option<Day> {
        let digits = name.strip_prefix(PREFIX).filter(|digits| digits.len() == 8)?;
        Day::from_number(digits.parse().ok().filter(|_| digits.bytes().all(|digit| digit.is_ascii_digit()))?)
    }

    /// Its first millisecond.
    pub fn begin(self) -> Timestamp {
        let begin = TimeZone::UTC.to_timestamp(self.0.at(0, 0, 0, 0));
        Timestamp(begin.map_or(0, jiff::Timestamp::as_millisecond))
    }

    /// So many days earlier; never before 1970.
    #[must_use]
    pub fn back(self, days: i64) -> Day {
        let earliest = date(1970, 1, 1);
        let span = jiff::Span::new().try_days(days);
        Day(span.and_then(|span| self.0.checked_sub(span)).map_or(earliest, |day| day.max(earliest)))
    }
}

/// The name of its table.
impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{:08}", self.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_named_by_its_date_and_found_again() {
        let noon = Timestamp(1_794_830_400_000);
        let day = Day::of(noon);
        assert_eq!((day.number(), day.to_string().as_str()), (20_261_116, "history_20261116"));
        assert_eq!(Day::of_table(&day.to_string()), Some(day));
        assert_eq!(day.begin(), Timestamp(noon.0 - 12 * 3_600_000));
        assert_eq!(Day::of(Timestamp(day.begin().0 - 1)), day.back(1));
        for name in ["history_days", "history_2026111", "history_20261301", "history_+2026111", "history_20261116x"] {
            assert_eq!(Day::of_table(name), None, "{name}");
        }
    }

    #[test]
    fn no_time_is_too_strange_for_a_day() {
        for at in [i64::MIN, -1, 0, i64::MAX] {
            assert!(Day::of(Timestamp(at)).number() > 0);
        }
        assert_eq!(Day::of(Timestamp(0)).back(i64::MAX).number(), 19_700_101);
    }
}
