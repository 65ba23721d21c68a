//! systemd units: one question for the state of all of them, and the steps that change one. Everything goes through `systemctl` with a
//! time limit. The host applier calls it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::command::{self, CommandError, Output};
use crate::observed::UnitState;
use crate::record::Failure;
use crate::step::Step;
use crate::trace::Tracer;

#[derive(Clone, Copy, Debug, Default)]
pub struct Units;

/// systemd answers from memory.
const LOOK_LIMIT: Duration = Duration::from_secs(30);
/// Above systemd's own 90 s for a start or a stop, with room for a unit that asks for more.
const CHANGE_LIMIT: Duration = Duration::from_secs(300);
/// So many units are asked for in one call: a command line has a limit.
const AT_ONCE: usize = 100;
/// What `systemctl` says of a unit that it doesn't know.
const NOT_LOADED: i32 = 5;
const PROPERTIES: &str = "--property=LoadState,UnitFileState,ActiveState,FragmentPath,SourcePath";

impl Units {
    /// The state of each unit, in a call for all of them.
    pub fn look(&self, wanted: &BTreeSet<String>) -> Result<BTreeMap<String, UnitState>, Failure> {
        let names: Vec<&str> = wanted.iter().map(String::as_str).collect();
        let mut found = BTreeMap::new();
        for names in names.chunks(AT_ONCE) {
            let mut arguments = vec!["show", PROPERTIES, "--"];
            arguments.extend(names);
            let output = systemctl(&arguments, LOOK_LIMIT)?;
            if !output.ok() {
                return Err(Failure::new("UnitFailed", format!("systemctl show failed: {}", output.text())));
            }
            let states = parse(&output.stdout);
            if states.len() != names.len() {
                let message = format!("systemctl told of {} units instead of {}", states.len(), names.len());
                return Err(Failure::new("UnitFailed", message));
            }
            found.extend(names.iter().map(|name| (*name).to_owned()).zip(states));
        }
        Ok(found)
    }

    /// The steps of units.
    pub fn execute(&self, step: &Step, trace: &mut Tracer<'_>) -> Result<(), Failure> {
        let (verb, name) = match step {
            Step::ReloadUnits => ("daemon-reload", ""),
            Step::EnableUnit { name } => ("enable", name.as_str()),
            Step::DisableUnit { name } => ("disable", name.as_str()),
            Step::StartUnit { name } => ("start", name.as_str()),
            Step::StopUnit { name } => ("stop", name.as_str()),
            Step::RestartUnit { name } => ("restart", name.as_str()),
            _ => return Err(Failure::new("Unsupported", "this isn't a step of units")),
        };
        let line = trace.begin(format!("systemctl {verb} {name}").trim_end());
        let done = match verb {
            "disable" | "stop" => gone_is_fine(&[verb, "--", name], name),
            "start" | "restart" => start(verb, name),
            "daemon-reload" => change(&[verb], "systemd itself"),
            _ => change(&[verb, "--", name], name),
        };
        match done {
            Ok(output) => {
                trace.end(line, &output);
                Ok(())
            }
            Err((failure, output)) => {
                trace.fail(line, &failure, &output);
                Err(failure)
            }
        }
    }
}

/// What the command said, or why it failed with what it said.
type Done = Result<String, (Failure, String)>;

fn change(arguments: &[&str], name: &str) -> Done {
    let output = systemctl(arguments, CHANGE_LIMIT).map_err(|failure| (failure, String::new()))?;
    match output.ok() {
        true => Ok(output.text()),
        false => {
            let message = format!("`systemctl {}` failed for {name}: {}", arguments[0], first_line(&output));
            Err((Failure::new("UnitFailed", message), output.text()))
        }
    }
}

/// A unit that systemd doesn't know is neither enabled nor running.
fn gone_is_fine(arguments: &[&str], name: &str) -> Done {
    let done = change(arguments, name);
    if done.is_err() {
        let state = Units.look(&BTreeSet::from([name.to_owned()]));
        if state.is_ok_and(|states| states.values().all(|state| !state.known)) {
            return Ok("systemd knows no such unit".to_owned());
        }
    }
    done
}

/// A unit that gave up after too many failures is started as if it hadn't; one that doesn't start says why.
fn start(verb: &str, name: &str) -> Done {
    // Fails for a unit that never failed.
    _ = systemctl(&["reset-failed", "--", name], LOOK_LIMIT);
    change(&[verb, "--", name], name).map_err(|(failure, said)| {
        let status = systemctl(&["status", "--no-pager", "--full", "--lines=30", "--", name], LOOK_LIMIT);
        let status = status.map_or_else(|failure| failure.message, |output| output.text());
        (failure, format!("{said}\n{status}"))
    })
}

fn systemctl(arguments: &[&str], limit: Duration) -> Result<Output, Failure> {
    command::run("systemctl", arguments, &[], limit).map_err(|error| match error {
        CommandError::Slow { seconds, output, .. } => Failure::new(
            "UnitFailed",
            format!("`systemctl {}` didn't end within {seconds} s: {output}", arguments.join(" ")),
        ),
        other => Failure::new("UnitFailed", other.to_string()),
    })
}

fn first_line(output: &Output) -> String {
    let text = output.text();
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    match output.status.code() {
        Some(NOT_LOADED) => format!("{line} (systemd knows no such unit)"),
        _ => line.to_owned(),
    }
}

/// Blocks of `Name=value`, one per unit in the order of the question, with an empty line between them.
fn parse(text: &str) -> Vec<UnitState> {
    let blocks = text.trim_matches('\n').split("\n\n").filter(|block| !block.trim().is_empty());
    blocks
        .map(|block| {
            let value = |name: &str| {
                let mut lines = block.lines().filter_map(|line| line.split_once('='));
                lines.find(|(key, _)| *key == name).map_or("", |(_, value)| value.trim())
            };
            let (load, file) = (value("LoadState"), value("UnitFileState"));
            let read = [value("SourcePath"), value("FragmentPath")].into_iter().find(|path| !path.is_empty());
            UnitState {
                known: !matches!(load, "not-found" | ""),
                enabled: matches!(file, "enabled" | "enabled-runtime"),
                // `indirect` and `alias` follow another unit's file.
                is_static: matches!(file, "static" | "generated" | "transient" | "indirect" | "alias"),
                masked: load == "masked" || file.starts_with("masked"),
                active: value("ActiveState").to_owned(),
                file: read.map(str::to_owned),
                deb: None,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn states_are_read_in_the_order_of_the_question() {
        let text = "ActiveState=active\nLoadState=loaded\nUnitFileState=enabled\nFragmentPath=/etc/systemd/system/a.service\nSourcePath=\n\n\
            ActiveState=inactive\nLoadState=not-found\n\n\
            ActiveState=failed\nLoadState=masked\nUnitFileState=masked\n\nActiveState=active\nLoadState=loaded\nUnitFileState=static\n\
            FragmentPath=/run/systemd/generator.late/b.service\nSourcePath=/etc/init.d/b\n";
        let states = parse(text);
        assert_eq!(states.len(), 4);
        let running = UnitState {
            known: true,
            enabled: true,
            active: "active".to_owned(),
            file: Some("/etc/systemd/system/a.service".to_owned()),
            ..UnitState::default()
        };
        assert_eq!(states[0], running);
        assert!(!states[1].known && states[1].active == "inactive");
        assert!(states[2].masked && states[2].known);
        assert!(states[3].is_static && !states[3].enabled);
        assert_eq!(states[3].file.as_deref(), Some("/etc/init.d/b"));
    }

    #[test]
    fn nothing_is_asked_for_no_units() {
        assert_eq!(Units.look(&BTreeSet::new()).unwrap(), BTreeMap::new());
    }

    proptest! {
        #[test]
        fn no_answer_panics(text in any::<String>()) {
            let _ = parse(&text);
        }
    }
}
