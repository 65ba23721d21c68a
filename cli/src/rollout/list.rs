//! `kedge rollout list` and `show`: what is on its way, and one rollout with everything.

use anyhow::Result;
use kedge_api::client::{Answer, Client};
use kedge_api::rollouts::{RingProgress, RolloutCause, RolloutDetail, RolloutSummary};
use serde_json::json;

use super::SelectorArgs;
use crate::error::Exit;
use crate::get::columns::{one_line, to_the_second};
use crate::output::{Format, Table, print_json, print_text, print_yaml, say};

/// List rollouts, newest first
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

    /// Only those with this commit of an application's source
    #[arg(long, value_name = "SHA")]
    source_commit: Option<String>,

    /// Only those with this commit of the control plane's main
    #[arg(long, value_name = "SHA")]
    main_commit: Option<String>,

    /// List at most this many
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    limit: usize,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,
}

/// Show one rollout: its contents, its state in each ring, and decisions
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

pub fn list(hub: &Client, args: &ListArgs) -> Result<Exit> {
    let parameters = [
        ("environment", args.selector.environment.clone()),
        ("workload", args.selector.workload.clone()),
        ("clusterType", args.selector.cluster_type.clone()),
        ("state", args.state.clone()),
        ("unfinished", args.unfinished.then(|| "true".to_owned())),
        ("sourceCommit", args.source_commit.clone()),
        ("mainCommit", args.main_commit.clone()),
    ];
    let list = hub.rollouts(&parameters).gather(args.limit, |_| true)?;
    match args.output {
        Format::Json => print_json(&json!({"items": list.items}))?,
        Format::Yaml => print_yaml(&json!({"items": list.items}))?,
        Format::Text if list.items.is_empty() => say("nothing"),
        Format::Text => {
            let mut table = Table::default();
            let head = ["ROLLOUT", "ENVIRONMENT", "LANE", "STATE", "RINGS", "COMMIT", "SUBJECT", "AUTHOR", "CREATED"];
            table.row(head.map(str::to_owned));
            list.read()?.iter().for_each(|rollout| table.row(row(rollout)));
            print_text(&table.to_text(""))?;
        }
    }
    Ok(Exit::Success)
}

/// The commit that the subject beside it is of, as people read it.
pub fn commit(cause: &RolloutCause) -> String {
    let commit = one_line(cause.subject_of.as_ref().unwrap_or(&cause.commit));
    commit.get(..10).unwrap_or(&commit).to_owned()
}

fn row(rollout: &RolloutSummary) -> [String; 9] {
    [
        rollout.id.to_string(),
        one_line(&rollout.environment),
        one_line(&rollout.lane),
        one_line(&rollout.state),
        rings(&rollout.rings),
        commit(&rollout.cause),
        one_line(&rollout.cause.subject),
        one_line(&rollout.cause.author),
        to_the_second(&rollout.created_at),
    ]
}

/// `canary passed, rest rolling`
pub fn rings(rings: &[RingProgress]) -> String {
    rings
        .iter()
        .map(|ring| format!("{} {}", one_line(&ring.ring), one_line(&ring.state)))
        .collect::<Vec<_>>()
        .join(", ")
}

pub fn show(hub: &Client, args: &ShowArgs) -> Result<Exit> {
    let answer = hub.rollout(args.rollout)?;
    match args.output {
        Format::Json => print_json(&answer.document)?,
        Format::Yaml => print_yaml(&answer.document)?,
        Format::Text => print_text(&shown(&answer)?)?,
    }
    Ok(Exit::Success)
}

/// The whole rollout, and at its end what can be done: commands are never cut.
fn shown(answer: &Answer<RolloutDetail>) -> Result<String> {
    let mut document = answer.document.clone();
    if let Some(fields) = document.as_object_mut() {
        fields.remove("suggestions");
    }
    let mut out = crate::describe::text::of(&document);
    for (at, suggestion) in answer.read()?.suggestions.iter().enumerate() {
        out.push_str(if at == 0 { "\nWhat can be done\n" } else { "" });
        out.push_str(&format!("  {}\n", one_line(&suggestion.text)));
        if let Some(command) = &suggestion.command {
            out.push_str(&format!("    {}\n", one_line(command)));
        }
    }
    Ok(out)
}
