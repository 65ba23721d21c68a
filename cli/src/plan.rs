//! `kedge plan`: what a change of the control plane would do, before it is merged. Called by `main`.

mod document;
mod hub;
mod markdown;
mod sides;
mod text;

use std::path::PathBuf;

use anyhow::Result;
use kedge_model::Platform;
use kedge_platform::load;
use kedge_scheduler::{Plan, Scheduler, plan};

use crate::control_plane::{EnvironmentArgs, RepositoryArgs};
use crate::error::Exit;
use crate::output::{counted, print_json, print_text, print_yaml, say};
use crate::problems::Problems;
use sides::{Side, Sides};

/// Show what a change would do: assignments, configuration keys and files.
///
/// Compares two revisions of the control plane, or two folders. Without --to it is the head of the environment's branch,
/// without --from that commit's first parent. `-o markdown` is for a comment on a pull request and never shows values
/// that look secret.
///
/// With --hub the hub plans: against what is in force there, with the last good version of what is broken, the names that are
/// published, and the clusters that the change would reach, online and offline. It reads what was pushed (--to), or files over it
/// (--file), and shows values as the token's role may see them. Without --hub, two revisions or folders are compared offline,
/// even before a push.
///
/// Exits with 0, with 3 when the new side has something quarantined or left out.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  What did the last commit to dev change?
    kedge plan -e dev -c control-plane.git

  What would the files that I edit in this checkout change, and how would the rendered files look?
    kedge plan -e dev --from dev --to . --diff

  What would this pull request change?
    kedge plan -e dev --from origin/dev --to HEAD -o markdown

  What differs between two revisions, as data?
    kedge plan -e dev -c control-plane.git --from dev~1 --to dev -o json

  Which clusters would a pushed branch reach, and which of them are offline?
    kedge plan -e prod --hub --to new-region

  And this file, before it is committed?
    kedge plan -e prod --hub --file configs/region.yaml=region.yaml")]
pub struct PlanArgs {
    #[command(flatten)]
    environment: EnvironmentArgs,

    /// The old side: a revision of the control plane, or a folder
    #[arg(long, value_name = "REV|DIR", conflicts_with = "hub")]
    from: Option<PathBuf>,

    /// The new side: a revision of the control plane, or a folder
    #[arg(long, value_name = "REV|DIR")]
    to: Option<PathBuf>,

    /// As --sources, for --from
    #[arg(long, value_name = "FILE", conflicts_with = "hub")]
    from_sources: Option<PathBuf>,

    /// Show the files as unified diffs
    #[arg(long, conflicts_with = "hub")]
    diff: bool,

    /// How to print the plan
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Output,

    #[command(flatten)]
    hub: hub::HubPlanArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    Text,
    Json,
    Yaml,
    /// A comment for a pull request
    Markdown,
}

/// Both sides and what differs.
#[derive(Debug)]
struct Compared {
    environment: String,
    sides: Sides,
    old: Scheduler,
    new: Scheduler,
    plan: Plan,
    with_diff: bool,
}

pub fn run(args: &PlanArgs) -> Result<Exit> {
    if let Some(address) = &args.hub.hub {
        return hub::run(args, address);
    }
    let sides = Sides::of(&args.environment, args.from.as_deref(), args.to.as_deref())?;
    let new = read(&args.environment, &sides.to, &args.environment.repositories)?;
    let old_repositories = match &args.from_sources {
        Some(file) => RepositoryArgs { sources: Some(file.clone()), cache: None },
        None => args.environment.repositories.clone(),
    };
    let old = read(&args.environment, &sides.from, &old_repositories)?;
    let problems = match args.output {
        Output::Markdown => Problems::redacted(&new),
        Output::Text | Output::Json | Output::Yaml => Problems::of(&new),
    };
    problems.print();
    let failing = old.schedule().failing.len();
    if failing > 0 {
        say(&format!("note: {} of {} failed to load, so more may look added", counted(failing, "input"), sides.from));
    }

    let compared = Compared::of(args, sides, old, new);
    match args.output {
        Output::Text => print_text(&compared.to_text())?,
        Output::Json => print_json(&compared.to_json(&problems))?,
        Output::Yaml => print_yaml(&compared.to_json(&problems))?,
        Output::Markdown => print_text(&compared.to_markdown(&problems))?,
    }
    Ok(if problems.errors() > 0 { Exit::LeftOut } else { Exit::Success })
}

fn read(args: &EnvironmentArgs, side: &Side, repositories: &RepositoryArgs) -> Result<Scheduler> {
    let platform = match side {
        Side::Nothing => Platform { environment: args.environment.clone(), ..Platform::default() },
        Side::Read(control_plane) => {
            let repositories = repositories.open(&args.place()?.path)?;
            load(control_plane, &args.environment, repositories.as_ref())?
        }
    };
    Ok(Scheduler::new(platform))
}

impl Compared {
    fn of(args: &PlanArgs, sides: Sides, old: Scheduler, new: Scheduler) -> Compared {
        let plan = plan(old.schedule(), new.schedule());
        Compared { environment: args.environment.environment.clone(), sides, old, new, plan, with_diff: args.diff }
    }
}

#[cfg(test)]
mod tests;
