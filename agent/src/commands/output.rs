//! What commands print: columns, JSON, YAML, and times as people read them. Data goes to stdout. Used by every command.

use std::borrow::Cow;
use std::io::{self, Write as _};

use kedge_goyaml::{Key, Value as Yaml};
use kedge_model::wire::Timestamp;
use serde::Serialize;
use serde_json::Value as Json;

/// How a command shows what it found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    #[default]
    Text,
    Json,
    Yaml,
}

/// Lines with their cells below each other.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn row<const N: usize>(&mut self, cells: [&str; N]) {
        self.rows.push(cells.iter().map(|cell| (*cell).to_owned()).collect());
    }

    /// Two spaces between columns, nothing behind the last.
    pub fn to_text(&self, indent: &str) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = indent.to_owned();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', width + 2 - cell.chars().count()));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// The document in the format that was asked for; `text` is made only when it is.
pub fn show<T: Serialize>(format: Format, document: &T, text: impl FnOnce() -> String) -> io::Result<()> {
    match format {
        Format::Text => print(&harmless(&text())),
        Format::Json => {
            let mut text = serde_json::to_string_pretty(document)?;
            // JSON leaves these as they are, and they stand in texts only.
            if text.contains(acts_on_terminal) {
                let escape =
                    |c: char| if acts_on_terminal(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
                text = text.chars().map(escape).collect();
            }
            text.push('\n');
            print(&text)
        }
        Format::Yaml => print(&kedge_goyaml::encode(&to_yaml(&serde_json::to_value(document)?), 4)),
    }
}

/// Whoever closed the pipe has seen enough.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// Without what a terminal would act on: names, reasons and commands' output are other people's text.
pub fn harmless(text: &str) -> Cow<'_, str> {
    match text.contains(acts_on_terminal) {
        true => Cow::Owned(text.replace(acts_on_terminal, "\u{fffd}")),
        false => Cow::Borrowed(text),
    }
}

/// Moves the cursor, changes colours, or shows what follows in another order.
fn acts_on_terminal(c: char) -> bool {
    let reorders = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    reorders || (c.is_control() && !matches!(c, '\n' | '\t'))
}

fn to_yaml(value: &Json) -> Yaml {
    match value {
        Json::Null => Yaml::Null,
        Json::Bool(value) => Yaml::Bool(*value),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Yaml::Int(number),
            (None, Some(number)) => Yaml::Uint(number),
            (None, None) => Yaml::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Yaml::String(text.clone()),
        Json::Array(items) => Yaml::List(items.iter().map(to_yaml).collect()),
        Json::Object(map) => {
            Yaml::Map(map.iter().map(|(key, value)| (Key::String(key.clone()), to_yaml(value))).collect())
        }
    }
}

/// `2026-11-16 07:40:08Z`.
pub fn time(at: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(at.0) {
        Ok(at) => at.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
        Err(_) => format!("{} ms", at.0),
    }
}

/// `07:40:08Z`, where the day was already said.
pub fn time_of_day(at: Timestamp) -> String {
    time(at).rsplit(' ').next().unwrap_or_default().to_owned()
}

/// `2 min ago`; a time that this clock hasn't reached yet is `in 2 min`.
pub fn ago(at: Timestamp, now: Timestamp) -> String {
    let past = now.0.saturating_sub(at.0);
    let span = duration(past.unsigned_abs());
    if past < 0 { format!("in {span}") } else { format!("{span} ago") }
}

/// `350 ms`, `12 s`, `5 min`, `7 h`, `12 d`: the largest unit that leaves a number.
pub fn duration(ms: u64) -> String {
    const SECOND: u64 = 1000;
    const MINUTE: u64 = 60 * SECOND;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    match ms {
        ..SECOND => format!("{ms} ms"),
        SECOND..MINUTE => format!("{} s", ms / SECOND),
        MINUTE..HOUR => format!("{} min", ms / MINUTE),
        HOUR..DAY => format!("{} h", ms / HOUR),
        _ => format!("{} d", ms / DAY),
    }
}

/// How long a step took: `90 ms`, `4.2 s`, `130 s`.
pub fn took(ms: u64) -> String {
    match ms {
        ..1000 => format!("{ms} ms"),
        1000..100_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} s", ms / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_in_their_largest_unit() {
        let now = Timestamp(1_000_000_000_000);
        let told = [999, 61_000, 3 * 3_600_000, 50 * 3_600_000].map(|past| ago(Timestamp(now.0 - past), now));
        assert_eq!(told, ["999 ms ago", "1 min ago", "3 h ago", "2 d ago"]);
        assert_eq!(ago(Timestamp(now.0 + 5000), now), "in 5 s");
        assert_eq!(time(now), "2001-09-09 01:46:40Z");
        assert_eq!(time(Timestamp(i64::MAX)), "9223372036854775807 ms");
    }

    #[test]
    fn other_peoples_text_never_moves_the_cursor() {
        assert_eq!(harmless("a\u{1b}[2Jb\u{202e}\n\tc"), "a\u{fffd}[2Jb\u{fffd}\n\tc");
    }
}
