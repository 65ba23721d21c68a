//! `kedge-agent logs`: what an assignment's units wrote to the journal, with the agent's own lines about it. Called by `main`.

use std::collections::{BTreeSet, VecDeque};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use super::error::{CommandError, Exit};
use super::output::{harmless, print, time};
use crate::overview::Overview;
use crate::paths::Paths;
use crate::record::Record;
use kedge_model::wire::Timestamp;

/// Show the log of an assignment.
///
/// Everything that its units wrote to the journal, together with the agent's own lines about it, in the order of time.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  What did it say last?
    kedge-agent logs camera-line

  Watch it while it is changed:
    kedge-agent logs camera-line -f

  The last thousand lines:
    kedge-agent logs camera-line -n 1000")]
pub struct LogsArgs {
    /// Its name, as status shows it
    assignment: String,
    /// Follow new lines
    #[arg(short, long)]
    follow: bool,
    /// How many of the last lines
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 50)]
    lines: usize,
}

/// The agent's own unit; of its lines only those about the assignment are shown.
const AGENT: &str = "kedge-agent.service";
/// How far back a quiet assignment is looked for among the agent's lines.
const MOST_READ: usize = 200_000;

pub fn run(args: &LogsArgs, paths: &Paths) -> Result<Exit, CommandError> {
    let overview = Overview::read(paths)?;
    let name = overview.find(&args.assignment)?.name.clone();
    if !paths.is_host() {
        return Err(CommandError::refused("below --root there are no units, and no journal", ""));
    }
    let units = units(overview.records.get(&name));
    let matches = arguments(&units);
    let mut kept = VecDeque::new();
    let mut cursor = None;
    let mut reader = journal(&matches, &["--reverse"])?;
    for line in reader.lines.by_ref().take(MOST_READ) {
        let entry: Value = serde_json::from_str(&line?).unwrap_or_default();
        cursor = cursor.or_else(|| entry["__CURSOR"].as_str().map(str::to_owned));
        if kept.len() == args.lines {
            break;
        }
        kept.extend(concerns(&entry, &name).then(|| shown(&entry)));
    }
    reader.end();
    if kept.is_empty() && !args.follow {
        eprintln!("the journal has no line about {name} ({})", list(&units));
    }
    kept.iter().rev().try_for_each(|line| print(line))?;
    if args.follow { follow(&name, &matches, cursor.as_deref()) } else { Ok(Exit::Success) }
}

/// Goes on behind the last entry that was seen, so that none is lost in between. Ends with the journal's program.
fn follow(name: &str, matches: &[String], cursor: Option<&str>) -> Result<Exit, CommandError> {
    let after = cursor.map(|cursor| format!("--after-cursor={cursor}"));
    let mut options = vec!["--follow", "--no-tail"];
    match &after {
        Some(after) => options.push(after),
        None => options.push("--since=now"),
    }
    let reader = journal(matches, &options)?;
    for line in reader.lines {
        let entry: Value = serde_json::from_str(&line?).unwrap_or_default();
        if concerns(&entry, name) {
            print(&shown(&entry))?;
        }
    }
    Ok(Exit::Success)
}

#[derive(Debug)]
struct Reader {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Reader {
    /// Enough was read.
    fn end(mut self) {
        drop(self.lines);
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn journal(matches: &[String], options: &[&str]) -> Result<Reader, CommandError> {
    let mut command = Command::new("journalctl");
    command.args(["--no-pager", "--quiet", "--output=json"]).args(options).args(matches);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let failed = |source| CommandError::failed("`journalctl` can't be started; the log is systemd's journal", source);
    let mut child = command.spawn().map_err(failed)?;
    match child.stdout.take() {
        Some(stdout) => Ok(Reader { child, lines: BufReader::new(stdout).lines() }),
        None => Err(CommandError::refused("`journalctl` has no output", "")),
    }
}

fn units(record: Option<&Record>) -> BTreeSet<String> {
    let Some(record) = record else { return BTreeSet::new() };
    let wanted = |transaction: &Option<crate::record::Transaction>| {
        transaction.as_ref().and_then(|transaction| transaction.wanted.clone()).map(|wanted| wanted.goal)
    };
    let goals = [
        record.running.as_ref().map(|running| running.goal.clone()),
        wanted(&record.transaction),
        wanted(&record.last),
    ];
    goals.into_iter().flatten().flat_map(|goal| goal.units).map(|unit| unit.name).collect()
}

/// What systemd said of a unit counts too: that it started, that it was killed.
fn arguments(units: &BTreeSet<String>) -> Vec<String> {
    let own = units.iter().map(|unit| format!("--unit={unit}"));
    own.chain([format!("--unit={AGENT}")]).collect()
}

fn concerns(entry: &Value, name: &str) -> bool {
    if entry["_SYSTEMD_UNIT"] != AGENT && entry["UNIT"] != AGENT {
        return true;
    }
    let message = text(&entry["MESSAGE"]);
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    message.match_indices(name).any(|(start, _)| {
        let (before, after) = (message[..start].chars().next_back(), message[start + name.len()..].chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(|c| is_part(c) && c != '.')
    })
}

fn shown(entry: &Value) -> String {
    let micros = entry["__REALTIME_TIMESTAMP"].as_str().and_then(|at| at.parse::<i64>().ok()).unwrap_or_default();
    let unit = [&entry["UNIT"], &entry["_SYSTEMD_UNIT"], &entry["SYSLOG_IDENTIFIER"]];
    let unit = unit.iter().find_map(|unit| unit.as_str()).unwrap_or("-");
    let line = format!("{} {unit}: {}\n", time(Timestamp(micros / 1000)), text(&entry["MESSAGE"]));
    harmless(&line).into_owned()
}

/// A message that isn't UTF-8 comes as a list of bytes.
fn text(message: &Value) -> String {
    match message {
        Value::String(text) => text.clone(),
        Value::Array(bytes) => {
            let bytes: Vec<u8> = bytes.iter().filter_map(|byte| u8::try_from(byte.as_u64()?).ok()).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        _ => String::new(),
    }
}

fn list(units: &BTreeSet<String>) -> String {
    match units.is_empty() {
        true => "it has no units".to_owned(),
        false => units.iter().cloned().collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn of_the_agents_lines_only_those_about_the_assignment_are_shown() {
        let agent = |message: &str| concerns(&json!({"_SYSTEMD_UNIT": AGENT, "MESSAGE": message}), "camera");
        assert!(agent("applied assignment=camera version=1.2"));
        assert!(agent("assignment=\"camera\""));
        assert!(agent("started camera.service"));
        assert!(!agent("applied assignment=camera-line"));
        assert!(!agent("polled"));
        assert!(concerns(&json!({"_SYSTEMD_UNIT": "camera.service", "MESSAGE": "x"}), "camera"));
    }

    #[test]
    fn a_line_is_shown_with_its_time_and_unit_and_without_escapes() {
        let entry = json!({"__REALTIME_TIMESTAMP": "1000000000000000", "_SYSTEMD_UNIT": "a.service", "MESSAGE": [27, 104, 105]});
        assert_eq!(shown(&entry), "2001-09-09 01:46:40Z a.service: \u{fffd}hi\n");
    }
}
