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
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::names::{self, Mentioned};
use super::page::{MAX_CHANGES, moment};
use crate::catalog::view::{EnvironmentView, RepositoryView};
use crate::status::tally::{Presence, Word};
use crate::store::api::conditions::MemberFilter;
use crate::store::api::drift::RunningSum;
use crate::store::api::fleet::{EnvironmentSum, FleetFilter, TypeSum};
use crate::store::catalog::{Filter, Kind, Shown, Visible};
use crate::store::{StoreError, now};
use chain::along_the_chain;
pub(crate) use chain::{Order, chain};
pub use running::RunningCommit;
pub use standing::StandingNotice;

/// Everything at a glance.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetView {
    /// Along the promotion chain.
    pub environments: Vec<FleetEnvironment>,
    pub problems: ProblemCounts,
    pub repositories: RepositoryCounts,
    /// Repositories that can't be read, or of which an environment can't read its branch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failing_repositories: Vec<FailingRepository>,
    /// RFC 3339
    pub at: String,
}

/// An environment in numbers.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetEnvironment {
    pub name: String,
    /// The commits of `main` that its clusters run, as they last reported it; several while a rollout is on its way, or where
    /// clusters are held or offline. Not for application teams.
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
    /// RFC 3339: since when the cluster that has been offline the longest is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_unknown: Option<String>,
    pub rollouts: RolloutCounts,
    /// Assignments that can't be rendered or packed.
    pub quarantined: u64,
    /// Assignments on clusters in contact that report changes that nobody asked for.
    pub drifted: u64,
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
    /// They missed their check-in.
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

/// A repository that fails, and for whom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailingRepository {
    pub url: String,
    pub environments: Vec<String>,
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
        problems.add(&what, count);
        if let Some(found) = environments.get_mut(&environment) {
            found.problems.add(&what, count);
        }
    }
    let environments = along_the_chain(state, &visible, environments, filter.workload.as_deref()).await?;
    let (repositories, failing_repositories) = repositories(state, caller, &filter).await?;
    Ok(FleetView { environments, problems, repositories, failing_repositories, at: moment(now().0) })
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
        let view: RepositoryView = serde_json::from_str(&shown.body).map_err(corrupt)?;
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
