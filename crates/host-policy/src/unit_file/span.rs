//! Times as systemd writes them: `90`, `1min 30s`, `1.5h`.

use std::time::Duration;

/// None: it has no end, or isn't a time that is known here.
pub fn read(value: &str) -> Option<Duration> {
    let mut rest = value.trim();
    let mut micros = 0_f64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start_matches([' ', '\t']);
        let letters = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        micros += number * f64::from(unit(&rest[..letters])?) * 1000.0;
        rest = rest[letters..].trim_start_matches([' ', '\t']);
    }
    Duration::try_from_secs_f64(micros / 1_000_000.0).ok()
}

/// In milliseconds; longer ones than a week are never meant here.
fn unit(name: &str) -> Option<u32> {
    Some(match name {
        "" | "s" | "sec" | "second" | "seconds" => 1000,
        "ms" | "msec" => 1,
        "m" | "min" | "minute" | "minutes" => 60_000,
        "h" | "hr" | "hour" | "hours" => 3_600_000,
        "d" | "day" | "days" => 86_400_000,
        "w" | "week" | "weeks" => 604_800_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_systemd_writes_them() {
        for (text, millis) in [
            ("90", 90_000),
            ("90s", 90_000),
            ("1min 30s", 90_000),
            ("1min30s", 90_000),
            ("1.5 m", 90_000),
            ("2h", 7_200_000),
            ("250ms", 250),
            ("0", 0),
        ] {
            assert_eq!(read(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["infinity", "1M", "1y", "-1", "1 fortnight", "1..2", "s", "1µs", "9e9", "99999999999999999999h9x"]
        {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read(""), Some(Duration::ZERO));
    }
}
