//! Reads a time by a layout, with Go's tolerance and Go's refusals.

use std::rc::Rc;

use super::layout::{DAYS, MONTHS, Offset, Piece, next_piece};
use super::{Time, Zone};

/// What the pieces read so far say.
#[derive(Debug, Default)]
struct Reading {
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    year_day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanoseconds: u32,
    afternoon: bool,
    morning: bool,
    utc: bool,
    offset: Option<i32>,
    zone: Option<Rc<str>>,
}

/// Go's `time.ParseInLocation(layout, text, time.Local)`; nothing when the text doesn't fit.
pub(crate) fn parse(layout: &str, text: &str) -> Option<Time> {
    let mut reading = Reading::default();
    let mut layout = layout.as_bytes();
    let mut rest = text.as_bytes();
    loop {
        let (prefix, piece, after) = next_piece(layout);
        rest = skip(rest, prefix)?;
        layout = after;
        match piece {
            Some(piece) => rest = reading.take(piece, rest, layout)?,
            None => break,
        }
    }
    if rest.is_empty() { reading.finish() } else { None }
}

/// Text of a layout must be there as it is; spaces match any number of spaces.
fn skip<'a>(mut text: &'a [u8], mut prefix: &[u8]) -> Option<&'a [u8]> {
    while let Some(&wanted) = prefix.first() {
        if wanted == b' ' {
            if text.first().is_some_and(|&byte| byte != b' ') {
                return None;
            }
            prefix = prefix.trim_ascii_start_spaces();
            text = text.trim_ascii_start_spaces();
            continue;
        }
        text = text.strip_prefix(&[wanted])?;
        prefix = &prefix[1..];
    }
    Some(text)
}

trait TrimSpaces {
    fn trim_ascii_start_spaces(&self) -> &Self;
}

impl TrimSpaces for [u8] {
    /// Spaces only: tabs and line ends stay.
    fn trim_ascii_start_spaces(&self) -> &[u8] {
        let spaces = self.iter().take_while(|&&byte| byte == b' ').count();
        &self[spaces..]
    }
}

fn digit(text: &[u8], at: usize) -> Option<i64> {
    text.get(at).filter(|byte| byte.is_ascii_digit()).map(|byte| i64::from(byte - b'0'))
}

/// One or two digits; exactly two when fixed.
fn number(text: &[u8], fixed: bool) -> Option<(i64, &[u8])> {
    let first = digit(text, 0)?;
    match digit(text, 1) {
        Some(second) => Some((first * 10 + second, &text[2..])),
        None if fixed => None,
        None => Some((first, &text[1..])),
    }
}

fn in_range((number, rest): (i64, &[u8]), range: std::ops::RangeInclusive<i64>) -> Option<(i64, &[u8])> {
    range.contains(&number).then_some((number, rest))
}

/// The first name that the text begins with, in any case.
fn name<'a>(text: &'a [u8], names: &[&str], short: bool) -> Option<(i64, &'a [u8])> {
    names.iter().enumerate().find_map(|(at, name)| {
        let size = if short { 3 } else { name.len() };
        let head = text.get(..size)?;
        head.eq_ignore_ascii_case(&name.as_bytes()[..size]).then(|| (at as i64, &text[size..]))
    })
}

/// Nanoseconds from a dot or comma and digits; digits beyond the ninth don't count.
fn nanoseconds(text: &[u8]) -> Option<u32> {
    let (&mark, digits) = text.split_first()?;
    let digits = &digits[..digits.len().min(9)];
    // Go reads the digits with a sign, which only an explicit layout lets through: `+` is skipped, `-` refused.
    let (sign, unsigned) = match digits.first() {
        Some(b'+') => (1, &digits[1..]),
        Some(b'-') => (-1, &digits[1..]),
        _ => (1, digits),
    };
    if !matches!(mark, b'.' | b',') || !unsigned.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = unsigned.iter().fold(0_i64, |sum, digit| sum * 10 + i64::from(digit - b'0')) * sign;
    let scale = 10_i64.pow(9 - digits.len() as u32);
    u32::try_from(number * scale).ok()
}

impl Reading {
    /// Reads one piece and gives the text after it. `layout` is what follows the piece.
    fn take<'a>(&mut self, piece: Piece, text: &'a [u8], layout: &[u8]) -> Option<&'a [u8]> {
        let rest;
        match piece {
            Piece::Year => {
                let (head, tail) = text.split_at_checked(2)?;
                let year = signed(head)?;
                self.year = if year >= 69 { year + 1900 } else { year + 2000 };
                rest = tail;
            }
            Piece::LongYear => {
                digit(text, 0)?;
                let (head, tail) = text.split_at_checked(4)?;
                self.year = signed(head)?;
                rest = tail;
            }
            Piece::Month | Piece::LongMonth => {
                let month;
                (month, rest) = name(text, &MONTHS, piece == Piece::Month)?;
                self.month = Some(month + 1);
            }
            Piece::NumMonth | Piece::ZeroMonth => {
                let month;
                (month, rest) = in_range(number(text, piece == Piece::ZeroMonth)?, 1..=12)?;
                self.month = Some(month);
            }
            Piece::Weekday | Piece::LongWeekday => (_, rest) = name(text, &DAYS, piece == Piece::Weekday)?,
            Piece::Day | Piece::UnderDay | Piece::ZeroDay => {
                let text = if piece == Piece::UnderDay { text.strip_prefix(b" ").unwrap_or(text) } else { text };
                let day;
                (day, rest) = number(text, piece == Piece::ZeroDay)?;
                self.day = Some(day);
            }
            Piece::UnderYearDay | Piece::ZeroYearDay => rest = self.take_year_day(piece, text)?,
            Piece::Hour => (self.hour, rest) = in_range(number(text, false)?, 0..=23)?,
            Piece::Hour12 | Piece::ZeroHour12 => {
                (self.hour, rest) = in_range(number(text, piece == Piece::ZeroHour12)?, 0..=12)?;
            }
            Piece::Minute | Piece::ZeroMinute => {
                (self.minute, rest) = in_range(number(text, piece == Piece::ZeroMinute)?, 0..=59)?;
            }
            Piece::Second | Piece::ZeroSecond => rest = self.take_second(piece, text, layout)?,
            Piece::UpperPm | Piece::LowerPm => {
                let (head, tail) = text.split_at_checked(2)?;
                let upper = piece == Piece::UpperPm;
                match head {
                    b"PM" if upper => self.afternoon = true,
                    b"AM" if upper => self.morning = true,
                    b"pm" if !upper => self.afternoon = true,
                    b"am" if !upper => self.morning = true,
                    _ => return None,
                }
                rest = tail;
            }
            Piece::Offset(style) => rest = self.take_offset(style, text)?,
            Piece::ZoneName => rest = self.take_zone(text)?,
            Piece::Fraction { digits, trim: false, .. } => {
                let (head, tail) = text.split_at_checked(1 + digits)?;
                self.nanoseconds = nanoseconds(head)?;
                rest = tail;
            }
            Piece::Fraction { .. } => rest = self.take_fraction(text)?,
        }
        Some(rest)
    }

    fn take_year_day<'a>(&mut self, piece: Piece, mut text: &'a [u8]) -> Option<&'a [u8]> {
        let zeros = piece == Piece::ZeroYearDay;
        if !zeros {
            text = text.strip_prefix(b" ").unwrap_or(text);
            text = text.strip_prefix(b" ").unwrap_or(text);
        }
        let size = text.iter().take(3).take_while(|byte| byte.is_ascii_digit()).count();
        if size == 0 || zeros && size != 3 {
            return None;
        }
        self.year_day = signed(&text[..size]);
        Some(&text[size..])
    }

    /// A fraction may follow the second even where the layout doesn't have one.
    fn take_second<'a>(&mut self, piece: Piece, text: &'a [u8], layout: &[u8]) -> Option<&'a [u8]> {
        let (second, rest) = in_range(number(text, piece == Piece::ZeroSecond)?, 0..=59)?;
        self.second = second;
        let expected = matches!(next_piece(layout).1, Some(Piece::Fraction { .. }));
        if expected { Some(rest) } else { self.take_fraction(rest) }
    }

    fn take_fraction<'a>(&mut self, text: &'a [u8]) -> Option<&'a [u8]> {
        if !matches!(text.first(), Some(b'.' | b',')) || digit(text, 1).is_none() {
            return Some(text);
        }
        let size = 1 + text[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.nanoseconds = nanoseconds(&text[..size])?;
        Some(&text[size..])
    }

    fn take_offset<'a>(&mut self, style: Offset, text: &'a [u8]) -> Option<&'a [u8]> {
        if style.z && text.first() == Some(&b'Z') {
            self.utc = true;
            return Some(&text[1..]);
        }
        let (&sign, mut rest) = text.split_first()?;
        let mut parts = [0_i64; 3];
        for (at, wanted) in [true, style.minutes, style.seconds].into_iter().enumerate() {
            if !wanted {
                continue;
            }
            if at > 0 && style.colon {
                rest = rest.strip_prefix(b":")?;
            }
            (parts[at], rest) = number(rest, true)?;
        }
        let [hours, minutes, seconds] = parts;
        if hours > 24 || minutes > 60 || seconds > 60 {
            return None;
        }
        let offset = ((hours * 60 + minutes) * 60 + seconds) as i32;
        self.offset = match sign {
            b'+' => Some(offset),
            b'-' => Some(-offset),
            _ => return None,
        };
        Some(rest)
    }

    fn take_zone<'a>(&mut self, text: &'a [u8]) -> Option<&'a [u8]> {
        if let Some(rest) = text.strip_prefix(b"UTC") {
            self.utc = true;
            return Some(rest);
        }
        let (name, rest) = text.split_at(zone_size(text)?);
        self.zone = Some(Rc::from(String::from_utf8_lossy(name)));
        Some(rest)
    }

    /// Checks that the day exists and puts everything together.
    fn finish(mut self) -> Option<Time> {
        if self.afternoon && self.hour < 12 {
            self.hour += 12;
        } else if self.morning && self.hour == 12 {
            self.hour = 0;
        }
        let (month, day) = match self.year_day {
            Some(year_day) => self.date_of(year_day)?,
            None => (self.month.unwrap_or(1), self.day.unwrap_or(1)),
        };
        if day < 1 || day > days_in(month, self.year) {
            return None;
        }
        let clock = self.hour * 3600 + self.minute * 60 + self.second;
        let time = Time::from_date(self.year, month, day, clock, self.nanoseconds);
        if self.utc {
            return Some(time);
        }
        // Go keeps -1 for "none", so an offset of minus one second is no offset.
        if let Some(offset) = self.offset.filter(|&offset| offset != -1) {
            let seconds = time.seconds - i64::from(offset);
            let name = self.zone.unwrap_or_else(|| Rc::from(""));
            let zone = if offset == 0 && name.is_empty() { Zone::Local } else { Zone::Fixed { name, offset } };
            return Some(Time { seconds, zone, ..time });
        }
        let zone = match self.zone {
            None => Zone::Local,
            Some(name) => {
                let hours = name.strip_prefix("GMT").and_then(|hours| signed(hours.as_bytes())).unwrap_or(0);
                // The offset of a zone that is only a name is unknown; Go shows the clock as written.
                Zone::Fixed { offset: hours as i32 * 3600, name }
            }
        };
        Some(Time { zone, ..time })
    }

    fn date_of(&self, year_day: i64) -> Option<(i64, i64)> {
        let mut left = year_day;
        let mut month = 1;
        while month <= 12 && left > days_in(month, self.year) {
            left -= days_in(month, self.year);
            month += 1;
        }
        let fits = left >= 1
            && month <= 12
            && self.month.is_none_or(|known| known == month)
            && self.day.is_none_or(|known| known == left);
        fits.then_some((month, left))
    }
}

fn days_in(month: i64, year: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// A short number that may have a sign.
fn signed(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.split_first()? {
        (b'-', digits) => (true, digits),
        (b'+', digits) => (false, digits),
        _ => (false, text),
    };
    if !digits.iter().all(u8::is_ascii_digit) || digits.len() > 18 {
        return None;
    }
    let number = digits.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    Some(if negative { -number } else { number })
}

/// How many bytes of the text are the abbreviation of a zone.
fn zone_size(text: &[u8]) -> Option<usize> {
    if text.len() < 3 {
        return None;
    }
    if text.starts_with(b"ChST") || text.starts_with(b"MeST") {
        return Some(4);
    }
    if let Some(rest) = text.strip_prefix(b"GMT") {
        return Some(3 + signed_offset_size(rest).unwrap_or(0));
    }
    if matches!(text[0], b'+' | b'-') {
        return signed_offset_size(text);
    }
    match text.iter().take(6).take_while(|byte| byte.is_ascii_uppercase()).count() {
        5 if text[4] == b'T' => Some(5),
        4 if text[3] == b'T' || text.starts_with(b"WITA") => Some(4),
        3 => Some(3),
        _ => None,
    }
}

/// `+3` or `-11`: a sign and hours below 24.
fn signed_offset_size(text: &[u8]) -> Option<usize> {
    let (sign, digits) = text.split_first()?;
    let size = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let hours =
        digits[..size].iter().fold(0_u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    (matches!(sign, b'+' | b'-') && size > 0 && hours <= 23).then_some(1 + size)
}
