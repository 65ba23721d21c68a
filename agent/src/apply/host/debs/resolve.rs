//! What a wish means, as pure functions: what to ask of apt, and whether its answer is one that somebody asked for. A deb that would
//! be removed or downgraded unasked, or that someone else holds, refuses the whole change. Prepare calls it and does the rest.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use kedge_model::wire::Digest;

use super::apt::{Ask, Exact, is_name};
use super::simulation::Simulation;
use super::status::Status;
use super::version::{compare, is_version};
use crate::observed::DebState;
use crate::plan::debs::DebWish;
use crate::record::Failure;
use crate::trace::shorten;

/// How a deb stands, or should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stand {
    Absent,
    /// Removed; its configuration files are there.
    ConfigOnly,
    There {
        exact: Exact,
        auto: bool,
    },
}

/// One deb's part in a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub name: String,
    pub before: Stand,
    pub after: Stand,
}

/// The deb of the agent itself: no workload may name it.
const OURSELVES: &str = "kedge-agent";

/// Names and versions are such that apt takes them as names and versions, none is ours, and nobody else wants another version.
pub fn admit(wish: &DebWish) -> Result<(), Failure> {
    for deb in &wish.want {
        let (name, version) = (&deb.name, &deb.version);
        allow(name)?;
        if !is_version(version) {
            return Err(Failure::new("BadPackage", format!("`{version}` is not a version of a deb ({name})")));
        }
        if let Some((theirs, assignment)) = wish.others.get(name).filter(|(theirs, _)| theirs != version) {
            return Err(conflict(name, version, theirs, assignment));
        }
        if let Some(twice) = wish.want.iter().find(|other| other.name == *name && other.version != *version) {
            let message = format!("{name} is wanted in two versions: {version} and {}", twice.version);
            return Err(Failure::new("BadPackage", message));
        }
    }
    wish.give_back.keys().try_for_each(|name| allow(name))
}

/// Whether a step may touch this deb at all.
pub fn allow(name: &str) -> Result<(), Failure> {
    if !is_name(name) {
        return Err(Failure::new("BadPackage", format!("`{name}` is not a name of a deb")));
    }
    match name == OURSELVES || name.starts_with("kedge-agent:") {
        true => Err(Failure::new("NotAllowed", format!("{OURSELVES} is never changed by a workload"))),
        false => Ok(()),
    }
}

/// What apt is asked for; empty when every deb is as it should be. What is right already is asked for too, so that apt keeps it.
pub fn asks(wish: &DebWish, status: &Status, known: impl Fn(&str, &str) -> Option<Digest>) -> Vec<Ask> {
    let mut asks = Vec::new();
    let mut differs = false;
    let ask = |name: &str, version: &str, archive: Option<Digest>| {
        let (name, version) = (name.to_owned(), version.to_owned());
        match archive.or_else(|| known(&name, &version)) {
            Some(digest) => Ask::Archive { name, version, digest },
            None => Ask::Version { name, version },
        }
    };
    for deb in &wish.want {
        let state = status.state(&deb.name);
        if is(&state, &deb.version) {
            asks.push(Ask::Version { name: deb.name.clone(), version: deb.version.clone() });
        } else {
            differs = true;
            asks.push(ask(&deb.name, &deb.version, deb.file));
        }
    }
    for (name, original) in returning(wish) {
        let state = status.state(name);
        match &original.state.version {
            Some(version) if !is(&state, version) => asks.push(ask(name, version, original.archive)),
            None if state.version.is_some() => asks.push(Ask::Remove { name: name.clone() }),
            _ => continue,
        }
        differs = true;
    }
    if differs { asks } else { Vec::new() }
}

/// Those that return to what they were: nobody else needs them, and this wish doesn't either.
pub fn returning(wish: &DebWish) -> impl Iterator<Item = (&String, &crate::record::DebOriginal)> {
    let needed = |name: &String| wish.others.contains_key(name) || wish.want.iter().any(|deb| deb.name == *name);
    wish.give_back.iter().filter(move |(name, _)| !needed(name))
}

/// What would really change, or why it may not.
pub fn changes(wish: &DebWish, asks: &[Ask], simulation: &Simulation, status: &Status) -> Result<Vec<Change>, Failure> {
    let refused = |why: String| Err(Failure::new("AptRefused", format!("{why}\n{}", shorten(&simulation.text))));
    let removed: Vec<&str> = asks.iter().filter(|ask| matches!(ask, Ask::Remove { .. })).map(Ask::name).collect();
    if let Some((name, version)) = simulation.remove.iter().find(|(name, _)| !removed.contains(&name.as_str())) {
        return refused(format!("{name} {version} would be removed, and the workload doesn't ask for that"));
    }
    if let Some(name) = removed.iter().find(|name| !simulation.remove.contains_key(**name)) {
        return refused(format!("apt would not remove {name}"));
    }
    let asked: BTreeMap<&str, &str> = asks.iter().filter_map(version_of).collect();
    let mut changes = Vec::new();
    for (name, arrival) in &simulation.install {
        allow(name)?;
        let before = status.state(name);
        let exact =
            Exact { name: name.clone(), architecture: arrival.architecture.clone(), version: arrival.version.clone() };
        let mut auto = before.auto || before.version.is_none();
        match asked.get(name.as_str()) {
            Some(version) if *version == arrival.version => {
                auto = wish.give_back.get(name).is_some_and(|original| original.state.auto)
            }
            Some(version) => return refused(format!("{name} {} would come instead of {version}", arrival.version)),
            None => unasked(wish, name, &arrival.version, &before, refused)?,
        }
        changes.push(Change { name: name.clone(), before: stand(name, &before), after: Stand::There { exact, auto } });
    }
    for (name, version) in &asked {
        let state = status.state(name);
        if simulation.install.contains_key(*name) || is(&state, version) {
            continue;
        }
        // Unpacked in that version already, but not whole: it is configured or unpacked again.
        let Stand::There { exact, auto } = stand(name, &state) else {
            return refused(format!("apt would not install {name} {version}"));
        };
        if exact.version != *version {
            return refused(format!("apt would not install {name} {version}"));
        }
        let there = Stand::There { exact, auto };
        changes.push(Change { name: (*name).to_owned(), before: there.clone(), after: there });
    }
    for (name, original) in returning(wish).filter(|(_, original)| original.state.version.is_none()) {
        let (before, after) = (stand(name, &status.state(name)), stand(name, &original.state));
        if before != after {
            changes.push(Change { name: name.clone(), before, after });
        }
    }
    Ok(changes)
}

/// A deb that apt adds or changes by itself.
fn unasked(
    wish: &DebWish,
    name: &str,
    version: &str,
    before: &DebState,
    refused: impl Fn(String) -> Result<Vec<Change>, Failure>,
) -> Result<(), Failure> {
    if let Some((theirs, assignment)) = wish.others.get(name).filter(|(theirs, _)| theirs != version) {
        return Err(conflict(name, version, theirs, assignment));
    }
    let Some(now) = &before.version else { return Ok(()) };
    if before.held && now != version {
        return refused(format!(
            "{name} is held at {now} and would become {version}, and the workload doesn't ask for that"
        ))
        .map(drop);
    }
    match compare(version, now) {
        Ordering::Less => refused(format!(
            "{name} would be downgraded from {now} to {version}, and the workload doesn't ask for that"
        ))
        .map(drop),
        _ => Ok(()),
    }
}

fn version_of(ask: &Ask) -> Option<(&str, &str)> {
    match ask {
        Ask::Version { name, version } | Ask::Archive { name, version, .. } => Some((name, version)),
        Ask::Remove { .. } => None,
    }
}

fn is(state: &DebState, version: &str) -> bool {
    state.whole && state.version.as_deref() == Some(version)
}

pub fn stand(name: &str, state: &DebState) -> Stand {
    match (&state.version, &state.architecture) {
        (Some(version), architecture) => {
            let architecture = architecture.clone().unwrap_or_default();
            let exact = Exact { name: name.to_owned(), architecture, version: version.clone() };
            Stand::There { exact, auto: state.auto }
        }
        (None, _) if state.config_only => Stand::ConfigOnly,
        (None, _) => Stand::Absent,
    }
}

fn conflict(name: &str, version: &str, theirs: &str, assignment: &str) -> Failure {
    let message = format!("{name}: {version} is wanted, but assignment {assignment} runs with {theirs}");
    Failure::new("DebConflict", message)
}
