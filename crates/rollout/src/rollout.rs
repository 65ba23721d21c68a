//! One change on its way through the rings of an environment. The hub keeps a row of it; what each ring's desired state holds
//! follows from `RingState`, again and again, so that a hub that dies between two steps loses nothing.

mod advance;
mod hear;
mod view;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kedge_model::kinds::EnvironmentPolicy;
use kedge_model::wire::Timestamp;
use serde::{Deserialize, Serialize};

use crate::gate::{CheckFact, Counts};
use crate::word::{Say, Word};

pub use advance::advance;
pub use hear::{WORDS, hear};

/// Counted per hub: a later one is larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RolloutId(pub u64);

/// What moves independently: the platform's files of an environment, or an application's source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "lane")]
pub enum Lane {
    Platform,
    Source { repo: String, reference: String },
}

/// Who changed what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// Of the lane: the GitOps branch's head, or the application's source.
    pub commit: String,
    /// Of `main`, in the lane `platform` of an environment with a BaseRepo `main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main: Option<String>,
    /// The commit that wrote the subject, where it is another than that of `main` or of the lane: an application's registration
    /// changes the platform's files too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject_of: Option<String>,
    pub subject: String,
    pub author: String,
}

/// A changed assignment of a cluster type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    pub cluster_type: String,
    pub assignment: String,
    /// The Workload's name.
    pub workload: String,
    /// It goes: nothing of it is counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removes: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    pub id: RolloutId,
    pub environment: String,
    pub lane: Lane,
    pub cause: Cause,
    /// As it was when the rollout began.
    pub policy: Arc<EnvironmentPolicy>,
    /// Sorted.
    pub items: Arc<[Item]>,
    /// One for each ring of the policy, in its order.
    pub rings: Vec<Progress>,
    pub phase: Phase,
    pub created_at: Timestamp,
    pub words: Vec<Word>,
    /// Failures that came after it was complete.
    #[serde(default)]
    pub late_failed: u64,
    /// Quarantines that a person's `Override` took.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<String>,
    /// An `Override` was heard: the next look accepts what is quarantined by then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accept: bool,
}

/// How far one ring is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    pub ring: String,
    pub state: RingState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Since when the gate's rules hold without a break: the soak counts from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady_since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_at: Option<Timestamp>,
    /// Failures that a person's `Resume` forgave.
    #[serde(default)]
    pub forgiven: u64,
    /// A `Resume` or `Override` was heard: the next look forgives what has failed by then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forgive: bool,
    /// So many words had been said when it started: those count for its beginning, later ones for its gate.
    #[serde(default)]
    pub heard: usize,
    /// Nothing to observe: waits for a person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub empty: bool,
    /// At the moment it passed or stopped, per item in the order of `items`, for the evidence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<Counts>,
    /// What it waits for now, each a sentence; for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
}

/// What the ring's desired states hold: the old content in `Waiting` and `Returned`, the new one in the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RingState {
    Waiting,
    Rolling,
    Passed,
    /// Failures beyond the budget; keeps what it has.
    Stopped,
    /// Went back to what it had before.
    Returned,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "phase")]
pub enum Phase {
    Active,
    /// By a person; nothing further begins.
    Paused {
        by: String,
        at: Timestamp,
    },
    /// By failures or a quarantine; a person or new content goes on.
    Stopped {
        ring: String,
        why: String,
        at: Timestamp,
    },
    Complete {
        at: Timestamp,
    },
    RolledBack {
        why: String,
        at: Timestamp,
    },
    Aborted {
        by: String,
        at: Timestamp,
    },
    Superseded {
        by: RolloutId,
        at: Timestamp,
    },
}

/// Why a ring stopped, with the ring's name once: some reasons begin with it.
pub fn stop_words(ring: &str, why: &str) -> String {
    let named = format!("ring {ring}:");
    if why.starts_with(&named) { why.to_owned() } else { format!("{named} {why}") }
}

/// What is true now, for one rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub rings: BTreeMap<String, RingFacts>,
    /// Assignments that this change quarantined.
    pub quarantined: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RingFacts {
    /// One for each item, in their order. Of a removal: nobody.
    pub counts: Vec<Counts>,
    /// By the check's name; one that was never asked isn't there.
    pub checks: BTreeMap<String, CheckFact>,
}

impl Cause {
    /// Of which nothing else is known.
    pub fn of_commit(commit: &str) -> Cause {
        Cause { commit: commit.to_owned(), ..Cause::default() }
    }

    /// The commit that people know it by: the one whose subject and author these are.
    pub fn named(&self) -> &str {
        self.subject_of.as_deref().or(self.main.as_deref()).unwrap_or(&self.commit)
    }
}

impl Rollout {
    /// At its beginning.
    pub fn new(
        id: RolloutId,
        environment: &str,
        lane: Lane,
        cause: Cause,
        policy: Arc<EnvironmentPolicy>,
        items: Arc<[Item]>,
        now: Timestamp,
    ) -> Rollout {
        let rings = policy.rings.iter().map(|ring| Progress::waiting(&ring.name)).collect();
        Rollout {
            id,
            environment: environment.to_owned(),
            lane,
            cause,
            policy,
            items,
            rings,
            phase: Phase::Active,
            created_at: now,
            words: Vec::new(),
            late_failed: 0,
            accepted: Vec::new(),
            accept: false,
        }
    }

    /// With what people said before it began: an approval of the promotion that let it in is one of its first ring too, and
    /// `Now` holds on. The rest was about something else.
    pub fn with_words(mut self, words: &[Word]) -> Rollout {
        let first = self.rings.first().map(|ring| ring.ring.clone());
        let kept = words.iter().filter_map(|word| match &word.say {
            Say::Approve { .. } => Some(Word { say: Say::Approve { ring: first.clone() }, ..word.clone() }),
            Say::Override { .. } => Some(Word { say: Say::Override { ring: first.clone() }, ..word.clone() }),
            Say::Now => Some(word.clone()),
            _ => None,
        });
        self.words.extend(kept);
        self
    }
}

impl Rollout {
    /// What was said about a ring as it stands now: since it stopped, since it began, or at all.
    pub(crate) fn overrides_of(&self, ring: &Progress) -> Vec<Word> {
        let since = match &self.phase {
            Phase::Stopped { ring: stopped, at, .. } if *stopped == ring.ring => Some(*at),
            _ => None,
        };
        let from = if ring.state == RingState::Waiting { 0 } else { ring.heard };
        let said = self.words.get(from..).unwrap_or_default().iter();
        said.filter(|word| since.is_none_or(|since| word.at >= since)).cloned().collect()
    }
}

impl Progress {
    fn waiting(ring: &str) -> Progress {
        Progress {
            ring: ring.to_owned(),
            state: RingState::Waiting,
            started_at: None,
            steady_since: None,
            passed_at: None,
            forgiven: 0,
            forgive: false,
            heard: 0,
            empty: false,
            counts: Vec::new(),
            waits_for: Vec::new(),
        }
    }
}

impl RingState {
    /// Whether the ring's desired states hold the new content.
    pub fn is_new(self) -> bool {
        matches!(self, RingState::Rolling | RingState::Passed | RingState::Stopped)
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lane::Platform => f.write_str("platform"),
            Lane::Source { repo, reference } => write!(f, "{repo}@{reference}"),
        }
    }
}

impl fmt::Display for RolloutId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests;
