//! Windows and freezes of a PromotionPolicy, and the dates and instants that people write. Time zones are known to the
//! caller of the decoder, not here.

use crate::decode::fields::Value;
use crate::decode::node::short;
use crate::decode::notes::Notes;
use crate::decode::suggestion::nearest;
use crate::kinds::{Freeze, Window};

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// What a window or freeze that names none is in.
const UTC: &str = "UTC";

/// The end of a day, as `to: "24:00"`.
const DAY_MINUTES: u16 = 24 * 60;

pub(super) fn window(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Window> {
    let mut fields = value.fields(notes)?;
    let days = match fields.take("days") {
        Some(value) => days(&value, notes),
        None => Some((1..=7).collect()),
    };
    let from = fields.take("from").map_or(Some(0), |value| time(&value, notes));
    let end = fields.take("to");
    let to = end.as_ref().map_or(Some(DAY_MINUTES), |value| time(value, notes));
    let time_zone = time_zone(fields.take("timeZone"), notes);
    fields.finish_strictly(notes);
    let (days, from, to, time_zone) = (days?, from?, to?, time_zone?);
    if from == to || from == DAY_MINUTES {
        let hint = "for a whole day write `from: \"00:00\"` and `to: \"24:00\"`, or neither";
        end.as_ref().unwrap_or(value).refuse(notes, "InvalidValue", "leaves the window no time", Some(hint));
        return None;
    }
    Some(Window { days, from, to, time_zone })
}

/// `[mon, wed-fri]` as sorted numbers. A range may run over the end of the week.
fn days(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Vec<u8>> {
    let items = value.items(notes)?;
    if items.is_empty() {
        value.refuse(notes, "InvalidValue", "names no day", Some("for example `days: [mon-fri]`"));
        return None;
    }
    let mut all: Vec<u8> = Vec::new();
    let mut failed = false;
    for item in &items {
        match range(item, notes) {
            Some(days) => all.extend(days),
            None => failed = true,
        }
    }
    all.sort_unstable();
    all.dedup();
    (!failed).then_some(all)
}

fn range(item: &Value<'_>, notes: &mut Notes<'_>) -> Option<Vec<u8>> {
    let text = item.word(notes)?;
    let (first, last) = text.split_once('-').unwrap_or((&text, &text));
    let (first, last) = (day(first, item, notes)?, day(last, item, notes)?);
    let length = (last + 7 - first) % 7;
    Some((0..=length).map(|step| (first - 1 + step) % 7 + 1).collect())
}

fn day(word: &str, item: &Value<'_>, notes: &mut Notes<'_>) -> Option<u8> {
    if let Some(number) = (1u8..).zip(DAYS).find_map(|(number, name)| (name == word).then_some(number)) {
        return Some(number);
    }
    let hint = match nearest(word, DAYS) {
        Some(name) => format!("did you mean `{name}`?"),
        None => "write `mon`, `tue`, `wed`, `thu`, `fri`, `sat`, `sun` or a range such as `mon-fri`".to_owned(),
    };
    item.refuse(notes, "InvalidValue", &format!("isn't a day: `{}`", short(word)), Some(&hint));
    None
}

/// `"09:00"` in minutes since midnight.
fn time(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<u16> {
    let text = value.word(notes)?;
    let parsed = text.split_once(':').and_then(|(hours, minutes)| {
        let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
        let whole = u16::try_from(hours * 60 + minutes).ok()?;
        (minutes < 60 && whole <= DAY_MINUTES).then_some(whole)
    });
    if parsed.is_none() {
        let why = format!("isn't a time of day: `{}`", short(&text));
        value.refuse(notes, "InvalidValue", &why, Some("for example `from: \"09:00\"`, and `\"24:00\"` for the end"));
    }
    parsed
}

pub(super) fn freeze(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Freeze> {
    let mut fields = value.fields(notes)?;
    let from =
        fields.need("from", notes, "add the first day: `from: 2026-12-20`").and_then(|value| date(&value, notes));
    let last = fields.need("to", notes, "add the last day: `to: 2027-01-05`");
    let to = last.as_ref().and_then(|value| date(value, notes));
    let time_zone = time_zone(fields.take("timeZone"), notes);
    let reason = super::optional(fields.take("reason"), notes);
    fields.finish_strictly(notes);
    let (from, to, time_zone, reason) = (from?, to?, time_zone?, reason?.unwrap_or_default());
    // Dates of this form sort as texts.
    if to < from {
        let hint = "`to` is the last frozen day; it may be the same as `from`";
        last.as_ref().unwrap_or(value).refuse(notes, "InvalidValue", "is before its `from`", Some(hint));
        return None;
    }
    Some(Freeze { from, to, time_zone, reason })
}

fn date(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<String> {
    let text = value.word(notes)?;
    if is_date(&text) {
        return Some(text);
    }
    let why = format!("isn't a day of the calendar: `{}`", short(&text));
    value.refuse(notes, "InvalidValue", &why, Some("for example `2026-12-20`"));
    None
}

fn time_zone(value: Option<Value<'_>>, notes: &mut Notes<'_>) -> Option<String> {
    let Some(value) = value else { return Some(UTC.to_owned()) };
    let name = value.word(notes)?;
    if notes.knows_time_zone(&name) {
        return Some(name);
    }
    let why = format!("isn't a time zone: `{}`", short(&name));
    value.refuse(
        notes,
        "UnknownTimeZone",
        &why,
        Some("write a name such as `Europe/Berlin`, `America/New_York` or `UTC`"),
    );
    None
}

/// An RFC 3339 instant, or a day, which is its beginning in UTC. Gives the instant.
pub(super) fn instant(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<String> {
    let text = value.word(notes)?;
    if is_date(&text) {
        return Some(format!("{text}T00:00:00Z"));
    }
    if is_instant(&text) {
        return Some(text);
    }
    let why = format!("isn't a day or an instant: `{}`", short(&text));
    value.refuse(notes, "InvalidValue", &why, Some("for example `2026-12-01` or `2026-12-01T18:00:00Z`"));
    None
}

fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let (Some(year), Some(month), Some(day), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let (Some(year), Some(month), Some(day)) = (digits(year, 4), digits(month, 2), digits(day, 2)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn is_instant(text: &str) -> bool {
    let Some((date, time)) = text.split_once('T') else { return false };
    let (clock, zone) = match time.strip_suffix('Z') {
        Some(clock) => (clock, None),
        None => match time.rfind(['+', '-']).and_then(|at| time.split_at_checked(at)) {
            Some((clock, zone)) => (clock, Some(zone)),
            None => return false,
        },
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let fits = |text: &str, bounds: &[u32]| {
        let parts: Vec<&str> = text.split(':').collect();
        parts.len() == bounds.len()
            && parts.iter().zip(bounds).all(|(part, bound)| digits(part, 2).is_some_and(|number| number < *bound))
    };
    is_date(date)
        && fits(clock, &[24, 60, 60])
        && (1..=9).contains(&fraction.len())
        && fraction.bytes().all(|b| b.is_ascii_digit())
        && zone.is_none_or(|zone| fits(&zone[1..], &[24, 60]))
}

/// A number of exactly so many digits.
fn digits(text: &str, count: usize) -> Option<u32> {
    (text.len() == count && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_the_calendar_are_told_from_others() {
        for text in ["2026-12-20", "2024-02-29", "2000-02-29", "2026-01-31"] {
            assert!(is_date(text), "{text}");
        }
        for text in
            ["2026-02-29", "1900-02-29", "2026-13-01", "2026-00-01", "2026-04-31", "26-1-1", "2026-12-20-1", "x"]
        {
            assert!(!is_date(text), "{text}");
        }
    }

    #[test]
    fn instants_are_those_of_rfc_3339() {
        for text in ["2026-12-01T00:00:00Z", "2026-12-01T23:59:59.123456789Z", "2026-12-01T18:00:00+02:00"] {
            assert!(is_instant(text), "{text}");
        }
        for text in [
            "2026-12-01T24:00:00Z",
            "2026-12-01T00:00Z",
            "2026-12-01T00:00:00",
            "2026-12-01 00:00:00Z",
            "2026-12-01T00:00:00.Z",
            "2026-12-01T00:00:00+2",
            "T",
            "2026-12-01Té",
        ] {
            assert!(!is_instant(text), "{text}");
        }
    }
}
