//! A step as a person reads it in `why`.

use crate::goal::ObjectGoal;
use crate::record::{Cause, Phase, Transaction};
use crate::step::{DebsStep, Step};

/// More objects of one step are only counted.
const SHOWN: usize = 5;

pub(super) fn step(step: &Step) -> String {
    match step {
        Step::AddUser { name, .. } => format!("add user {name}"),
        Step::RemoveUser { name } => format!("remove user {name}"),
        Step::MakeFolder { path, .. } => format!("make folder {path}"),
        Step::RemoveFolder { path } => format!("remove folder {path} if it is empty"),
        Step::PutFile { path, .. } => format!("write {path}"),
        Step::PutLink { path, .. } => format!("link {path}"),
        Step::RemovePath { path } => format!("remove {path}"),
        Step::Debs(step) => debs(step),
        Step::ReloadUnits => "reload systemd's units".to_owned(),
        Step::EnableUnit { name } => format!("enable {name}"),
        Step::DisableUnit { name } => format!("disable {name}"),
        Step::StartUnit { name } => format!("start {name}"),
        Step::StopUnit { name } => format!("stop {name}"),
        Step::RestartUnit { name } => format!("restart {name}"),
        Step::PutObjects { objects: all } => format!("apply {}", objects(all)),
        Step::RemoveObjects { objects: all } => format!("remove {}", objects(all)),
    }
}

fn objects(all: &[ObjectGoal]) -> String {
    let shown: Vec<String> = all.iter().take(SHOWN).map(|object| object.id.to_string()).collect();
    match all.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn debs(step: &DebsStep) -> String {
    let mut parts = Vec::new();
    if !step.install.is_empty() {
        let all: Vec<String> = step.install.iter().map(|deb| format!("{} {}", deb.name, deb.version)).collect();
        parts.push(format!("install {}", all.join(", ")));
    }
    if !step.remove.is_empty() {
        let all: Vec<&str> = step.remove.iter().map(|deb| deb.name.as_str()).collect();
        parts.push(format!("remove {}", all.join(", ")));
    }
    if parts.is_empty() {
        parts.push("mark debs".to_owned());
    }
    parts.join("; ")
}

pub(super) fn cause(cause: &Cause) -> String {
    match cause {
        Cause::Change => "new content".to_owned(),
        Cause::Restart => "a restart was asked for".to_owned(),
        Cause::Removal => "it is removed".to_owned(),
        Cause::Drift(what) => format!("drift: {what}"),
    }
}

/// Where a transaction was when it was interrupted, and how it goes on.
pub(super) fn interruption(transaction: &Transaction) -> String {
    let cut = "the power was cut or the agent was stopped";
    let at = |steps: &[Step]| match transaction.begun.checked_sub(1).and_then(|last| steps.get(last)) {
        Some(last) => format!("{cut} at step {} of {} ({})", transaction.begun, steps.len(), step(last)),
        None => format!("{cut} before the first step"),
    };
    match &transaction.phase {
        Phase::Forward => format!("{}; going on forward", at(&transaction.forward)),
        Phase::Health => format!("{cut} during the health checks; going on with them"),
        Phase::Back(_) => format!("{} during the rollback; continuing it", at(&transaction.back)),
    }
}
