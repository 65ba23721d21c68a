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
use kedge_api::rollout_status::{RolloutOverview, RolloutStatus, StatusLine, StatusUnit};
use kedge_api::rollouts::MemberCounts;
use kedge_model::kinds::Offline;
use kedge_model::wire::Timestamp;
use kedge_rollout::{Answer, Counts};
use serde::Deserialize;
use utoipa::IntoParams;

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

/// Digits of a SHA-1, the shorter of Git's two.
const WHOLE_COMMIT: usize = 40;

/// What was found out, before it is put into words.
#[derive(Debug, Default)]
struct Found {
    lines: Vec<Line>,
    rollouts: Vec<RolloutOverview>,
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
    view: StatusLine,
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
        let unit = if self.is_per_cluster() { StatusUnit::Clusters } else { StatusUnit::Placements };
        let of = match unit {
            StatusUnit::Clusters => self.members.values().sum(),
            StatusUnit::Placements => self.lines.iter().map(Line::all).sum(),
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
        let ended = self.over || (pinned > 0 && self.lines.iter().all(|line| line.all() == line.view.pinned_apart));
        let state = self.state.unwrap_or(if answer.complete { "Settled" } else { "Moving" });
        RolloutStatus {
            headline,
            complete: answer.complete,
            ended: ended && !answer.complete,
            state: state.to_owned(),
            unit,
            targeted: answer.targeted,
            of: answer.of,
            counts: super::view::plus(MemberCounts::default(), &counts),
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
        let complete = |rollout: &RolloutOverview| rollout.state == "Complete";
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
