//! Rollouts as people see them.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use kedge_rollout::rollout::stop_words;
use kedge_rollout::version::compare;
use kedge_rollout::{Cause, Counts, Item, Phase, Progress, RingState, Rollout, RolloutId, Say, Word};
use serde::Serialize;
use utoipa::ToSchema;

use super::ways::WayOut;
use crate::api::page::moment;
use crate::rollout::running::state_word;
use crate::store::rollout::{StoredItem, StoredRollout, Waiting};

/// A change on its way through the rings of an environment.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutView {
    pub id: u64,
    pub environment: String,
    /// `platform`, or `<repository>@<reference>` of an application's source.
    pub lane: String,
    /// `Active`, `Paused`, `Stopped`, `Complete`, `RolledBack`, `Aborted`, `Superseded`
    pub state: String,
    /// Who paused or aborted it, why it stopped, what superseded it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// It was rolled back or aborted, and Git doesn't ask for its content any more: there is nothing left to do.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
    #[serde(flatten)]
    pub cause: CauseView,
    /// How many assignments of cluster types it moves, as far as the caller may see.
    pub moves: usize,
    /// It moves other teams' assignments too: what its gates count isn't told.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    pub rings: Vec<RingProgress>,
    /// Failures that came after it was complete.
    #[serde(skip_serializing_if = "is_zero")]
    pub late_failed: u64,
    pub created_at: String,
    pub updated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
}

/// Who changed what.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CauseView {
    /// Of the lane.
    pub commit: String,
    /// Of the control plane's `main`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub main: Option<String>,
    /// The commit that wrote the subject, where it is neither `main` nor `commit`: such as an application's that changed what the
    /// platform's files say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_of: Option<String>,
    pub subject: String,
    pub author: String,
}

/// How far one ring is.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RingProgress {
    pub ring: String,
    /// `waiting`, `rolling`, `passed`, `stopped`, `returning` (not all its clusters have the old content yet), `returned`
    pub state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// Since when the gate's rules hold: the soak counts from here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady_since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed_at: Option<String>,
    /// What it waits for now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// The sum of its assignments when it passed or stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<CountsView>,
}

/// Clusters by the truth of the exact packages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CountsView {
    pub converged: u64,
    pub converging: u64,
    pub failed: u64,
    pub offline: u64,
    /// In contact, and hasn't got it yet.
    pub waiting: u64,
}

/// A rollout with everything.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutWhole {
    #[serde(flatten)]
    pub rollout: RolloutView,
    pub items: Vec<ItemView>,
    /// Commits that waited and were superseded, the newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<CauseView>,
    /// Newer content that waits behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<CauseView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<WordView>,
    /// What can be done, when it was rolled back or aborted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ways_out: Vec<WayOut>,
    /// Workloads that a person can start again.
    #[serde(skip)]
    pub again: BTreeSet<String>,
}

/// What moves.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemView {
    pub cluster_type: String,
    pub assignment: String,
    pub workload: String,
    /// `platform`, `workload`, `observed` or `removed`
    pub parts: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The version that a ring held before it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// By SemVer, against the one before: `newer`, `older` or `same`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<&'static str>,
    /// Of the application's source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_commit: Option<String>,
}

/// What a person said.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WordView {
    pub who: String,
    /// The person's id; empty for what was said before there were persons.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub person: String,
    pub role: String,
    pub at: String,
    /// `approve`, `override`, `now`, `pause`, `resume`, `abort`, `rollback`
    pub said: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ring: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The token that said it was made after this had begun.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub new_token: bool,
}

impl RolloutView {
    pub fn of(stored: &StoredRollout, moves: usize) -> RolloutView {
        let rollout = &stored.rollout;
        RolloutView {
            id: rollout.id.0,
            environment: rollout.environment.clone(),
            lane: rollout.lane.to_string(),
            state: state_word(&rollout.phase).to_owned(),
            why: why(rollout),
            settled: false,
            cause: CauseView::of(&rollout.cause),
            moves,
            partial: false,
            rings: rollout.rings.iter().map(RingProgress::of).collect(),
            late_failed: rollout.late_failed,
            created_at: moment(rollout.created_at.0),
            updated_at: moment(stored.updated_at.0),
            ended_at: stored.ended_at.map(|at| moment(at.0)),
        }
    }

    /// `blocked` are those that went back, and whose content Git still asks for.
    pub fn settle(&mut self, blocked: &BTreeSet<RolloutId>) {
        self.settled = is_settled(&self.state, RolloutId(self.id), blocked);
    }

    /// For a team that sees a part of it: numbers and sentences about the rest aren't its business.
    pub fn narrow(&mut self) {
        self.partial = true;
        self.late_failed = 0;
        if self.state == "Stopped" {
            "more failed than the policy allows".clone_into(&mut self.why);
        }
        // Who did it may be told; what was written about it may be about others.
        if matches!(self.state.as_str(), "Paused" | "Aborted")
            && let Some((who, _)) = self.why.split_once(": ")
        {
            self.why = who.to_owned();
        }
        narrow_rings(&mut self.rings);
    }
}

/// Whether a rollout that went back or was aborted has nothing left to do.
pub fn is_settled(state: &str, id: RolloutId, blocked: &BTreeSet<RolloutId>) -> bool {
    matches!(state, "RolledBack" | "Aborted") && !blocked.contains(&id)
}

/// Numbers and sentences that are about other teams too aren't told.
pub fn narrow_rings(rings: &mut [RingProgress]) {
    for ring in rings {
        ring.counts = None;
        if !ring.waits_for.is_empty() {
            let why = match ring.state.as_str() {
                "returning" => "clusters that have not taken the rollback yet",
                _ => "its gate, which looks at other teams' workloads too",
            };
            ring.waits_for = vec![why.to_owned()];
        }
    }
}

impl RolloutWhole {
    /// `before` tells the version of an assignment that a ring held before.
    pub fn of(
        stored: &StoredRollout,
        items: Vec<StoredItem>,
        before: impl Fn(&Item) -> Option<String>,
        next: Option<&Waiting>,
    ) -> RolloutWhole {
        let item = |stored: StoredItem| {
            let before = before(&stored.item);
            ItemView::of(stored, before)
        };
        RolloutWhole {
            rollout: RolloutView::of(stored, items.len()),
            items: items.into_iter().map(item).collect(),
            skipped: stored.skipped.iter().map(CauseView::of).collect(),
            next: next.map(|waiting| CauseView::of(&waiting.cause)),
            words: stored.rollout.words.iter().map(WordView::of).collect(),
            ways_out: Vec::new(),
            again: BTreeSet::new(),
        }
    }
}

impl ItemView {
    fn of(stored: StoredItem, before: Option<String>) -> ItemView {
        let StoredItem { item, change } = stored;
        let version = change.workload.as_ref().and_then(|part| part.version.clone());
        let before = before.filter(|_| change.workload.is_some());
        let order = before.as_ref().zip(version.as_ref()).map(|(before, version)| match compare(version, before) {
            Ordering::Greater => "newer",
            Ordering::Less => "older",
            Ordering::Equal => "same",
        });
        let parts = [
            (item.removes, "removed"),
            (change.platform.is_some(), "platform"),
            (change.workload.is_some(), "workload"),
            (change.observed.is_some(), "observed"),
        ];
        ItemView {
            parts: parts.into_iter().filter(|(has, _)| *has).map(|(_, word)| word).collect(),
            version,
            before,
            order,
            source_commit: change.workload.map(|part| part.package.commit),
            cluster_type: item.cluster_type,
            assignment: item.assignment,
            workload: item.workload,
        }
    }
}

impl CauseView {
    pub fn of(cause: &Cause) -> CauseView {
        CauseView {
            commit: cause.commit.clone(),
            main: cause.main.clone(),
            subject_of: cause.subject_of.clone(),
            subject: cause.subject.clone(),
            author: cause.author.clone(),
        }
    }

    /// The commit that people know it by.
    pub fn named(&self) -> &str {
        self.subject_of.as_deref().or(self.main.as_deref()).unwrap_or(&self.commit)
    }
}

impl RingProgress {
    pub fn of(progress: &Progress) -> RingProgress {
        let total = progress.counts.iter().fold(CountsView::default(), |sum, counts| sum.plus(counts));
        RingProgress {
            ring: progress.ring.clone(),
            state: ring_word(progress).to_owned(),
            started_at: progress.started_at.map(|at| moment(at.0)),
            steady_since: progress.steady_since.map(|at| moment(at.0)),
            passed_at: progress.passed_at.map(|at| moment(at.0)),
            waits_for: progress.waits_for.clone(),
            counts: (!progress.counts.is_empty()).then_some(total),
        }
    }
}

impl CountsView {
    pub fn plus(self, counts: &Counts) -> CountsView {
        CountsView {
            converged: self.converged + counts.converged,
            converging: self.converging + counts.converging,
            failed: self.failed + counts.failed,
            offline: self.offline + counts.offline,
            waiting: self.waiting + counts.waiting,
        }
    }
}

impl WordView {
    pub fn of(word: &Word) -> WordView {
        let (said, ring) = match &word.say {
            Say::Approve { ring } => ("approve", ring.clone()),
            Say::Override { ring } => ("override", ring.clone()),
            Say::Now => ("now", None),
            Say::Pause => ("pause", None),
            Say::Resume => ("resume", None),
            Say::Abort => ("abort", None),
            Say::Rollback => ("rollback", None),
        };
        WordView {
            who: word.who.clone(),
            person: word.person.id.clone(),
            role: word.role.clone(),
            at: moment(word.at.0),
            said,
            ring,
            reason: word.reason.clone(),
            new_token: word.new_token,
        }
    }
}

pub fn ring_word(progress: &Progress) -> &'static str {
    match progress.state {
        RingState::Waiting => "waiting",
        RingState::Rolling => "rolling",
        RingState::Passed => "passed",
        RingState::Stopped => "stopped",
        RingState::Returned if progress.is_going_back() => "returning",
        RingState::Returned => "returned",
    }
}

fn why(rollout: &Rollout) -> String {
    let by = || rollout.halted_by().unwrap_or_default();
    match &rollout.phase {
        Phase::Active | Phase::Complete { .. } => String::new(),
        Phase::Paused { .. } => format!("paused by {}", by()),
        Phase::Stopped { ring, why, .. } => stop_words(ring, why),
        Phase::RolledBack { why, .. } => why.clone(),
        Phase::Aborted { .. } => format!("aborted by {}", by()),
        Phase::Superseded { by, .. } => format!("superseded by rollout {by}"),
    }
}

/// What a rollout that isn't complete waits for, in its first ring that hasn't passed.
pub fn waits_for(rollout: &Rollout) -> Vec<String> {
    let current = rollout.rings.iter().find(|ring| ring.state != RingState::Passed);
    let ring = current.map(|ring| ring.waits_for.iter().map(|why| stop_words(&ring.ring, why)));
    let told: Vec<String> = ring.into_iter().flatten().collect();
    match why(rollout) {
        why if why.is_empty() => told,
        // A ring that stopped says the same as its rollout.
        why => std::iter::once(why.clone()).chain(told.into_iter().filter(|told| *told != why)).collect(),
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
