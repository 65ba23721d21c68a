//! Reads a duration such as `1h30m`, for `dateModify`.

/// Go's `time.ParseDuration`, in nanoseconds.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    const LIMIT: u64 = 1 << 63;
    let (negative, mut rest) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (whole, after) = split_digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => split_digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let size = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(size);
        let unit: u64 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let part = whole.checked_mul(unit).filter(|&part| part <= LIMIT)?;
        let part = part.checked_add(fraction_of(fraction, unit)).filter(|&part| part <= LIMIT)?;
        total = total.checked_add(part).filter(|&total| total <= LIMIT)?;
        rest = after;
    }
    if negative { 0_i64.checked_sub_unsigned(total) } else { i64::try_from(total).ok() }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// Digits after the point as a part of a unit; what doesn't fit 63 bits is dropped, as in Go.
fn fraction_of(digits: &str, unit: u64) -> u64 {
    let (mut number, mut scale) = (0_u64, 1.0_f64);
    for digit in digits.bytes() {
        if number > (u64::MAX / 2) / 10 {
            break;
        }
        let next = number * 10 + u64::from(digit - b'0');
        if next > 1 << 63 {
            break;
        }
        number = next;
        scale *= 10.0;
    }
    (number as f64 * (unit as f64 / scale)) as u64
}
