//! A time as people say it; the exact one is in the element, and the script shows it in the viewer's zone.

use askama::Template;
use askama::filters::HtmlSafe;

use crate::store::now;

#[derive(Clone, Debug, Template)]
#[template(
    ext = "html",
    source = r#"<time datetime="{{ exact }}" title="{{ exact }}"{% if clock %} data-clock{% endif %}>{{ text }}</time>"#
)]
pub struct When {
    exact: String,
    text: String,
    /// The script says it by the viewer's clock.
    clock: bool,
}

impl HtmlSafe for When {}

impl When {
    /// Of an RFC 3339 time, as the API's views have it.
    pub fn of(exact: &str) -> When {
        let text = exact.parse::<jiff::Timestamp>().map_or_else(
            |_| exact.to_owned(),
            |moment| said(moment.as_millisecond(), now().0).unwrap_or_else(|| date(exact)),
        );
        When { exact: exact.to_owned(), text, clock: false }
    }

    /// A moment that something holds since: 09:12, Tuesday 14:03, or a date.
    pub fn clock(exact: &str) -> When {
        let text =
            exact.parse::<jiff::Timestamp>().map_or_else(|_| exact.to_owned(), |moment| by_clock(moment, now().0));
        When { exact: exact.to_owned(), text, clock: true }
    }

    pub fn maybe(exact: Option<&str>) -> Option<When> {
        exact.map(When::of)
    }
}

/// Relative within a week.
fn said(at: i64, now: i64) -> Option<String> {
    let ahead = at > now;
    let seconds = (now - at).abs() / 1000;
    let span = match seconds {
        0..=1 if !ahead => return Some("now".to_owned()),
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        86_400..172_800 => "1 day".to_owned(),
        172_800..604_800 => format!("{} days", seconds / 86_400),
        _ => return None,
    };
    Some(if ahead { format!("in {span}") } else { format!("{span} ago") })
}

/// In the hub's zone, as long as no script knows the viewer's.
fn by_clock(moment: jiff::Timestamp, now: i64) -> String {
    let form = match now.saturating_sub(moment.as_millisecond()) / 1000 {
        0..86_400 => "%H:%M UTC",
        86_400..518_400 => "%A %H:%M UTC",
        _ => "%Y-%m-%d %H:%M UTC",
    };
    moment.strftime(form).to_string()
}

fn date(exact: &str) -> String {
    exact.get(..10).unwrap_or(exact).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_is_said_by_the_clock() {
        let moment: jiff::Timestamp = "2026-11-10T14:03:00Z".parse().unwrap();
        let at = moment.as_millisecond();
        let told = |after_s: i64| by_clock(moment, at + after_s * 1000);
        assert_eq!(told(60), "14:03 UTC");
        assert_eq!(told(90_000), "Tuesday 14:03 UTC");
        assert_eq!(told(700_000), "2026-11-10 14:03 UTC");
    }

    #[test]
    fn times_are_said_as_people_say_them() {
        let now = 1_000_000_000;
        let told = |before_s: i64| said(now - before_s * 1000, now);
        let texts: Vec<Option<String>> =
            [0, 59, 60, 7200, 90_000, 300_000, 700_000, -90].into_iter().map(told).collect();
        let expected = ["now", "59 s ago", "1 min ago", "2 h ago", "1 day ago", "3 days ago"];
        let mut expected: Vec<Option<String>> = expected.into_iter().map(|text| Some(text.to_owned())).collect();
        expected.extend([None, Some("in 1 min".to_owned())]);
        assert_eq!(texts, expected);
    }
}
