//! What is true of an assignment on a cluster as a sentence: what runs, since when, and of a cluster that is silent what was
//! last known.

use askama::Template;
use askama::filters::HtmlSafe;

use super::{Tone, When};

/// Shape, word and sentence.
#[derive(Clone, Debug, Template)]
#[template(path = "part/said.html")]
pub struct Said {
    pub tone: Tone,
    text: String,
    since: Option<When>,
    rest: String,
}

/// What the sentence is made of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'a> {
    pub condition: &'a str,
    /// Before the cluster fell silent.
    pub last_known: Option<&'a str>,
    pub reason: Option<&'a str>,
    /// What runs: its version, and whether anything does.
    pub version: Option<&'a str>,
    pub runs: bool,
    /// RFC 3339; empty: nobody knows.
    pub since: Option<&'a str>,
}

impl HtmlSafe for Said {}

impl Said {
    pub fn of(facts: &Facts<'_>) -> Said {
        let tone = Tone::of(facts.condition);
        let since = facts.since.filter(|since| !since.is_empty()).map(When::clock);
        let (text, rest) = match tone {
            Tone::Converged => (facts.running(""), String::new()),
            Tone::Converging => ("changing".to_owned(), facts.running("still ")),
            Tone::Failed => (facts.reason.unwrap_or("no reason reported").to_owned(), facts.running("still ")),
            Tone::Unknown => ("offline".to_owned(), facts.last()),
        };
        Said { tone, text, since, rest }
    }
}

impl Facts<'_> {
    fn running(&self, still: &str) -> String {
        match (self.version, self.runs) {
            (Some(version), _) => format!("{still}running {version}"),
            (None, true) if still.is_empty() => "running".to_owned(),
            (None, true) => format!("{still}running what it had"),
            (None, false) => "nothing runs".to_owned(),
        }
    }

    fn last(&self) -> String {
        match self.last_known {
            None => String::new(),
            Some("Converged") => format!("last known: {}", self.running("")),
            Some(known) => format!("last known: {known}, {}", self.running("")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(facts: &Facts<'_>) -> String {
        let said = Said::of(facts);
        let since = said.since.map(|_| " since …").unwrap_or_default();
        let rest = if said.rest.is_empty() { String::new() } else { format!("; {}", said.rest) };
        format!("{}{since}{rest}", said.text)
    }

    #[test]
    fn each_condition_says_what_runs() {
        let version = Some("1.4.1");
        let since = Some("2026-11-01T00:00:00Z");
        let base = Facts { version, since, runs: true, ..Facts::default() };
        let cases = [
            (Facts { condition: "Converged", ..base }, "running 1.4.1 since …"),
            (Facts { condition: "Converging", ..base }, "changing since …; still running 1.4.1"),
            (
                Facts { condition: "Failed", reason: Some("HealthCheckFailed"), ..base },
                "HealthCheckFailed since …; still running 1.4.1",
            ),
            (
                Facts { condition: "Failed", reason: Some("Unsupported"), version: None, runs: false, ..base },
                "Unsupported since …; nothing runs",
            ),
            (
                Facts { condition: "Unknown", last_known: Some("Converged"), ..base },
                "offline since …; last known: running 1.4.1",
            ),
            (
                Facts { condition: "Unknown", last_known: Some("Failed"), since: None, ..base },
                "offline; last known: Failed, running 1.4.1",
            ),
        ];
        for (facts, expected) in cases {
            assert_eq!(text(&facts), expected);
        }
    }
}
