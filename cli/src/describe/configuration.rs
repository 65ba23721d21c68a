//! An assignment's configuration: what runs, by ring, and what Git says where that is something else. Pure.

use serde_json::Value;

use super::text::cut;
use crate::get::columns::{place, text as plain};
use crate::output::Table;

/// So many digits of a commit are shown.
const SHORT: usize = 10;

/// Whether `of` tells it.
pub fn is_part(key: &str, document: &Value) -> bool {
    key == "configurations" || (key == "configuration" && document[key].is_array())
}

/// What runs comes first; Git's own with where each value comes from.
pub fn of(document: &Value) -> Vec<(String, Table)> {
    let Some(git) = document["configuration"].as_array() else { return Vec::new() };
    let views: Vec<&Value> = document["configurations"].as_array().into_iter().flatten().collect();
    let running = || document["running"].as_array().into_iter().flatten();
    let groups = |view: &Value| running().filter(|group| group["configuration"] == view["id"]).collect::<Vec<_>>();
    let runs: Vec<(&Value, Vec<&Value>)> =
        views.into_iter().map(|view| (view, groups(view))).filter(|(_, groups)| !groups.is_empty()).collect();
    let strange: Vec<String> = running()
        .filter(|group| group["configuration"].is_null() && !plain(&group["packages"]).is_empty())
        .filter(|group| group["drifted"] != true)
        .map(clusters)
        .collect();
    let changed: Vec<&Value> = running().filter(|group| group["drifted"] == true).collect();
    let same = strange.is_empty()
        && changed.is_empty()
        && !runs.is_empty()
        && runs.iter().all(|(view, _)| view["asInGit"] == true);
    if same {
        return vec![("Configuration that runs, as in Git".to_owned(), sources(git))];
    }
    let mut tables: Vec<(String, Table)> = runs
        .iter()
        .map(|(view, groups)| {
            let on: Vec<String> = groups.iter().map(|group| clusters(group)).collect();
            let git = match (view["asInGit"] == true, view["commit"].as_str()) {
                (true, _) => ", as in Git".to_owned(),
                (false, Some(commit)) => format!(", of commit {}", commit.get(..SHORT).unwrap_or(commit)),
                (false, None) => String::new(),
            };
            (format!("Configuration that runs on {}{git}", on.join("; ")), delivered(view))
        })
        .collect();
    for group in changed {
        let mut table = Table::default();
        table.row([format!("changed on {}: the values there aren't known", names(group))]);
        tables.push((format!("Configuration that runs on {}", clusters(group)), table));
    }
    if !strange.is_empty() {
        let mut table = Table::default();
        table.row(["can't be shown: this hub doesn't know the packages that they report".to_owned()]);
        tables.push((format!("Configuration that runs on {}", strange.join("; ")), table));
    }
    let title = match tables.is_empty() {
        true => "Configuration in Git; no cluster has reported that it runs",
        false => "Configuration in Git",
    };
    // What Git doesn't describe any more has no values there.
    if document["state"] != "removed" {
        tables.push((title.to_owned(), sources(git)));
    }
    tables
}

/// `2 clusters (press-1, press-2)`
fn names(group: &Value) -> String {
    let count = group["count"].as_u64().unwrap_or_default();
    let names: Vec<String> = group["driftedOn"].as_array().into_iter().flatten().map(plain).collect();
    let more = if count > names.len() as u64 { ", …" } else { "" };
    let named = if names.is_empty() { String::new() } else { format!(" ({}{more})", names.join(", ")) };
    format!("{count} {}{named}", if count == 1 { "cluster" } else { "clusters" })
}

/// `canary: 2 clusters`
fn clusters(group: &Value) -> String {
    let number = |key: &str| group[key].as_u64().unwrap_or_default();
    let (count, offline) = (number("count"), number("unknown"));
    let offline = match offline {
        0 => String::new(),
        all if all == count => ", offline".to_owned(),
        some => format!(", {some} of them offline"),
    };
    format!("{}: {count} {}{offline}", plain(&group["ring"]), if count == 1 { "cluster" } else { "clusters" })
}

fn delivered(view: &Value) -> Table {
    let mut table = Table::default();
    if let Some(why) = view["unknown"].as_str() {
        table.row([format!("can't be shown: {why}")]);
        return table;
    }
    let shown = |value: &Value| if value.is_null() { "not set".to_owned() } else { cut(&written(value)) };
    for value in view["values"].as_array().into_iter().flatten() {
        let git = match value["differs"] == true {
            true => format!("Git says: {}", shown(&value["git"])),
            false => String::new(),
        };
        table.row([name(value), "=".to_owned(), shown(&value["value"]), git]);
    }
    table
}

fn sources(values: &[Value]) -> Table {
    let mut table = Table::default();
    for value in values {
        table.row([name(value), "=".to_owned(), cut(&written(&value["value"]))]);
        for candidate in value["candidates"].as_array().into_iter().flatten() {
            table.row([
                format!("  {}", plain(&candidate["effect"])),
                plain(&candidate["configMap"]),
                place(&candidate["origin"]),
            ]);
        }
    }
    table
}

/// As JSON. A delivered file has text where Git has lists and maps: both are written as what they are.
fn written(value: &Value) -> String {
    let inside = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    match inside {
        Some(inside @ (Value::Array(_) | Value::Object(_))) => inside.to_string(),
        _ => value.to_string(),
    }
}

fn name(value: &Value) -> String {
    let secret = if value["secret"] == true { " (secret)" } else { "" };
    format!("{}{secret}", plain(&value["key"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(document: &Value) -> String {
        of(document).into_iter().map(|(title, table)| format!("{title}\n{}", table.to_text("  "))).collect()
    }

    fn git(value: &str) -> Value {
        json!([{"key": "GREETING", "value": value, "secret": false, "candidates": []}])
    }

    #[test]
    fn what_runs_comes_before_what_git_says() {
        let group = |ring: &str, id: &str, unknown: u64| json!({"ring": ring, "configuration": id, "count": 2, "unknown": unknown});
        let value =
            |text: &str, git: Value| json!([{"key": "GREETING", "value": text, "differs": !git.is_null(), "git": git}]);
        let document = json!({
            "configuration": git("Bonjour"),
            "running": [group("canary", "a", 0), group("rest", "b", 1)],
            "configurations": [
                {"id": "a", "asInGit": true, "values": value("Bonjour", Value::Null)},
                {"id": "b", "asInGit": false, "values": value("Moin", json!("Bonjour"))},
                {"id": "c", "asInGit": false, "values": value("never", json!("Bonjour"))},
            ],
        });
        assert_eq!(
            text(&document),
            "Configuration that runs on canary: 2 clusters, as in Git\n  GREETING  =  \"Bonjour\"\n\
             Configuration that runs on rest: 2 clusters, 1 of them offline\n  \
             GREETING  =  \"Moin\"  Git says: \"Bonjour\"\n\
             Configuration in Git\n  GREETING  =  \"Bonjour\"\n"
        );
    }

    #[test]
    fn what_was_changed_on_a_cluster_is_never_called_as_in_git() {
        let document = json!({
            "configuration": git("Moin"),
            "running": [
                {"ring": "all", "configuration": "a", "packages": "p", "count": 1, "unknown": 0},
                {"ring": "all", "packages": "p", "count": 1, "unknown": 0, "drifted": true, "driftedOn": ["press-1"]},
            ],
            "configurations": [{"id": "a", "asInGit": true, "values": [{"key": "GREETING", "value": "Moin"}]}],
        });
        assert_eq!(
            text(&document),
            "Configuration that runs on all: 1 cluster, as in Git\n  GREETING  =  \"Moin\"\n\
             Configuration that runs on all: 1 cluster\n  \
             changed on 1 cluster (press-1): the values there aren't known\n\
             Configuration in Git\n  GREETING  =  \"Moin\"\n"
        );
    }

    #[test]
    fn a_list_is_written_in_one_way_from_a_file_and_from_git() {
        assert_eq!(written(&json!(["hello"])), written(&json!("[\"hello\"]")));
        assert_eq!(written(&json!("80")), "\"80\"");
    }

    #[test]
    fn what_git_does_not_describe_any_more_shows_what_was_delivered_and_of_which_commit() {
        let document = json!({
            "state": "removed", "configuration": [],
            "running": [{"ring": "all", "configuration": "a", "packages": "p", "count": 1, "unknown": 0}],
            "configurations": [{"id": "a", "commit": "1111111111ffff", "asInGit": false,
                "values": [{"key": "GREETING", "value": "Moin", "differs": true}]}],
        });
        assert_eq!(
            text(&document),
            "Configuration that runs on all: 1 cluster, of commit 1111111111\n  \
             GREETING  =  \"Moin\"  Git says: not set\n"
        );
    }

    #[test]
    fn one_table_is_enough_when_git_is_what_runs_or_nothing_runs() {
        let same = json!({
            "configuration": git("Moin"),
            "running": [{"ring": "all", "configuration": "a", "count": 1, "unknown": 0}],
            "configurations": [{"id": "a", "asInGit": true, "values": []}],
        });
        assert_eq!(text(&same), "Configuration that runs, as in Git\n  GREETING  =  \"Moin\"\n");
        let nothing = json!({"configuration": git("Moin"), "running": [], "configurations": []});
        assert!(text(&nothing).starts_with("Configuration in Git; no cluster"), "{}", text(&nothing));
        assert!(of(&json!({"configuration": "sha256:00"})).is_empty());
    }
}
