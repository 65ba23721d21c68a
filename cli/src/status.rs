//! `kedge status`: the fleet at a glance, once or as it changes. Called by `main`.

mod import;
mod text;

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use anyhow::Result;
use kedge_api::client::{Client, ClientError};
use kedge_api::conditions::ConditionSummary;
use kedge_api::fleet::FleetSummary;
use kedge_api::rollouts::RolloutSummary;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::Exit;
use crate::hub::HubArgs;
use crate::output::{Format, print_json, print_text, print_yaml, say, unless_closed};
use import::ImportArgs;

/// Show the fleet at a glance: what runs, what moves, what is wrong
///
/// Environments are listed in the order of promotion, each with its commit of main, and how many assignments on clusters are in
/// which condition. Active rollouts and problems follow, each with the command that shows more. A cluster that missed its
/// check-in is Unknown, whatever it reported before. Application teams see their own.
#[derive(Clone, Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  Is everything all right?
    kedge status

  In one environment, or of one workload, and follow it:
    kedge status prod
    kedge status --workload hello --watch

  Who has failed, and why?
    kedge get conditions -e prod --condition Failed

  Import the status of an agent without a network:
    kedge status import press-7.kedge

  For programs:
    kedge status -o json"
)]
pub struct StatusArgs {
    #[command(subcommand)]
    command: Option<StatusCommand>,

    /// Only this environment
    #[arg(value_name = "ENVIRONMENT")]
    environment: Option<String>,

    /// Count this workload's assignments only
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,

    /// Print it again whenever it changes
    #[arg(short, long)]
    watch: bool,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    hub: HubArgs,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum StatusCommand {
    Import(ImportArgs),
}

/// What the hub says of the fleet, with what failed and what moves.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Glance {
    #[serde(flatten)]
    pub fleet: FleetSummary,
    pub failures: Vec<ConditionSummary>,
    pub rollouts: Vec<RolloutSummary>,
    /// None: the question is about one workload.
    pub problem_count: Option<u64>,
}

/// The hub answers from counts: asking it so often costs it nothing.
const EVERY: Duration = Duration::from_secs(2);
/// Failures that are told with their reasons; a list shows the rest.
const FAILURES: &str = "100";
/// Rollouts that are told of.
const ROLLOUTS: &str = "20";

pub fn run(args: &StatusArgs) -> Result<Exit> {
    if let Some(StatusCommand::Import(import)) = &args.command {
        return import::run(import, &args.hub);
    }
    let hub = args.hub.open()?;
    let mut document = args.ask(&hub)?;
    args.print(&document)?;
    if !args.watch {
        return Ok(Exit::Success);
    }
    loop {
        std::thread::sleep(EVERY);
        let news = match args.ask(&hub) {
            Ok(news) => news,
            // A restart of the hub doesn't end the watch.
            Err(error) if error.downcast_ref::<ClientError>().is_some_and(ClientError::is_unreachable) => continue,
            Err(error) => return Err(error),
        };
        if without_time(&news) != without_time(&document) {
            args.print(&news)?;
        }
        document = news;
    }
}

impl Glance {
    fn of(document: &Value) -> Result<Glance> {
        Ok(Glance::deserialize(document).map_err(|error| ClientError::unreadable(&error))?)
    }
}

impl StatusArgs {
    /// The glance, with what failed and what moves beside it.
    fn ask(&self, hub: &Client) -> Result<Value> {
        let environment = || self.environment.clone();
        let asked = [("environment", environment()), ("workload", self.workload.clone())];
        let mut document = hub.fleet(&asked)?.document;
        let failed = |document: &Value| {
            let environments = document["environments"].as_array().into_iter().flatten();
            environments.map(|one| one["conditions"]["failed"].as_u64().unwrap_or_default()).sum::<u64>()
        };
        let mut failures = json!([]);
        if failed(&document) > 0 {
            let asked = [
                ("environment", environment()),
                ("workload", self.workload.clone()),
                ("condition", Some("Failed".to_owned())),
                ("limit", Some(FAILURES.to_owned())),
            ];
            failures = hub.conditions(&asked)?.document["items"].take();
        }
        let asked = [
            ("environment", environment()),
            ("workload", self.workload.clone()),
            ("unfinished", Some("true".to_owned())),
            ("limit", Some(ROLLOUTS.to_owned())),
        ];
        let rollouts = hub.rollouts_page(&asked)?.document["items"].take();
        // As `kedge get problems` counts them; a question about one workload isn't one about all problems.
        let problems = match self.workload {
            Some(_) => Value::Null,
            None => {
                let asked = [("environment", environment()), ("limit", Some("1".to_owned()))];
                hub.problems(&asked)?.document["total"].take()
            }
        };
        if let Value::Object(fields) = &mut document {
            fields.insert("problemCount".to_owned(), problems);
            fields.insert("failures".to_owned(), failures);
            fields.insert("rollouts".to_owned(), rollouts);
        }
        Ok(document)
    }

    fn print(&self, document: &Value) -> Result<()> {
        match self.output {
            Format::Json if self.watch => print_text(&format!("{document}\n"))?,
            Format::Json => print_json(document)?,
            Format::Yaml => {
                if self.watch {
                    print_text("---\n")?;
                }
                print_yaml(document)?;
            }
            Format::Text => {
                let told = text::of(&Glance::of(document)?);
                if self.watch {
                    separate()?;
                }
                if document["environments"].as_array().is_none_or(Vec::is_empty) {
                    say("nothing yet: the hub has read no environment");
                }
                print_text(&told)?;
            }
        }
        Ok(())
    }
}

/// On a terminal each glance takes the place of the one before; elsewhere a line stands between them.
fn separate() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let between: &[u8] = if out.is_terminal() { b"\x1b[2J\x1b[H" } else { b"\n" };
    unless_closed(out.write_all(between))
}

/// Only what is said counts as a change.
fn without_time(document: &Value) -> Value {
    let mut document = document.clone();
    if let Value::Object(fields) = &mut document {
        fields.remove("at");
    }
    document
}
