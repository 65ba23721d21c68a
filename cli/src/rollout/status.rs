//! `kedge rollout status` and `watch`: the one question, once or until it is answered with yes.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;

use super::SelectorArgs;
use crate::error::{Exit, UsageError};
use crate::get::columns::text;
use crate::hub::{Hub, HubError};
use crate::output::{Format, Table, harmless, print_json, print_text, print_yaml, say};

/// Show how many of the targeted clusters have it
///
/// One line answers, from counts of the exact packages: how many converged, are on the way, failed and why, are offline since
/// when, and how many it isn't for. It exits with 0 only when that is complete, else with 3. Whether offline clusters leave it
/// complete is set in the policy, and the answer says so.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge rollout status -e prod
  kedge rollout status -e prod --workload shop --ring canary
  kedge rollout status 12 -o json

  In a pipeline: wait until everybody has this commit, at most an hour:
    kedge rollout status -e prod --source-commit $(git rev-parse HEAD) --wait --timeout 1h")]
pub struct StatusArgs {
    #[command(flatten)]
    question: QuestionArgs,

    /// Wait until it is complete, or can't become so by itself; progress goes to stderr
    #[arg(long)]
    wait: bool,

    /// With --wait: give up after so long, and exit with 3
    #[arg(long, value_name = "DURATION", requires = "wait")]
    timeout: Option<String>,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,
}

/// Follow it: print the answer each time it changes, until it is complete
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

    /// What brings this commit of an application's source
    #[arg(long, value_name = "SHA")]
    source_commit: Option<String>,

    /// What brings this commit of the control plane's main
    #[arg(long, value_name = "SHA", conflicts_with = "source_commit")]
    main_commit: Option<String>,
}

/// The hub answers from counts: asking each second costs it nothing.
const EVERY: Duration = Duration::from_secs(1);
/// Cells of the bar on a terminal.
const BAR: usize = 24;

pub fn status(hub: &Hub, args: &StatusArgs) -> Result<Exit> {
    let timeout = args.timeout.as_deref().map(duration).transpose()?;
    let mut answer = args.question.ask(hub)?;
    if args.wait {
        let mut progress = Progress::new();
        let until = timeout.map(|timeout| Instant::now() + timeout);
        while !is_settled(&answer) {
            progress.show(&answer);
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
        Format::Json => print_json(&answer)?,
        Format::Yaml => print_yaml(&answer)?,
        Format::Text => print_text(&told(&answer))?,
    }
    Ok(exit(&answer))
}

pub fn watch(hub: &Hub, args: &WatchArgs) -> Result<Exit> {
    let mut answer = args.question.ask(hub)?;
    let mut shown = String::new();
    loop {
        let headline = text(&answer["headline"]);
        // A program also hears that it is over when the numbers stay; a person sees the same line once.
        let news = match args.output {
            Format::Text => headline.clone(),
            Format::Json | Format::Yaml => format!("{headline} {}", is_settled(&answer)),
        };
        if news != shown {
            match args.output {
                Format::Text => print_text(&format!("{headline}\n"))?,
                Format::Json => print_text(&format!("{answer}\n"))?,
                Format::Yaml => {
                    print_text("---\n")?;
                    print_yaml(&answer)?;
                }
            }
            shown = news;
        }
        if is_settled(&answer) {
            return Ok(exit(&answer));
        }
        std::thread::sleep(EVERY);
        answer = args.question.ask_patiently(hub, answer)?;
    }
}

impl QuestionArgs {
    fn ask(&self, hub: &Hub) -> Result<Value> {
        let parameters = [
            ("rollout", self.rollout.map(|id| id.to_string())),
            ("environment", self.selector.environment.clone()),
            ("workload", self.selector.workload.clone()),
            ("clusterType", self.selector.cluster_type.clone()),
            ("ring", self.ring.clone()),
            ("sourceCommit", self.source_commit.clone()),
            ("mainCommit", self.main_commit.clone()),
        ];
        Ok(hub.get(&["rollout-status"], &parameters)?.document)
    }

    /// A restart of the hub doesn't end the wait.
    fn ask_patiently(&self, hub: &Hub, before: Value) -> Result<Value> {
        match self.ask(hub) {
            Err(error) if error.downcast_ref::<HubError>().is_some_and(HubError::is_unreachable) => Ok(before),
            answer => answer,
        }
    }
}

/// Complete, or nothing but a person makes it so.
fn is_settled(answer: &Value) -> bool {
    answer["complete"] == true || answer["over"] == true
}

fn exit(answer: &Value) -> Exit {
    if answer["complete"] == true { Exit::Success } else { Exit::LeftOut }
}

fn duration(text: &str) -> Result<Duration> {
    kedge_model::quantity::parse_duration(text)
        .map_err(|error| UsageError::new(format!("--timeout: {error}"), "such as 90s, 30m or 2h").into())
}

/// The sentence, then a line for each assignment when there are several, and what it waits for.
fn told(answer: &Value) -> String {
    let mut out = format!("{}\n", text(&answer["headline"]));
    let lines: Vec<&Value> = answer["lines"].as_array().into_iter().flatten().collect();
    if lines.len() > 1 {
        let mut table = Table::default();
        lines.iter().for_each(|line| table.row(line_of(line)));
        out.push_str(&table.to_text("  "));
    }
    for line in &lines {
        let pinned: Vec<String> = line["pinned"].as_array().into_iter().flatten().map(text).collect();
        if !pinned.is_empty() {
            let place = format!("{}/{}", text(&line["clusterType"]), text(&line["assignment"]));
            out.push_str(&format!("  {place} is pinned in {}\n", pinned.join(", ")));
        }
    }
    for rollout in answer["rollouts"].as_array().into_iter().flatten() {
        out.push_str(&format!(
            "rollout {} of {} in {} ({} {}) is {}: {}\n",
            text(&rollout["id"]),
            text(&rollout["lane"]),
            text(&rollout["environment"]),
            super::list::commit(rollout),
            text(&rollout["subject"]),
            text(&rollout["state"]),
            super::list::rings(rollout),
        ));
    }
    let headline = text(&answer["headline"]);
    for note in answer["notes"].as_array().into_iter().flatten().map(text) {
        if !headline.contains(&note) {
            out.push_str(&format!("  {note}\n"));
        }
    }
    out
}

fn line_of(line: &Value) -> Vec<String> {
    let mut words = vec![format!("{} converged", text(&line["converged"]))];
    for (field, word) in
        [("converging", "converging"), ("failed", "failed"), ("waiting", "waiting"), ("offline", "offline")]
    {
        if line[field].as_u64().unwrap_or_default() > 0 {
            words.push(format!("{} {word}", text(&line[field])));
        }
    }
    if line["notYet"].as_u64().unwrap_or_default() > 0 {
        words.push(format!("{} in rings that wait", text(&line["notYet"])));
    }
    if line["pinnedApart"].as_u64().unwrap_or_default() > 0 {
        words.push(format!("{} pinned to other content", text(&line["pinnedApart"])));
    }
    let version = match line["version"].as_str() {
        Some(version) => format!(" {version}"),
        None => String::new(),
    };
    vec![
        text(&line["environment"]),
        format!("{}/{}{version}", text(&line["clusterType"]), text(&line["assignment"])),
        format!("{}:", text(&line["targeted"])),
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

    fn show(&mut self, answer: &Value) {
        let headline = text(&answer["headline"]);
        if headline == self.shown {
            return;
        }
        if self.terminal {
            let number =
                |field: &str| usize::try_from(answer[field].as_u64().unwrap_or_default()).unwrap_or(usize::MAX);
            let (done, all) = (number("converged"), number("targeted").max(1));
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
    use serde_json::json;

    use super::*;

    fn line(assignment: &str, converged: u64, offline: u64) -> Value {
        json!({"environment": "prod", "clusterType": "drone", "assignment": assignment, "workload": "shop", "targeted": 3,
            "converged": converged, "converging": 0, "failed": 0, "waiting": 0, "offline": offline, "notYet": 0})
    }

    #[test]
    fn one_assignment_is_one_line_and_several_are_listed() {
        let headline = "3 of 5: 3 converged; 2 not targeted; complete";
        let one = json!({"headline": headline, "complete": true, "lines": [line("shop-line", 3, 0)], "notes": []});
        assert_eq!(told(&one), format!("{headline}\n"));
        assert_eq!(exit(&one), Exit::Success);
        let two = json!({"headline": "6 of 6 placements: 5 converged, 1 offline; not complete", "complete": false,
            "lines": [line("shop-line", 3, 0), line("shop-store", 2, 1)], "notes": ["rollout 7: ring rest: 5m of 10m soaked"]});
        assert_eq!(
            told(&two),
            "6 of 6 placements: 5 converged, 1 offline; not complete\n  prod  drone/shop-line   3:  3 converged\n  \
             prod  drone/shop-store  3:  2 converged, 1 offline\n  rollout 7: ring rest: 5m of 10m soaked\n"
        );
        assert_eq!(exit(&two), Exit::LeftOut);
        let mut pinned = line("shop-line", 1, 0);
        pinned["pinnedApart"] = json!(2);
        assert_eq!(line_of(&pinned)[3], "1 converged, 2 pinned to other content");
    }

    #[test]
    fn what_cannot_become_complete_by_itself_is_not_waited_for() {
        assert!(is_settled(&json!({"complete": false, "over": true})));
        assert!(!is_settled(&json!({"complete": false, "over": false})));
    }
}
