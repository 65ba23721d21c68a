//! `kedge evidence`: what was true when a commit passed, signed by the hub. Called by `main`.

use anyhow::Result;
use clap::Subcommand;
use kedge_api::client::Client;
use serde_json::json;

use crate::error::Exit;
use crate::get::columns::{one_line, to_the_second};
use crate::hub::HubArgs;
use crate::output::{Format, Table, print_json, print_text, print_yaml, say};

/// List and export the evidence of promotions and rollouts
///
/// Each is an in-toto statement, signed by the hub and kept for ever: commit, environments, generations, the gates' values with
/// their counts at that moment, clusters that were offline, approvals and overrides.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge evidence list -e prod
  kedge evidence show 41

  Keep the signed envelope, for an auditor:
    kedge evidence show 41 -o json > evidence-41.json")]
pub struct EvidenceArgs {
    #[command(subcommand)]
    command: EvidenceCommand,

    #[command(flatten)]
    hub: HubArgs,
}

#[derive(Clone, Debug, Subcommand)]
enum EvidenceCommand {
    /// List statements, newest first
    List(ListArgs),
    /// Show one statement; as JSON with its signed envelope
    Show(ShowArgs),
}

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge evidence list -e prod
  kedge evidence list -e prod --limit 5 -o json")]
struct ListArgs {
    /// Only this environment
    #[arg(short, long, value_name = "NAME")]
    environment: Option<String>,

    /// Only this commit
    #[arg(long, value_name = "SHA")]
    commit: Option<String>,

    /// List at most this many
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    limit: usize,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,
}

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge evidence show 41")]
struct ShowArgs {
    /// Its number
    #[arg(value_name = "EVIDENCE", value_parser = crate::output::number)]
    id: u64,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,
}

pub fn run(args: &EvidenceArgs) -> Result<Exit> {
    let hub = args.hub.open()?;
    match &args.command {
        EvidenceCommand::List(args) => list(&hub, args),
        EvidenceCommand::Show(args) => show(&hub, args),
    }
}

fn list(hub: &Client, args: &ListArgs) -> Result<Exit> {
    let parameters = [("environment", args.environment.clone()), ("commit", args.commit.clone())];
    let list = hub.evidence(&parameters).gather(args.limit, |_| true)?;
    match args.output {
        Format::Json => print_json(&json!({"items": list.items}))?,
        Format::Yaml => print_yaml(&json!({"items": list.items}))?,
        Format::Text if list.items.is_empty() => say("nothing"),
        Format::Text => {
            let mut table = Table::default();
            table.row(["EVIDENCE", "ENVIRONMENT", "KIND", "EVENT", "COMMIT", "ROLLOUT", "AT"].map(str::to_owned));
            for item in list.read()? {
                let commit = one_line(&item.commit);
                table.row([
                    item.id.to_string(),
                    one_line(&item.environment),
                    one_line(&item.kind),
                    one_line(&item.event),
                    commit.get(..10).unwrap_or(&commit).to_owned(),
                    item.rollout.map(|id| id.to_string()).unwrap_or_default(),
                    to_the_second(&item.created_at),
                ]);
            }
            print_text(&table.to_text(""))?;
        }
    }
    Ok(Exit::Success)
}

fn show(hub: &Client, args: &ShowArgs) -> Result<Exit> {
    let evidence = hub.one_evidence(args.id)?.read()?;
    match args.output {
        // What an auditor keeps is what the hub signed.
        Format::Json => print_json(&evidence.envelope)?,
        Format::Yaml | Format::Text => print_yaml(&evidence.statement)?,
    }
    Ok(Exit::Success)
}
