//! `kedge history`: what changed when, by whom and why, and the timeline of one commit. Called by `main`.

use anyhow::Result;
use clap::Subcommand;
use kedge_api::client::Client;
use kedge_api::history::{HistoryEntry, Timeline};
use serde_json::{Value, json};

use crate::error::Exit;
use crate::get::Shape;
use crate::get::columns::{one_line, text, to_the_second};
use crate::hub::HubArgs;
use crate::output::{Table, print_json, print_text, print_yaml};

/// Show what happened, newest first.
///
/// Conditions, generations, publishes, promotions, rollouts, approvals, clusters, writes and problems, each with its reason.
/// Times are those at which things happened. A cluster that was offline reports its past later; such an entry is marked `late`,
/// or `corrected` if its clock was wrong. Application teams see their own workspaces.
#[derive(Clone, Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  What happened in the last day?
    kedge history --since 1d

  Since when does hello fail, and what changed before?
    kedge history -e prod --workload hello --since 7d

  What did one cluster do while it was offline?
    kedge history --cluster drone-17 --kind condition

  Who approved or overrode something?
    kedge history --kind approval

  When did a commit reach which environment, and how long did each step take?
    kedge history commit 3f2a91c"
)]
pub struct HistoryArgs {
    #[command(subcommand)]
    command: Option<HistoryCommand>,

    #[command(flatten)]
    filter: Filter,

    /// At most this many entries
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=5000))]
    limit: u16,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "table", value_name = "FORMAT")]
    output: Shape,

    #[command(flatten)]
    hub: HubArgs,
}

#[derive(Clone, Debug, Subcommand)]
enum HistoryCommand {
    Commit(CommitArgs),
}

/// Show the timeline of one commit, from Git to converged clusters, by environment.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Where is the commit, and how long did each step take?
    kedge history commit 3f2a91c")]
struct CommitArgs {
    /// The commit, of main or of an application's source; its first digits are enough
    #[arg(value_name = "SHA")]
    commit: String,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "table", value_name = "FORMAT")]
    output: Shape,
}

#[derive(Clone, Debug, clap::Args)]
struct Filter {
    /// Only what happened in this environment
    #[arg(short, long, value_name = "NAME")]
    environment: Option<String>,

    /// Only what is about this workload
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,

    /// Only what is about this assignment, `<cluster type>/<workload>-<target>`
    #[arg(long, value_name = "NAME")]
    assignment: Option<String>,

    /// Only what is about this cluster, by name or id
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,

    /// Only what is about this cluster type
    #[arg(long, value_name = "NAME")]
    cluster_type: Option<String>,

    /// Only these kinds, with commas between: condition, drift, generation, publish, promotion, rollout, approval, cluster,
    /// audit, problem
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,

    /// Only what this person or program did
    #[arg(long, value_name = "NAME")]
    who: Option<String>,

    /// Only entries about this commit; its first digits are enough
    #[arg(long, value_name = "SHA")]
    commit: Option<String>,

    /// Only since then: `7d`, `2026-11-01`, `2026-11-01T06:00:00Z`
    #[arg(long, value_name = "TIME")]
    since: Option<String>,

    /// Only until then
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

pub fn run(args: &HistoryArgs) -> Result<Exit> {
    let hub = args.hub.open()?;
    if let Some(HistoryCommand::Commit(args)) = &args.command {
        return timeline(&hub, args);
    }
    let list = hub.history(&args.filter.parameters()).gather(usize::from(args.limit), |_| true)?;
    match args.output {
        Shape::Json => print_json(&json!({"items": list.items}))?,
        Shape::Yaml => print_yaml(&json!({"items": list.items}))?,
        Shape::Table | Shape::Wide => print_text(&table(&list.read()?, args.output == Shape::Wide))?,
    }
    Ok(Exit::Success)
}

impl Filter {
    fn parameters(&self) -> [(&'static str, Option<String>); 10] {
        [
            ("environment", self.environment.clone()),
            ("workload", self.workload.clone()),
            ("assignment", self.assignment.clone()),
            ("cluster", self.cluster.clone()),
            ("clusterType", self.cluster_type.clone()),
            ("kind", self.kind.clone()),
            ("who", self.who.clone()),
            ("commit", self.commit.clone()),
            ("since", self.since.clone()),
            ("until", self.until.clone()),
        ]
    }
}

fn timeline(hub: &Client, args: &CommitArgs) -> Result<Exit> {
    let timeline = hub.timeline(&args.commit)?;
    match args.output {
        Shape::Json => print_json(&timeline.document)?,
        Shape::Yaml => print_yaml(&timeline.document)?,
        Shape::Table | Shape::Wide => print_text(&steps(&timeline.read()?))?,
    }
    Ok(Exit::Success)
}

fn table(entries: &[HistoryEntry], wide: bool) -> String {
    let mut table = Table::default();
    let mut head = vec!["WHEN", "KIND", "ENVIRONMENT", "WHO", "WHAT"];
    if wide {
        head.extend(["WORKLOAD", "CLUSTER", "COMMIT", "RECORDED", "DETAIL"]);
    }
    table.row(head.into_iter().map(str::to_owned));
    for entry in entries {
        let told = |text: &Option<String>| text.as_deref().map(one_line).unwrap_or_default();
        let late = if entry.late { " (late)" } else { "" };
        let corrected = if entry.corrected { " (corrected)" } else { "" };
        let mut cells = vec![to_the_second(&entry.at), one_line(&entry.kind), one_line(&entry.environment)];
        cells.extend([told(&entry.who), format!("{}{late}{corrected}", one_line(&entry.title))]);
        if wide {
            cells.extend([told(&entry.workload), told(&entry.cluster_name), told(&entry.commit)]);
            cells.extend([to_the_second(&entry.recorded_at), text(&entry.detail)]);
        }
        table.row(cells.into_iter().map(dashed));
    }
    table.to_text("")
}

fn steps(timeline: &Timeline) -> String {
    let mut out = format!("commit {}", one_line(&timeline.commit));
    if let Some(subject) = &timeline.subject {
        out.push_str(&format!("  {subject}"));
    }
    out.push('\n');
    let mut table = Table::default();
    table.row(["ENVIRONMENT", "STEP", "WHEN", "TOOK", "DETAIL"].map(str::to_owned));
    let mut before = String::new();
    for step in &timeline.items {
        let environment = one_line(&step.environment);
        let shown = if environment == before { String::new() } else { environment.clone() };
        before = environment;
        let took = step.took_ms.map(took).unwrap_or_default();
        let cells = [one_line(&step.step), to_the_second(&step.at), dashed(took), details(&step.detail)];
        table.row([shown].into_iter().chain(cells));
    }
    out.push_str(&table.to_text(""));
    out
}

/// `commit=3f2a branch=dev`
fn details(detail: &Value) -> String {
    let told = |value: &Value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty());
    let pairs = detail.as_object().into_iter().flatten().filter(|(_, value)| told(value));
    pairs.map(|(key, value)| format!("{key}={}", text(value))).collect::<Vec<_>>().join(" ")
}

/// `850ms`, `4.2s`, `3m20s`, `2h5m`, `3d4h`
fn took(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0 => format!("{millis}ms"),
        1..60 => format!("{}.{}s", seconds, millis % 1000 / 100),
        60..3600 => format!("{}m{}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

fn dashed(cell: String) -> String {
    if cell.is_empty() { "-".to_owned() } else { cell }
}

#[cfg(test)]
mod tests {
    use kedge_api::history::TimelineStep;

    use super::*;

    #[test]
    fn how_long_a_step_took_is_said_in_two_units_at_most() {
        let said = [850, 4_250, 200_000, 7_500_000, 273_600_000].map(took);
        assert_eq!(said, ["850ms", "4.2s", "3m20s", "2h5m", "3d4h"]);
    }

    #[test]
    fn an_entry_that_came_late_says_so() {
        let entry = HistoryEntry {
            late: true,
            corrected: true,
            title: "drone/hello-all failed on drone-1".to_owned(),
            ..HistoryEntry::default()
        };
        let text = table(&[entry], false);
        assert!(text.contains("drone/hello-all failed on drone-1 (late) (corrected)"), "{text}");
    }

    #[test]
    fn the_way_of_a_commit_names_each_environment_once() {
        let step = |step: &str, took_ms, detail| TimelineStep {
            environment: "dev".to_owned(),
            step: step.to_owned(),
            took_ms: Some(took_ms),
            detail,
            ..TimelineStep::default()
        };
        let timeline = Timeline {
            commit: "3f2a".to_owned(),
            subject: Some("Raise the limit".to_owned()),
            items: vec![step("read", 120, json!({})), step("issued", 1000, json!({"assignments": 3}))],
        };
        let text = steps(&timeline);
        assert!(text.starts_with("commit 3f2a  Raise the limit\n"), "{text}");
        assert_eq!(text.matches("dev").count(), 1, "{text}");
        assert!(text.contains("assignments=3") && text.contains("120ms"), "{text}");
    }
}
