//! A plan that the hub makes: blast radius in assignments and clusters. Called by `plan` with `--hub`.

use kedge_model::command::Command;
use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::{Output, PlanArgs};
use crate::error::{Exit, UsageError};
use crate::get::columns::text;
use crate::hub::HubArgs;
use crate::output::{Table, counted, print_json, print_text, print_yaml, say};

/// Let the hub plan.
#[derive(Clone, Debug, clap::Args)]
pub struct HubPlanArgs {
    /// Ask the hub instead; without a URL the one of KEDGE_HUB or `kedge login`
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "", help_heading = "Hub",
        conflicts_with_all = ["control_plane", "sources", "cache"])]
    pub hub: Option<String>,

    /// A file as it would be, by its path in the control plane; nothing behind the `=` takes it away
    #[arg(long, value_name = "PATH=FILE", requires = "hub", help_heading = "Hub")]
    file: Vec<String>,

    /// Whether the revision or the files are of main or of the environment's branch [default: what their history says]
    #[arg(long, value_enum, value_name = "PART", requires = "hub", help_heading = "Hub")]
    of: Option<Part>,

    /// A file with the access token [default: KEDGE_TOKEN, then the one of `kedge login`]
    #[arg(long, value_name = "FILE", requires = "hub", help_heading = "Hub")]
    token_file: Option<PathBuf>,

    /// A file with the certificates that the hub's certificate may come from (PEM)
    #[arg(long, value_name = "FILE", requires = "hub", help_heading = "Hub")]
    ca: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Main,
    Environment,
}

/// As much as the hub takes.
const MAX_TEXT: u64 = 1 << 20;

/// So many digits of a commit are shown.
const SHORT: usize = 10;

pub(super) fn run(args: &PlanArgs, address: &str) -> Result<Exit> {
    let options = &args.hub;
    if args.to.is_none() && options.file.is_empty() {
        return Err(
            UsageError::new("nothing is to be planned", "name a revision with --to, or a file with --file").into()
        );
    }
    if args.output == Output::Markdown {
        return Err(UsageError::new("the hub's plan has no Markdown", "leave --hub out, or use -o json").into());
    }
    let mut wish = json!({"environment": args.environment.environment});
    if let Some(revision) = &args.to {
        wish["revision"] = json!(revision.to_string_lossy());
    }
    if let Some(part) = options.of {
        wish["of"] = json!(match part {
            Part::Main => "main",
            Part::Environment => "environment",
        });
    }
    if !options.file.is_empty() {
        wish["pasted"] = Value::Object(pasted(&options.file)?);
    }
    let hub = HubArgs::of(address, options.token_file.clone(), options.ca.clone()).open()?;
    let plan = hub.post(&["plan"], &wish)?.document;
    match args.output {
        Output::Json => print_json(&plan)?,
        Output::Yaml => print_yaml(&plan)?,
        Output::Text | Output::Markdown => {
            problems(&plan);
            print_text(&to_text(&plan))?;
        }
    }
    Ok(if is_left_out(&plan) { Exit::LeftOut } else { Exit::Success })
}

fn pasted(typed: &[String]) -> Result<Map<String, Value>> {
    let mut files = Map::new();
    for one in typed {
        let Some((path, file)) = one.split_once('=').filter(|(path, _)| !path.is_empty()) else {
            let message = format!("`{one}` names no file of the control plane");
            return Err(
                UsageError::new(message, "write --file PATH=FILE: its path there, and where its text is").into()
            );
        };
        let text = match file {
            "" => Value::Null,
            file => Value::String(read(Path::new(file))?),
        };
        files.insert(path.to_owned(), text);
    }
    Ok(files)
}

fn read(file: &Path) -> Result<String> {
    let unreadable = |error: std::io::Error| {
        UsageError::new(format!("{} can't be read: {error}", file.display()), "is that the file?")
    };
    let mut text = String::new();
    let opened = fs::File::open(file).map_err(unreadable)?;
    opened.take(MAX_TEXT + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_TEXT {
        let message = format!("{} is larger than the hub takes", file.display());
        return Err(UsageError::new(message, "push a branch and name it with --to").into());
    }
    Ok(text)
}

/// Something is, or would be, quarantined or wrong that isn't now.
fn is_left_out(plan: &Value) -> bool {
    let quarantined = items(&plan["assignments"]).any(|one| one["change"] == "quarantined");
    quarantined || items(&plan["problems"]).any(|one| one["new"] == true && one["severity"] == "error")
}

fn problems(plan: &Value) {
    for problem in items(&plan["problems"]).filter(|problem| problem["new"] == true) {
        let place = &problem["origin"];
        let at = match place["file"].as_str() {
            Some(file) => format!("{file}:{}: ", text(&place["line"])),
            None => String::new(),
        };
        say(&format!("{at}{}: {}", text(&problem["severity"]), text(&problem["message"])));
        if let Some(hint) = problem["hint"].as_str() {
            say(&format!("  hint: {hint}"));
        }
    }
}

fn to_text(plan: &Value) -> String {
    let mut out = String::new();
    // Writing to a String can't fail.
    let _ = write_text(plan, &mut out);
    out
}

fn write_text(plan: &Value, out: &mut String) -> std::fmt::Result {
    writeln!(out, "plan for {}: {}", text(&plan["environment"]), subject(plan))?;
    for part in ["environment", "main"] {
        let (before, after) = (&plan["from"][part], &plan["to"][part]);
        if before != after {
            writeln!(out, "{part}: {} → {}", commit(before), commit(after))?;
        }
    }
    for file in items(&plan["pasted"]) {
        writeln!(out, "{} {} on {}", text(&file["path"]), text(&file["change"]), branch(&file["of"]))?;
    }
    for (key, mark) in [("clusterTypesAdded", '+'), ("clusterTypesRemoved", '-')] {
        for name in items(&plan[key]) {
            writeln!(out, "{mark} cluster type {}", text(name))?;
        }
    }
    for one in items(&plan["assignments"]) {
        assignment(one, out)?;
    }
    if let Some(more) = plan["leftOff"].as_u64() {
        writeln!(out, "… and {more} more")?;
    }
    for kept in items(&plan["kept"]) {
        writeln!(out, "= {} kept: {}", text(&kept["name"]), text(&kept["reason"]))?;
    }
    out.push_str(&types(plan).to_text(""));
    let clusters = &plan["clusters"];
    let total = usize::try_from(clusters["total"].as_u64().unwrap_or(0)).unwrap_or(usize::MAX);
    writeln!(out, "{}; {}, {} offline", text(&plan["summary"]), counted(total, "cluster"), text(&clusters["offline"]))
}

fn assignment(one: &Value, out: &mut String) -> std::fmt::Result {
    let (mark, word) = match one["change"].as_str().unwrap_or_default() {
        "added" => ('+', "added"),
        "removed" => ('-', "removed"),
        "quarantined" => ('!', "quarantined"),
        "released" => ('~', "released from quarantine"),
        _ => ('~', "changed"),
    };
    writeln!(out, "{mark} {} {word}", text(&one["name"]))?;
    for reason in items(&one["reasons"]) {
        writeln!(out, "    {}", text(&reason["message"]))?;
    }
    let mut table = Table::default();
    for value in items(&one["values"]) {
        let line = match (value.get("before"), value.get("after")) {
            (Some(before), Some(after)) => format!("{before} → {after}"),
            (None, Some(after)) => format!("+ {after}"),
            (Some(before), None) => format!("- {before}"),
            (None, None) => continue,
        };
        table.row([text(&value["key"]), line]);
    }
    out.push_str(&table.to_text("    "));
    let files: Vec<String> = items(&one["files"]).map(|file| text(&file["name"])).collect();
    if !files.is_empty() {
        writeln!(out, "    files: {}", files.join(", "))?;
    }
    Ok(())
}

/// Cluster types with what would reach their clusters.
fn types(plan: &Value) -> Table {
    let mut table = Table::default();
    for one in items(&plan["perType"]) {
        let words = ["added", "changed", "removed", "quarantined", "released"];
        let changes: Vec<String> = words
            .iter()
            .filter(|word| one[**word].as_u64().is_some_and(|count| count > 0))
            .map(|word| format!("{} {word}", text(&one[*word])))
            .collect();
        let clusters = &one["clusters"];
        let waits = match one["waits"].as_object() {
            Some(waits) => format!(
                "waits for `{}`: {} of {} would go",
                Command::new("kedge publish confirm").names(&[&text(&plan["environment"]), &text(&one["clusterType"])]),
                items(&waits["removed"]).count(),
                text(&waits["confirmed"]),
            ),
            None => String::new(),
        };
        table.row([
            text(&one["clusterType"]),
            changes.join(", "),
            format!("{} online, {} offline", text(&clusters["online"]), text(&clusters["offline"])),
            waits,
        ]);
    }
    table
}

fn subject(plan: &Value) -> String {
    let to = &plan["to"];
    match to["revision"].as_str() {
        Some(revision) => {
            let why = to["why"].as_str().map(|why| format!(" ({why})")).unwrap_or_default();
            format!("{revision} on {}{why}", branch(&to["of"]))
        }
        None => "what is in force".to_owned(),
    }
}

fn branch(part: &Value) -> &'static str {
    match part.as_str() {
        Some("main") => "main",
        _ => "the environment's branch",
    }
}

fn commit(commit: &Value) -> String {
    match commit.as_str() {
        Some(commit) => commit.get(..SHORT).unwrap_or(commit).to_owned(),
        None => "none".to_owned(),
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_shows_values_types_and_clusters() {
        let plan = json!({
            "environment": "prod", "from": {"environment": "1111111111ff", "main": "22"},
            "to": {"environment": "3333333333ff", "main": "22", "revision": "east", "of": "environment",
                "why": "it is nearer to the environment's branch"},
            "summary": "1 of 4 assignments on 1 of 2 cluster types",
            "clusters": {"online": 5, "offline": 2, "total": 7, "waiting": 0},
            "perType": [{"clusterType": "drone", "added": 0, "changed": 1, "removed": 3, "quarantined": 0, "released": 0,
                "clusters": {"online": 5, "offline": 2, "total": 7, "waiting": 7},
                "waits": {"removed": ["a", "b", "c"], "confirmed": 4}}],
            "assignments": [{"name": "drone/hello-dev", "change": "changed", "files": [{"name": "platform-config.yaml"}],
                "values": [{"key": "REGION", "before": "west", "after": "east"}, {"key": "N", "after": 1}]}],
            "problems": [],
        });
        insta::assert_snapshot!(to_text(&plan), @r#"
        plan for prod: east on the environment's branch (it is nearer to the environment's branch)
        environment: 1111111111 → 3333333333
        ~ drone/hello-dev changed
            REGION  "west" → "east"
            N       + 1
            files: platform-config.yaml
        drone  1 changed, 3 removed  5 online, 2 offline  waits for `kedge publish confirm prod drone`: 3 of 4 would go
        1 of 4 assignments on 1 of 2 cluster types; 7 clusters, 2 offline
        "#);
        assert!(!is_left_out(&plan));
    }

    #[test]
    fn a_file_without_a_path_is_refused() {
        assert!(pasted(&["x".to_owned()]).is_err());
        assert!(pasted(&["=x".to_owned()]).is_err());
        assert_eq!(pasted(&["a.yaml=".to_owned()]).unwrap()["a.yaml"], Value::Null);
    }
}
