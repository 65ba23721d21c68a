//! Go's layouts: a text in which the pieces of the reference time, `Mon Jan 2 15:04:05 MST 2006`, stand for themselves.

use super::{Fields, Time};

pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(crate) const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// One piece of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    LongMonth,
    Month,
    NumMonth,
    ZeroMonth,
    LongWeekday,
    Weekday,
    Day,
    UnderDay,
    ZeroDay,
    UnderYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    LongYear,
    Year,
    UpperPm,
    LowerPm,
    ZoneName,
    Offset(Offset),
    /// Digits after the second: how many, the sign before them, and whether zeros at the end are dropped.
    Fraction {
        digits: usize,
        comma: bool,
        trim: bool,
    },
}

/// How an offset from UTC is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset {
    /// `Z` for UTC itself.
    pub z: bool,
    pub colon: bool,
    pub minutes: bool,
    pub seconds: bool,
}

const OFFSETS: [(&str, Offset); 5] = [
    ("070000", Offset { z: false, colon: false, minutes: true, seconds: true }),
    ("07:00:00", Offset { z: false, colon: true, minutes: true, seconds: true }),
    ("0700", Offset { z: false, colon: false, minutes: true, seconds: false }),
    ("07:00", Offset { z: false, colon: true, minutes: true, seconds: false }),
    ("07", Offset { z: false, colon: false, minutes: false, seconds: false }),
];

/// The text before the first piece, the piece, and the layout after it.
pub(super) fn next_piece(layout: &[u8]) -> (&[u8], Option<Piece>, &[u8]) {
    for at in 0..layout.len() {
        if let Some((skip, piece, size)) = piece_at(&layout[at..]) {
            return (&layout[..at + skip], Some(piece), &layout[at + skip + size..]);
        }
    }
    (layout, None, &[])
}

/// The piece that starts here: the bytes before it that are text, the piece, its size.
fn piece_at(rest: &[u8]) -> Option<(usize, Piece, usize)> {
    let starts = |word: &str| rest.starts_with(word.as_bytes());
    let small_after = |at: usize| rest.get(at).is_some_and(u8::is_ascii_lowercase);
    let found = |piece: Piece, size: usize| Some((0, piece, size));
    match rest.first()? {
        b'J' if starts("January") => found(Piece::LongMonth, 7),
        b'J' if starts("Jan") && !small_after(3) => found(Piece::Month, 3),
        b'M' if starts("Monday") => found(Piece::LongWeekday, 6),
        b'M' if starts("Mon") && !small_after(3) => found(Piece::Weekday, 3),
        b'M' if starts("MST") => found(Piece::ZoneName, 3),
        b'0' => match rest.get(1)? {
            b'1' => found(Piece::ZeroMonth, 2),
            b'2' => found(Piece::ZeroDay, 2),
            b'3' => found(Piece::ZeroHour12, 2),
            b'4' => found(Piece::ZeroMinute, 2),
            b'5' => found(Piece::ZeroSecond, 2),
            b'6' => found(Piece::Year, 2),
            b'0' if starts("002") => found(Piece::ZeroYearDay, 3),
            _ => None,
        },
        b'1' if starts("15") => found(Piece::Hour, 2),
        b'1' => found(Piece::NumMonth, 1),
        b'2' if starts("2006") => found(Piece::LongYear, 4),
        b'2' => found(Piece::Day, 1),
        b'_' if starts("_2006") => Some((1, Piece::LongYear, 4)),
        b'_' if starts("_2") => found(Piece::UnderDay, 2),
        b'_' if starts("__2") => found(Piece::UnderYearDay, 3),
        b'3' => found(Piece::Hour12, 1),
        b'4' => found(Piece::Minute, 1),
        b'5' => found(Piece::Second, 1),
        b'P' if starts("PM") => found(Piece::UpperPm, 2),
        b'p' if starts("pm") => found(Piece::LowerPm, 2),
        sign @ (b'-' | b'Z') => {
            let (word, offset) = OFFSETS.iter().find(|(word, _)| rest[1..].starts_with(word.as_bytes()))?;
            found(Piece::Offset(Offset { z: *sign == b'Z', ..*offset }), word.len() + 1)
        }
        sign @ (b'.' | b',') => {
            let digit = *rest.get(1).filter(|digit| matches!(digit, b'0' | b'9'))?;
            let digits = rest[1..].iter().take_while(|&&byte| byte == digit).count();
            if rest.get(1 + digits).is_some_and(u8::is_ascii_digit) {
                return None;
            }
            found(Piece::Fraction { digits, comma: *sign == b',', trim: digit == b'9' }, 1 + digits)
        }
        _ => None,
    }
}

pub(super) fn format(time: &Time, layout: &str, zone: &str, offset: i32) -> String {
    let fields = time.fields_at(offset);
    let mut out = Vec::with_capacity(layout.len() + 16);
    let mut rest = layout.as_bytes();
    loop {
        let (text, piece, after) = next_piece(rest);
        out.extend_from_slice(text);
        let Some(piece) = piece else { break };
        match piece {
            Piece::Fraction { digits, comma, trim } => fraction(&mut out, time.nanoseconds, digits, comma, trim),
            Piece::ZoneName if !zone.is_empty() => out.extend_from_slice(zone.as_bytes()),
            Piece::ZoneName => out.extend_from_slice(offset_text(offset, OFFSETS[2].1).as_bytes()),
            Piece::Offset(style) => out.extend_from_slice(offset_text(offset, style).as_bytes()),
            piece => out.extend_from_slice(field(&fields, piece).as_bytes()),
        }
        rest = after;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A number with zeros up to a width, not counting the sign.
fn padded(number: i64, width: usize) -> String {
    format!("{}{:0width$}", if number < 0 { "-" } else { "" }, number.unsigned_abs())
}

fn field(fields: &Fields, piece: Piece) -> String {
    let twelve = if fields.hour % 12 == 0 { 12 } else { fields.hour % 12 };
    let month = MONTHS.get(fields.month as usize - 1).copied().unwrap_or_default();
    let weekday = DAYS.get(fields.weekday as usize).copied().unwrap_or_default();
    let afternoon = fields.hour >= 12;
    match piece {
        Piece::LongMonth => month.to_owned(),
        Piece::Month => month[..3].to_owned(),
        Piece::NumMonth => fields.month.to_string(),
        Piece::ZeroMonth => padded(fields.month, 2),
        Piece::LongWeekday => weekday.to_owned(),
        Piece::Weekday => weekday[..3].to_owned(),
        Piece::Day => fields.day.to_string(),
        Piece::UnderDay => format!("{:2}", fields.day),
        Piece::ZeroDay => padded(fields.day, 2),
        Piece::UnderYearDay => format!("{:3}", fields.year_day),
        Piece::ZeroYearDay => padded(fields.year_day, 3),
        Piece::Hour => padded(fields.hour, 2),
        Piece::Hour12 => twelve.to_string(),
        Piece::ZeroHour12 => padded(twelve, 2),
        Piece::Minute => fields.minute.to_string(),
        Piece::ZeroMinute => padded(fields.minute, 2),
        Piece::Second => fields.second.to_string(),
        Piece::ZeroSecond => padded(fields.second, 2),
        Piece::LongYear => padded(fields.year, 4),
        Piece::Year => padded((fields.year % 100).abs(), 2),
        Piece::UpperPm => if afternoon { "PM" } else { "AM" }.to_owned(),
        Piece::LowerPm => if afternoon { "pm" } else { "am" }.to_owned(),
        Piece::ZoneName | Piece::Offset(_) | Piece::Fraction { .. } => String::new(),
    }
}

fn offset_text(offset: i32, style: Offset) -> String {
    if offset == 0 && style.z {
        return "Z".to_owned();
    }
    // Go looks at the minutes for the sign: less than a minute west of UTC is a plus.
    let minutes = offset / 60;
    let seconds = if minutes < 0 { -offset } else { offset } % 60;
    let (sign, minutes) = (if minutes < 0 { '-' } else { '+' }, minutes.abs());
    let colon = if style.colon { ":" } else { "" };
    let mut out = format!("{sign}{:02}", minutes / 60);
    if style.minutes {
        out.push_str(&format!("{colon}{:02}", minutes % 60));
    }
    if style.seconds {
        out.push_str(colon);
        out.push_str(&padded(i64::from(seconds), 2));
    }
    out
}

fn fraction(out: &mut Vec<u8>, nanoseconds: u32, digits: usize, comma: bool, trim: bool) {
    if trim && nanoseconds == 0 {
        return;
    }
    let text = format!("{nanoseconds:09}");
    let mut kept = &text[..digits.min(9)];
    if trim {
        kept = kept.trim_end_matches('0');
    }
    if !kept.is_empty() {
        out.push(if comma { b',' } else { b'.' });
        out.extend_from_slice(kept.as_bytes());
    }
}
