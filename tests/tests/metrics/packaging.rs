//! The files that people take from `packaging/`: every query in them, with the variables of Grafana filled in.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

/// A query and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    pub place: String,
    pub text: String,
}

/// A folder of `packaging/`.
pub(crate) fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../packaging").join(name)
}

/// Of all dashboards, also those that fill their variables.
pub(crate) fn of_dashboards() -> Vec<Query> {
    let mut queries = Vec::new();
    for entry in fs::read_dir(folder("grafana")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "json") {
            let board: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            collect(&name, &board, &mut queries);
        }
    }
    assert!(queries.len() > 30, "{} queries", queries.len());
    queries
}

fn collect(place: &str, value: &Value, queries: &mut Vec<Query>) {
    let title = value["title"].as_str().map_or_else(|| place.to_owned(), |title| format!("{place} / {title}"));
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                match (key.as_str(), field) {
                    ("expr", Value::String(text)) => queries.push(Query { place: title.clone(), text: fill(text) }),
                    ("definition", Value::String(text)) => {
                        let inner = text.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
                        let metric = inner.and_then(|inner| inner.split(',').next()).unwrap();
                        queries.push(Query { place: title.clone(), text: metric.to_owned() });
                    }
                    _ => collect(&title, field, queries),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(&title, item, queries)),
        _ => {}
    }
}

/// As Grafana does it with everything chosen.
fn fill(text: &str) -> String {
    let filled = text.replace("$__rate_interval", "1m").replace("$environment", ".*").replace("$instance", ".*");
    assert!(!filled.contains('$'), "a variable that isn't known: {filled}");
    filled
}

/// The names of our metrics in a query.
pub(crate) fn metrics_in(query: &str) -> BTreeSet<String> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    query.split(|c| !word(c)).filter(|name| name.starts_with("kedge_")).map(str::to_owned).collect()
}
