//! `kedge rollout status` and `watch`: the one question, once or until it is answered with yes.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use anyhow::Result;
use kedge_api::client::{Client, ClientError};
use kedge_api::rollout_status::{RolloutStatus, StatusLine};
use serde_json::Value;

use super::SelectorArgs;
use crate::error::{Exit, UsageError};
use crate::get::columns::one_line;
use crate::output::{Format, Table, harmless, print_json, print_text, print_yaml, say};

/// Show how many of the targeted clusters have a change
///
/// Prints one line, from counts of the exact packages: how many clusters are converged, converging, failed (with the reason),
/// offline (since when) or not targeted. It exits with 0 only when the rollout is complete, otherwise with 3. The policy sets
/// whether offline clusters leave it complete, and the line states it.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge rollout status -e prod
  kedge rollout status -e prod --workload shop --ring canary
  kedge rollout status 12 -o json

  In a pipeline: wait until every cluster has this commit, at most an hour:
    kedge rollout status -e prod --source-commit $(git rev-parse HEAD) --wait --timeout 1h")]
pub struct StatusArgs {
    #[command(flatten)]
    question: QuestionArgs,

    /// Wait until it is complete, or can't become so by itself; progress goes to stderr
    #[arg(long)]
    wait: bool,

    /// With --wait: give up after this time, and exit with 3
    #[arg(long, value_name = "DURATION", requires = "wait")]
    timeout: Option<String>,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,
}

/// Print the status each time it changes, until the rollout is complete
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge rollout watch -e prod --workload shop")]
pub struct WatchArgs {
    #[command(flatten)]
    question: QuestionArgs,

    /// How to print it: one line each time, or one JSON document each
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,
}

#[derive(Clone, Debug, clap::Args)]
struct QuestionArgs {
    /// A rollout's number [default: the newest of each lane that the selectors name]
    #[arg(value_name = "ROLLOUT", value_parser = crate::output::number)]
    rollout: Option<u64>,

    #[command(flatten)]
    selector: SelectorArgs,

    /// Only this ring
    #[arg(long, value_name = "NAME")]
    ring: Option<String>,

    /// The rollout of this commit of an application's source
    #[arg(long, value_name = "SHA")]
    source_commit: Option<String>,

    /// The rollout of this commit of the control plane's main
    #[arg(long, value_name = "SHA", conflicts_with = "source_commit")]
    main_commit: Option<String>,
}

/// What the hub answered, for people and for programs.
struct Asked {
    status: RolloutStatus,
    document: Value,
}

/// The hub answers from counts: asking each second costs it nothing.
const EVERY: Duration = Duration::from_secs(1);
/// Cells of the bar on a terminal.
const BAR: usize = 24;

pub fn status(hub: &Client, args: &StatusArgs) -> Result<Exit> {
    let timeout = args.timeout.as_deref().map(duration).transpose()?;
    let mut answer = args.question.ask(hub)?;
    if args.wait {
        let mut progress = Progress::new();
        let until = timeout.map(|timeout| Instant::now() + timeout);
        while !is_settled(&answer.status) {
            progress.show(&answer.status);
            if until.is_some_and(|until| Instant::now() >= until) {
                progress.end();
                let most = args.timeout.as_deref().unwrap_or_default();
                say(&format!("timed out: not complete after {most}"));
                break;
            }
            std::thread::sleep(EVERY);
            answer = args.question.ask_patiently(hub, answer)?;
        }
        progress.end();
    }
    match args.output {
        Format::Json => print_json(&answer.document)?,
        Format::Yaml => print_yaml(&answer.document)?,
        Format::Text => print_text(&told(&answer.status))?,
    }
    Ok(exit(&answer.status))
}

pub fn watch(hub: &Client, args: &WatchArgs) -> Result<Exit> {
    let mut answer = args.question.ask(hub)?;
    let mut shown = String::new();
    loop {
        let headline = one_line(&answer.status.headline);
        // A program also hears that it is over when the numbers stay; a person sees the same line once.
        let news = match args.output {
            Format::Text => headline.clone(),
            Format::Json | Format::Yaml => format!("{headline} {}", is_settled(&answer.status)),
        };
        if news != shown {
            match args.output {
                Format::Text => print_text(&format!("{headline}\n"))?,
                Format::Json => print_text(&format!("{}\n", answer.document))?,
                Format::Yaml => {
                    print_text("---\n")?;
                    print_yaml(&answer.document)?;
                }
            }
            shown = news;
        }
        if is_settled(&answer.status) {
            return Ok(exit(&answer.status));
        }
        std::thread::sleep(EVERY);
        answer = args.question.ask_patiently(hub, answer)?;
    }
}

impl QuestionArgs {
    fn ask(&self, hub: &Client) -> Result<Asked> {
        let parameters = [
            ("rollout", self.rollout.map(|id| id.to_string())),
            ("environment", self.selector.environment.clone()),
            ("workload", self.selector.workload.clone()),
            ("clusterType", self.selector.cluster_type.clone()),
            ("ring", self.ring.clone()),
            ("sourceCommit", self.source_commit.clone()),
            ("mainCommit", self.main_commit.clone()),
        ];
        let answer = hub.rollout_status(&parameters)?;
        Ok(Asked { status: answer.read()?, document: answer.document })
    }

    /// A restart of the hub doesn't end the wait.
    fn ask_patiently(&self, hub: &Client, before: Asked) -> Result<Asked> {
        match self.ask(hub) {
            Err(error) if error.downcast_ref::<ClientError>().is_some_and(ClientError::is_unreachable) => Ok(before),
            answer => answer,
        }
    }
}

/// Complete, or nothing but a person makes it so.
fn is_settled(status: &RolloutStatus) -> bool {
    status.complete || status.ended
}

fn exit(status: &RolloutStatus) -> Exit {
    if status.complete { Exit::Success } else { Exit::LeftOut }
}

fn duration(text: &str) -> Result<Duration> {
    kedge_model::quantity::parse_duration(text)
        .map_err(|error| UsageError::new(format!("--timeout: {error}"), "such as 90s, 30m or 2h").into())
}

/// The sentence, then a line for each assignment when there are several, and what it waits for.
fn told(status: &RolloutStatus) -> String {
    let headline = one_line(&status.headline);
    let mut out = format!("{headline}\n");
    if status.lines.len() > 1 {
        let mut table = Table::default();
        status.lines.iter().for_each(|line| table.row(line_of(line)));
        out.push_str(&table.to_text("  "));
    }
    for line in status.lines.iter().filter(|line| !line.pinned.is_empty()) {
        let place = format!("{}/{}", one_line(&line.cluster_type), one_line(&line.assignment));
        out.push_str(&format!("  {place} is pinned in {}\n", line.pinned.join(", ")));
    }
    for rollout in &status.rollouts {
        out.push_str(&format!(
            "rollout {} of {} in {} ({} {}) is {}: {}\n",
            rollout.id,
            one_line(&rollout.lane),
            one_line(&rollout.environment),
            super::list::commit(&rollout.cause),
            one_line(&rollout.cause.subject),
            one_line(&rollout.state),
            super::list::rings(&rollout.rings),
        ));
    }
    for note in status.notes.iter().map(|note| one_line(note)).filter(|note| !headline.contains(note.as_str())) {
        out.push_str(&format!("  {note}\n"));
    }
    out
}

fn line_of(line: &StatusLine) -> Vec<String> {
    let counts = &line.counts;
    let mut words = vec![format!("{} converged", counts.converged)];
    let others = [
        (counts.converging, "converging"),
        (counts.failed, "failed"),
        (counts.waiting, "waiting"),
        (counts.offline, "offline"),
        (line.not_yet, "in rings that wait"),
        (line.pinned_apart, "pinned to other content"),
    ];
    words.extend(others.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")));
    let version = line.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    vec![
        one_line(&line.environment),
        format!("{}/{}{version}", one_line(&line.cluster_type), one_line(&line.assignment)),
        format!("{}:", line.targeted),
        words.join(", "),
    ]
}

/// A line on stderr: rewritten on a terminal, one for each change elsewhere.
struct Progress {
    terminal: bool,
    shown: String,
}

impl Progress {
    fn new() -> Progress {
        Progress { terminal: std::io::stderr().is_terminal(), shown: String::new() }
    }

    fn show(&mut self, status: &RolloutStatus) {
        let headline = one_line(&status.headline);
        if headline == self.shown {
            return;
        }
        if self.terminal {
            let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
            let (done, all) = (number(status.counts.converged), number(status.targeted).max(1));
            let cells = BAR * done.min(all) / all;
            let bar = format!("[{}{}]", "#".repeat(cells), ".".repeat(BAR - cells));
            // Nobody left to tell when stderr fails.
            let _ = write!(std::io::stderr(), "\r\u{1b}[2K{bar} {}", harmless(&headline));
            let _ = std::io::stderr().flush();
        } else {
            say(&headline);
        }
        self.shown = headline;
    }

    fn end(&mut self) {
        if self.terminal && !self.shown.is_empty() {
            let _ = writeln!(std::io::stderr());
            self.shown.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use kedge_api::rollouts::MemberCounts;

    use super::*;

    fn line(assignment: &str, converged: u64, offline: u64) -> StatusLine {
        StatusLine {
            environment: "prod".to_owned(),
            cluster_type: "drone".to_owned(),
            assignment: assignment.to_owned(),
            workload: "shop".to_owned(),
            targeted: 3,
            counts: MemberCounts { converged, offline, ..MemberCounts::default() },
            ..StatusLine::default()
        }
    }

    #[test]
    fn one_assignment_is_one_line_and_several_are_listed() {
        let headline = "3 of 5: 3 converged; 2 not targeted; complete";
        let one = RolloutStatus {
            headline: headline.to_owned(),
            complete: true,
            lines: vec![line("shop-line", 3, 0)],
            ..RolloutStatus::default()
        };
        assert_eq!(told(&one), format!("{headline}\n"));
        assert_eq!(exit(&one), Exit::Success);
        let two = RolloutStatus {
            headline: "6 of 6 placements: 5 converged, 1 offline; not complete".to_owned(),
            lines: vec![line("shop-line", 3, 0), line("shop-store", 2, 1)],
            notes: vec!["rollout 7: ring rest: 5m of 10m soaked".to_owned()],
            ..RolloutStatus::default()
        };
        assert_eq!(
            told(&two),
            "6 of 6 placements: 5 converged, 1 offline; not complete\n  prod  drone/shop-line   3:  3 converged\n  \
             prod  drone/shop-store  3:  2 converged, 1 offline\n  rollout 7: ring rest: 5m of 10m soaked\n"
        );
        assert_eq!(exit(&two), Exit::LeftOut);
        let pinned = StatusLine { pinned_apart: 2, ..line("shop-line", 1, 0) };
        assert_eq!(line_of(&pinned)[3], "1 converged, 2 pinned to other content");
    }

    #[test]
    fn what_cannot_become_complete_by_itself_is_not_waited_for() {
        assert!(is_settled(&RolloutStatus { ended: true, ..RolloutStatus::default() }));
        assert!(!is_settled(&RolloutStatus::default()));
    }
}
