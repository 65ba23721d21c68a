//! `kedge-agent status`: each assignment with its condition, and how the hub was last heard. Called by `main`.

use std::fmt::Write as _;

use kedge_model::wire::{PackagesKey, Timestamp};
use kedge_status::Severity;

use super::error::{CommandError, Exit};
use super::output::{Format, Table, ago, duration, show, time};
use crate::alive;
use crate::clock::{Clock as _, SystemClock};
use crate::daemon;
use crate::overview::{Assignment, Overview};
use crate::paths::Paths;

/// Show what runs on this host, and whether it is what should run.
///
/// Each assignment has a condition (Converged, Converging, Failed, Unknown), since when, the version that runs, and the reason.
/// The command reads only this host's disk; it works without the hub and the daemon.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Is everything Converged?
    kedge-agent status

  For a script: exit code 0 only when the agent runs and all is Converged:
    kedge-agent status > /dev/null && echo fine

  List what isn't, as JSON:
    kedge-agent status -o json | jq '.assignments[] | select(.condition != \"Converged\")'

Exit codes: 0 all Converged, 1 the command failed, 2 wrong usage, 3 the agent isn't running, something isn't Converged or needs
a person.")]
pub struct StatusArgs {
    /// How to show it
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,

    /// Only check whether the agent is alive; for the probe of a pod
    #[arg(long)]
    alive: bool,
}

/// A clock that is wrong by less isn't worth a word.
const CLOCK_TOLERANCE_MS: u64 = 5_000;

pub fn run(args: &StatusArgs, paths: &Paths) -> Result<Exit, CommandError> {
    if args.alive {
        return match daemon::holder(paths).is_some() && alive::is_shown(paths) {
            true => Ok(Exit::Success),
            false => Err(CommandError::refused("the agent doesn't respond", "see kubectl logs for the reason")),
        };
    }
    let overview = Overview::read(paths)?;
    show(args.output, &overview, || text(&overview, SystemClock.now()))?;
    Ok(exit(&overview))
}

fn exit(overview: &Overview) -> Exit {
    let converged = overview.assignments.iter().all(|assignment| assignment.condition == "Converged");
    let urgent = overview.warnings.iter().any(|warning| warning.severity == Severity::Error);
    // Whoever works has more to say.
    if overview.standby.is_some() {
        return Exit::Success;
    }
    // What nobody looks at isn't known to be so.
    if overview.daemon.is_none() {
        return Exit::Findings;
    }
    match converged && !urgent && overview.unreadable.is_empty() && overview.cluster.is_some() {
        true => Exit::Success,
        false => Exit::Findings,
    }
}

fn text(overview: &Overview, now: Timestamp) -> String {
    let mut text = head(overview, now);
    if overview.assignments.is_empty() {
        text.push_str("\nNothing is assigned to this host.\n");
    } else {
        let mut table = Table::default();
        table.row(["ASSIGNMENT", "CONDITION", "SINCE", "VERSION", "REASON"]);
        for assignment in &overview.assignments {
            let since = assignment.since.map_or_else(|| "-".to_owned(), |since| time(since.0));
            table.row([&assignment.name, assignment.condition, &since, &version(assignment), &reason(assignment)]);
        }
        _ = write!(text, "\n{}", table.to_text(""));
    }
    if !overview.holds.is_empty() {
        text.push_str("\nHeld: not changed, not repaired, not removed\n");
        for hold in &overview.holds {
            let why = if hold.reason.is_empty() { String::new() } else { format!(": {}", hold.reason) };
            let since = time(hold.since.0);
            let ends = hold
                .ends_in_seconds
                .map(|left| format!(", ends in {}", duration(left.saturating_mul(1000))))
                .unwrap_or_default();
            _ = writeln!(text, "  {}  by {} ({}) since {since}{ends}{why}", hold.assignment, hold.by, hold.writer);
        }
    }
    if !overview.holds_elsewhere.is_empty() {
        text.push_str("\nHeld from here on other clusters of the site\n");
        for hold in &overview.holds_elsewhere {
            let why = if hold.reason.is_empty() { String::new() } else { format!(": {}", hold.reason) };
            let since = time(hold.since.0);
            _ = writeln!(text, "  {} on {}  by {} since {since}{why}", hold.assignment, hold.cluster, hold.by);
        }
    }
    if !overview.warnings.is_empty() || !overview.unreadable.is_empty() {
        text.push_str("\nWarnings\n");
        for warning in &overview.warnings {
            let urgent = if warning.severity == Severity::Error { ", a person is needed" } else { "" };
            _ = writeln!(text, "  {} since {}{urgent}: {}", warning.code, time(warning.since.0), warning.message);
        }
        overview.unreadable.iter().for_each(|ledger| _ = writeln!(text, "  {ledger}"));
    }
    text
}

/// Who this is, whether the agent runs, and the hub.
fn head(overview: &Overview, now: Timestamp) -> String {
    let mut text = String::new();
    if let Some(standby) = &overview.standby {
        let by = standby.holder.as_deref().unwrap_or("nobody yet");
        _ = writeln!(
            text,
            "This agent stands by; the one that works for the cluster is {by}: {}",
            standby.way("status")
        );
        text.push_str("What follows is what this node knew last.\n\n");
    }
    if overview.daemon.is_none() && overview.standby.is_none() {
        let start =
            if overview.is_host { "sudo systemctl start kedge-agent" } else { "kedge-agent run, with the same --root" };
        _ = writeln!(text, "The agent isn't running: {start}");
        let age = overview.hub.last_contact.map(|at| format!(", last written {}", ago(at.0, now))).unwrap_or_default();
        _ = writeln!(text, "What follows is how it left things{age}.\n");
    }
    match &overview.cluster {
        None => text.push_str("This host hasn't joined a hub: kedge-agent join --token-file FILE\n"),
        Some(cluster) => {
            let stream = cluster.stream.as_ref().map(|stream| format!(" in {stream}")).unwrap_or_default();
            _ = writeln!(text, "Cluster {}{stream}, hub {}", cluster.name, cluster.hub);
            _ = writeln!(text, "Hub: {}", hub(overview, now));
            if let Some(generation) = overview.waits {
                _ = writeln!(text, "Next: generation {generation} is here and waits for the hub's permit to change");
            }
        }
    }
    text
}

fn hub(overview: &Overview, now: Timestamp) -> String {
    let hub = &overview.hub;
    let via = hub.via.as_ref().map(|name| format!("; reached via {name}")).unwrap_or_default();
    let Some(last) = hub.last_contact else {
        let why = hub.error.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        return format!("no answer yet{why}{via}");
    };
    let mut text = format!("heard {} ({})", time(last.0), ago(last.0, now));
    match &hub.error {
        Some(why) => _ = write!(text, "; {} since then: {why}{via}", polls(hub.failed_polls)),
        None => {
            text.push_str(&match hub.next_contact {
                Some(next) if now <= next.0 => format!(", next contact until {}", time(next.0)),
                // The hub holds a poll while there is no news.
                _ if overview.daemon.is_some() => ", a poll is open".to_owned(),
                Some(next) => format!(", the next contact was due at {}", time(next.0)),
                None => String::new(),
            });
        }
    }
    if let Some(offset) = hub.clock_offset_ms.filter(|offset| offset.unsigned_abs() > CLOCK_TOLERANCE_MS) {
        let side = if offset > 0 { "behind" } else { "ahead of" };
        _ = write!(text, "; this host's clock is {} {side} the hub's", duration(offset.unsigned_abs()));
    }
    text
}

fn polls(failed: u32) -> String {
    if failed == 1 { "1 poll failed".to_owned() } else { format!("{failed} polls failed") }
}

/// What runs, and what should when that is something else.
fn version(assignment: &Assignment) -> String {
    let name = |version: &Option<String>, key: &Option<PackagesKey>| match (version, key) {
        (Some(version), _) => version.clone(),
        (None, Some(key)) => short(key),
        (None, None) => "-".to_owned(),
    };
    let running = name(&assignment.running_version, &assignment.running);
    if assignment.running == assignment.desired || assignment.desired.is_none() {
        return running;
    }
    let mut desired = name(&assignment.desired_version, &assignment.desired);
    if desired == running {
        // The same version in other packages: the configuration differs, or the build does.
        desired = name(&None, &assignment.desired);
    }
    format!("{running} (desired {desired})")
}

/// As much of a key as a person compares.
pub fn short(key: &PackagesKey) -> String {
    key.to_string().chars().take(10).collect()
}

/// One line: its beginning if it is long, `why` has the whole.
fn reason(assignment: &Assignment) -> String {
    const MOST: usize = 160;
    let mut parts = Vec::new();
    match (&assignment.reason, &assignment.message) {
        (Some(reason), Some(message)) => parts.push(format!("{reason}: {message}")),
        (Some(reason), None) => parts.push(reason.clone()),
        _ => {}
    }
    parts.extend(assignment.under_way.clone());
    parts.extend(assignment.drift.as_ref().map(|drift| format!("drift: {drift}")));
    if assignment.held {
        parts.push("held".to_owned());
    }
    let line = parts.join("; ").replace(['\n', '\t'], " ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}… (kedge-agent why {})", &line[..end], assignment.name),
        None => line,
    }
}

#[cfg(test)]
mod tests;
