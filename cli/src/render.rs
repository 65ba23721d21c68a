//! `kedge render`: the GitOps files of an environment, written to a folder. Called by `main`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use kedge_scheduler::{Kept, OutputPlan, Schedule, Scheduler, plan_output};
use serde_json::{Value, json};

use crate::control_plane::EnvironmentArgs;
use crate::error::Exit;
use crate::folder::{OutputFolder, Work};
use crate::output::{Format, counted, print_json, print_text, print_yaml, say};
use crate::problems::Problems;
use kedge_scheduler::Redaction;

/// Write the GitOps files of an environment to a folder.
///
/// Only files that differ are written; Kedge's own files that are no longer needed are deleted, all others are left alone. An
/// assignment that can't be rendered keeps the files it has. While an input of the platform fails to load nothing is deleted.
///
/// Exits with 0, with 3 when something was quarantined or left out, and with 1 when the command failed.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Render the branch of dev into a checkout of the GitOps repository:
    kedge render -e dev -c control-plane.git --out gitops

  See what would be written:
    kedge render -e dev -c control-plane.git --out gitops --dry-run

  Render without a network, with repositories from a file:
    kedge render -e dev -c control-plane.git -s sources.yaml --out out

  Render an old commit:
    kedge render -e dev -c control-plane.git@dev~1 --out out")]
pub struct RenderArgs {
    #[command(flatten)]
    environment: EnvironmentArgs,

    /// The folder to write to: new, empty, or one that kedge wrote
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Print what would be written and deleted, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// How to print what was done
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,
}

pub fn run(args: &RenderArgs) -> Result<Exit> {
    let place = args.environment.place()?;
    if place.has_files() {
        OutputFolder::check_apart(&args.out, &place.path)?;
    }
    let folder = OutputFolder::open(&args.out)?;
    let scheduler = Scheduler::new(args.environment.load()?);
    let schedule = scheduler.schedule();
    let problems = Problems::redacted(&scheduler);
    problems.print();

    let staging = if args.dry_run { None } else { Some(folder.begin()?) };
    let mut plan = plan_output(&folder.existing()?, schedule, &|path| folder.read(path));
    for kept in &mut plan.kept {
        kept.reason = Redaction::default().sentence(&kept.reason, []);
    }
    let work = folder.compare(&plan)?;
    if let Some(staging) = staging {
        folder.apply(staging, &work)?;
    }
    say_kept(&plan.kept);
    match args.output {
        Format::Text if args.dry_run => print_text(&listing(&work))?,
        Format::Text => {}
        Format::Json => print_json(&to_json(&work, &plan, schedule, &problems))?,
        Format::Yaml => print_yaml(&to_json(&work, &plan, schedule, &problems))?,
    }
    say(&summary(&work, schedule, &problems, args.dry_run));
    Ok(if problems.errors() > 0 { Exit::LeftOut } else { Exit::Success })
}

fn listing(work: &Work<'_>) -> String {
    let mut text = String::new();
    for (path, _) in &work.write {
        let _ = writeln!(text, "write {path}");
    }
    for path in &work.delete {
        let _ = writeln!(text, "delete {path}");
    }
    text
}

/// `wrote 12 files, deleted 2, kept 40 unchanged; 1 assignment quarantined`
fn summary(work: &Work<'_>, schedule: &Schedule, problems: &Problems, dry_run: bool) -> String {
    let (wrote, deleted, kept) = match dry_run {
        true => ("would write", "delete", "keep"),
        false => ("wrote", "deleted", "kept"),
    };
    let mut text = format!(
        "{wrote} {}, {deleted} {}, {kept} {} unchanged",
        counted(work.write.len(), "file"),
        work.delete.len(),
        work.unchanged
    );
    let quarantined = schedule.quarantined().count();
    if quarantined > 0 {
        let _ = write!(text, "; {} quarantined", counted(quarantined, "assignment"));
    }
    if let Some(found) = problems.summary() {
        let _ = write!(text, "; {found}");
    }
    text
}

fn to_json(work: &Work<'_>, plan: &OutputPlan, schedule: &Schedule, problems: &Problems) -> Value {
    json!({
        "environment": schedule.environment,
        "written": work.write.iter().map(|(path, _)| *path).collect::<Vec<_>>(),
        "deleted": work.delete,
        "unchanged": work.unchanged,
        "kept": plan.kept.iter().map(|kept| json!({"folder": kept.folder, "reason": kept.reason})).collect::<Vec<_>>(),
        "assignments": schedule.assignments.len(),
        "quarantined": schedule.quarantined().map(|(id, _)| id.to_string()).collect::<Vec<_>>(),
        "problems": problems.to_json(),
    })
}

/// How many folders a note names.
const SHOWN_FOLDERS: usize = 3;

/// One line a reason: a failing input may keep thousands of folders.
fn say_kept(kept: &[Kept]) {
    let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in kept {
        folders.entry(&one.reason).or_default().push(&one.folder);
    }
    for (reason, folders) in folders {
        let shown: Vec<String> = folders.iter().take(SHOWN_FOLDERS).map(|folder| format!("`{folder}`")).collect();
        let more = match folders.len().saturating_sub(SHOWN_FOLDERS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let verb = if folders.len() == 1 { "is" } else { "are" };
        say(&format!("note: {}{more} {verb} kept: {reason}", shown.join(", ")));
    }
}
