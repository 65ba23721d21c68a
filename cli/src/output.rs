//! What commands print: text, JSON, YAML and aligned columns to stdout, remarks to stderr. Used by every command.

use std::borrow::Cow;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use kedge_goyaml::{Key, Value as Yaml};
use kedge_model::Severity;
use kedge_model::shown::is_hidden;
pub use kedge_scheduler::json::{origin_to_json, value_in_line, value_to_json};
use serde_json::Value as Json;

/// Formats of a command whose result is a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Text,
    Json,
    Yaml,
}

pub fn severity_style(severity: Severity) -> Style {
    let colour = match severity {
        Severity::Error => AnsiColor::Red,
        Severity::Warning => AnsiColor::Yellow,
    };
    colour.on_default().bold()
}

pub fn print_json(value: &Json) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    // JSON leaves these as they are, and they stand in texts only.
    if text.contains(is_escaped) {
        text = text.chars().fold(String::with_capacity(text.len()), escape);
    }
    text.push('\n');
    print(text.as_bytes())
}

/// What a terminal would act on or not show. Line breaks are the layout's own: those of texts are escaped already.
fn is_escaped(c: char) -> bool {
    is_hidden(c) && c != '\n'
}

fn escape(mut text: String, c: char) -> String {
    match is_escaped(c) {
        true => text.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}"))),
        false => text.push(c),
    }
    text
}

pub fn print_yaml(value: &Json) -> io::Result<()> {
    print(kedge_goyaml::encode(&to_yaml(value), 4).as_bytes())
}

pub fn print_text(text: &str) -> io::Result<()> {
    print(harmless(text).as_bytes())
}

pub fn print(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    unless_closed(out.write_all(bytes).and_then(|()| out.flush()))
}

/// Whoever closed the pipe has seen enough. The exit code still says what was found.
pub fn unless_closed(printed: io::Result<()>) -> io::Result<()> {
    match printed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// Without what a terminal would act on: labels and values are other people's text.
pub fn harmless(text: &str) -> Cow<'_, str> {
    kedge_model::shown::shown(text)
}

/// What is named by a number: a rollout, a piece of evidence.
pub fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "a number is wanted here, as lists show it".to_owned())
}

/// Progress and summaries, to stderr. Nothing stops because nobody reads it.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{}", harmless(text));
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

/// `1 file`, `2 files`.
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A longer cell moves the rest of its own line alone.
const WIDEST: usize = 200;

/// Lines with their cells below each other.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Two spaces between columns, nothing behind the last.
    pub fn to_text(&self, indent: &str) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            cells.filter(|width| *width <= WIDEST).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = indent.to_owned();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', (width + 2).saturating_sub(cell.chars().count()).max(2)));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other() {
        let mut table = Table::default();
        table.row(["a".to_owned(), "long one".to_owned(), "x".to_owned()]);
        table.row(["bcd".to_owned(), "é".to_owned()]);
        assert_eq!(table.to_text("  "), "  a    long one  x\n  bcd  é\n");
    }

    #[test]
    fn one_endless_cell_leaves_the_other_lines_readable() {
        let mut table = Table::default();
        table.row(["a".to_owned(), "b".to_owned()]);
        table.row(["x".repeat(253), "y".to_owned()]);
        assert_eq!(table.to_text("").lines().next(), Some("a  b"));
        assert!(table.to_text("").ends_with("x  y\n"));
    }

    #[test]
    fn what_hides_in_json_is_escaped_and_reads_back_as_it_was() {
        let name = "a\u{202e}b\u{e0001}c\u{1b}d\n";
        let json = serde_json::to_string(name).unwrap();
        let escaped = json.chars().fold(String::new(), escape);
        assert_eq!(escaped, r#""a\u202eb\udb40\udc01c\u001bd\n""#);
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), name);
    }

    #[test]
    fn json_becomes_yaml_with_sorted_keys() {
        let value = serde_json::json!({"b": [1, "two", null], "a": {"yes": true}});
        assert_eq!(
            kedge_goyaml::encode(&to_yaml(&value), 4).trim_end(),
            "a:\n    \"yes\": true\nb:\n    - 1\n    - two\n    - null"
        );
    }

    #[test]
    fn text_never_moves_the_cursor() {
        assert_eq!(harmless("a\u{1b}[2Jb\r\n\tc"), "a\u{fffd}[2Jb\u{fffd}\n\tc");
        assert_eq!(harmless("admin\u{202e}nimda \u{9b}2J"), "admin\u{fffd}nimda \u{fffd}2J");
        assert_eq!(harmless("plain é\n"), "plain é\n");
    }
}
