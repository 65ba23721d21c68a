//! Workloads across environments: one row each, with what runs of it everywhere. Counted, never walked.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use kedge_api::counts::ConditionCounts;
use kedge_api::page::Page;
use kedge_api::workloads::{VersionCount, WorkloadOverview, WorkloadPlace, WorkloadSummary};
use serde::Deserialize;
use utoipa::IntoParams;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::drift::contents;
use super::fleet::add_condition;
use super::fleet::chain;
use super::page::{self, Listed, PageQuery};
use crate::store::StoreError;
use crate::store::api::conditions::MemberFilter;
use crate::store::api::drift::RunningSum;
use crate::store::api::workloads::WorkloadFilter;

/// Which workloads.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WorkloadsQuery {
    /// Those that this environment describes.
    pub environment: Option<String>,
    pub workspace: Option<String>,
    /// Names that begin so.
    pub name_prefix: Option<String>,
    /// The maximum number of items, up to 500.
    pub limit: Option<usize>,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

/// Workloads by name, each with what runs of it in every environment.
#[utoipa::path(get, path = "/workloads-overview", tag = "fleet", params(WorkloadsQuery),
    responses((status = OK, body = Page<WorkloadOverview>)))]
pub async fn workloads_overview(
    State(state): State<ApiState>,
    caller: Caller,
    query: Result<Query<WorkloadsQuery>, QueryRejection>,
) -> Result<Listed<WorkloadOverview>, ApiError> {
    let query = query?.0;
    let paging = PageQuery { limit: query.limit, cursor: query.cursor, ..PageQuery::default() };
    let limit = paging.limit()?;
    let filter = WorkloadFilter {
        environment: query.environment,
        workspace: query.workspace,
        name_prefix: query.name_prefix,
        after: paging.from()?,
        limit: limit + 1,
    };
    let visible = caller.visible();
    let tick = state.ticks.current(&state.store).await?;
    let mut names = state.store.workload_names(&visible, &filter).await?;
    let more = names.len() > limit;
    names.truncate(limit);
    let next = names.last().filter(|_| more).and_then(page::cursor);
    let mut views: Vec<WorkloadSummary> = Vec::new();
    for (environment, body) in state.store.workloads_named(&visible, &names).await? {
        let view: WorkloadSummary = serde_json::from_str(&body).map_err(corrupt)?;
        views.push(WorkloadSummary { environment, ..view });
    }
    let targets: BTreeSet<String> = views.iter().flat_map(|view| view.targets.iter().cloned()).collect();
    let sums = match targets.is_empty() {
        true => Vec::new(),
        false => {
            let filter = MemberFilter { assignments: Some(targets.into_iter().collect()), ..MemberFilter::default() };
            state.store.running_sums(&visible, &filter).await?
        }
    };
    let packages: BTreeSet<String> = sums.iter().map(|sum| sum.running.clone()).collect();
    let desired = state.desired.streams(&state.store).await?;
    let contents = contents(&state, &packages.into_iter().collect::<Vec<_>>(), &desired).await?;
    let version = |packages: &str| contents.get(packages).and_then(|content| content.version.clone());
    let policies = state.store.policies().await?;
    let order = policies.in_force().map(|policy| chain(policy)).unwrap_or_default();
    let rank = |name: &str| order.iter().position(|known| known == name).unwrap_or(order.len());
    let brief = |name: String| {
        let mut own: Vec<&WorkloadSummary> = views.iter().filter(|view| view.name == name).collect();
        own.sort_by(|one, other| {
            (rank(&one.environment), &one.environment).cmp(&(rank(&other.environment), &other.environment))
        });
        let workspaces: BTreeSet<String> = own.iter().map(|view| view.workspace.clone()).collect();
        WorkloadOverview {
            environments: own.into_iter().map(|view| place(view, &sums, &version)).collect(),
            workspaces: workspaces.into_iter().collect(),
            name,
        }
    };
    Ok(Listed { page: Page { items: names.into_iter().map(brief).collect(), removed: Vec::new(), next }, tick })
}

fn place(view: &WorkloadSummary, sums: &[RunningSum], version: &dyn Fn(&str) -> Option<String>) -> WorkloadPlace {
    let mut conditions = ConditionCounts::default();
    let mut versions: BTreeMap<Option<String>, u64> = BTreeMap::new();
    let own = |sum: &&RunningSum| sum.stream.environment == view.environment && view.targets.contains(&sum.assignment);
    for sum in sums.iter().filter(own) {
        add_condition(&mut conditions, sum.condition, sum.count);
        if !sum.running.is_empty() {
            *versions.entry(version(&sum.running)).or_default() += sum.count;
        }
    }
    let mut versions: Vec<VersionCount> =
        versions.into_iter().map(|(version, count)| VersionCount { version, count }).collect();
    versions.sort_by(|one, other| other.count.cmp(&one.count).then_with(|| one.version.cmp(&other.version)));
    WorkloadPlace { name: view.environment.clone(), targets: view.targets.clone(), conditions, versions }
}

fn corrupt(error: serde_json::Error) -> StoreError {
    StoreError::Corrupt(format!("the catalog: {error}"))
}
