//! How people name a side: `stage`, `prod/drone`, `prod@2026-11-01T00:00:00Z`, `prod@2026-11-01`, `prod@2d` (so long ago).

use std::fmt;

use kedge_model::quantity::parse_duration;
use kedge_model::wire::Timestamp;

/// An environment or a cluster type of it, now or at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideName {
    pub environment: String,
    pub cluster_type: Option<String>,
    pub at: Option<At>,
}

/// A moment that has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At(pub Timestamp);

/// Why a text names no side.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SideError {
    #[error("`{0}` names no side to compare")]
    Shape(String),
    #[error("can't read `{0}` as a time")]
    Time(String),
    #[error("`{0}` is still to come")]
    Future(String),
}

/// Longer than an environment, a cluster type and a time.
const MAX_TEXT: usize = 600;

impl SideName {
    pub fn parse(text: &str, now: Timestamp) -> Result<SideName, SideError> {
        let text = text.trim();
        let shape = || SideError::Shape(text.chars().take(MAX_TEXT).collect());
        if text.len() > MAX_TEXT {
            return Err(shape());
        }
        let (place, at) = match text.split_once('@') {
            Some((place, time)) => (place, Some(At::parse(time, now)?)),
            None => (text, None),
        };
        let (environment, cluster_type) = match place.split_once('/') {
            Some((environment, cluster_type)) => (environment, Some(cluster_type)),
            None => (place, None),
        };
        let is_name = |name: &str| !name.is_empty() && !name.contains('/') && !name.contains(char::is_whitespace);
        if !is_name(environment) || !cluster_type.is_none_or(is_name) {
            return Err(shape());
        }
        Ok(SideName { environment: environment.to_owned(), cluster_type: cluster_type.map(str::to_owned), at })
    }
}

impl At {
    /// RFC 3339, a day (its beginning, UTC), or how long ago.
    fn parse(text: &str, now: Timestamp) -> Result<At, SideError> {
        let text = text.trim();
        let wrong = || SideError::Time(text.chars().take(MAX_TEXT).collect());
        let moment = match text.parse::<jiff::Timestamp>() {
            Ok(moment) => moment.as_millisecond(),
            Err(_) => match text.parse::<jiff::civil::Date>() {
                Ok(day) if text.len() == "2026-11-01".len() => {
                    let begin = day.to_zoned(jiff::tz::TimeZone::UTC).map_err(|_| wrong())?;
                    begin.timestamp().as_millisecond()
                }
                _ => {
                    let ago = parse_duration(text).map_err(|_| wrong())?;
                    let ago = i64::try_from(ago.as_millis()).map_err(|_| wrong())?;
                    now.0.saturating_sub(ago).max(0)
                }
            },
        };
        match moment > now.0 {
            true => Err(SideError::Future(text.to_owned())),
            false => Ok(At(Timestamp(moment))),
        }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0.0) {
            Ok(moment) => write!(f, "{moment}"),
            Err(_) => f.write_str("-"),
        }
    }
}

impl fmt::Display for SideName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.environment)?;
        if let Some(name) = &self.cluster_type {
            write!(f, "/{name}")?;
        }
        match self.at {
            Some(at) => write!(f, "@{at}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    #[test]
    fn sides_are_environments_cluster_types_and_times() {
        let name = |text: &str| SideName::parse(text, NOW).unwrap().to_string();
        assert_eq!(name("stage"), "stage");
        assert_eq!(name(" prod/drone "), "prod/drone");
        assert_eq!(name("prod@2026-11-01"), "prod@2026-11-01T00:00:00Z");
        assert_eq!(name("prod/drone@2026-11-01T10:00:00+02:00"), "prod/drone@2026-11-01T08:00:00Z");
        assert_eq!(SideName::parse("prod@2h", NOW).unwrap().at, Some(At(Timestamp(NOW.0 - 7_200_000))));
    }

    #[test]
    fn what_names_no_side_is_refused() {
        for text in ["", "/", "a/", "/b", "a/b/c", "a b", "@2026-01-01"] {
            assert!(matches!(SideName::parse(text, NOW), Err(SideError::Shape(_))), "{text}");
        }
        assert!(matches!(SideName::parse("prod@yesterday", NOW), Err(SideError::Time(_))));
        assert!(matches!(SideName::parse("prod@2999-01-01", NOW), Err(SideError::Future(_))));
    }

    proptest! {
        #[test]
        fn any_text_is_a_side_or_refused(text in ".{0,700}") {
            if let Ok(side) = SideName::parse(&text, NOW) {
                prop_assert_eq!(SideName::parse(&side.to_string(), NOW).unwrap(), side);
            }
        }
    }
}
