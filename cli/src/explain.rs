//! `kedge explain`: why an assignment is there or isn't, and where each of its values comes from. Called by `main`.

mod document;
pub mod name;
mod text;

use anyhow::Result;
use kedge_model::Problem;
use kedge_scheduler::{Explanation, Outcome, Scheduler};

use crate::control_plane::EnvironmentArgs;
use crate::error::Exit;
use crate::output::{Format, counted, print_json, print_text, print_yaml, say};

/// Explain why an assignment exists and where its values come from.
///
/// Shows which policies selected it and by which labels, where each label comes from, and for every configuration key all
/// ConfigMaps that set it, in the order they apply, with file and line. For a pair that isn't assigned it shows which label is
/// missing. With KEY it shows that key alone, and the ConfigMaps that have it but don't apply.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Where does the database's address come from?
    kedge explain -e dev drone/hello-functional-test DATABASE_URL

  Why is it there, and what is its configuration?
    kedge explain -e dev drone/hello-functional-test

  Why doesn't it run on factory lines?
    kedge explain -e dev factory-line/hello-functional-test")]
pub struct ExplainArgs {
    /// CLUSTER-TYPE/WORKLOAD-TARGET, or WORKLOAD-TARGET when it is on one cluster type only
    #[arg(value_name = "ASSIGNMENT")]
    assignment: String,

    /// A key of its configuration
    #[arg(value_name = "KEY")]
    key: Option<String>,

    #[command(flatten)]
    environment: EnvironmentArgs,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,
}

/// What is to be printed.
#[derive(Debug)]
struct Explained<'a> {
    explanation: Explanation,
    environment: &'a str,
    /// Why it is quarantined, when it is.
    quarantine: &'a [Problem],
    /// The control plane, as it was named: its own files need no further address.
    home: String,
    key: Option<&'a str>,
}

pub fn run(args: &ExplainArgs) -> Result<Exit> {
    let scheduler = Scheduler::new(args.environment.load()?);
    let failing = scheduler.schedule().failing.len();
    if failing > 0 {
        say(&format!(
            "note: {} failed to load, so more may be missing; kedge validate shows why",
            counted(failing, "input")
        ));
    }
    let explanation = name::find(&scheduler, &args.assignment)?;
    if let Some(key) = &args.key {
        name::check_key(&explanation, key)?;
    }
    let quarantine = match scheduler.schedule().assignments.get(&explanation.id).map(|assignment| &assignment.outcome) {
        Some(Outcome::Quarantined(reasons)) => reasons.as_slice(),
        _ => &[],
    };
    let explained = Explained {
        explanation,
        environment: &args.environment.environment,
        quarantine,
        home: args.environment.place()?.path.display().to_string(),
        key: args.key.as_deref(),
    };
    match args.output {
        Format::Text => print_text(&explained.to_text())?,
        Format::Json => print_json(&explained.to_json())?,
        Format::Yaml => print_yaml(&explained.to_json())?,
    }
    Ok(Exit::Success)
}
