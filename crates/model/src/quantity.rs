//! Amounts as people write them: `30s`, `1h30m`, `512Mi`, `500m` of a core. Used by the decoder; the agent's and hub's
//! settings write durations the same way.

use std::time::Duration;

use crate::kinds::{Amount, WHOLE};

/// Why a text isn't an amount.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    #[error("it isn't a duration such as `30s`, `5m` or `1h30m`")]
    Duration,
    #[error("it isn't a number of bytes such as `512Mi` or `10G`")]
    Bytes,
    #[error("it isn't a number of cores such as `2`, `0.5` or `500m`")]
    Cores,
    #[error("it isn't a share such as `100%`, `50%` or `2.5%`")]
    Share,
    #[error("it isn't a number of clusters such as `3`, or a share of them such as `10%`")]
    Amount,
}

/// `30s`, `5m`, `1h30m`, `2d`, `250ms`; each unit at most once, from large to small.
pub fn parse_duration(text: &str) -> Result<Duration, QuantityError> {
    const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
    let mut rest = text;
    let mut millis: u64 = 0;
    let mut next_unit = 0;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: u64 = rest[..digits].parse().map_err(|_| QuantityError::Duration)?;
        rest = &rest[digits..];
        let letters = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_lowercase()).len();
        let unit = &rest[..letters];
        rest = &rest[letters..];
        let index = UNITS.iter().position(|(name, _)| *name == unit).ok_or(QuantityError::Duration)?;
        if index < next_unit {
            return Err(QuantityError::Duration);
        }
        next_unit = index + 1;
        let part = number.checked_mul(UNITS[index].1).ok_or(QuantityError::Duration)?;
        millis = millis.checked_add(part).ok_or(QuantityError::Duration)?;
    }
    if text.is_empty() { Err(QuantityError::Duration) } else { Ok(Duration::from_millis(millis)) }
}

/// Whole bytes with a Kubernetes suffix: `1024`, `10k`, `512Mi`.
pub fn parse_bytes(text: &str) -> Result<u64, QuantityError> {
    const UNITS: [(&str, u64); 9] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("k", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
        ("", 1),
    ];
    let (digits, factor) = UNITS
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))
        .ok_or(QuantityError::Bytes)?;
    let number = parse_digits(digits).ok_or(QuantityError::Bytes)?;
    number.checked_mul(factor).ok_or(QuantityError::Bytes)
}

/// Thousandths of a core: `2`, `0.5`, `500m`.
pub fn parse_cores(text: &str) -> Result<u64, QuantityError> {
    if let Some(millis) = text.strip_suffix('m') {
        return parse_digits(millis).ok_or(QuantityError::Cores);
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if fraction.is_empty() || fraction.len() > 3 {
        return Err(QuantityError::Cores);
    }
    let whole = parse_digits(whole).and_then(|whole| whole.checked_mul(1000));
    let fraction = parse_digits(&format!("{fraction:0<3}"));
    whole.zip(fraction).and_then(|(whole, fraction)| whole.checked_add(fraction)).ok_or(QuantityError::Cores)
}

/// Hundredths of a percent: `10%`, `2.5%`, at most `100%`.
pub fn parse_share(text: &str) -> Result<u32, QuantityError> {
    let number = text.strip_suffix('%').ok_or(QuantityError::Share)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.len() > 2 {
        return Err(QuantityError::Share);
    }
    let whole = parse_digits(whole).and_then(|whole| whole.checked_mul(100));
    let fraction = parse_digits(&format!("{fraction:0<2}"));
    let share = whole.zip(fraction).and_then(|(whole, fraction)| whole.checked_add(fraction));
    share.and_then(|share| u32::try_from(share).ok()).filter(|share| *share <= WHOLE).ok_or(QuantityError::Share)
}

/// `3` or `10%`.
pub fn parse_amount(text: &str) -> Result<Amount, QuantityError> {
    match text.ends_with('%') {
        true => parse_share(text).map(Amount::Share),
        false if text.is_empty() => Err(QuantityError::Amount),
        false => parse_digits(text).map(Amount::Number).ok_or(QuantityError::Amount),
    }
}

/// Rust would also take `+1`.
fn parse_digits(text: &str) -> Option<u64> {
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        for (text, millis) in
            [("30s", 30_000), ("5m", 300_000), ("1h30m", 5_400_000), ("2d", 172_800_000), ("250ms", 250), ("0s", 0)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in
            ["", "30", "s", "1m1h", "1s1s", "-1s", "1.5h", "1 s", "99999999999999999999d", "9999999999999999d", "é"]
        {
            assert_eq!(parse_duration(text), Err(QuantityError::Duration), "{text}");
        }
    }

    #[test]
    fn bytes_are_read() {
        for (text, bytes) in
            [("1024", 1024), ("10k", 10_000), ("512Mi", 512 << 20), ("2Gi", 2 << 30), ("1G", 1_000_000_000)]
        {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "Mi", "1.5Gi", "-1", "+1", "1mi", "99999999999Ti"] {
            assert_eq!(parse_bytes(text), Err(QuantityError::Bytes), "{text}");
        }
    }

    #[test]
    fn cores_are_read() {
        for (text, millis) in [("2", 2000), ("0.5", 500), ("500m", 500), ("1.25", 1250)] {
            assert_eq!(parse_cores(text), Ok(millis), "{text}");
        }
        for text in ["", ".5", "1.", "m", "1.2345", "-1", "1,5"] {
            assert_eq!(parse_cores(text), Err(QuantityError::Cores), "{text}");
        }
    }

    #[test]
    fn shares_and_amounts_are_read() {
        for (text, share) in [("10%", 1000), ("100%", 10_000), ("2.5%", 250), ("0.05%", 5), ("0%", 0)] {
            assert_eq!(parse_share(text), Ok(share), "{text}");
            assert_eq!(parse_amount(text), Ok(Amount::Share(share)), "{text}");
        }
        for text in ["", "%", "10", "101%", "100.01%", "1.234%", ".5%", "1.%", "-1%", "10 %", "99999999999999999999%"] {
            assert_eq!(parse_share(text), Err(QuantityError::Share), "{text}");
        }
        assert_eq!(parse_amount("3"), Ok(Amount::Number(3)));
        for text in ["", "-3", "1.5", "three", "+1"] {
            assert_eq!(parse_amount(text), Err(QuantityError::Amount), "{text}");
        }
    }
}
