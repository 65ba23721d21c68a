//! The one question: how many of those that should have it do? Answered from counts, by the exact packages of what changed; its
//! cost follows streams and changed assignments, never clusters.

mod commit;
mod gather;
mod inputs;
mod text;

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use kedge_model::kinds::Offline;
use kedge_model::wire::Timestamp;
use kedge_rollout::{Answer, Counts};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::view::{CauseView, CountsView, RingProgress};
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::caller::Caller;
use crate::api::names::{self, Mentioned};
use crate::api::page::moment;

/// What the question is about; what isn't named is all of it.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StatusQuery {
    pub environment: Option<String>,
    pub workload: Option<String>,
    #[serde(alias = "cluster-type")]
    pub cluster_type: Option<String>,
    pub ring: Option<String>,
    /// A commit of an application's source, whole or its first digits.
    #[serde(alias = "source-commit")]
    pub source_commit: Option<String>,
    /// A commit of the control plane's `main`, whole or its first digits.
    #[serde(alias = "main-commit")]
    pub main_commit: Option<String>,
    /// One rollout, by its number.
    pub rollout: Option<u64>,
}

/// The answer.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStatus {
    /// One sentence.
    pub headline: String,
    /// Everybody who should have it has it, and every ring's gate has passed.
    pub complete: bool,
    /// It will not become complete by itself: stopped, rolled back, aborted, superseded, failed, or no longer on `main`.
    pub over: bool,
    /// `Complete`, `Active`, `Paused`, `Stopped`, `RolledBack`, `Aborted`, `Superseded`; `Unseen` for a commit that the hub hasn't
    /// met; `Failed` and `Gone` (no longer on `main`) of a commit; `Settled` or `Moving` where no rollout says it
    pub state: String,
    /// What is counted: `clusters`, or `placements` (an assignment on a cluster) when some run several.
    pub unit: &'static str,
    /// Should have it.
    pub targeted: u64,
    /// All that the question is about.
    pub of: u64,
    #[serde(flatten)]
    pub counts: CountsView,
    pub not_targeted: u64,
    /// A Pin keeps them on other content than the one that is asked for: neither targeted nor among those that aren't.
    #[serde(skip_serializing_if = "is_zero")]
    pub pinned: u64,
    /// The most frequent first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_reasons: Vec<ReasonView>,
    /// Since when the longest of the offline ones is away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offline_since: Option<String>,
    /// Whether clusters that are away leave it complete, as the policy says.
    pub offline_leaves_complete: bool,
    /// One for each assignment of a cluster type.
    pub lines: Vec<LineView>,
    pub rollouts: Vec<RolloutBrief>,
    /// What it waits for, and what else one should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Why so many failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReasonView {
    pub reason: String,
    pub count: u64,
}

/// An assignment of a cluster type.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LineView {
    pub environment: String,
    pub cluster_type: String,
    pub assignment: String,
    pub workload: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The rollout that moves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<u64>,
    pub targeted: u64,
    #[serde(flatten)]
    pub counts: CountsView,
    /// In rings that wait for their turn.
    pub not_yet: u64,
    /// Rings that a Pin holds on other content.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<String>,
    /// So many clusters of those rings aren't targeted, because other content was asked for by its name.
    #[serde(skip_serializing_if = "is_zero")]
    pub pinned_apart: u64,
    /// Rings that had it and follow other content by now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<String>,
}

/// A rollout that the answer is about.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutBrief {
    pub id: u64,
    pub environment: String,
    pub lane: String,
    pub state: String,
    #[serde(flatten)]
    pub cause: CauseView,
    pub rings: Vec<RingProgress>,
    #[serde(skip_serializing_if = "super::status::is_zero")]
    pub late_failed: u64,
}

/// Digits of a SHA-1, the shorter of Git's two.
const WHOLE_COMMIT: usize = 40;

/// What was found out, before it is put into words.
#[derive(Debug, Default)]
struct Found {
    lines: Vec<Line>,
    rollouts: Vec<RolloutBrief>,
    /// Members of all streams that the question is about, by cluster type of an environment.
    members: BTreeMap<(String, String), u64>,
    reasons: BTreeMap<String, u64>,
    offline_since: Option<Timestamp>,
    /// Some environment's policy says that nobody may be away.
    strict: bool,
    /// Every rollout's rings have passed; true where none governs.
    passed: bool,
    over: bool,
    state: Option<&'static str>,
    /// The commit that was asked for is known, whether or not a rollout brought it.
    judged: bool,
    /// What keeps environments from having all that Git says.
    broken: Vec<String>,
    is_quarantined: bool,
    notes: Vec<String>,
}

#[derive(Debug)]
struct Line {
    view: LineView,
    counts: Counts,
}

/// How many of those that should have a change do.
#[utoipa::path(get, path = "/rollout-status", tag = "rollouts", params(StatusQuery),
    responses((status = OK, body = RolloutStatus)))]
pub async fn rollout_status(
    State(state): State<ApiState>,
    caller: Caller,
    query: Result<Query<StatusQuery>, QueryRejection>,
) -> Result<Json<RolloutStatus>, ApiError> {
    let mut query = query?.0;
    for commit in [&mut query.source_commit, &mut query.main_commit].into_iter().flatten() {
        check_commit(commit)?;
        commit.make_ascii_lowercase();
        if commit.len() < WHOLE_COMMIT {
            *commit = whole_commit(&state, commit).await?;
        }
    }
    let found = gather::gather(&state, &caller, &query).await?;
    if found.is_about_nobody() {
        names::check(&state, &caller, &query.mentioned()).await?;
    }
    Ok(Json(found.told()))
}

impl StatusQuery {
    /// A commit may be about to bring a workload that nobody has yet.
    fn mentioned(&self) -> Mentioned<'_> {
        let of_commit = self.source_commit.is_some() || self.main_commit.is_some();
        Mentioned {
            environment: self.environment.as_deref(),
            cluster_type: self.cluster_type.as_deref(),
            ring: self.ring.as_deref(),
            workload: self.workload.as_deref().filter(|_| !of_commit),
            ..Mentioned::default()
        }
    }
}

impl Line {
    /// Who should have it, will have its turn, or has a Pin instead.
    fn all(&self) -> u64 {
        self.counts.members() + self.view.not_yet + self.view.pinned_apart
    }
}

impl Found {
    /// Nobody should have what is asked about: that may be because a name is mistyped.
    fn is_about_nobody(&self) -> bool {
        self.lines.iter().all(|line| line.all() == 0)
    }

    fn told(self) -> RolloutStatus {
        let counts = self.lines.iter().fold(Counts::default(), |sum, line| plus(sum, line.counts));
        let unit = if self.is_per_cluster() { "clusters" } else { "placements" };
        let of = match unit {
            "clusters" => self.members.values().sum(),
            _ => self.lines.iter().map(Line::all).sum(),
        };
        let pinned: u64 = self.lines.iter().map(|line| line.view.pinned_apart).sum();
        let offline = if self.strict { Offline::Incomplete } else { Offline::Complete };
        let reasons: Vec<(String, u64)> = self.reasons.clone().into_iter().collect();
        let mut answer = Answer::new(of, counts, offline)
            .with_reasons(reasons)
            .with_offline_since(self.offline_since)
            .with_pinned(pinned);
        let settled = answer.complete || self.only_removes();
        answer.complete = (settled || self.is_replaced()) && self.passed;
        let headline = text::headline(&answer, settled, &self, unit);
        // As long as the Pins are there, nobody gets it.
        let over = self.over || (pinned > 0 && self.lines.iter().all(|line| line.all() == line.view.pinned_apart));
        let state = self.state.unwrap_or(if answer.complete { "Settled" } else { "Moving" });
        RolloutStatus {
            headline,
            complete: answer.complete,
            over: over && !answer.complete,
            state: state.to_owned(),
            unit,
            targeted: answer.targeted,
            of: answer.of,
            counts: CountsView::default().plus(&counts),
            not_targeted: answer.not_targeted,
            pinned: answer.pinned,
            failed_reasons: text::reasons(&answer),
            offline_since: self.offline_since.map(|at| moment(at.0)),
            offline_leaves_complete: !self.strict,
            lines: self.lines.into_iter().map(|line| line.view).collect(),
            rollouts: self.rollouts,
            notes: self.notes,
        }
    }

    /// It was complete once, and nobody should have it any more.
    fn is_replaced(&self) -> bool {
        let gone = |line: &Line| line.counts.members() == 0 && !line.view.replaced.is_empty();
        !self.lines.is_empty() && self.lines.iter().all(gone)
    }

    /// Nobody should have it, and that is what it is about.
    fn only_removes(&self) -> bool {
        let complete = |rollout: &RolloutBrief| rollout.state == "Complete";
        self.lines.is_empty() && !self.rollouts.is_empty() && self.rollouts.iter().all(complete)
    }

    /// No cluster runs two of the assignments: then clusters are counted.
    fn is_per_cluster(&self) -> bool {
        let mut types: Vec<_> =
            self.lines.iter().map(|line| (&line.view.environment, &line.view.cluster_type)).collect();
        types.sort();
        types.windows(2).all(|pair| pair[0] != pair[1])
    }
}

fn plus(one: Counts, other: Counts) -> Counts {
    Counts {
        converged: one.converged + other.converged,
        converging: one.converging + other.converging,
        failed: one.failed + other.failed,
        offline: one.offline + other.offline,
        waiting: one.waiting + other.waiting,
    }
}

/// What a commit's first digits stand for; themselves if nobody knows it yet.
async fn whole_commit(state: &ApiState, digits: &str) -> Result<String, ApiError> {
    let mut known = state.store.commits_like(digits).await?;
    if known.len() > 1 {
        let message = format!("several commits begin with {digits}");
        return Err(ApiError::conflict("Ambiguous", message).hint("give more digits"));
    }
    Ok(known.pop().unwrap_or_else(|| digits.to_owned()))
}

/// Digits of a commit, as Git prints them.
fn check_commit(commit: &str) -> Result<(), ApiError> {
    let fits = (7..=64).contains(&commit.len()) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    if fits {
        return Ok(());
    }
    Err(ApiError::invalid("BadCommit", "a commit is named by 7 to 64 hexadecimal digits"))
}

pub(super) fn is_zero(number: &u64) -> bool {
    *number == 0
}
