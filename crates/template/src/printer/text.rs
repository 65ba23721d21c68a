//! Numbers under flags, and the text of sprig's own types.

use super::Printer;
use crate::float::format_float;
use crate::sprig::time::{DAYS, MONTHS};
use crate::value::{Opaque, Value};

impl Printer<'_> {
    pub(super) fn integer(&mut self, value: &Value, magnitude: u64, negative: bool, signed: bool, verb: char) {
        let code = if negative { magnitude.wrapping_neg() } else { magnitude };
        match verb {
            'v' if self.flags.sharp_v && !signed => {
                let sharp = std::mem::replace(&mut self.flags.sharp, true);
                self.digits(magnitude, negative, 16, 'v');
                self.flags.sharp = sharp;
            }
            'v' | 'd' => self.digits(magnitude, negative, 10, verb),
            'b' => self.digits(magnitude, negative, 2, verb),
            'o' | 'O' => self.digits(magnitude, negative, 8, verb),
            'x' | 'X' => self.digits(magnitude, negative, 16, verb),
            'c' => self.character(code),
            'q' => self.quoted_character(code),
            'U' => self.unicode(code),
            _ => self.bad_verb(value, verb),
        }
    }

    fn digits(&mut self, magnitude: u64, negative: bool, base: u32, verb: char) {
        let flags = self.flags;
        let mut least = 0;
        if let Some(precision) = flags.precision {
            if precision == 0 && magnitude == 0 {
                let zero = std::mem::replace(&mut self.flags.zero, false);
                self.padding(flags.width.unwrap_or(0));
                self.flags.zero = zero;
                return;
            }
            least = precision;
        } else if flags.zero
            && !flags.minus
            && let Some(width) = flags.width
        {
            let sign = usize::from(negative || flags.plus || flags.space);
            least = width.saturating_sub(sign);
        }
        let number = match (base, verb) {
            (2, _) => format!("{magnitude:b}"),
            (8, _) => format!("{magnitude:o}"),
            (16, 'X') => format!("{magnitude:X}"),
            (16, _) => format!("{magnitude:x}"),
            _ => magnitude.to_string(),
        };
        let mut text = String::new();
        if negative {
            text.push('-');
        } else if flags.plus {
            text.push('+');
        } else if flags.space {
            text.push(' ');
        }
        if verb == 'O' {
            text.push_str("0o");
        }
        let missing = least.saturating_sub(number.len());
        if !self.has_room(missing) {
            return;
        }
        if flags.sharp {
            match base {
                2 => text.push_str("0b"),
                8 if missing == 0 && !number.starts_with('0') => text.push('0'),
                16 => text.push_str(if verb == 'X' { "0X" } else { "0x" }),
                _ => {}
            }
        }
        text.extend(std::iter::repeat_n('0', missing));
        text.push_str(&number);
        self.pad_spaces(&text);
    }

    pub(super) fn float(&mut self, value: &Value, float: f64, verb: char) {
        match verb {
            'v' => self.real(float, 'g', None),
            'b' | 'g' | 'G' | 'x' | 'X' => self.real(float, verb, None),
            'f' | 'e' | 'E' => self.real(float, verb, Some(6)),
            'F' => self.real(float, 'f', Some(6)),
            _ => self.bad_verb(value, verb),
        }
    }

    pub(super) fn complex(&mut self, value: &Value, real: f64, imaginary: f64, verb: char) {
        if !matches!(verb, 'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E') {
            self.bad_verb(value, verb);
            return;
        }
        let plus = self.flags.plus;
        self.out.push('(');
        self.float(value, real, verb);
        self.flags.plus = true;
        self.float(value, imaginary, verb);
        self.out.push_str("i)");
        self.flags.plus = plus;
    }

    fn real(&mut self, float: f64, verb: char, precision: Option<usize>) {
        let flags = self.flags;
        let precision = flags.precision.or(precision);
        if !self.has_room(precision.unwrap_or(0)) {
            return;
        }
        let mut text = format_float(float, verb, precision);
        if !text.starts_with(['+', '-']) {
            text.insert(0, if flags.space && !flags.plus { ' ' } else { '+' });
        } else if text.starts_with('+') && flags.space && !flags.plus {
            text.replace_range(..1, " ");
        }
        if !float.is_finite() {
            if float.is_nan() && !flags.space && !flags.plus {
                text.remove(0);
            }
            self.pad_spaces(&text);
            return;
        }
        if flags.sharp && verb != 'b' {
            text = with_point(&text, verb, precision);
        }
        if flags.plus || !text.starts_with('+') {
            if flags.zero
                && !flags.minus
                && let Some(width) = flags.width
                && width > text.len()
            {
                self.out.push_str(&text[..1]);
                self.padding(width - text.len());
                self.out.push_str(&text[1..]);
                return;
            }
            self.pad(&text);
            return;
        }
        self.pad(&text[1..]);
    }
}

/// `%#g`: a point always, and the trailing zeros that the precision asks for. The text has its sign.
fn with_point(text: &str, verb: char, precision: Option<usize>) -> String {
    let mut wanted = match verb {
        'g' | 'G' | 'x' => precision.map_or(6, |precision| precision as i64),
        _ => 0,
    };
    let hexadecimal = matches!(verb, 'x' | 'X');
    let tail = text
        .char_indices()
        .skip(1)
        .find(|&(_, c)| matches!(c, 'p' | 'P') || !hexadecimal && matches!(c, 'e' | 'E'))
        .map_or(text.len(), |(at, _)| at);
    let (head, tail) = text.split_at(tail);
    let mut significant = false;
    for c in head.chars().skip(1).filter(|&c| c != '.') {
        significant |= c != '0';
        wanted -= i64::from(significant);
    }
    let mut out = head.to_owned();
    if !head.contains('.') {
        if head.len() == 2 && head.ends_with('0') {
            wanted -= 1;
        }
        out.push('.');
    }
    for _ in 0..wanted {
        out.push('0');
    }
    out.push_str(tail);
    out
}

/// What the `String` method of one of sprig's own types gives.
pub(crate) fn opaque_text(opaque: &Opaque) -> String {
    match opaque {
        Opaque::Duration(nanos) => duration_text(*nanos),
        Opaque::Byte(byte) => byte.to_string(),
        Opaque::Month(month) => name("Month", &MONTHS, month - 1, *month),
        Opaque::Weekday(day) => name("Weekday", &DAYS, *day, *day),
        Opaque::Time(time) => time.to_string(),
        Opaque::Version(version) => {
            let mut text = format!("{}.{}.{}", version.major, version.minor, version.patch);
            if !version.prerelease.is_empty() {
                text.push('-');
                text.push_str(&version.prerelease);
            }
            if !version.metadata.is_empty() {
                text.push('+');
                text.push_str(&version.metadata);
            }
            text
        }
    }
}

fn name(kind: &str, names: &[&str], at: i64, number: i64) -> String {
    let name = usize::try_from(at).ok().and_then(|at| names.get(at));
    name.map_or_else(|| format!("%!{kind}({number})"), |name| (*name).to_owned())
}

/// Go's `Duration.String`: `1h2m3.5s`, `1.5µs`, `0s`.
pub(super) fn duration_text(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    let fraction = |whole: u64, rest: u64, digits: usize| {
        let rest = format!("{rest:0digits$}");
        let rest = rest.trim_end_matches('0');
        if rest.is_empty() { whole.to_string() } else { format!("{whole}.{rest}") }
    };
    let body = match nanos {
        0 => return "0s".to_owned(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => format!("{}µs", fraction(nanos / 1_000, nanos % 1_000, 3)),
        1_000_000..1_000_000_000 => format!("{}ms", fraction(nanos / 1_000_000, nanos % 1_000_000, 6)),
        _ => {
            let seconds = nanos / 1_000_000_000;
            let tail = format!("{}s", fraction(seconds % 60, nanos % 1_000_000_000, 9));
            match (seconds / 3600, seconds / 60 % 60) {
                (0, 0) => tail,
                (0, minutes) => format!("{minutes}m{tail}"),
                (hours, minutes) => format!("{hours}h{minutes}m{tail}"),
            }
        }
    };
    format!("{sign}{body}")
}
