//! The agent as a service of this host: enabled, running once, and no token left lying about. Part of `doctor`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::Finding;
use crate::command;
use crate::identity::machine;
use crate::overview::Overview;
use crate::paths::Paths;

const UNIT: &str = "kedge-agent.service";
const LIMIT: Duration = Duration::from_secs(10);

pub fn check(paths: &Paths, overview: &Overview) -> Vec<Finding> {
    let mut findings = vec![running(paths, overview)];
    if paths.is_host() {
        findings.extend(enabled());
        findings.extend(others(Path::new("/proc"), overview.daemon));
    }
    let token = paths.settings().join("join-token");
    if machine::is_of_cluster(paths) {
        findings.push(match &overview.standby {
            Some(standby) => {
                let by = standby.holder.as_deref().unwrap_or("nobody yet");
                Finding::ok("lease", format!("this agent stands by, {by} works for the cluster"))
            }
            None => Finding::ok("lease", "this agent works for the cluster"),
        });
    } else if overview.cluster.is_some() && token.exists() {
        let message = format!("{} is still there although this host has joined; it is a secret", token.display());
        findings.push(Finding::problem("join token", message, format!("sudo rm {}", token.display())));
    }
    findings
}

fn running(paths: &Paths, overview: &Overview) -> Finding {
    match overview.daemon {
        Some(pid) => Finding::ok("agent", format!("runs as process {pid}")),
        None if paths.is_host() => Finding::problem(
            "agent",
            "it isn't running; what it installed runs on without it",
            "sudo systemctl start kedge-agent; if it doesn't stay up: journalctl -u kedge-agent",
        ),
        None => Finding::problem("agent", "it isn't running", "kedge-agent run --root with this folder"),
    }
}

/// A host without systemd has nothing to enable.
fn enabled() -> Option<Finding> {
    if !Path::new("/run/systemd/system").exists() {
        return Some(Finding::problem(
            "service",
            "this host wasn't booted with systemd",
            "start kedge-agent run by what starts services here",
        ));
    }
    let answer = command::run("systemctl", &["is-enabled", UNIT], &[], LIMIT);
    let state = match &answer {
        Ok(output) => output.stdout.trim().to_owned(),
        Err(error) => return Some(Finding::problem("service", error.to_string(), "systemctl is-enabled kedge-agent")),
    };
    Some(match state.as_str() {
        "enabled" | "enabled-runtime" => Finding::ok("service", "starts at boot"),
        "masked" => Finding::problem("service", "it is masked", "sudo systemctl unmask --now kedge-agent"),
        "" | "not-found" => {
            Finding::problem("service", "there is no kedge-agent.service", "install the package kedge-agent")
        }
        _ => Finding::problem(
            "service",
            format!("it doesn't start at boot ({state})"),
            "sudo systemctl enable --now kedge-agent",
        ),
    })
}

/// Another agent on the same host, such as one below `--root`, would fight over nothing, but one without the lock does.
fn others(proc: &Path, holder: Option<u32>) -> Option<Finding> {
    let entries = fs::read_dir(proc).ok()?;
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let others: Vec<String> = pids
        .filter(|pid| Some(*pid) != holder)
        .filter(|pid| is_second(&fs::read(proc.join(pid.to_string()).join("cmdline")).unwrap_or_default()))
        .map(|pid| pid.to_string())
        .collect();
    if others.is_empty() {
        return None;
    }
    let message = format!("a second agent runs without the lock: process {}", others.join(", "));
    Some(Finding::problem("agent", message, format!("end it: sudo kill {}", others.join(" "))))
}

fn is_second(command_line: &[u8]) -> bool {
    let mut words = command_line.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let program = words.next().unwrap_or_default();
    let rest: Vec<_> = words.collect();
    program.rsplit('/').next() == Some("kedge-agent")
        && rest.iter().any(|word| word == "run")
        && !rest.iter().any(|word| word.starts_with("--root"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn only_another_daemon_of_this_host_counts_as_a_second() {
        assert!(is_second(b"/usr/bin/kedge-agent\0run\0"));
        assert!(!is_second(b"/usr/bin/kedge-agent\0status\0"));
        assert!(!is_second(b"kedge-agent\0run\0--root=/home/a\0"));
        assert!(!is_second(b"vim\0kedge-agent\0run\0"));
        assert!(!is_second(b""));
    }

    #[test]
    fn the_holder_of_the_lock_isnt_a_second_agent() {
        let proc = tempfile::tempdir().unwrap();
        for pid in ["12", "34", "self"] {
            fs::create_dir(proc.path().join(pid)).unwrap();
            fs::write(proc.path().join(pid).join("cmdline"), b"kedge-agent\0run\0").unwrap();
        }
        let finding = others(proc.path(), Some(12)).unwrap();
        assert_eq!(finding.way_out.unwrap(), "end it: sudo kill 34");
    }

    #[test]
    fn a_token_that_was_used_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        fs::create_dir_all(paths.settings()).unwrap();
        fs::write(paths.settings().join("join-token"), "x").unwrap();
        assert_eq!(check(&paths, &Overview::default()).len(), 1);
    }
}
