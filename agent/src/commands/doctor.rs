//! `kedge-agent doctor`: what is wrong with this host as an agent sees it, each with the way out. Called by `main`. Each module of
//! checks returns findings; nothing is changed.

#[cfg(feature = "host")]
mod apt;
mod clock;
mod disk;
mod hub;
mod ledgers;
mod service;

use std::fmt::Write as _;

use serde::Serialize;

use super::error::{CommandError, Exit};
use super::output::{Format, show};
use crate::clock::{Clock as _, SystemClock};
use crate::config::Config;
use crate::overview::Overview;
use crate::paths::Paths;

/// Check this host for problems, and show how to fix them.
///
/// Checks the clock, the disk, the hub, the certificate, the agent's own files and service, apt's sources and leftover locks.
/// Works without the daemon; without a network, the unreachable hub is one of the problems. Nothing is changed.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  What is wrong here?
    sudo kedge-agent doctor

  Only the problems, for a script:
    sudo kedge-agent doctor -o json | jq '.[] | select(.problem)'

Exit codes: 0 no problem, 1 the command failed, 2 wrong usage, 3 problems were found.")]
pub struct DoctorArgs {
    /// How to show it
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding {
    what: &'static str,
    problem: bool,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    way_out: Option<String>,
}

pub fn run(args: &DoctorArgs, paths: &Paths) -> Result<Exit, CommandError> {
    // Also says that root is needed.
    let overview = Overview::read(paths)?;
    let now = SystemClock.now();
    let mut findings = vec![joined(&overview)];
    findings.extend(service::check(paths, &overview));
    findings.push(clock::check(&overview.hub, now));
    findings.extend(hub::check(paths, now));
    findings.extend(disk::check(paths));
    findings.extend(ledgers::check(paths));
    findings.extend(settings(paths));
    #[cfg(feature = "host")]
    findings.extend(apt::check(paths));
    show(args.output, &findings, || text(&findings))?;
    let problem = findings.iter().any(|finding| finding.problem);
    Ok(if problem { Exit::Findings } else { Exit::Success })
}

fn joined(overview: &Overview) -> Finding {
    match &overview.cluster {
        Some(cluster) => Finding::ok("joined", format!("as {} to {}", cluster.id, cluster.hub)),
        None => Finding::problem(
            "joined",
            "this host hasn't joined a hub",
            "kedge-agent join --token-file FILE, or put a token into /etc/kedge/join-token",
        ),
    }
}

fn settings(paths: &Paths) -> Option<Finding> {
    let error = Config::load(None, paths).err()?;
    let way_out = "fix the file: the agent doesn't start with it, while what runs continues";
    Some(Finding::problem("settings", error.to_string(), way_out))
}

fn text(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.what.len()).max().unwrap_or(0);
    let mut text = String::new();
    for finding in findings {
        let word = if finding.problem { "problem" } else { "ok" };
        let mut lines = finding.message.trim_end().lines();
        _ = writeln!(text, "{word:7}  {:width$}  {}", finding.what, lines.next().unwrap_or_default());
        let gap = " ".repeat(9 + width + 2);
        lines.for_each(|line| _ = writeln!(text, "{gap}{line}"));
        if let Some(way_out) = &finding.way_out {
            _ = writeln!(text, "{gap}→ {way_out}");
        }
    }
    let problems = findings.iter().filter(|finding| finding.problem).count();
    _ = match problems {
        0 => writeln!(text, "no problems"),
        1 => writeln!(text, "1 problem"),
        _ => writeln!(text, "{problems} problems"),
    };
    text
}

impl Finding {
    fn ok(what: &'static str, message: impl Into<String>) -> Finding {
        Finding { what, problem: false, message: message.into(), way_out: None }
    }

    fn problem(what: &'static str, message: impl Into<String>, way_out: impl Into<String>) -> Finding {
        Finding { what, problem: true, message: message.into(), way_out: Some(way_out.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_stand_with_their_way_out_and_are_counted() {
        let findings = [
            Finding::ok("clock", "within 1 s of the hub's"),
            Finding::problem("disk", "3 MB are free\nof 8 GB", "make room"),
        ];
        insta::assert_snapshot!(text(&findings), @r"
        ok       clock  within 1 s of the hub's
        problem  disk   3 MB are free
                        of 8 GB
                        → make room
        1 problem
        ");
    }
}
