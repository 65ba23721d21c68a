//! Numbers and dates as Go's `strconv` and `time` read them, which decides what a plain scalar is.

/// A number of a plain scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Int(i64),
    Uint(u64),
    Float(f64),
}

/// The number in a text that begins with a digit, a sign or a dot. `octal_sign` is yaml.v3's extra case, `0o-7`.
pub(crate) fn parse(text: &str, octal_sign: bool) -> Option<Number> {
    if text.starts_with('.') {
        return (is_float(&text.replace('_', "")) && underscores_separate_digits(text))
            .then(|| parse_float(&text.replace('_', "")))
            .flatten();
    }
    let stripped;
    let plain = if text.contains('_') {
        stripped = text.replace('_', "");
        stripped.as_str()
    } else {
        text
    };
    if let Some(number) = parse_integer(plain) {
        return Some(number);
    }
    if is_float(plain)
        && let Some(number) = parse_float(plain)
    {
        return Some(number);
    }
    // Go hands what follows the prefix to ParseInt once more, and that allows a sign.
    if let Some(rest) = plain.strip_prefix("0b") {
        return signed(rest, 2);
    }
    if octal_sign && let Some(rest) = plain.strip_prefix("0o") {
        return signed(rest, 8);
    }
    None
}

/// `strconv.ParseInt(text, 0, 64)`, then `ParseUint`.
fn parse_integer(text: &str) -> Option<Number> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let bytes = digits.as_bytes();
    let base = match (bytes.first()?, bytes.get(1).map(u8::to_ascii_lowercase)) {
        (b'0', Some(b'b')) if bytes.len() > 2 => 2,
        (b'0', Some(b'o')) if bytes.len() > 2 => 8,
        (b'0', Some(b'x')) if bytes.len() > 2 => 16,
        (b'0', Some(_)) => return integer(negative, magnitude(&bytes[1..], 8)?, text),
        _ => return integer(negative, magnitude(bytes, 10)?, text),
    };
    integer(negative, magnitude(&bytes[2..], base)?, text)
}

fn signed(text: &str, base: u32) -> Option<Number> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text.as_bytes()[1..]),
        b'+' => (false, &text.as_bytes()[1..]),
        _ => (false, text.as_bytes()),
    };
    integer(negative, magnitude(digits, base)?, text)
}

fn integer(negative: bool, magnitude: u64, text: &str) -> Option<Number> {
    if negative {
        return 0i64.checked_sub_unsigned(magnitude).map(Number::Int);
    }
    match i64::try_from(magnitude) {
        Ok(value) => Some(Number::Int(value)),
        Err(_) if text.starts_with('+') => None,
        Err(_) => Some(Number::Uint(magnitude)),
    }
}

fn magnitude(digits: &[u8], base: u32) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, byte| {
        let digit = char::from(*byte).to_digit(base)?;
        value.checked_mul(u64::from(base))?.checked_add(u64::from(digit))
    })
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_float(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    let mut rest = &text[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let length = digits(fraction);
        if whole == 0 && length == 0 {
            return false;
        }
        rest = &fraction[length..];
    } else if whole == 0 {
        return false;
    }
    match rest.strip_prefix(['e', 'E']) {
        None => rest.is_empty(),
        Some(exponent) => {
            let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
            !exponent.is_empty() && digits(exponent) == exponent.len()
        }
    }
}

/// Out of range is no number, as in Go.
fn parse_float(text: &str) -> Option<Number> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Some(Number::Float(value)),
        _ => None,
    }
}

fn underscores_separate_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digit = |index: Option<usize>| index.and_then(|index| bytes.get(index)).is_some_and(u8::is_ascii_digit);
    bytes
        .iter()
        .enumerate()
        .all(|(index, byte)| *byte != b'_' || (digit(index.checked_sub(1)) && digit(index.checked_add(1))))
}

/// YAML 1.1's base 60, such as `190:20:30`. Nothing reads it as a number any more; yaml.v3 still quotes it.
pub(crate) fn is_base60(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        return false;
    }
    let mut groups = text.split(':');
    let first = groups.next().unwrap_or_default();
    if !first.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
        return false;
    }
    let mut groups = groups.peekable();
    if groups.peek().is_none() {
        return false;
    }
    while let Some(group) = groups.next() {
        let mut digits = group;
        if groups.peek().is_none()
            && let Some((whole, fraction)) = group.split_once('.')
        {
            if !fraction.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
                return false;
            }
            digits = whole;
        }
        let valid = match digits.as_bytes() {
            [one] => one.is_ascii_digit(),
            [ten, one] => matches!(ten, b'0'..=b'5') && one.is_ascii_digit(),
            _ => false,
        };
        if !valid {
            return false;
        }
    }
    true
}

/// The four date formats that yaml.v2 and yaml.v3 try with `time.Parse`.
pub(crate) fn is_timestamp(text: &str) -> bool {
    let year = text.bytes().take_while(u8::is_ascii_digit).count();
    if year != 4 || text.as_bytes().get(4) != Some(&b'-') {
        return false;
    }
    let year = text[..4].parse().unwrap_or(0);
    read_date(&text.as_bytes()[5..], year).is_some_and(|rest| match rest {
        [] => true,
        [b'T' | b't', time @ ..] => read_time(time).is_some_and(is_zone),
        [b' ', ..] => {
            let blanks = rest.iter().take_while(|byte| **byte == b' ').count();
            read_time(&rest[blanks..]).is_some_and(<[u8]>::is_empty)
        }
        _ => false,
    })
}

fn read_date(text: &[u8], year: u32) -> Option<&[u8]> {
    let (month, rest) = read_number(text)?;
    let (day, rest) = read_number(rest.strip_prefix(b"-")?)?;
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    (1..=days).contains(&day).then_some(rest)
}

fn read_time(text: &[u8]) -> Option<&[u8]> {
    let (hour, rest) = read_number(text)?;
    let (minute, rest) = read_number(rest.strip_prefix(b":")?)?;
    let (second, rest) = read_number(rest.strip_prefix(b":")?)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    match rest {
        [b'.' | b',', digit, ..] if digit.is_ascii_digit() => {
            let digits = rest[1..].iter().take_while(|byte| byte.is_ascii_digit());
            Some(&rest[1 + digits.count()..])
        }
        _ => Some(rest),
    }
}

fn is_zone(text: &[u8]) -> bool {
    match text {
        [b'Z'] => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => {
            let number = |ten: &u8, one: &u8| {
                (ten.is_ascii_digit() && one.is_ascii_digit())
                    .then(|| u32::from(ten - b'0') * 10 + u32::from(one - b'0'))
            };
            // Go lets 24 hours and 60 minutes pass.
            number(h1, h2).is_some_and(|hours| hours <= 24) && number(m1, m2).is_some_and(|minutes| minutes <= 60)
        }
        _ => false,
    }
}

/// One or two digits.
fn read_number(text: &[u8]) -> Option<(u32, &[u8])> {
    match text {
        [ten, one, rest @ ..] if ten.is_ascii_digit() && one.is_ascii_digit() => {
            Some((u32::from(ten - b'0') * 10 + u32::from(one - b'0'), rest))
        }
        [one, rest @ ..] if one.is_ascii_digit() => Some((u32::from(one - b'0'), rest)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_in_every_notation_that_go_knows() {
        for (text, value) in [
            ("0", 0),
            ("-0", 0),
            ("+1", 1),
            ("0777", 511),
            ("0o17", 15),
            ("0x1F", 31),
            ("-0x10", -16),
            ("0b11", 3),
            ("0b-11", -3),
            ("1_000", 1000),
            ("1__0_", 10),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(parse(text, false), Some(Number::Int(value)), "{text}");
        }
        let large = Some(Number::Uint(u64::MAX));
        assert_eq!(parse("18446744073709551615", false), large);
        assert_eq!(parse("0xFFFFFFFFFFFFFFFF", false), large);
    }

    #[test]
    fn floats_are_read_where_no_integer_is() {
        for (text, value) in [
            ("08", 8.0),
            ("1.", 1.0),
            ("1.e3", 1000.0),
            (".5", 0.5),
            ("+.5e-1", 0.05),
            (".5_0", 0.5),
            ("1e3", 1000.0),
            ("1e-400", 0.0),
            ("18446744073709551616", 18_446_744_073_709_551_616.0),
            ("+18446744073709551615", 18_446_744_073_709_551_615.0),
        ] {
            assert_eq!(parse(text, false), Some(Number::Float(value)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_numbers() {
        for text in ["-", "+", ".", "0x", "0b2", "1e", "1e400", "1.2.3", "--1", "1:2", "._5", ".5_", "0x1p3", "1,0"] {
            assert_eq!(parse(text, false), None, "{text}");
        }
        assert_eq!(parse("0o-7", false), None);
        assert_eq!(parse("0o-7", true), Some(Number::Int(-7)));
    }

    #[test]
    fn dates_are_those_that_time_parse_takes() {
        for text in [
            "2001-01-01",
            "2001-1-1",
            "2000-02-29",
            "2001-12-14t21:59:43.10-05:00",
            "2001-12-14T1:2:3+24:60",
            "2001-12-14 21:59:43",
            "2001-12-14   1:2:3,5",
        ] {
            assert!(is_timestamp(text), "{text}");
        }
        for text in [
            "2001-13-01",
            "2001-02-30",
            "1900-02-29",
            "201-1-1",
            "2001-12-14 21:59:43.10 -5",
            "2001-12-14T24:00:00Z",
            "2001-12-14T1:2:3",
            "2001-01-01x",
        ] {
            assert!(!is_timestamp(text), "{text}");
        }
    }

    #[test]
    fn base_60_is_recognised() {
        for text in ["190:20:30", "1:2", "-1:59.5", "1_0:0.0_", "0:0."] {
            assert!(is_base60(text), "{text}");
        }
        for text in ["1:60", "1", "a:1", "1:", "1:2:", "1:123", "1.5:2"] {
            assert!(!is_base60(text), "{text}");
        }
    }
}
