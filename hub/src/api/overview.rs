//! A workload in every environment: where it runs, in which version, as it should and as it does, and what moves it.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use kedge_api::assignments::AssignmentSummary;
use kedge_api::counts::ConditionCounts;
use kedge_api::drift::RunningPackages;
use kedge_api::workloads::{
    WorkloadAssignment, WorkloadDescription, WorkloadDetail, WorkloadEnvironment, WorkloadSummary,
};
use kedge_hub_types::status::tally::Word;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::desired::Streams;
use super::drift::{contents, running_view, wanted_by_ring};
use super::fleet::add_condition;
use super::fleet::chain;
use super::names;
use super::objects::REMOVED;
use super::rollouts::about;
use crate::store::StoreError;
use crate::store::api::conditions::MemberFilter;
use crate::store::api::contents::Content;
use crate::store::api::drift::RunningSum;
use crate::store::api::names::NameKind;
use crate::store::catalog::{Filter, Kind, Visible};

/// A workload in all environments.
#[utoipa::path(get, path = "/workloads-overview/{name}", tag = "fleet", params(("name" = String, Path)),
    responses((status = OK, body = WorkloadDetail)))]
pub async fn workload_overview(
    State(state): State<ApiState>,
    caller: Caller,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<WorkloadDetail>, ApiError> {
    whole(&state, &caller, &name?.0).await.map(Json)
}

/// A workload in all environments, as the caller may see it.
pub(crate) async fn whole(state: &ApiState, caller: &Caller, name: &str) -> Result<WorkloadDetail, ApiError> {
    let visible = caller.visible();
    let policies = state.store.policies().await?;
    let order = policies.in_force().map(|policy| chain(policy)).unwrap_or_default();
    let mut names: Vec<String> = state.store.environments_with(Kind::Workload, name).await?;
    let place = |name: &String| order.iter().position(|known| known == name).unwrap_or(order.len());
    names.sort_by(|one, other| (place(one), one).cmp(&(place(other), other)));
    let desired = state.desired.streams(&state.store).await?;
    let (mut environments, mut workspaces) = (Vec::new(), BTreeSet::new());
    for environment in names {
        let Some(known) = state.store.catalog_row(Kind::Workload, &visible, &environment, name).await? else {
            continue;
        };
        let view: WorkloadSummary = serde_json::from_str(&known.shown.body).map_err(corrupt)?;
        workspaces.insert(view.workspace.clone());
        environments.push(in_environment(state, &visible, &environment, view, &desired).await?);
    }
    if environments.is_empty() {
        return Err(names::absent(state, &visible, NameKind::Workload, name, None).await);
    }
    Ok(WorkloadDetail { name: name.to_owned(), workspaces: workspaces.into_iter().collect(), environments })
}

async fn in_environment(
    state: &ApiState,
    visible: &Visible,
    environment: &str,
    view: WorkloadSummary,
    desired: &Streams,
) -> Result<WorkloadEnvironment, ApiError> {
    let gone = state.store.gone_targets_of(&view.name, Some(environment)).await?;
    let gone: BTreeSet<String> = gone.into_iter().map(|(_, target)| target).collect();
    let targets: Vec<String> = view.targets.iter().chain(&gone).cloned().collect();
    let filter = MemberFilter {
        environment: Some(environment.to_owned()),
        assignments: Some(targets.clone()),
        ..MemberFilter::default()
    };
    let sums = match targets.is_empty() {
        true => Vec::new(),
        false => state.store.running_sums(visible, &filter).await?,
    };
    let packages: BTreeSet<String> = sums.iter().map(|sum| sum.running.clone()).collect();
    let contents = contents(state, &packages.into_iter().collect::<Vec<_>>(), desired).await?;
    let mut described = assignments_of(state, visible, environment, &view.targets).await?;
    described.extend(left_over(&view, &gone, &sums, desired));
    let mut assignments: Vec<WorkloadAssignment> =
        described.into_iter().map(|assignment| of_type(assignment, &sums, &contents, desired)).collect();
    assignments.sort_by(|one, other| one.name.cmp(&other.name));
    let mut conditions = ConditionCounts::default();
    for assignment in &assignments {
        conditions = conditions.plus(assignment.conditions);
    }
    Ok(WorkloadEnvironment {
        name: environment.to_owned(),
        conditions,
        assignments,
        rollouts: about::of_workload(state, environment, &view.name).await?,
        workload: WorkloadDescription {
            workspace: view.workspace,
            labels: view.labels,
            targets: view.targets,
            registration: view.registration,
            origin: view.origin,
            stale_since: view.stale_since,
        },
    })
}

/// Targets on the cluster types of an environment: each pair is asked for by its name.
async fn assignments_of(
    state: &ApiState,
    visible: &Visible,
    environment: &str,
    targets: &[String],
) -> Result<Vec<AssignmentSummary>, ApiError> {
    let asked =
        Filter { environment: Some(environment.to_owned()), limit: super::page::MAX_CHANGES, ..Filter::default() };
    let (types, _) = state.store.catalog_page(Kind::ClusterType, visible, &asked).await?;
    let pair = |target: &String| {
        let named = types.iter().map(move |shown| format!("{}/{target}", shown.name));
        named.collect::<Vec<_>>()
    };
    let names: Vec<String> = targets.iter().flat_map(pair).collect();
    let mut found = Vec::new();
    for shown in state.store.catalog_named(Kind::Assignment, visible, environment, &names).await? {
        let mut view: AssignmentSummary = serde_json::from_str(&shown.body).map_err(corrupt)?;
        if !shown.note.is_empty() {
            "quarantined".clone_into(&mut view.state);
        }
        found.push(view);
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// Those of targets that Git doesn't describe any more, where a ring should still run them or a cluster reports them.
fn left_over(
    view: &WorkloadSummary,
    gone: &BTreeSet<String>,
    sums: &[RunningSum],
    desired: &Streams,
) -> Vec<AssignmentSummary> {
    let mut found: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (stream, wanted) in desired.iter().filter(|(stream, _)| stream.environment == view.environment) {
        let here = gone.iter().filter(|target| wanted.entries.contains_key(*target));
        found.extend(here.map(|target| (stream.cluster_type.as_str(), target.as_str())));
    }
    let reported = sums.iter().filter(|sum| gone.contains(&sum.assignment));
    found.extend(reported.map(|sum| (sum.stream.cluster_type.as_str(), sum.assignment.as_str())));
    let assignment = |(cluster_type, target): (&str, &str)| AssignmentSummary {
        environment: view.environment.clone(),
        name: format!("{cluster_type}/{target}"),
        cluster_type: cluster_type.to_owned(),
        target: target.to_owned(),
        workload: view.name.clone(),
        workspace: view.workspace.clone(),
        labels: BTreeMap::new(),
        policies: Vec::new(),
        state: REMOVED.to_owned(),
        quarantine: Vec::new(),
    };
    found.into_iter().map(assignment).collect()
}

fn of_type(
    view: AssignmentSummary,
    sums: &[RunningSum],
    contents: &BTreeMap<String, Content>,
    desired: &Streams,
) -> WorkloadAssignment {
    let mut rings: BTreeSet<String> = BTreeSet::new();
    for (stream, wanted) in desired.iter() {
        let here = stream.environment == view.environment && stream.cluster_type == view.cluster_type;
        if here && wanted.entries.contains_key(&view.target) {
            rings.insert(stream.ring.clone());
        }
    }
    let mut conditions = ConditionCounts::default();
    let mut running: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let of = |sum: &&RunningSum| sum.stream.cluster_type == view.cluster_type && sum.assignment == view.target;
    for sum in sums.iter().filter(of) {
        add_condition(&mut conditions, sum.condition, sum.count);
        let counts = running.entry(&sum.running).or_default();
        counts.0 += sum.count;
        counts.1 += if sum.condition == Word::Unknown { sum.count } else { 0 };
        rings.insert(sum.stream.ring.clone());
    }
    let mut running: Vec<RunningPackages> =
        running.into_iter().map(|(packages, counts)| running_view(packages, counts, contents)).collect();
    running.sort_by(|one, other| other.count.cmp(&one.count).then_with(|| one.packages.cmp(&other.packages)));
    WorkloadAssignment {
        desired: wanted_by_ring(desired, &view.environment, &view.cluster_type, &view.target, &rings),
        name: view.name,
        cluster_type: view.cluster_type,
        target: view.target,
        state: view.state,
        running,
        conditions,
    }
}

fn corrupt(error: serde_json::Error) -> StoreError {
    StoreError::Corrupt(format!("the catalog: {error}"))
}
