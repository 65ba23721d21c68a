//! The glance as text: a table of environments, what moves, and what is wrong with the way to it. Pure.

use kedge_model::command::Command;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::condition::{CONDITIONS, counts};
use crate::get::columns::{moment, text};
use crate::output::Table;

/// So many names stand in a line.
const NAMED: usize = 3;

pub fn of(document: &Value) -> String {
    let environments: Vec<&Value> = document["environments"].as_array().into_iter().flatten().collect();
    let mut out = table(&environments);
    let rollouts = || document["rollouts"].as_array().into_iter().flatten();
    let is_stopped = |rollout: &&Value| rollout["state"] == "Stopped";
    let moving: Vec<String> = rollouts().filter(|rollout| !is_stopped(rollout)).map(|one| rollout("◐", one)).collect();
    let waiting: Vec<String> = environments.iter().filter_map(|environment| waits(environment)).collect();
    section(&mut out, "Moving", moving.into_iter().chain(waiting).collect());
    let mut wrong: Vec<String> = environments.iter().flat_map(|environment| notices(environment)).collect();
    wrong.extend(rollouts().filter(is_stopped).map(|one| rollout("▲", one)));
    wrong.extend(failures(document, &environments));
    for environment in &environments {
        wrong.extend(silent(environment));
        wrong.extend(troubles(environment));
    }
    wrong.extend(inputs(document));
    let calm = wrong.is_empty() && !environments.is_empty();
    section(&mut out, "Wrong", wrong);
    let problems = document["problemCount"].as_u64().unwrap_or_default();
    if calm && problems == 0 {
        out.push_str("\nNothing is wrong.\n");
    } else if calm {
        let told = plural(problems, "problem needs attention", "problems need attention");
        out.push_str(&format!("\n{told}  > kedge get problems\n"));
    }
    out
}

fn table(environments: &[&Value]) -> String {
    if environments.is_empty() {
        return String::new();
    }
    let mut table = Table::default();
    let words = CONDITIONS.map(|(_, word, _)| word.to_uppercase());
    let head = ["ENVIRONMENT", "COMMIT", "CLUSTERS", "OFFLINE"].map(str::to_owned);
    table.row(head.into_iter().chain(words));
    for environment in environments {
        let clusters = &environment["clusters"];
        let silent = match clusters["unknown"].as_u64().unwrap_or_default() {
            0 => "-".to_owned(),
            count => count.to_string(),
        };
        let cells = [text(&environment["name"]), running(environment), text(&clusters["total"]), silent];
        table.row(cells.into_iter().chain(counts(&environment["conditions"])));
    }
    table.to_text("")
}

/// The commit that runs; several while rings have different ones.
fn running(environment: &Value) -> String {
    let commits: Vec<String> = environment["running"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| {
            let commit = if text(&one["commit"]).is_empty() { "?".to_owned() } else { short(&one["commit"]) };
            let mut said: Vec<String> = one["rings"].as_array().into_iter().flatten().map(text).collect();
            // What they reported last.
            said.extend(one["offline"].as_u64().map(|count| format!("{count} offline")));
            if said.is_empty() { commit } else { format!("{commit} ({})", said.join(", ")) }
        })
        .collect();
    if commits.is_empty() { "-".to_owned() } else { commits.join(", ") }
}

/// Why an environment doesn't run what Git says; stopped and paused rollouts are told apart.
fn notices(environment: &Value) -> Vec<String> {
    let name = text(&environment["name"]);
    let mut lines = Vec::new();
    // While something moves, it is told among what moves.
    let moving = ["moving", "paused"].iter().any(|kind| environment["rollouts"][kind].as_u64() > Some(0));
    let mut other = names_other(environment).filter(|_| !moving);
    for notice in environment["notices"].as_array().into_iter().flatten() {
        let kind = text(&notice["kind"]);
        let (shape, way) = match kind.as_str() {
            "rolledBack" | "aborted" => ("▲", format!("kedge rollout show {}", text(&notice["rollout"]))),
            "held" => ("○", Command::new("kedge get clusters").option("-e", &name).into()),
            "publish" | "stale" => ("!", Command::new("kedge describe environment").names(&[&name]).into()),
            _ => continue,
        };
        lines.push(format!("{shape} {name}: {}  > {way}", text(&notice["text"])));
        if shape == "▲" || kind == "stale" {
            lines.extend(other.take().map(|other| format!("    {other}")));
        }
    }
    lines.extend(
        other.map(|other| {
            format!("! {name}: {other}  > {}", Command::new("kedge describe environment").names(&[&name]))
        }),
    );
    lines
}

/// Git names a commit that nobody there runs.
fn names_other(environment: &Value) -> Option<String> {
    let git = &environment["promotedCommit"];
    let runs: Vec<&Value> = environment["running"].as_array().into_iter().flatten().collect();
    let other = git.is_string() && !runs.is_empty() && runs.iter().all(|one| one["commit"] != *git);
    other.then(|| format!("Git names {}; {} runs", short(git), running(environment)))
}

fn section(out: &mut String, title: &str, lines: Vec<String>) {
    if lines.is_empty() {
        return;
    }
    out.push_str(&format!("\n{title}:\n"));
    for line in lines {
        out.push_str(&format!("  {line}\n"));
    }
}

fn rollout(shape: &str, rollout: &Value) -> String {
    let (id, state) = (text(&rollout["id"]), text(&rollout["state"]));
    let why = text(&rollout["why"]);
    let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
    let state = if state == "Active" { ":".to_owned() } else { format!(" is {state}{why};") };
    format!(
        "{shape} {}: rollout {id} of {} {}{state} {}  > kedge rollout show {id}",
        text(&rollout["environment"]),
        crate::rollout::commit(rollout),
        text(&rollout["subject"]),
        crate::rollout::rings(rollout),
    )
}

/// A commit of main that isn't let in yet.
fn waits(environment: &Value) -> Option<String> {
    let next = &environment["next"];
    let commit = next["commit"].as_str()?;
    let why: Vec<String> = next["waitsFor"].as_array().into_iter().flatten().map(text).collect();
    let why = if why.is_empty() { String::new() } else { format!(": {}", why.join(", ")) };
    let commit = commit.get(..10).unwrap_or(commit);
    Some(format!("◐ {}: {commit} {} waits{why}  > kedge promote", text(&environment["name"]), text(&next["subject"])))
}

/// By environment, assignment and reason: on whom, and what still runs there.
fn failures(document: &Value, environments: &[&Value]) -> Vec<String> {
    let mut groups: BTreeMap<(String, String, String), Vec<&Value>> = BTreeMap::new();
    for row in document["failures"].as_array().into_iter().flatten() {
        let assignment = format!("{}/{}", text(&row["clusterType"]), text(&row["assignment"]));
        groups.entry((text(&row["environment"]), assignment, text(&row["reason"]))).or_default().push(row);
    }
    let mut lines = Vec::new();
    for environment in environments {
        let name = text(&environment["name"]);
        let failed = environment["conditions"]["failed"].as_u64().unwrap_or_default();
        let mut told = 0;
        for ((_, assignment, reason), rows) in groups.iter().filter(|((of, ..), _)| *of == name) {
            told += rows.len() as u64;
            let names: Vec<String> = rows.iter().map(|row| text(&row["clusterName"])).collect();
            lines.push(format!("▲ {name}: {assignment} {reason} on {}{}", listed(&names), still(rows)));
            if let Some(message) = rows.iter().map(|row| text(&row["message"])).find(|message| !message.is_empty()) {
                lines.push(format!("    {message}"));
            }
        }
        if failed > told {
            lines.push(format!("▲ {name}: {} more failed", failed - told));
        }
        if failed > 0 {
            let command = Command::new("kedge get conditions").option("-e", &name).then("--condition Failed");
            lines.push(format!("    > {command}"));
        }
    }
    lines
}

/// "Failed" alone doesn't say what runs.
fn still(rows: &[&Value]) -> String {
    let mut versions: Vec<String> =
        rows.iter().map(|row| text(&row["version"])).filter(|one| !one.is_empty()).collect();
    versions.sort();
    versions.dedup();
    match versions.is_empty() {
        true => String::new(),
        false => format!("; still running {}", listed(&versions)),
    }
}

fn silent(environment: &Value) -> Vec<String> {
    let name = text(&environment["name"]);
    let count = environment["clusters"]["unknown"].as_u64().unwrap_or_default();
    if count == 0 {
        return Vec::new();
    }
    let since = moment(&environment["oldestUnknown"]);
    let told = match count {
        1 => format!("1 cluster has been offline since {since}"),
        count => format!("{count} clusters are silent, the first since {since}"),
    };
    let command = Command::new("kedge get clusters").option("-e", &name).then("--condition Unknown");
    vec![format!("○ {name}: {told}  > {command}")]
}

fn troubles(environment: &Value) -> Vec<String> {
    let name = text(&environment["name"]);
    let mut lines = Vec::new();
    let count = |value: &Value| value.as_u64().unwrap_or_default();
    if count(&environment["quarantined"]) > 0 {
        let quarantined = plural(count(&environment["quarantined"]), "assignment is", "assignments are");
        let command = Command::new("kedge get assignments").option("-e", &name).then("--state quarantined");
        lines.push(format!("! {name}: {quarantined} quarantined  > {command}"));
    }
    if count(&environment["drifted"]) > 0 {
        let drifted = plural(count(&environment["drifted"]), "assignment was", "assignments were");
        let command = Command::new("kedge get conditions").option("-e", &name).then("--drift");
        lines.push(format!("▲ {name}: {drifted} changed by hand  > {command}"));
    }
    let errors = count(&environment["problems"]["errors"]);
    if errors > 0 {
        let told = plural(errors, "finding", "findings");
        let command = Command::new("kedge get findings").option("-e", &name).then("--state error");
        lines.push(format!("! {name}: {told}  > {command}"));
    }
    let trouble = text(&environment["trouble"]);
    if !trouble.is_empty() {
        lines.push(format!("! {name}: {trouble}  > kedge promote"));
    }
    lines
}

/// `https://… (dev, prod)`
fn repository(one: &Value) -> String {
    let environments: Vec<String> = one["environments"].as_array().into_iter().flatten().map(text).collect();
    format!("{} ({})", text(&one["url"]), environments.join(", "))
}

fn inputs(document: &Value) -> Option<String> {
    let failing = document["repositories"]["failing"].as_u64().unwrap_or_default();
    (failing > 0).then(|| {
        let told = plural(failing, "repository fails", "repositories fail");
        let named: Vec<String> =
            document["failingRepositories"].as_array().into_iter().flatten().map(repository).take(NAMED).collect();
        let named = if named.is_empty() { String::new() } else { format!(": {}", named.join(", ")) };
        format!("! {told}{named}  > kedge get repositories --state failing")
    })
}

fn plural(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// `a, b, c and 4 more`
fn listed(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn short(value: &Value) -> String {
    let commit = text(value);
    commit.get(..10).unwrap_or(&commit).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_of_names_end_somewhere() {
        let names: Vec<String> = (1..6).map(|number| format!("c{number}")).collect();
        assert_eq!(listed(&names), "c1, c2, c3 and 2 more");
        assert_eq!(listed(&names[..2]), "c1, c2");
    }

    #[test]
    fn a_rolled_back_environment_says_so_first_and_shows_what_runs() {
        let environment = json!({"name": "prod", "clusters": {"total": 2, "unknown": 0}, "promotedCommit": "b".repeat(40),
            "running": [{"commit": "a".repeat(40), "rings": []}],
            "notices": [{"kind": "rolledBack", "text": "bbbbbbbbbb “Say Bonjour” was rolled back: no", "rollout": 7}],
            "conditions": {"converged": 4, "converging": 0, "failed": 0, "unknown": 0}, "problems": {"errors": 0}});
        assert_eq!(
            of(&json!({"environments": [environment]})),
            "ENVIRONMENT  COMMIT      CLUSTERS  OFFLINE  CONVERGED  CONVERGING  FAILED  UNKNOWN\n\
             prod         aaaaaaaaaa  2         -        ● 4        -           -       -\n\n\
             Wrong:\n  ▲ prod: bbbbbbbbbb “Say Bonjour” was rolled back: no  > kedge rollout show 7\n      \
             Git names bbbbbbbbbb; aaaaaaaaaa runs\n"
        );
    }

    #[test]
    fn what_runs_beside_git_is_named_with_those_that_are_offline() {
        let environment = json!({"name": "prod", "clusters": {"total": 3, "unknown": 0}, "promotedCommit": "c".repeat(40),
            "running": [{"commit": "a".repeat(40), "rings": ["rest"], "clusters": 2, "offline": 1},
                {"commit": "b".repeat(40), "rings": ["canary"], "clusters": 1}],
            "conditions": {"converged": 3, "converging": 0, "failed": 0, "unknown": 0}, "problems": {"errors": 0}});
        let told = of(&json!({"environments": [environment], "repositories": {"failing": 1},
            "failingRepositories": [{"url": "https://git.example/app", "environments": ["dev"]}]}));
        let runs = "aaaaaaaaaa (rest, 1 offline), bbbbbbbbbb (canary)";
        assert!(told.contains(&format!("! prod: Git names cccccccccc; {runs} runs")), "{told}");
        assert!(told.contains("! 1 repository fails: https://git.example/app (dev)  >"), "{told}");
    }

    #[test]
    fn what_was_changed_by_hand_is_wrong() {
        let environment = json!({"name": "prod", "clusters": {"total": 1, "unknown": 0}, "drifted": 1,
            "conditions": {"converged": 1, "converging": 0, "failed": 0, "unknown": 0}, "problems": {"errors": 0}});
        let told = of(&json!({"environments": [environment]}));
        assert!(
            told.ends_with("▲ prod: 1 assignment was changed by hand  > kedge get conditions -e prod --drift\n"),
            "{told}"
        );
    }

    #[test]
    fn findings_are_called_so_and_a_pause_tells_who_and_why() {
        let environment = json!({"name": "dev", "clusters": {"total": 1, "unknown": 0},
            "conditions": {"converged": 1, "converging": 0, "failed": 0, "unknown": 0}, "problems": {"errors": 3}});
        let paused = json!({"id": 7, "environment": "dev", "state": "Paused", "why": "paused by anna: lunch", "commit": "b".repeat(40),
            "main": "a".repeat(40), "subjectOf": "c".repeat(40), "subject": "Rename target", "rings": []});
        let told = of(&json!({"environments": [environment], "rollouts": [paused]}));
        assert!(told.contains("! dev: 3 findings  > kedge get findings -e dev --state error"), "{told}");
        assert!(told.contains("rollout 7 of cccccccccc Rename target is Paused (paused by anna: lunch);"), "{told}");
    }

    #[test]
    fn nothing_is_wrong_only_if_there_is_no_problem() {
        let environment = json!({"name": "dev", "clusters": {"total": 1, "unknown": 0},
            "conditions": {"converged": 1, "converging": 0, "failed": 0, "unknown": 0}, "problems": {"errors": 0}});
        let told = of(&json!({"environments": [environment], "problemCount": 1}));
        assert!(told.ends_with("\n1 problem needs attention  > kedge get problems\n"), "{told}");
    }

    #[test]
    fn a_fleet_without_trouble_is_called_so() {
        let calm = json!({"environments": [{"name": "dev", "clusters": {"total": 2, "unknown": 0},
            "conditions": {"converged": 4, "converging": 0, "failed": 0, "unknown": 0}, "problems": {"errors": 0}}]});
        assert_eq!(
            of(&calm),
            "ENVIRONMENT  COMMIT  CLUSTERS  OFFLINE  CONVERGED  CONVERGING  FAILED  UNKNOWN\n\
             dev          -       2         -        ● 4        -           -       -\n\nNothing is wrong.\n"
        );
        assert_eq!(of(&json!({"environments": []})), "");
    }
}
