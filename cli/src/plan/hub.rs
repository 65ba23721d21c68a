//! A plan that the hub makes: blast radius in assignments and clusters. Called by `plan` with `--hub`.

use kedge_api::plans::{PlanDetail, PlanRequest, PlanSide, PlannedAssignment, PlannedClusters};
use kedge_api::source::SourceLocation;
use kedge_model::command::Command;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Output, PlanArgs};
use crate::error::{Exit, UsageError};
use crate::get::columns::one_line;
use crate::hub::HubArgs;
use crate::output::{Table, counted, print_json, print_text, print_yaml, say};

/// Let the hub plan.
#[derive(Clone, Debug, clap::Args)]
pub struct HubPlanArgs {
    /// Let the hub plan; default URL: KEDGE_HUB, then the one of `kedge login`
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "", help_heading = "Hub",
        conflicts_with_all = ["control_plane", "sources", "cache"])]
    pub hub: Option<String>,

    /// A changed file, by its path in the control plane; nothing after the `=` deletes it
    #[arg(long, value_name = "PATH=FILE", requires = "hub", help_heading = "Hub")]
    file: Vec<String>,

    /// Whether the revision or the files are of main or of the environment's branch [default: what their history says]
    #[arg(long, value_enum, value_name = "PART", requires = "hub", help_heading = "Hub")]
    of: Option<Part>,

    /// A file with the access token [default: KEDGE_TOKEN, then the one of `kedge login`]
    #[arg(long, value_name = "FILE", requires = "hub", help_heading = "Hub")]
    token_file: Option<PathBuf>,

    /// A PEM file with the authorities that may have issued the hub's certificate
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
    let request = PlanRequest {
        environment: args.environment.environment.clone(),
        revision: args.to.as_ref().map(|revision| revision.to_string_lossy().into_owned()),
        of: options.of.map(|part| match part {
            Part::Main => "main".to_owned(),
            Part::Environment => "environment".to_owned(),
        }),
        pasted: pasted(&options.file)?,
    };
    let hub = HubArgs::of(address, options.token_file.clone(), options.ca.clone()).open()?;
    let answer = hub.plan(&request)?;
    let plan = answer.read()?;
    match args.output {
        Output::Json => print_json(&answer.document)?,
        Output::Yaml => print_yaml(&answer.document)?,
        Output::Text | Output::Markdown => {
            problems(&plan);
            print_text(&to_text(&plan))?;
        }
    }
    Ok(if is_left_out(&plan) { Exit::LeftOut } else { Exit::Success })
}

fn pasted(typed: &[String]) -> Result<BTreeMap<String, Option<String>>> {
    let mut files = BTreeMap::new();
    for one in typed {
        let Some((path, file)) = one.split_once('=').filter(|(path, _)| !path.is_empty()) else {
            let message = format!("`{one}` names no file of the control plane");
            return Err(
                UsageError::new(message, "write --file PATH=FILE: its path there, and where its text is").into()
            );
        };
        let text = match file {
            "" => None,
            file => Some(read(Path::new(file))?),
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
fn is_left_out(plan: &PlanDetail) -> bool {
    let quarantined = plan.assignments.iter().any(|one| one.change == "quarantined");
    quarantined || plan.problems.iter().any(|one| one.new && one.finding.severity == "error")
}

fn problems(plan: &PlanDetail) {
    for finding in plan.problems.iter().filter(|problem| problem.new).map(|problem| &problem.finding) {
        let line = |place: &SourceLocation| place.line.map(|line| line.to_string()).unwrap_or_default();
        let at = finding.origin.as_ref().map(|place| format!("{}:{}: ", place.file, line(place))).unwrap_or_default();
        say(&format!("{at}{}: {}", one_line(&finding.severity), one_line(&finding.message)));
        if let Some(hint) = &finding.hint {
            say(&format!("  hint: {hint}"));
        }
    }
}

fn to_text(plan: &PlanDetail) -> String {
    let mut out = String::new();
    // Writing to a String can't fail.
    let _ = write_text(plan, &mut out);
    out
}

fn write_text(plan: &PlanDetail, out: &mut String) -> std::fmt::Result {
    writeln!(out, "plan for {}: {}", one_line(&plan.environment), subject(&plan.to))?;
    let (from, to) = (&plan.from, &plan.to);
    for (part, before, after) in [("environment", &from.environment, &to.environment), ("main", &from.main, &to.main)] {
        if before != after {
            writeln!(out, "{part}: {} → {}", commit(before.as_deref()), commit(after.as_deref()))?;
        }
    }
    for file in &plan.pasted {
        writeln!(out, "{} {} on {}", one_line(&file.path), one_line(&file.change), branch(Some(&file.of)))?;
    }
    for (names, mark) in [(&plan.cluster_types_added, '+'), (&plan.cluster_types_removed, '-')] {
        for name in names {
            writeln!(out, "{mark} cluster type {}", one_line(name))?;
        }
    }
    for one in &plan.assignments {
        assignment(one, out)?;
    }
    if plan.left_off > 0 {
        writeln!(out, "… and {} more", plan.left_off)?;
    }
    for kept in &plan.kept {
        writeln!(out, "= {} kept: {}", one_line(&kept.name), one_line(&kept.reason))?;
    }
    out.push_str(&types(plan).to_text(""));
    let PlannedClusters { total, offline, .. } = plan.clusters;
    let total = usize::try_from(total).unwrap_or(usize::MAX);
    writeln!(out, "{}; {}, {offline} offline", one_line(&plan.summary), counted(total, "cluster"))
}

fn assignment(one: &PlannedAssignment, out: &mut String) -> std::fmt::Result {
    let (mark, word) = match one.change.as_str() {
        "added" => ('+', "added"),
        "removed" => ('-', "removed"),
        "quarantined" => ('!', "quarantined"),
        "released" => ('~', "released from quarantine"),
        _ => ('~', "changed"),
    };
    writeln!(out, "{mark} {} {word}", one_line(&one.name))?;
    for reason in &one.reasons {
        writeln!(out, "    {}", one_line(&reason.message))?;
    }
    let mut table = Table::default();
    for value in &one.values {
        let line = match (&value.before, &value.after) {
            (Some(before), Some(after)) => format!("{before} → {after}"),
            (None, Some(after)) => format!("+ {after}"),
            (Some(before), None) => format!("- {before}"),
            (None, None) => continue,
        };
        table.row([one_line(&value.key), line]);
    }
    out.push_str(&table.to_text("    "));
    let files: Vec<String> = one.files.iter().map(|file| one_line(&file.name)).collect();
    if !files.is_empty() {
        writeln!(out, "    files: {}", files.join(", "))?;
    }
    Ok(())
}

/// Cluster types with what would reach their clusters.
fn types(plan: &PlanDetail) -> Table {
    let mut table = Table::default();
    for one in &plan.per_type {
        let counts = [
            (one.added, "added"),
            (one.changed, "changed"),
            (one.removed, "removed"),
            (one.quarantined, "quarantined"),
            (one.released, "released"),
        ];
        let changes: Vec<String> =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
        let confirm = || {
            let names = [one_line(&plan.environment), one_line(&one.cluster_type)];
            Command::new("kedge publish confirm").names(&[&names[0], &names[1]])
        };
        let waits = match &one.waits {
            Some(waits) => {
                format!("waits for `{}`: {} of {} would go", confirm(), waits.removed.len(), waits.confirmed)
            }
            None => String::new(),
        };
        table.row([
            one_line(&one.cluster_type),
            changes.join(", "),
            format!("{} online, {} offline", one.clusters.online, one.clusters.offline),
            waits,
        ]);
    }
    table
}

fn subject(to: &PlanSide) -> String {
    match &to.revision {
        Some(revision) => {
            let why = to.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            format!("{revision} on {}{why}", branch(to.of.as_deref()))
        }
        None => "what is in force".to_owned(),
    }
}

fn branch(part: Option<&str>) -> &'static str {
    match part {
        Some("main") => "main",
        _ => "the environment's branch",
    }
}

fn commit(commit: Option<&str>) -> String {
    commit.map_or_else(|| "none".to_owned(), |commit| commit.get(..SHORT).unwrap_or(commit).to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
            "assignments": [{"name": "drone/hello-dev", "clusterType": "drone", "target": "hello-dev", "workload": "hello",
                "workspace": "shop", "change": "changed", "files": [{"name": "platform-config.yaml", "change": "changed"}],
                "values": [{"key": "REGION", "before": "west", "after": "east", "redacted": false},
                    {"key": "N", "after": 1, "redacted": false}]}],
            "problems": [],
        });
        let plan: PlanDetail = serde_json::from_value(plan).unwrap();
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
        assert_eq!(pasted(&["a.yaml=".to_owned()]).unwrap()["a.yaml"], None);
    }
}
