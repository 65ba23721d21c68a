//! Rollouts: where each change is, and what people say about it. A word is written for the leader, who takes it within a second;
//! the answer waits that long.

pub mod about;
pub(crate) mod actions;
pub mod say;
pub mod selection;
pub mod start;
pub mod status;
pub mod view;
pub mod ways;

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use kedge_api::page::Page;
use kedge_api::rollouts::{RolloutDetail, RolloutSummary};
use kedge_model::command::Command;
use kedge_rollout::{Item, RolloutId};
use serde::Deserialize;
use utoipa::IntoParams;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::history;
use super::names::{self, Mentioned};
use super::page::{self, Listed, MAX_CHANGES, PageQuery};
use crate::store::api::rollouts::HeldCluster;
use crate::store::catalog::Visible;
use crate::store::rollout::{RolloutFilter, StoredItem, StoredRollout};

/// Which rollouts.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RolloutsQuery {
    pub environment: Option<String>,
    /// `platform`, or `<repository>@<reference>` of an application's source.
    pub lane: Option<String>,
    /// `Active`, `Paused`, `Stopped`, `Complete`, `RolledBack`, `Aborted`, `Superseded`
    pub state: Option<String>,
    /// Only those that haven't ended.
    pub unfinished: Option<bool>,
    pub workload: Option<String>,
    #[serde(alias = "cluster-type")]
    pub cluster_type: Option<String>,
    /// A commit of the lane, or of an application's source.
    #[serde(alias = "source-commit")]
    pub source_commit: Option<String>,
    /// A commit of the control plane's `main`.
    #[serde(alias = "main-commit")]
    pub main_commit: Option<String>,
    /// The maximum number of items, up to 500.
    pub limit: Option<usize>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Only what changed after this number (`kedge-tick` of an answer before).
    pub after: Option<i64>,
    /// With `after`: wait so long (`30s`) for a change.
    pub wait: Option<String>,
}

const STATES: [&str; 7] = ["Active", "Paused", "Stopped", "Complete", "RolledBack", "Aborted", "Superseded"];

/// Rollouts, the newest first.
#[utoipa::path(get, path = "/rollouts", tag = "rollouts", params(RolloutsQuery),
    responses((status = OK, body = Page<RolloutSummary>)))]
pub async fn rollouts(
    State(state): State<ApiState>,
    caller: Caller,
    query: Result<Query<RolloutsQuery>, QueryRejection>,
) -> Result<Listed<RolloutSummary>, ApiError> {
    let query = query?.0;
    names::word("rollout state", query.state.as_deref(), &STATES)?;
    let paging =
        PageQuery { limit: query.limit, cursor: query.cursor.clone(), after: query.after, wait: query.wait.clone() };
    let limit = paging.limit()?;
    let before = paging.from::<u64>()?.map(RolloutId);
    check_workload(&state, &caller, query.workload.as_deref()).await?;
    if let Some(after) = query.after {
        return page::follow(&state, after, paging.wait()?, || async {
            let found = state.store.rollouts(&query.filter(None, MAX_CHANGES)).await?;
            let news = found.into_iter().filter(|stored| stored.tick > after).collect();
            Ok(Page { items: seen(&state, &caller, news).await?, removed: Vec::new(), next: None })
        })
        .await;
    }
    let tick = state.ticks.current(&state.store).await?;
    let mut found = state.store.rollouts(&query.filter(before, limit + 1)).await?;
    if found.is_empty() {
        let mentioned = Mentioned {
            environment: query.environment.as_deref(),
            cluster_type: query.cluster_type.as_deref(),
            workload: query.workload.as_deref(),
            ..Mentioned::default()
        };
        names::check(&state, &caller, &mentioned).await?;
    }
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).and_then(|last| page::cursor(&last.rollout.id.0));
    let items = seen(&state, &caller, found).await?;
    if items.is_empty() && next.is_none() {
        for commit in [&query.main_commit, &query.source_commit].into_iter().flatten() {
            history::check_digits(&state, &caller, commit).await?;
        }
    }
    Ok(Listed { page: Page { items, removed: Vec::new(), next }, tick })
}

/// To an application team a workload of others is none: else rollouts that move both would tell that it is there.
async fn check_workload(state: &ApiState, caller: &Caller, workload: Option<&str>) -> Result<(), ApiError> {
    match caller.visible() {
        Visible::All => Ok(()),
        Visible::Workspaces(_) => names::check(state, caller, &Mentioned { workload, ..Mentioned::default() }).await,
    }
}

/// One rollout with its contents, its state in each ring, and decisions.
#[utoipa::path(get, path = "/rollouts/{id}", tag = "rollouts", params(("id" = u64, Path)),
    responses((status = OK, body = RolloutDetail)))]
pub async fn rollout(
    State(state): State<ApiState>,
    caller: Caller,
    id: Result<Path<u64>, PathRejection>,
) -> Result<Json<RolloutDetail>, ApiError> {
    find(&state, &caller, RolloutId(id?.0)).await.map(|found| Json(found.detail))
}

impl RolloutsQuery {
    fn filter(&self, before: Option<RolloutId>, limit: usize) -> RolloutFilter<'_> {
        RolloutFilter {
            environment: self.environment.as_deref(),
            lane: self.lane.as_deref(),
            state: self.state.as_deref(),
            unfinished: self.unfinished.unwrap_or_default(),
            source_commit: self.source_commit.as_deref(),
            main_commit: self.main_commit.as_deref(),
            workload: self.workload.as_deref(),
            cluster_type: self.cluster_type.as_deref(),
            before,
            limit: i64::try_from(limit).unwrap_or(i64::MAX),
        }
    }
}

/// A rollout with what can be done about it.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub detail: RolloutDetail,
    /// Workloads that a person can start again.
    pub startable: BTreeSet<String>,
}

/// A rollout that the caller may see.
pub(crate) async fn find(state: &ApiState, caller: &Caller, id: RolloutId) -> Result<Found, ApiError> {
    let missing = || ApiError::not_found(format!("rollout {id}")).hint("`kedge rollout list` shows them");
    let stored = state.store.rollout(id).await?.ok_or_else(missing)?;
    let all = state.store.rollout_items(id).await?;
    let of = all.len();
    let items = own(state, &caller.visible(), &stored, all).await?;
    if items.is_empty() && caller.visible() != Visible::All {
        return Err(missing());
    }
    let partial = items.len() < of;
    let waiting = state.store.rollouts_waiting(&stored.rollout.environment).await?;
    let behind = waiting.get(&stored.rollout.lane.to_string());
    let held = state.store.running_rollout(id).await?;
    let before = |item: &Item| held.as_ref().and_then(|held| held.version_before(item));
    let blocked = state.store.rollouts_blocked(&stored.rollout.environment).await?;
    let startable = ways::blocked(&stored, &items, &blocked);
    let mut whole = view::detail(&stored, items, before, behind.filter(|waiting| waiting.behind == id));
    view::settle(&mut whole.rollout, &blocked.iter().map(|row| row.rollout).collect());
    whole.suggestions = ways::out(&stored, &whole.rollout, &startable, caller);
    if partial {
        view::narrow(&mut whole.rollout);
    }
    let holds = state.store.held_clusters(&stored.rollout.environment).await?;
    for ring in whole.rollout.rings.iter_mut().filter(|ring| matches!(ring.state.as_str(), "rolling" | "stopped")) {
        let moved = |hold: &&HeldCluster| {
            hold.stream.ring == ring.ring
                && whole
                    .items
                    .iter()
                    .any(|item| item.cluster_type == hold.stream.cluster_type && item.assignment == hold.assignment)
        };
        let told = held_note(&stored.rollout.environment, holds.iter().filter(moved));
        ring.waits_for.extend(told);
    }
    Ok(Found { detail: whole, startable })
}

/// Why some don't get what they should: `1 held (kedge get clusters -e prod)`.
fn held_note<'a>(environment: &str, holds: impl Iterator<Item = &'a HeldCluster>) -> Option<String> {
    let clusters: BTreeSet<&str> = holds.map(|hold| hold.cluster.as_str()).collect();
    let command = Command::new("kedge get clusters").option("-e", environment);
    (!clusters.is_empty()).then(|| format!("{} held ({command})", clusters.len()))
}

pub(super) async fn seen(
    state: &ApiState,
    caller: &Caller,
    found: Vec<StoredRollout>,
) -> Result<Vec<RolloutSummary>, ApiError> {
    let mut views = Vec::with_capacity(found.len());
    let blocked = state.store.blocked_rollouts().await?;
    for stored in found {
        let all = state.store.rollout_items(stored.rollout.id).await?;
        let of = all.len();
        let items = own(state, &caller.visible(), &stored, all).await?;
        if !items.is_empty() || caller.visible() == Visible::All {
            let mut view = view::summary(&stored, items.len());
            view::settle(&mut view, &blocked);
            if items.len() < of {
                view::narrow(&mut view);
            }
            views.push(view);
        }
    }
    Ok(views)
}

/// Whether a rollout is there for who asks: an application team sees one that moves something of its workspaces.
pub(super) async fn is_seen(
    state: &ApiState,
    visible: &Visible,
    stored: &StoredRollout,
    items: &[StoredItem],
) -> Result<bool, ApiError> {
    Ok(*visible == Visible::All || !own(state, visible, stored, items.to_vec()).await?.is_empty())
}

/// What an application team sees of a rollout is what belongs to its workspaces.
async fn own(
    state: &ApiState,
    visible: &Visible,
    stored: &StoredRollout,
    mut items: Vec<StoredItem>,
) -> Result<Vec<StoredItem>, ApiError> {
    let Visible::Workspaces(workspaces) = visible else { return Ok(items) };
    let mut names = Vec::new();
    let mut types: Vec<&str> = items.iter().map(|stored| stored.item.cluster_type.as_str()).collect();
    types.dedup();
    for cluster_type in types {
        names.extend(state.store.assignments_of(&stored.rollout.environment, cluster_type, workspaces).await?);
    }
    items.retain(|stored| names.contains(&format!("{}/{}", stored.item.cluster_type, stored.item.assignment)));
    Ok(items)
}
