//! Desired states: what each stream should run, any generation, and the signed envelope itself.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use kedge_api::desired_states::{DesiredEntry, DesiredStateSummary, PackageSummary, StateSource};
use kedge_api::page::Page;
use kedge_model::wire::{DesiredState, Entry, Envelope, Mode, Stream};
use serde::Deserialize;
use utoipa::IntoParams;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::fleet::Order;
use super::names::{self, Mentioned};
use super::page::{self, Listed, MAX_CHANGES, PageQuery, moment};
use crate::store::StoreError;
use crate::store::api::states::{StateFilter, StateSeen};
use crate::store::catalog::Visible;

/// Which streams.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StateQuery {
    pub environment: Option<String>,
    pub cluster_type: Option<String>,
    pub ring: Option<String>,
    /// The maximum number of items, up to 500.
    pub limit: Option<usize>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Only what changed after this number (`kedge-tick` of an answer before).
    pub after: Option<i64>,
    /// With `after`: wait so long (`30s`) for a change.
    pub wait: Option<String>,
}

/// Which generation.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct GenerationQuery {
    /// Default: the newest.
    pub generation: Option<i64>,
}

/// The newest desired state of each stream, along the promotion chain.
#[utoipa::path(get, path = "/desired-states", tag = "states", params(StateQuery),
    responses((status = OK, body = Page<DesiredStateSummary>)))]
pub async fn desired_states(
    State(state): State<ApiState>,
    caller: Caller,
    query: Result<Query<StateQuery>, QueryRejection>,
) -> Result<Listed<DesiredStateSummary>, ApiError> {
    let query = query?.0;
    let paging = PageQuery { limit: query.limit, cursor: query.cursor, after: query.after, wait: query.wait };
    let limit = paging.limit()?;
    let mut filter = StateFilter {
        environment: query.environment,
        cluster_type: query.cluster_type,
        ring: query.ring,
        after: query.after,
        from: paging.from()?,
        limit: limit + 1,
    };
    if let Some(after) = query.after {
        filter.limit = MAX_CHANGES;
        return page::follow(&state, after, paging.wait()?, || async {
            let items = views(&state, &caller, state.store.newest_states(&caller.visible(), &filter).await?).await?;
            Ok(Page { items, removed: Vec::new(), next: None })
        })
        .await;
    }
    let tick = state.ticks.current(&state.store).await?;
    let mut found = along_the_chain(&state, &caller, &filter).await?;
    if found.is_empty() {
        let mentioned = Mentioned {
            environment: filter.environment.as_deref(),
            cluster_type: filter.cluster_type.as_deref(),
            ring: filter.ring.as_deref(),
            ..Mentioned::default()
        };
        names::check(&state, &caller, &mentioned).await?;
    }
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).and_then(|last| page::cursor(&last.stream));
    Ok(Listed { page: Page { items: views(&state, &caller, found).await?, removed: Vec::new(), next }, tick })
}

/// Streams of several environments: one after the other, as a commit reaches them.
async fn along_the_chain(state: &ApiState, caller: &Caller, filter: &StateFilter) -> Result<Vec<StateSeen>, ApiError> {
    let order = Order::of(state).await?;
    let mut environments = match &filter.environment {
        Some(environment) => vec![environment.clone()],
        None => state.store.environments_of_states().await?,
    };
    environments.sort_by_cached_key(|name| order.place(name));
    let begun = filter.from.as_ref().map(|from| order.place(&from.environment));
    environments.retain(|name| begun.as_ref().is_none_or(|begun| order.place(name) >= *begun));
    let (wanted, mut found) = (filter.limit, Vec::new());
    for environment in environments {
        let from = filter.from.clone().filter(|from| from.environment == environment);
        let limit = wanted - found.len();
        let filter = StateFilter { environment: Some(environment), from, limit, ..filter.clone() };
        found.extend(state.store.newest_states(&caller.visible(), &filter).await?);
        if found.len() >= wanted {
            break;
        }
    }
    Ok(found)
}

/// The desired state of one stream.
#[utoipa::path(get, path = "/desired-states/{environment}/{cluster_type}/{ring}", tag = "states",
    params(("environment" = String, Path), ("cluster_type" = String, Path), ("ring" = String, Path), GenerationQuery),
    responses((status = OK, body = DesiredStateSummary)))]
pub async fn desired_state(
    State(state): State<ApiState>,
    caller: Caller,
    path: Result<Path<(String, String, String)>, PathRejection>,
    query: Result<Query<GenerationQuery>, QueryRejection>,
) -> Result<Json<DesiredStateSummary>, ApiError> {
    let seen = find(&state, &caller, path?.0, query?.0.generation).await?;
    let view = views(&state, &caller, vec![seen]).await?.pop();
    view.map(Json).ok_or_else(|| ApiError::not_found("such desired state"))
}

/// The desired state of one stream, signed: what agents get.
#[utoipa::path(get, path = "/desired-states/{environment}/{cluster_type}/{ring}/envelope", tag = "states",
    params(("environment" = String, Path), ("cluster_type" = String, Path), ("ring" = String, Path), GenerationQuery),
    responses((status = OK, description = "a DSSE envelope, see docs/wire.md", content_type = "application/json")))]
pub async fn desired_state_envelope(
    State(state): State<ApiState>,
    caller: Caller,
    path: Result<Path<(String, String, String)>, PathRejection>,
    query: Result<Query<GenerationQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    caller.not_application("a whole desired state")?;
    let seen = find(&state, &caller, path?.0, query?.0.generation).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], seen.envelope).into_response())
}

async fn find(
    state: &ApiState,
    caller: &Caller,
    (environment, cluster_type, ring): (String, String, String),
    generation: Option<i64>,
) -> Result<StateSeen, ApiError> {
    let stream = Stream { environment, cluster_type, ring };
    let missing = || match generation {
        Some(generation) => ApiError::not_found(format!("generation {generation} of {stream}")),
        None => ApiError::not_found(format!("desired state of {stream}")),
    };
    if let Visible::Workspaces(workspaces) = caller.visible() {
        let own = state.store.assignments_of(&stream.environment, &stream.cluster_type, &workspaces).await?;
        if own.is_empty() {
            return Err(missing());
        }
    }
    if let Some(seen) = state.store.state_of(&stream, generation).await? {
        return Ok(seen);
    }
    let mentioned = Mentioned {
        environment: Some(&stream.environment),
        cluster_type: Some(&stream.cluster_type),
        // Without a policy and clusters nothing names the one ring that there always is.
        ring: Some(stream.ring.as_str()).filter(|ring| *ring != Stream::ALL),
        ..Mentioned::default()
    };
    match names::check(state, caller, &mentioned).await {
        Err(error) if error.reason == "UnknownName" => Err(ApiError { reason: "NotFound", ..error }),
        checked => checked.and_then(|()| Err(missing())),
    }
}

/// An application team sees its own entries.
async fn views(state: &ApiState, caller: &Caller, seen: Vec<StateSeen>) -> Result<Vec<DesiredStateSummary>, ApiError> {
    let mut views = Vec::with_capacity(seen.len());
    for one in seen {
        let mut view = view(&one)?;
        if let Visible::Workspaces(workspaces) = caller.visible() {
            let own = state.store.assignments_of(&view.environment, &view.cluster_type, &workspaces).await?;
            let own: BTreeSet<&str> =
                own.iter().filter_map(|name| name.split_once('/').map(|(_, target)| target)).collect();
            view.entries.retain(|entry| own.contains(entry.assignment.as_str()));
            view.removed.retain(|name| own.contains(name.as_str()));
            view.unmanaged.retain(|name| own.contains(name.as_str()));
            // How many others there are is nothing of theirs.
            view.confirmed = view.entries.len() as u64;
        }
        views.push(view);
    }
    Ok(views)
}

fn view(seen: &StateSeen) -> Result<DesiredStateSummary, ApiError> {
    let (envelope, state) = open(seen)?;
    Ok(DesiredStateSummary {
        environment: seen.stream.environment.clone(),
        cluster_type: seen.stream.cluster_type.clone(),
        ring: seen.stream.ring.clone(),
        generation: state.generation.0,
        content: seen.content.clone(),
        created_at: moment(seen.created_at),
        confirmed: state.confirmed,
        signed_by: envelope.signatures.iter().map(|signature| signature.keyid.to_string()).collect(),
        source: state.source.map(|source| StateSource {
            repo: source.repo,
            branch: source.branch,
            path: source.path,
            commit: source.commit,
        }),
        entries: state.entries.iter().map(entry_view).collect(),
        removed: state.removed.into_iter().map(|gone| gone.assignment).collect(),
        unmanaged: state.unmanaged.into_iter().map(|gone| gone.assignment).collect(),
    })
}

/// The newest generation of each stream of an environment, by cluster type and ring. It tells nothing of what is in them.
pub(crate) async fn generations(state: &ApiState, environment: &str) -> Result<Vec<(String, String, u64)>, ApiError> {
    let streams = state.desired.streams(&state.store).await?;
    let of = streams.iter().filter(|(stream, _)| stream.environment == environment);
    Ok(of.map(|(stream, wanted)| (stream.cluster_type.clone(), stream.ring.clone(), wanted.generation)).collect())
}

/// The entry of one assignment.
pub fn entry_of(seen: &StateSeen, target: &str) -> Result<Option<DesiredEntry>, ApiError> {
    let (_, state) = open(seen)?;
    Ok(state.entries.iter().find(|entry| entry.assignment == target).map(entry_view))
}

/// The hub wrote it; who gets it verifies it.
fn open(seen: &StateSeen) -> Result<(Envelope, DesiredState), ApiError> {
    let corrupt = |error: String| ApiError::from(StoreError::Corrupt(format!("state of {}: {error}", seen.stream)));
    let envelope = Envelope::from_json(&seen.envelope).map_err(|error| corrupt(error.to_string()))?;
    let state = serde_json::from_slice(&envelope.payload).map_err(|error| corrupt(error.to_string()))?;
    Ok((envelope, state))
}

fn entry_view(entry: &Entry) -> DesiredEntry {
    let package = |package: &kedge_model::wire::PackageRef| PackageSummary {
        digest: package.digest.to_string(),
        size: package.size,
        repo: package.repo.clone(),
        commit: package.commit.clone(),
    };
    let assignment = entry.assignment.clone();
    match &entry.mode {
        Mode::Apply(packages) => DesiredEntry {
            assignment,
            mode: "apply".to_owned(),
            version: packages.version.clone(),
            platform: Some(package(&packages.platform)),
            workload: Some(package(&packages.workload)),
            expected_commit: None,
            restart: entry.restart,
        },
        Mode::Observe(observation) => DesiredEntry {
            assignment,
            mode: "observe".to_owned(),
            version: None,
            platform: None,
            workload: None,
            expected_commit: observation.expected_commit.clone(),
            restart: entry.restart,
        },
    }
}
