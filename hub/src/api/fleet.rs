//! The fleet at a glance: every environment along the promotion chain, with what is true of it in numbers. Each number is the
//! length of a list: of `/conditions`, `/clusters`, `/rollouts`, `/assignments`, `/problems` or `/repositories`.

mod chain;
mod standing;

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::names::{self, Mentioned};
use super::page::{MAX_CHANGES, moment};
use crate::catalog::view::{EnvironmentView, RepositoryView};
use crate::store::api::fleet::{EnvironmentSum, FleetFilter, TypeSum};
use crate::store::catalog::{Filter, Kind, Shown, Visible};
use crate::store::{StoreError, now};
use crate::truth::tally::{Presence, Word};
use chain::along_the_chain;
pub(crate) use chain::{Order, chain};
pub use standing::{RunningCommit, StandingNotice};

/// Everything at a glance.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetView {
    /// Along the promotion chain.
    pub environments: Vec<FleetEnvironment>,
    pub problems: ProblemCounts,
    pub repositories: RepositoryCounts,
    /// RFC 3339
    pub at: String,
}

/// An environment in numbers.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetEnvironment {
    pub name: String,
    /// The commits of `main` that its rings run; several while a rollout is on its way. Not for application teams.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<RunningCommit>,
    /// Why it doesn't run what Git says, or might not: what needs somebody most comes first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<StandingNotice>,
    /// The commit of `main` that Git names for it; not for application teams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promoted_commit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promoted_subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promoted_author: Option<String>,
    /// RFC 3339: when it was let in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promoted_at: Option<String>,
    /// `Waiting`, `Entered`, `Passed`, … of that commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promotion: Option<String>,
    /// A newer commit that waits to come in, and what it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextView>,
    /// Why its branch doesn't name the commit that was let in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Position along the promotion chain.
    pub order: usize,
    /// Environments that must have passed before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    pub clusters: PresenceCounts,
    /// Assignments on clusters.
    pub conditions: ConditionCounts,
    /// RFC 3339: since when the cluster that is silent the longest is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_unknown: Option<String>,
    pub rollouts: RolloutCounts,
    /// Assignments that can't be rendered or packed.
    pub quarantined: u64,
    pub problems: ProblemCounts,
    /// In the order of the policy.
    pub rings: Vec<FleetRing>,
    pub types: Vec<FleetType>,
}

/// A commit of `main` on its way in.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextView {
    pub commit: String,
    pub subject: String,
    pub waits_for: Vec<String>,
}

/// A cluster type of an environment in numbers.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetType {
    pub name: String,
    pub clusters: PresenceCounts,
    pub conditions: ConditionCounts,
    /// When one environment is asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rings: Vec<FleetRing>,
}

/// A ring of an environment, or of one of its cluster types, in numbers.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetRing {
    pub name: String,
    pub clusters: PresenceCounts,
    pub conditions: ConditionCounts,
}

/// Clusters by whether anything is known of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PresenceCounts {
    pub known: u64,
    /// Their promise is broken.
    pub unknown: u64,
    pub total: u64,
    /// Of the known: those that have reported nothing yet.
    pub joined: u64,
}

/// Assignments on clusters by condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConditionCounts {
    pub converged: u64,
    pub converging: u64,
    pub failed: u64,
    pub unknown: u64,
}

/// Rollouts that haven't ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutCounts {
    /// In state `Active`.
    pub moving: u64,
    pub stopped: u64,
    pub paused: u64,
    /// Newer content that waits behind them.
    pub waiting: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProblemCounts {
    pub errors: u64,
    pub warnings: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepositoryCounts {
    pub good: u64,
    pub failing: u64,
}

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
#[utoipa::path(get, path = "/fleet", tag = "fleet", params(FleetQuery), responses((status = OK, body = FleetView)))]
pub async fn fleet(
    State(state): State<ApiState>,
    caller: Caller,
    query: Result<Query<FleetQuery>, QueryRejection>,
) -> Result<Json<FleetView>, ApiError> {
    glance(&state, &caller, &query?.0).await.map(Json)
}

/// The fleet at a glance, as the caller may see it.
pub(crate) async fn glance(state: &ApiState, caller: &Caller, query: &FleetQuery) -> Result<FleetView, ApiError> {
    let visible = caller.visible();
    let filter = FleetFilter { environment: query.environment.clone(), workload: query.workload.clone() };
    let mut environments = environments(state, &visible, &filter).await?;
    add_clusters(state, &visible, &filter, &mut environments).await?;
    if let Some(name) = &query.environment
        && environments.is_empty()
    {
        names::environment(state, caller, Some(name)).await?;
        return Err(ApiError::not_found(format!("environment {name}")).hint("`kedge get environments` lists them"));
    }
    if query.workload.is_some() && environments.values().all(|one| one.clusters.total == 0) {
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
    let mut problems = ProblemCounts::default();
    for EnvironmentSum { environment, what, count } in store.problem_sums(&visible, &filter).await? {
        problems.add(&what, count);
        if let Some(found) = environments.get_mut(&environment) {
            found.problems.add(&what, count);
        }
    }
    let environments = along_the_chain(state, &visible, environments, filter.workload.as_deref()).await?;
    let repositories = repositories(state, caller, &filter).await?;
    Ok(FleetView { environments, problems, repositories, at: moment(now().0) })
}

impl ConditionCounts {
    pub(crate) fn add(&mut self, condition: Word, count: u64) {
        *match condition {
            Word::Converged => &mut self.converged,
            Word::Converging => &mut self.converging,
            Word::Failed => &mut self.failed,
            Word::Unknown => &mut self.unknown,
        } += count;
    }

    pub(crate) fn plus(self, other: ConditionCounts) -> ConditionCounts {
        ConditionCounts {
            converged: self.converged + other.converged,
            converging: self.converging + other.converging,
            failed: self.failed + other.failed,
            unknown: self.unknown + other.unknown,
        }
    }
}

impl PresenceCounts {
    fn add(&mut self, presence: Presence, count: u64) {
        self.total += count;
        match presence {
            Presence::Unknown => self.unknown += count,
            Presence::Reporting => self.known += count,
            Presence::Joined => {
                self.known += count;
                self.joined += count;
            }
        }
    }
}

impl ProblemCounts {
    fn add(&mut self, severity: &str, count: u64) {
        match severity {
            "error" => self.errors += count,
            _ => self.warnings += count,
        }
    }
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
        let view: EnvironmentView = serde_json::from_str(&body).map_err(corrupt)?;
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
        found.clusters.add(what, count);
        ring_of(&mut found.rings, &ring).clusters.add(what, count);
        let of_type = found.of_type(&cluster_type);
        of_type.clusters.add(what, count);
        if apart {
            ring_of(&mut of_type.rings, &ring).clusters.add(what, count);
        }
        seen.insert((environment, cluster_type), ());
    }
    for TypeSum { environment, cluster_type, ring, what, count } in state.store.condition_sums(visible, filter).await? {
        let found = of_name(environments, &environment);
        found.conditions.add(what, count);
        ring_of(&mut found.rings, &ring).conditions.add(what, count);
        let of_type = found.of_type(&cluster_type);
        of_type.conditions.add(what, count);
        if apart {
            ring_of(&mut of_type.rings, &ring).conditions.add(what, count);
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

impl FleetEnvironment {
    fn of_type(&mut self, name: &str) -> &mut FleetType {
        let index = match self.types.iter().position(|known| known.name == name) {
            Some(index) => index,
            None => {
                self.types.push(FleetType { name: name.to_owned(), ..FleetType::default() });
                self.types.len() - 1
            }
        };
        &mut self.types[index]
    }
}

async fn repositories(state: &ApiState, caller: &Caller, filter: &FleetFilter) -> Result<RepositoryCounts, ApiError> {
    let asked = Filter { environment: filter.environment.clone(), limit: MAX_CHANGES, ..Filter::default() };
    let (shown, _) = state.store.catalog_page(Kind::Repository, &caller.visible(), &asked).await?;
    let mut counts = RepositoryCounts::default();
    for shown in shown {
        let view: RepositoryView = serde_json::from_str(&shown.body).map_err(corrupt)?;
        if !super::objects::is_own(&view, caller) {
            continue;
        }
        match view.failing {
            Some(_) => counts.failing += 1,
            None => counts.good += 1,
        }
    }
    Ok(counts)
}

fn corrupt(error: serde_json::Error) -> StoreError {
    StoreError::Corrupt(format!("the catalog: {error}"))
}
