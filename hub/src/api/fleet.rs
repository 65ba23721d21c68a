//! The fleet at a glance: every environment along the promotion chain, with what is true of it in numbers. Each number is the
//! length of a list: of `/conditions`, `/clusters`, `/rollouts`, `/assignments`, `/problems`; a repository counts once, however many
//! environments read it.

mod chain;
mod reported;
mod running;
mod standing;

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use kedge_api::counts::ConditionCounts;
use kedge_api::environments::EnvironmentSummary;
use kedge_api::fleet::{
    FailingRepository, FleetEnvironment, FleetRing, FleetSummary, FleetType, PresenceCounts, ProblemCounts,
    RepositoryCounts,
};
use kedge_api::repositories::RepositorySummary;
use kedge_hub_types::status::tally::{Presence, Word};
use serde::Deserialize;
use utoipa::IntoParams;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::names::{self, Mentioned};
use super::page::{MAX_CHANGES, moment};
use crate::store::api::conditions::MemberFilter;
use crate::store::api::drift::RunningSum;
use crate::store::api::fleet::{EnvironmentSum, FleetFilter, TypeSum};
use crate::store::catalog::{Filter, Kind, Shown, Visible};
use crate::store::{StoreError, now};
use chain::along_the_chain;
pub(crate) use chain::{Order, chain};

/// What the glance is about.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FleetQuery {
    pub environment: Option<String>,
    /// Count the assignments of this workload only, and the clusters of types that have one.
    pub workload: Option<String>,
}

/// The fleet at a glance.
#[utoipa::path(get, path = "/fleet", tag = "fleet", params(FleetQuery), responses((status = OK, body = FleetSummary)))]
pub async fn fleet(
    State(state): State<ApiState>,
    caller: Caller,
    query: Result<Query<FleetQuery>, QueryRejection>,
) -> Result<Json<FleetSummary>, ApiError> {
    glance(&state, &caller, &query?.0).await.map(Json)
}

/// The fleet at a glance, as the caller may see it.
pub(crate) async fn glance(state: &ApiState, caller: &Caller, query: &FleetQuery) -> Result<FleetSummary, ApiError> {
    let visible = caller.visible();
    let mut filter = FleetFilter {
        environment: query.environment.clone(),
        workload: query.workload.clone(),
        ..FleetFilter::default()
    };
    if let Some(workload) = &query.workload {
        for (environment, target) in state.store.gone_targets_of(workload, query.environment.as_deref()).await? {
            filter.gone.entry(environment).or_default().push(target);
        }
    }
    let mut environments = environments(state, &visible, &filter).await?;
    add_clusters(state, &visible, &filter, &mut environments).await?;
    if let Some(name) = &query.environment
        && environments.is_empty()
    {
        names::environment(state, caller, Some(name)).await?;
        return Err(ApiError::not_found(format!("environment {name}")).hint("`kedge get environments` lists them"));
    }
    // A workload of others is none, also where it shares clusters with the caller's.
    let nowhere = environments.values().all(|one| one.clusters.total == 0);
    if query.workload.is_some() && (nowhere || visible != Visible::All) {
        let workload = query.workload.as_deref();
        names::check(state, caller, &Mentioned { workload, ..Mentioned::default() }).await?;
    }
    let store = &state.store;
    for EnvironmentSum { environment, what, count } in store.rollout_sums(&visible, &filter).await? {
        let Some(found) = environments.get_mut(&environment) else { continue };
        match what.as_str() {
            "Active" => found.rollouts.moving += count,
            "Paused" => found.rollouts.paused += count,
            _ => found.rollouts.stopped += count,
        }
    }
    if visible == Visible::All && filter.workload.is_none() {
        for sum in store.waiting_sums().await? {
            if let Some(found) = environments.get_mut(&sum.environment) {
                found.rollouts.waiting += sum.count;
            }
        }
    }
    for sum in store.quarantine_sums(&visible, &filter).await? {
        if let Some(found) = environments.get_mut(&sum.environment) {
            found.quarantined += sum.count;
        }
    }
    for (environment, count) in drifted(state, &visible, query).await? {
        if let Some(found) = environments.get_mut(&environment) {
            found.drifted += count;
        }
    }
    let mut problems = ProblemCounts::default();
    for EnvironmentSum { environment, what, count } in store.problem_sums(&visible, &filter).await? {
        add_problems(&mut problems, &what, count);
        if let Some(found) = environments.get_mut(&environment) {
            add_problems(&mut found.problems, &what, count);
        }
    }
    let environments = along_the_chain(state, &visible, environments, filter.workload.as_deref()).await?;
    let (repositories, failing_repositories) = repositories(state, caller, &filter).await?;
    Ok(FleetSummary { environments, problems, repositories, failing_repositories, at: moment(now().0) })
}

/// Assignments on clusters that report changes that nobody asked for, by environment.
async fn drifted(state: &ApiState, visible: &Visible, query: &FleetQuery) -> Result<BTreeMap<String, u64>, ApiError> {
    let environment = query.environment.as_deref();
    let targets: Option<BTreeSet<(String, String)>> = match &query.workload {
        Some(workload) => Some(state.store.targets_of(workload, environment).await?.into_iter().collect()),
        None => None,
    };
    let filter = MemberFilter {
        environment: query.environment.clone(),
        assignments: targets.as_ref().map(|targets| targets.iter().map(|(_, name)| name.clone()).collect()),
        ..MemberFilter::default()
    };
    let sums = state.store.drift_sums(visible, &filter).await?;
    let mut found = BTreeMap::new();
    if sums.is_empty() {
        return Ok(found);
    }
    let own: Option<BTreeSet<(String, String)>> = match visible {
        Visible::All => None,
        Visible::Workspaces(workspaces) => Some(state.store.own_assignments(workspaces).await?.into_iter().collect()),
    };
    for RunningSum { stream, assignment, count, .. } in sums {
        let whole = (stream.environment.clone(), format!("{}/{assignment}", stream.cluster_type));
        let named = (stream.environment, assignment);
        let is_asked = targets.as_ref().is_none_or(|targets| targets.contains(&named));
        if is_asked && own.as_ref().is_none_or(|own| own.contains(&whole)) {
            *found.entry(named.0).or_default() += count;
        }
    }
    Ok(found)
}

/// Those that are described, with their cluster types.
async fn environments(
    state: &ApiState,
    visible: &Visible,
    filter: &FleetFilter,
) -> Result<BTreeMap<String, FleetEnvironment>, ApiError> {
    let asked = Filter { environment: filter.environment.clone(), limit: MAX_CHANGES, ..Filter::default() };
    let (shown, _) = state.store.catalog_page(Kind::Environment, visible, &asked).await?;
    let mut found = BTreeMap::new();
    for Shown { name, body, .. } in shown {
        let view: EnvironmentSummary = serde_json::from_str(&body).map_err(corrupt)?;
        let all = *visible == Visible::All;
        let notices = if all { standing::described(&view) } else { Vec::new() };
        let promoted_commit = view.promoted_commit.filter(|_| all);
        found.insert(name.clone(), FleetEnvironment { name, promoted_commit, notices, ..FleetEnvironment::default() });
    }
    if filter.workload.is_none() {
        let (types, _) = state.store.catalog_page(Kind::ClusterType, visible, &asked).await?;
        for Shown { environment, name, .. } in types {
            if let Some(found) = found.get_mut(&environment) {
                found.types.push(FleetType { name, ..FleetType::default() });
            }
        }
    }
    Ok(found)
}

async fn add_clusters(
    state: &ApiState,
    visible: &Visible,
    filter: &FleetFilter,
    environments: &mut BTreeMap<String, FleetEnvironment>,
) -> Result<(), ApiError> {
    let mut seen: BTreeMap<(String, String), ()> = BTreeMap::new();
    let apart = filter.environment.is_some();
    for TypeSum { environment, cluster_type, ring, what, count } in state.store.presence_sums(visible, filter).await? {
        let found = of_name(environments, &environment);
        add_presence(&mut found.clusters, what, count);
        add_presence(&mut ring_of(&mut found.rings, &ring).clusters, what, count);
        let in_type = of_type(&mut found.types, &cluster_type);
        add_presence(&mut in_type.clusters, what, count);
        if apart {
            add_presence(&mut ring_of(&mut in_type.rings, &ring).clusters, what, count);
        }
        seen.insert((environment, cluster_type), ());
    }
    for TypeSum { environment, cluster_type, ring, what, count } in state.store.condition_sums(visible, filter).await? {
        let found = of_name(environments, &environment);
        add_condition(&mut found.conditions, what, count);
        add_condition(&mut ring_of(&mut found.rings, &ring).conditions, what, count);
        let in_type = of_type(&mut found.types, &cluster_type);
        add_condition(&mut in_type.conditions, what, count);
        if apart {
            add_condition(&mut ring_of(&mut in_type.rings, &ring).conditions, what, count);
        }
    }
    let mut oldest: BTreeMap<String, i64> = BTreeMap::new();
    for (environment, cluster_type, since) in state.store.silent_since(filter).await? {
        if seen.contains_key(&(environment.clone(), cluster_type)) {
            let known = oldest.entry(environment).or_insert(since);
            *known = since.min(*known);
        }
    }
    for (environment, since) in oldest {
        of_name(environments, &environment).oldest_unknown = Some(moment(since));
    }
    Ok(())
}

fn ring_of<'a>(rings: &'a mut Vec<FleetRing>, name: &str) -> &'a mut FleetRing {
    let index = rings.iter().position(|known| known.name == name).unwrap_or_else(|| {
        rings.push(FleetRing { name: name.to_owned(), ..FleetRing::default() });
        rings.len() - 1
    });
    &mut rings[index]
}

/// Clusters may belong to an environment that isn't described any more: they are still there.
fn of_name<'a>(environments: &'a mut BTreeMap<String, FleetEnvironment>, name: &str) -> &'a mut FleetEnvironment {
    environments
        .entry(name.to_owned())
        .or_insert_with(|| FleetEnvironment { name: name.to_owned(), ..FleetEnvironment::default() })
}

fn of_type<'a>(types: &'a mut Vec<FleetType>, name: &str) -> &'a mut FleetType {
    let index = types.iter().position(|known| known.name == name).unwrap_or_else(|| {
        types.push(FleetType { name: name.to_owned(), ..FleetType::default() });
        types.len() - 1
    });
    &mut types[index]
}

pub(crate) fn add_condition(counts: &mut ConditionCounts, condition: Word, count: u64) {
    *match condition {
        Word::Converged => &mut counts.converged,
        Word::Converging => &mut counts.converging,
        Word::Failed => &mut counts.failed,
        Word::Unknown => &mut counts.unknown,
    } += count;
}

fn add_presence(counts: &mut PresenceCounts, presence: Presence, count: u64) {
    counts.total += count;
    match presence {
        Presence::Unknown => counts.unknown += count,
        Presence::Reporting => counts.known += count,
        Presence::Joined => {
            counts.known += count;
            counts.joined += count;
        }
    }
}

fn add_problems(counts: &mut ProblemCounts, severity: &str, count: u64) {
    match severity {
        "error" => counts.errors += count,
        _ => counts.warnings += count,
    }
}

/// Each once, however many environments read it.
async fn repositories(
    state: &ApiState,
    caller: &Caller,
    filter: &FleetFilter,
) -> Result<(RepositoryCounts, Vec<FailingRepository>), ApiError> {
    let asked = Filter { environment: filter.environment.clone(), limit: MAX_CHANGES, ..Filter::default() };
    let (shown, _) = state.store.catalog_page(Kind::Repository, &caller.visible(), &asked).await?;
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for shown in shown {
        let view: RepositorySummary = serde_json::from_str(&shown.body).map_err(corrupt)?;
        if !super::objects::is_own(&view, caller) {
            continue;
        }
        let failing = found.entry(view.url).or_default();
        if view.failing.is_some() && !failing.contains(&shown.environment) {
            failing.push(shown.environment);
        }
    }
    let (failing, good): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, failing)| !failing.is_empty());
    let counts = RepositoryCounts { good: good.len() as u64, failing: failing.len() as u64 };
    let along = Order::of(state).await?;
    let failing = failing.into_iter().map(|(url, mut environments)| {
        environments.sort_by_cached_key(|name| along.place(name));
        FailingRepository { url, environments }
    });
    Ok((counts, failing.collect()))
}

fn corrupt(error: serde_json::Error) -> StoreError {
    StoreError::Corrupt(format!("the catalog: {error}"))
}
