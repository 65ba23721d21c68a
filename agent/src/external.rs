//! What other reconcilers said they did (`kedge-agent report`: Ansible, Zarf, a script), or what the agent sees of them itself (Flux,
//! Argo CD), and what that means for the assignments that the desired state only observes. The command writes the ledger `external`,
//! one at a time; the daemon reads it.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use kedge_durable::{Disk, Ledger, LedgerError, RealDisk};
use kedge_model::wire::{DesiredState, Mode, Observation, Timestamp};
use kedge_status::Condition;
use serde::{Deserialize, Serialize};

use crate::paths::Paths;
use crate::told::Told;

#[cfg(test)]
mod tests;

/// The results on disk.
#[derive(Clone, Debug)]
pub struct External {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
}

/// What a reconciler said last of one assignment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reported {
    /// As the reconciler calls it: a commit, or `branch@sha1:commit`.
    pub revision: String,
    pub ok: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    pub at: Timestamp,
    /// The last revision that went well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ok: Option<String>,
}

/// What the agent itself sees of an assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    pub condition: Condition,
    /// What differs from what is expected, in a sentence.
    pub drift: Option<String>,
    /// What runs, as the reconciler calls it.
    pub version: Option<String>,
    /// What is desired is what runs.
    pub reached: bool,
    /// None: from now on.
    pub since: Option<Timestamp>,
}

/// By assignment. None: too little was seen yet to say anything, and what was told before stays.
pub type Sightings = BTreeMap<String, Option<Sighting>>;

/// What an observer of other reconcilers has to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObserverReport {
    pub sightings: Sightings,
    /// By code; none: it is over.
    pub warnings: BTreeMap<&'static str, Option<String>>,
    /// Who reads the platform's branch, and at which revision.
    pub platform: Option<String>,
    /// When this may be another, if nothing happens.
    pub again: Option<Timestamp>,
}

#[derive(Debug, thiserror::Error)]
pub enum ExternalError {
    #[error("`{0}` can't be the name of an assignment")]
    Name(String),
    #[error("a revision has 1 to {MAX_REVISION} characters, and none that can't be printed")]
    Revision,
    #[error("there are results of {MAX_RESULTS} assignments already")]
    TooMany,
    #[error("the result can't be kept")]
    Disk(#[from] LedgerError),
    #[error("the results can't be locked")]
    Lock(#[source] io::Error),
}

/// The stable reason of a failure that another reconciler told.
pub const REPORTED: &str = "Reported";
/// A host has tens of assignments; a bound for a script that makes up names.
const MAX_RESULTS: usize = 1_000;
const MAX_NAME: usize = 256;
const MAX_REVISION: usize = 256;
const MAX_MESSAGE: usize = 1_024;
/// Git's own short form: less could name several commits.
const SHORT_COMMIT: usize = 7;

impl External {
    /// Those of this host, for commands.
    pub fn of(paths: &Paths) -> External {
        External::on(Arc::new(RealDisk), paths)
    }

    pub fn on(disk: Arc<dyn Disk>, paths: &Paths) -> External {
        External { disk, folder: paths.state() }
    }

    /// Durable when it returns.
    pub fn put(
        &self,
        assignment: &str,
        revision: &str,
        ok: bool,
        message: &str,
        at: Timestamp,
    ) -> Result<(), ExternalError> {
        if !is_plain(assignment, MAX_NAME) {
            return Err(ExternalError::Name(assignment.chars().take(MAX_NAME).collect()));
        }
        let revision = revision.trim();
        if !is_plain(revision, MAX_REVISION) {
            return Err(ExternalError::Revision);
        }
        self.disk.make_folder(&self.folder).map_err(ExternalError::Lock)?;
        let _lock = self.disk.lock(&self.folder.join("external.lock")).map_err(ExternalError::Lock)?;
        let opened = Ledger::<BTreeMap<String, Reported>>::open(Arc::clone(&self.disk), &self.path())?;
        if let Some(healed) = opened.healed {
            tracing::warn!(healed, "a copy of the reported results was broken");
        }
        let (mut ledger, mut results) = (opened.ledger, opened.value.unwrap_or_default());
        if results.len() >= MAX_RESULTS && !results.contains_key(assignment) {
            return Err(ExternalError::TooMany);
        }
        let before = results.remove(assignment).and_then(|before| before.last_ok);
        let last_ok = if ok { Some(revision.to_owned()) } else { before };
        let message = message.trim();
        let message = message[..message.floor_char_boundary(MAX_MESSAGE)].to_owned();
        results.insert(assignment.to_owned(), Reported { revision: revision.to_owned(), ok, message, at, last_ok });
        Ok(ledger.write(&results)?)
    }

    pub fn read(&self) -> Result<BTreeMap<String, Reported>, ExternalError> {
        Ok(Ledger::read(&*self.disk, &self.path())?.unwrap_or_default())
    }

    fn path(&self) -> PathBuf {
        self.folder.join("external")
    }
}

/// What is true of every observed assignment of a state: what is seen counts before what is said. Pure.
pub fn assignment_statuses(
    state: &DesiredState,
    results: &BTreeMap<String, Reported>,
    seen: &Sightings,
    now: Timestamp,
) -> Vec<Told> {
    let observed = state.entries.iter().filter_map(|entry| match &entry.mode {
        Mode::Observe(observation) => Some((entry, observation)),
        Mode::Apply(_) => None,
    });
    let told = observed.filter_map(|(entry, observation)| {
        let result = results.get(&entry.assignment);
        match seen.get(&entry.assignment) {
            Some(None) => return None,
            // What can't be seen may have been said.
            Some(Some(sighting)) if sighting.condition != Condition::Unknown || result.is_none() => {
                return Some(sighting.told(&entry.assignment, observation, state, now));
            }
            _ => {}
        }
        let (condition, drift) = judge(observation, result);
        // What was reported is true since then; that something else is expected is true now.
        let settled = !matches!(condition, Condition::Converging | Condition::Unknown);
        let reached = result.and_then(|result| result.last_ok.as_deref());
        let runs = reached.is_some_and(|reached| fits(reached, observation.expected_commit.as_deref()));
        Some(Told::AssignmentStatus {
            assignment: entry.assignment.clone(),
            desired: Some(observation.key()),
            generation: state.generation,
            running: runs.then(|| observation.key()),
            version: reached.map(str::to_owned),
            condition,
            drift,
            at: result.filter(|_| settled).map_or(now, |result| result.at),
        })
    });
    told.collect()
}

impl Sighting {
    fn told(&self, assignment: &str, observation: &Observation, state: &DesiredState, now: Timestamp) -> Told {
        Told::AssignmentStatus {
            assignment: assignment.to_owned(),
            desired: Some(observation.key()),
            generation: state.generation,
            running: self.reached.then(|| observation.key()),
            version: self.version.clone(),
            condition: self.condition.clone(),
            drift: self.drift.clone(),
            // The clock of who wrote it may be ahead.
            at: self.since.map_or(now, |since| since.min(now)),
        }
    }
}

/// The condition, and a sentence where what was reported isn't what is expected.
fn judge(observation: &Observation, result: Option<&Reported>) -> (Condition, Option<String>) {
    let Some(result) = result else { return (Condition::Unknown, None) };
    let expected = observation.expected_commit.as_deref();
    if !fits(&result.revision, expected) {
        let expected = expected.unwrap_or_default();
        let how = if result.ok { "is at" } else { "failed at" };
        let told = format!("the reconciler {how} {}, and {expected} is expected", result.revision);
        return (Condition::Converging, Some(told));
    }
    if result.ok {
        return (Condition::Converged, None);
    }
    let message = if result.message.is_empty() {
        format!("the reconciler failed at {}", result.revision)
    } else {
        result.message.clone()
    };
    (Condition::Failed { reason: REPORTED.to_owned(), message }, None)
}

/// Whether a revision is this commit; any is, where the hub knows none. Also `main@sha1:COMMIT`, `main/COMMIT` and short commits.
pub fn fits(revision: &str, expected: Option<&str>) -> bool {
    let Some(expected) = expected else { return true };
    let commit = revision.rsplit([':', '/', '@']).next().unwrap_or(revision);
    let short = commit.len() >= SHORT_COMMIT && commit.bytes().all(|letter| letter.is_ascii_hexdigit());
    revision == expected || commit == expected || (short && expected.starts_with(&commit.to_ascii_lowercase()))
}

fn is_plain(text: &str, most: usize) -> bool {
    !text.is_empty() && text.len() <= most && !text.chars().any(char::is_control)
}
