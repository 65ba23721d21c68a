//! `kedge rollout list` and `show`: what is on its way, and one rollout with everything.

use anyhow::Result;
use serde_json::{Value, json};

use super::SelectorArgs;
use crate::error::Exit;
use crate::get::columns::{moment, text};
use crate::hub::Hub;
use crate::output::{Format, Table, print_json, print_text, print_yaml, say};

/// List rollouts, the newest first
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge rollout list -e prod --unfinished
  kedge rollout list --state Stopped -o json")]
pub struct ListArgs {
    #[command(flatten)]
    selector: SelectorArgs,

    /// Only those in this state: Active, Paused, Stopped, Complete, RolledBack, Aborted, Superseded
    #[arg(long, value_name = "STATE")]
    state: Option<String>,

    /// Only those that haven't ended
    #[arg(long)]
    unfinished: bool,

    /// Only those that bring this commit of an application's source
    #[arg(long, value_name = "SHA")]
    source_commit: Option<String>,

    /// Only those that bring this commit of the control plane's main
    #[arg(long, value_name = "SHA")]
    main_commit: Option<String>,

    /// List at most this many
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    limit: usize,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,
}

/// Show one rollout: what moves, where it is in each ring, what people said
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge rollout show 12")]
pub struct ShowArgs {
    /// Its number
    #[arg(value_name = "ROLLOUT", value_parser = crate::output::number)]
    rollout: u64,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,
}

pub fn list(hub: &Hub, args: &ListArgs) -> Result<Exit> {
    let parameters = [
        ("environment", args.selector.environment.clone()),
        ("workload", args.selector.workload.clone()),
        ("clusterType", args.selector.cluster_type.clone()),
        ("state", args.state.clone()),
        ("unfinished", args.unfinished.then(|| "true".to_owned())),
        ("sourceCommit", args.source_commit.clone()),
        ("mainCommit", args.main_commit.clone()),
    ];
    let items = hub.list(&["rollouts"], &parameters, args.limit, |_| true)?.items;
    match args.output {
        Format::Json => print_json(&json!({"items": items}))?,
        Format::Yaml => print_yaml(&json!({"items": items}))?,
        Format::Text if items.is_empty() => say("nothing"),
        Format::Text => {
            let mut table = Table::default();
            let head = ["ROLLOUT", "ENVIRONMENT", "LANE", "STATE", "RINGS", "COMMIT", "SUBJECT", "AUTHOR", "CREATED"];
            table.row(head.map(str::to_owned));
            items.iter().for_each(|item| table.row(row(item)));
            print_text(&table.to_text(""))?;
        }
    }
    Ok(Exit::Success)
}

/// The commit that the subject beside it is of, as people read it.
pub fn commit(item: &Value) -> String {
    let commit = item["subjectOf"].as_str().map_or_else(|| text(&item["commit"]), str::to_owned);
    commit.get(..10).unwrap_or(&commit).to_owned()
}

fn row(item: &Value) -> [String; 9] {
    [
        text(&item["id"]),
        text(&item["environment"]),
        text(&item["lane"]),
        text(&item["state"]),
        rings(item),
        commit(item),
        text(&item["subject"]),
        text(&item["author"]),
        moment(&item["createdAt"]),
    ]
}

/// `canary passed, rest rolling`
pub fn rings(item: &Value) -> String {
    let rings = item["rings"].as_array().into_iter().flatten();
    rings.map(|ring| format!("{} {}", text(&ring["ring"]), text(&ring["state"]))).collect::<Vec<_>>().join(", ")
}

pub fn show(hub: &Hub, args: &ShowArgs) -> Result<Exit> {
    let document = hub.get(&["rollouts", &args.rollout.to_string()], &[])?.document;
    match args.output {
        Format::Json => print_json(&document)?,
        Format::Yaml => print_yaml(&document)?,
        Format::Text => print_text(&shown(document))?,
    }
    Ok(Exit::Success)
}

/// The whole rollout, and at its end what can be done: commands are never cut.
fn shown(mut document: Value) -> String {
    let ways = document.as_object_mut().and_then(|fields| fields.remove("waysOut")).unwrap_or_default();
    let mut out = crate::describe::text::of(&document);
    for (at, way) in ways.as_array().into_iter().flatten().enumerate() {
        out.push_str(if at == 0 { "\nWhat can be done\n" } else { "" });
        out.push_str(&format!("  {}\n", text(&way["says"])));
        if let Some(command) = way["command"].as_str() {
            out.push_str(&format!("    {}\n", text(&json!(command))));
        }
    }
    out
}
