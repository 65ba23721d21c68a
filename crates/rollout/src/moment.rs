//! Moments and durations as people read them, in the sentences of this crate.

use std::fmt;
use std::time::Duration;

use kedge_model::wire::Timestamp;

/// `2026-11-16T12:00:00Z`.
pub struct Utc(pub Timestamp);

/// `10m`, `1h 30m`.
pub struct Span(pub Duration);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_second(self.0.0.div_euclid(1_000)) {
            Ok(moment) => write!(f, "{moment}"),
            Err(_) => write!(f, "{} ms", self.0.0),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let parts =
            [(seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
        let mut written = false;
        for (number, unit) in parts.iter().filter(|(number, _)| *number > 0) {
            write!(f, "{}{number}{unit}", if written { " " } else { "" })?;
            written = true;
        }
        if written { Ok(()) } else { f.write_str("0s") }
    }
}

impl fmt::Debug for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// So much later, or as late as can be said.
pub fn later(moment: Timestamp, by: Duration) -> Timestamp {
    Timestamp(moment.0.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_spans_read_well() {
        assert_eq!(Utc(Timestamp(1_794_830_400_000)).to_string(), "2026-11-16T12:00:00Z");
        assert_eq!(Utc(Timestamp(i64::MAX)).to_string(), format!("{} ms", i64::MAX));
        assert_eq!(Span(Duration::from_secs(600)).to_string(), "10m");
        assert_eq!(Span(Duration::from_secs(90_061)).to_string(), "1d 1h 1m 1s");
        assert_eq!(Span(Duration::ZERO).to_string(), "0s");
    }
}
