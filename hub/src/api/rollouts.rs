//! Rollouts: where each change is, and what people say about it. A word is written for the leader, who takes it within a second;
//! the answer waits that long.

pub mod about;
pub mod say;
pub mod selection;
pub mod start;
pub mod status;
pub mod view;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use kedge_rollout::{Item, RolloutId};
use serde::Deserialize;
use utoipa::IntoParams;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::names::{self, Mentioned};
use super::page::{self, Listed, MAX_CHANGES, Page, PageQuery};
use crate::store::catalog::Visible;
use crate::store::rollout::{RolloutFilter, StoredItem, StoredRollout};
use view::{RolloutView, RolloutWhole};

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
    /// At most so many items, up to 500.
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
    responses((status = OK, body = Page<RolloutView>)))]
pub async fn rollouts(
    State(state): State<ApiState>,
    caller: Caller,
    query: Result<Query<RolloutsQuery>, QueryRejection>,
) -> Result<Listed<RolloutView>, ApiError> {
    let query = query?.0;
    names::word("state of a rollout", query.state.as_deref(), &STATES)?;
    let paging =
        PageQuery { limit: query.limit, cursor: query.cursor.clone(), after: query.after, wait: query.wait.clone() };
    let limit = paging.limit()?;
    let before = paging.from::<u64>()?.map(RolloutId);
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
    Ok(Listed { page: Page { items: seen(&state, &caller, found).await?, removed: Vec::new(), next }, tick })
}

/// One rollout with what moves, where it is in each ring, and what people said.
#[utoipa::path(get, path = "/rollouts/{id}", tag = "rollouts", params(("id" = u64, Path)),
    responses((status = OK, body = RolloutWhole)))]
pub async fn rollout(
    State(state): State<ApiState>,
    caller: Caller,
    id: Result<Path<u64>, PathRejection>,
) -> Result<Json<RolloutWhole>, ApiError> {
    whole(&state, &caller, RolloutId(id?.0)).await.map(Json)
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

/// A rollout that the caller may see.
pub(crate) async fn whole(state: &ApiState, caller: &Caller, id: RolloutId) -> Result<RolloutWhole, ApiError> {
    let missing = || ApiError::not_found(format!("rollout {id}")).hint("`kedge rollout list` shows them");
    let stored = state.store.rollout(id).await?.ok_or_else(missing)?;
    let all = state.store.rollout_items(id).await?;
    let of = all.len();
    let items = own(state, caller, &stored, all).await?;
    if items.is_empty() && caller.visible() != Visible::All {
        return Err(missing());
    }
    let partial = items.len() < of;
    let waiting = state.store.rollouts_waiting(&stored.rollout.environment).await?;
    let behind = waiting.get(&stored.rollout.lane.to_string());
    let held = state.store.running_rollout(id).await?;
    let before = |item: &Item| held.as_ref().and_then(|held| held.version_before(item));
    let mut whole = RolloutWhole::of(&stored, items, before, behind.filter(|waiting| waiting.behind == id));
    whole.rollout.settle(&state.store.blocked_rollouts().await?);
    if partial {
        whole.rollout.narrow();
    }
    Ok(whole)
}

pub(super) async fn seen(
    state: &ApiState,
    caller: &Caller,
    found: Vec<StoredRollout>,
) -> Result<Vec<RolloutView>, ApiError> {
    let mut views = Vec::with_capacity(found.len());
    let blocked = state.store.blocked_rollouts().await?;
    for stored in found {
        let all = state.store.rollout_items(stored.rollout.id).await?;
        let of = all.len();
        let items = own(state, caller, &stored, all).await?;
        if !items.is_empty() || caller.visible() == Visible::All {
            let mut view = RolloutView::of(&stored, items.len());
            view.settle(&blocked);
            if items.len() < of {
                view.narrow();
            }
            views.push(view);
        }
    }
    Ok(views)
}

/// What an application team sees of a rollout is what belongs to its workspaces.
async fn own(
    state: &ApiState,
    caller: &Caller,
    stored: &StoredRollout,
    mut items: Vec<StoredItem>,
) -> Result<Vec<StoredItem>, ApiError> {
    let Visible::Workspaces(workspaces) = caller.visible() else { return Ok(items) };
    let mut names = Vec::new();
    let mut types: Vec<&str> = items.iter().map(|stored| stored.item.cluster_type.as_str()).collect();
    types.dedup();
    for cluster_type in types {
        names.extend(state.store.assignments_of(&stored.rollout.environment, cluster_type, &workspaces).await?);
    }
    items.retain(|stored| names.contains(&format!("{}/{}", stored.item.cluster_type, stored.item.assignment)));
    Ok(items)
}
