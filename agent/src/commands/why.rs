//! `kedge-agent why`: an assignment's last transaction step by step, what runs, and what comes next. Called by `main`.

use std::fmt::Write as _;

use kedge_model::wire::Timestamp;
use serde::Serialize;

use super::error::{CommandError, Exit};
use super::output::{Format, ago, show, time, time_of_day, took};
use super::status::short;
use crate::clock::{Clock as _, SystemClock};
use crate::holds::Writer;
use crate::overview::{Assignment, Hold, Overview};
use crate::paths::Paths;
use crate::record::{Cause, Failure, Outcome, Phase, Record, Running, Traced, Transaction};
use crate::tasks;

/// Explain the state of an assignment, step by step.
///
/// Shows what is desired, what runs, and the current or last transaction: why it began, each step with its time and the output of
/// commands, how it ended, and when the next try is. It also shows power cuts.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  It failed: which steps ran, and what was their output?
    kedge-agent why camera-line

  The steps alone, as JSON:
    kedge-agent why camera-line -o json | jq '.transaction.trace[].what'

Exit codes: 0 success, 1 the command failed or there is no such assignment, 2 wrong usage.")]
pub struct WhyArgs {
    /// Its name, as status shows it
    assignment: String,
    /// How to show it
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// What is told of one assignment.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Story<'o> {
    #[serde(flatten)]
    assignment: &'o Assignment,
    holds: Vec<&'o Hold>,
    /// Why nothing happens now, and what would change that.
    next: String,
    /// The one under way, else the last.
    transaction: Option<&'o Transaction>,
}

pub fn run(args: &WhyArgs, paths: &Paths) -> Result<Exit, CommandError> {
    let overview = Overview::read(paths)?;
    let now = SystemClock.now();
    let story = tell(&overview, &args.assignment, now)?;
    show(args.output, &story, || text(&overview, &story, now))?;
    Ok(Exit::Success)
}

fn tell<'o>(overview: &'o Overview, name: &str, now: Timestamp) -> Result<Story<'o>, CommandError> {
    let assignment = overview.find(name)?;
    let record = overview.records.get(&assignment.name);
    let transaction = record.and_then(|record| record.transaction.as_ref().or(record.last.as_ref()));
    let holds = overview.holds.iter().filter(|hold| hold.assignment == assignment.name).collect();
    let next = next(overview, assignment, record, now);
    Ok(Story { assignment, holds, next, transaction })
}

fn next(overview: &Overview, assignment: &Assignment, record: Option<&Record>, now: Timestamp) -> String {
    let begins = if overview.daemon.is_some() { "" } else { " once the agent runs" };
    if let Some(hold) = overview.holds.iter().find(|hold| hold.assignment == assignment.name) {
        let lift = match hold.writer {
            Writer::Hub => format!("kedge unhold CLUSTER {}, at the hub", assignment.name),
            Writer::Technician => format!("sudo kedge-agent unhold {}", assignment.name),
            Writer::Peer(_) => {
                let (own, name) = (overview.cluster.as_ref().map_or("NAME", |own| &own.name), &assignment.name);
                format!(
                    "kedge-agent unhold --cluster {own} {name} there, or sudo kedge-agent unhold {name} --peers here"
                )
            }
        };
        return format!("it is held by {}: nothing is changed here until {lift}", hold.by);
    }
    if record.is_some_and(|record| record.transaction.is_some()) {
        return match overview.daemon {
            Some(_) => "a transaction is under way".to_owned(),
            None => "a transaction was interrupted: it continues when the agent starts".to_owned(),
        };
    }
    // A repair or a removal that failed is what comes next, whatever was tried before.
    let upkeep = record.and_then(|record| record.upkeep.as_ref());
    match upkeep.or_else(|| record?.failed.as_ref()) {
        Some(attempt) if attempt.failure.passes || upkeep.is_some() => {
            let what = match upkeep.is_some() {
                true => format!("{}: {}", attempt.failure.reason, attempt.failure.message),
                false => format!("{} is a cause that passes", attempt.failure.reason),
            };
            let tried = format!("tried {}, last {}", times(attempt.tries), ago(attempt.at, now));
            match tasks::wait(&assignment.name, attempt, now) {
                Some(until) => format!("{what}: tried again at {}{begins} ({tried})", time(until)),
                None => format!("{what}: it is tried again now{begins} ({tried})"),
            }
        }
        Some(attempt) => format!(
            "the same packages ({}) aren't tried again: new content, or `kedge reapply` at the hub, begins the next try",
            short(&attempt.key)
        ),
        None if assignment.running == assignment.desired => "nothing: what is desired runs".to_owned(),
        None if assignment.desired.is_none() => "nothing is desired of it any more".to_owned(),
        None => format!("what is desired is fetched and applied{begins}"),
    }
}

fn times(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn text(overview: &Overview, story: &Story<'_>, now: Timestamp) -> String {
    let assignment = story.assignment;
    let since = assignment.since.map(|since| format!(" since {} ({})", time(since.0), ago(since.0, now)));
    let mut text = format!("{} is {}{}\n", assignment.name, assignment.condition, since.unwrap_or_default());
    if let Some(reason) = &assignment.reason {
        let message = assignment.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
        text.push_str(&indented("  reason   ", &format!("{reason}{message}")));
    }
    let record = overview.records.get(&assignment.name);
    let running = record.and_then(|record| record.running.as_ref());
    _ = writeln!(text, "  running  {}", running.map_or("nothing of it".to_owned(), |running| described(running, true)));
    let wanted = story.transaction.and_then(|transaction| transaction.wanted.as_deref());
    let wanted = wanted.filter(|wanted| Some(wanted.key) == assignment.desired).or(running);
    let desired = match (assignment.desired, wanted) {
        (None, _) => "nothing".to_owned(),
        (Some(key), Some(wanted)) if wanted.key == key => described(wanted, false),
        (Some(key), _) => {
            let version = assignment.desired_version.clone().unwrap_or_else(|| "no version".to_owned());
            format!("{version}, packages {}", short(&key))
        }
    };
    _ = writeln!(text, "  desired  {desired}");
    if let Some(drift) = &assignment.drift {
        text.push_str(&indented("  drift    ", drift));
    }
    text.push_str(&indented("  next     ", &story.next));
    for hold in &story.holds {
        let why = if hold.reason.is_empty() { String::new() } else { format!(": {}", hold.reason) };
        _ = writeln!(text, "  held     by {} ({}) since {}{why}", hold.by, hold.writer, time(hold.since.0));
    }
    match story.transaction {
        Some(transaction) => _ = write!(text, "\n{}", steps(transaction, now)),
        None => text.push_str("\nNo transaction is remembered.\n"),
    }
    text
}

fn described(running: &Running, since: bool) -> String {
    let version = running.packages.version.clone().unwrap_or_else(|| "no version".to_owned());
    let mut text = format!("{version}, packages {}, generation {}", short(&running.key), running.generation);
    if since {
        _ = write!(text, ", since {}", time(running.since));
    }
    text
}

fn steps(transaction: &Transaction, now: Timestamp) -> String {
    let cause = match &transaction.cause {
        Cause::Change => "new packages".to_owned(),
        Cause::Restart => "a restart was asked for at the hub".to_owned(),
        Cause::Removal => "it is no longer desired".to_owned(),
        Cause::Drift(what) => format!("drift: {what}"),
    };
    let mut text = format!("Transaction {}: {cause}\n", transaction.number);
    let end = match transaction.ended {
        Some(ended) => format!(", took {}", took(u64::try_from(ended.0 - transaction.started.0).unwrap_or(0))),
        None => " and hasn't ended".to_owned(),
    };
    _ = writeln!(text, "  started {} ({}){end}", time(transaction.started), ago(transaction.started, now));
    transaction.trace.iter().for_each(|line| text.push_str(&step(line)));
    text.push_str(&indented("  outcome: ", &outcome(transaction)));
    text
}

fn step(line: &Traced) -> String {
    let mut text = format!("  {}  {:>6}  {}\n", time_of_day(line.at), took(line.took_ms), line.what);
    if let Some(why) = &line.failed {
        text.push_str(&indented("                     FAILED ", why));
    }
    for output in line.output.lines() {
        text.push_str(format!("                     | {output}").trim_end());
        text.push('\n');
    }
    text
}

fn outcome(transaction: &Transaction) -> String {
    let why = |failure: &Failure| format!("{}: {}", failure.reason, failure.message);
    match (&transaction.outcome, &transaction.phase) {
        (Some(Outcome::Committed), _) => "committed".to_owned(),
        (Some(Outcome::RolledBack(failure)), _) => {
            format!("rolled back, what was there before is there again; {}", why(failure))
        }
        (Some(Outcome::RollbackFailed { first, back }), _) => {
            format!("the rollback failed too; a person must fix the host\nfirst {}\nthen {}", why(first), why(back))
        }
        (Some(Outcome::Left(failure)), _) => format!("left as it is (rollback: never); {}", why(failure)),
        (Some(Outcome::Refused(failure)), _) => format!("refused before any change; {}", why(failure)),
        (None, Phase::Forward) => {
            format!("none yet, {} of {} steps begun", transaction.begun, transaction.forward.len())
        }
        (None, Phase::Health) => "none yet, all steps are done and health checks must hold".to_owned(),
        (None, Phase::Back(failure)) => {
            let (begun, all) = (transaction.begun, transaction.back.len());
            format!("none yet, going back, {begun} of {all} steps begun; {}", why(failure))
        }
    }
}

/// Further lines stand below the first.
fn indented(head: &str, text: &str) -> String {
    let gap = " ".repeat(head.chars().count());
    let mut out = String::new();
    for (number, line) in text.trim_end().lines().enumerate() {
        let lead = if number == 0 { head } else { &gap };
        out.push_str(format!("{lead}{line}").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests;
