//! A document of the hub for the terminal: names and values, and tables for what has many rows.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::configuration;
use crate::get::columns::{labels, list, moment, place, text as plain};
use crate::output::Table;

/// Longer values are cut; `-o json` has them whole.
const VALUE_LIMIT: usize = 120;

/// Fields that are shown as tables, with their columns.
const TABLES: [(&str, &str, &[&str]); 17] = [
    ("conditions", "Conditions", &["assignment", "condition", "version", "reason", "since", "message", "drift"]),
    ("holds", "Held", &["assignment", "by", "writer", "since", "obeyed", "reason"]),
    ("counts", "Clusters", &["ring", "packages", "condition", "count"]),
    (
        "running",
        "Running, as the clusters reported it",
        &[
            "ring",
            "version",
            "commit",
            "platformCommit",
            "count",
            "converged",
            "converging",
            "failed",
            "unknown",
            "offlineSince",
            "asDesired",
            "driftedOn",
        ],
    ),
    ("desired", "Desired", &["ring", "generation", "mode", "version", "platform", "workload", "expectedCommit"]),
    ("entries", "Entries", &["assignment", "mode", "version", "platform", "workload", "expectedCommit"]),
    ("quarantine", "Quarantined, it keeps what is published", &["stage", "code", "message", "origin", "hint"]),
    ("warnings", "Warnings", &["code", "severity", "since", "message", "hint", "origin"]),
    ("policies", "Policies", &["name", "clusterTypes", "targets", "origin"]),
    ("files", "Files", &["path", "digest"]),
    ("rollouts", "Rollouts", &["rollout", "lane", "state", "rings", "commit", "subject", "author"]),
    ("pinned", "Pinned", &["ring", "assignment", "pin", "to", "until", "reason", "below"]),
    ("rings", "Rings", &["ring", "state", "startedAt", "steadySince", "passedAt", "counts", "waitsFor"]),
    ("items", "Moves", &["clusterType", "assignment", "workload", "parts", "version", "sourceCommit"]),
    ("actions", "Actions", &["at", "who", "role", "action", "ring", "reason"]),
    ("skipped", "Superseded", &["commit", "subject", "author"]),
    ("waiting", "Waits for kedge publish confirm", &["clusterType", "removed", "confirmed"]),
];

pub fn of(document: &Value) -> String {
    let mut text = String::new();
    let Value::Object(fields) = document else { return text };
    let mut tables = Vec::new();
    let mut scalars = Table::default();
    for (key, value) in ordered(fields) {
        if configuration::is_part(key, document) {
            continue;
        }
        if key == "via" {
            // Whoever brought it: what counts is when it was said.
            let observed = moment(&document["lastContact"]);
            scalars.row([spaced(key), format!("{}, observed at {observed}", plain(&value["name"]))]);
            continue;
        }
        gather(key, value, &mut scalars, &mut tables);
    }
    text.push_str(&scalars.to_text(""));
    for (title, table) in tables {
        let _ = write!(text, "\n{title}\n{}", table.to_text("  "));
    }
    for (title, table) in configuration::of(document) {
        let _ = write!(text, "\n{title}\n{}", table.to_text("  "));
    }
    text
}

/// Names first: who reads it looks for them.
fn ordered(fields: &Map<String, Value>) -> Vec<(&String, &Value)> {
    const FIRST: [&str; 6] = ["name", "id", "environment", "clusterType", "ring", "state"];
    let rank = |key: &str| FIRST.iter().position(|first| *first == key).unwrap_or(FIRST.len());
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(key, _)| rank(key));
    fields
}

fn gather(key: &str, value: &Value, scalars: &mut Table, tables: &mut Vec<(&'static str, Table)>) {
    match (key, value) {
        (_, Value::Null) => {}
        ("provenance", Value::Object(inner)) => {
            for (key, value) in inner {
                gather(key, value, scalars, tables);
            }
        }
        (_, Value::Array(rows)) if rows.iter().any(Value::is_object) => {
            if let Some((_, title, columns)) = TABLES.iter().find(|(name, _, _)| *name == key) {
                tables.push((title, table(rows, columns)));
            } else {
                let cells: Vec<String> = rows.iter().map(cell).collect();
                scalars.row([spaced(key), cells.join("; ")]);
            }
        }
        (_, Value::Array(rows)) if rows.is_empty() => {}
        // A list of names stands beside the table of the same things.
        ("policies", Value::Array(_)) => {}
        _ => scalars.row([spaced(key), cell(value)]),
    }
}

fn table(rows: &[Value], columns: &[&str]) -> Table {
    let used: Vec<&&str> = columns.iter().filter(|column| rows.iter().any(|row| !row[**column].is_null())).collect();
    let mut table = Table::default();
    table.row(used.iter().map(|column| spaced(column).to_uppercase()));
    for row in rows {
        table.row(used.iter().map(|column| match cell(&row[**column]) {
            empty if empty.is_empty() => "-".to_owned(),
            cell => cell,
        }));
    }
    table
}

/// A value in one cell.
fn cell(value: &Value) -> String {
    match value {
        Value::Object(map) if map.contains_key("file") => place(value),
        Value::Object(map) if map.contains_key("digest") => {
            let digest = plain(&value["digest"]);
            let commit = plain(&value["commit"]);
            format!("{} of {}", digest.get(..19).unwrap_or(&digest), commit.get(..10).unwrap_or(&commit))
        }
        Value::Object(map) if map.values().all(Value::is_string) => labels(value),
        Value::Object(map) => {
            let parts: Vec<String> =
                ordered(map).into_iter().map(|(key, value)| format!("{}: {}", spaced(key), cell(value))).collect();
            parts.join(", ")
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            items.iter().map(cell).collect::<Vec<_>>().join("; ")
        }
        Value::Array(_) => list(value),
        Value::String(text) if is_moment(text) => moment(value),
        other => cut(&plain(other)),
    }
}

fn is_moment(text: &str) -> bool {
    text.len() >= 20 && text.ends_with('Z') && text.as_bytes().get(10) == Some(&b'T')
}

/// Fields that people know by other words than programs.
const SHOWN_AS: [(&str, &str); 3] =
    [("checkInDeadline", "next check-in by"), ("lookedAt", "last full look"), ("obeyed", "in effect")];

/// `lastContact` is read as `last contact`.
fn spaced(key: &str) -> String {
    if let Some((_, shown)) = SHOWN_AS.iter().find(|(field, _)| *field == key) {
        return (*shown).to_owned();
    }
    let mut text = String::new();
    for letter in key.chars() {
        if letter.is_uppercase() {
            text.push(' ');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(VALUE_LIMIT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
