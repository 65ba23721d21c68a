//! The last change of an assignment on a cluster, step by step, as far as the hub has heard: wanted, taken, changed, ended.

use kedge_api::clusters::ClusterDetail;
use kedge_api::conditions::AssignmentCondition;
use kedge_api::desired_states::{DesiredEntry, DesiredStateSummary};

use crate::web::part::{Chip, Tone, When};

pub struct Step {
    /// None: its turn hasn't come.
    pub tone: Option<Tone>,
    pub name: &'static str,
    pub text: String,
    pub chip: Option<Chip>,
    pub when: Option<When>,
}

/// Nothing to tell of what runs quietly.
pub fn of(
    seen: &ClusterDetail,
    newest: Option<&DesiredStateSummary>,
    condition: Option<&AssignmentCondition>,
    entry: Option<&DesiredEntry>,
) -> Vec<Step> {
    let word = condition.map(|condition| Tone::of(&condition.condition));
    // Of a cluster that is offline, the steps say what was last known.
    let last = condition.and_then(|condition| condition.last_known.as_deref()).map(Tone::of);
    let accepted = newest.is_none_or(|newest| super::accepted(seen, newest));
    if word == Some(Tone::Converged) && accepted && condition.is_some_and(|condition| condition.drift.is_none()) {
        return Vec::new();
    }
    let mut steps = vec![wanted(newest, entry), taken(seen, accepted)];
    match last {
        Some(last) => steps.extend([last_tried(last), last_ended(condition, last)]),
        None => steps.extend([changed(seen, condition, word, accepted), ended(condition, word)]),
    }
    steps
}

fn wanted(newest: Option<&DesiredStateSummary>, entry: Option<&DesiredEntry>) -> Step {
    let (tone, text) = match (newest, entry) {
        (None, _) => (None, "nothing is issued for this ring yet".to_owned()),
        (Some(newest), None) => {
            (Some(Tone::Converged), format!("generation {} doesn't list it any more", newest.generation))
        }
        (Some(newest), Some(entry)) => {
            let what = match (&entry.version, entry.mode.as_str()) {
                (Some(version), _) => version.clone(),
                (None, "observe") => "what its own reconciler brings".to_owned(),
                (None, _) => "this content".to_owned(),
            };
            (Some(Tone::Converged), format!("{what}, in generation {}", newest.generation))
        }
    };
    let commit = entry.and_then(|entry| match (&entry.workload, &entry.expected_commit) {
        (Some(package), _) => Some(package.commit.as_str()),
        (None, expected) => expected.as_deref(),
    });
    let commit = commit.filter(|commit| !commit.is_empty());
    let when = newest.map(|newest| When::of(&newest.created_at));
    Step { tone, name: "Wanted", text, chip: commit.map(|commit| Chip::new(commit, "")), when }
}

fn taken(seen: &ClusterDetail, accepted: bool) -> Step {
    let cluster = &seen.cluster;
    let (tone, text, when) = match (accepted, &cluster.unknown_since) {
        (true, _) => (Some(Tone::Converged), format!("the cluster has generation {}", cluster.generation), None),
        (false, Some(since)) => {
            let text =
                format!("it has generation {} and takes the next when it returns; no contact", cluster.generation);
            (Some(Tone::Unknown), text, Some(since))
        }
        (false, None) => {
            let text = format!("it has generation {}; next contact expected", cluster.generation);
            (Some(Tone::Converging), text, Some(&cluster.check_in_deadline))
        }
    };
    Step { tone, name: "Taken", text, chip: None, when: when.map(|when| When::of(when)) }
}

fn changed(seen: &ClusterDetail, condition: Option<&AssignmentCondition>, word: Option<Tone>, accepted: bool) -> Step {
    let held = condition.and_then(|known| seen.holds.iter().find(|hold| hold.assignment == known.assignment));
    let permit = seen.changing_since.as_deref();
    let (tone, text, when) = match (word, held, permit) {
        (_, Some(hold), _) => {
            (Some(Tone::Unknown), format!("held by {}: nothing is changed", hold.by), Some(&hold.since))
        }
        (Some(Tone::Converging), None, _) => {
            (Some(Tone::Converging), "fetch, apply, look at its health".to_owned(), condition.map(|known| &known.since))
        }
        (Some(Tone::Failed | Tone::Converged), None, _) => {
            (Some(Tone::Converged), "the change was begun".to_owned(), None)
        }
        (Some(Tone::Unknown), None, _) => (Some(Tone::Unknown), "offline".to_owned(), None),
        (None, None, Some(_)) => {
            (Some(Tone::Converging), "it has permission to change".to_owned(), seen.changing_since.as_ref())
        }
        (None, None, None) if accepted => (Some(Tone::Converging), "not reported yet".to_owned(), None),
        (None, None, None) => (None, "not yet".to_owned(), None),
    };
    Step { tone, name: "Tried", text, chip: None, when: when.map(|when| When::of(when)) }
}

/// What it was doing when it was last heard.
fn last_tried(last: Tone) -> Step {
    let text = match last {
        Tone::Converging => "last known: it was changing",
        Tone::Failed | Tone::Converged => "last known: the change was begun",
        Tone::Unknown => "nothing is known of it",
    };
    Step { tone: Some(Tone::Unknown), name: "Tried", text: text.to_owned(), chip: None, when: None }
}

/// What it had come to when it was last heard.
fn last_ended(condition: Option<&AssignmentCondition>, last: Tone) -> Step {
    let runs = condition.map(runs).unwrap_or_default();
    let text = match last {
        Tone::Converged => format!("last known: Converged, {runs}"),
        Tone::Failed => format!("last known: Failed, {runs}"),
        Tone::Converging => format!("last known: not ended, {runs}"),
        Tone::Unknown => "nothing is known of it".to_owned(),
    };
    Step { tone: Some(Tone::Unknown), name: "Ended", text, chip: None, when: None }
}

fn runs(condition: &AssignmentCondition) -> String {
    match (&condition.version, &condition.running) {
        (Some(version), _) => format!("running {version}"),
        (None, Some(_)) => "what was there before runs".to_owned(),
        (None, None) => "nothing runs".to_owned(),
    }
}

fn ended(condition: Option<&AssignmentCondition>, word: Option<Tone>) -> Step {
    let when =
        |condition: &AssignmentCondition| Some(When::of(&condition.since)).filter(|_| !condition.since.is_empty());
    let (tone, text, when) = match (condition, word) {
        (Some(condition), Some(Tone::Failed)) => {
            let reason = condition.reason.as_deref().unwrap_or("no reason reported");
            (Some(Tone::Failed), format!("{reason}; {}", runs(condition)), when(condition))
        }
        (Some(condition), Some(Tone::Converged)) => (Some(Tone::Converged), runs(condition), when(condition)),
        _ => (None, "not yet".to_owned(), None),
    };
    Step { tone, name: "Ended", text, chip: None, when }
}

impl Step {
    pub fn class(&self) -> &'static str {
        self.tone.map_or("", Tone::class)
    }
}
