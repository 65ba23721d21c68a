//! Desired against reality over the whole fleet: what the newest states say, and how many clusters run that, something else, or
//! something that was changed by hand. The clusters behind a number are in `/conditions`.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use kedge_api::conditions::Reality;
use kedge_api::drift::{DriftGroup, DriftSummary, RealityCounts, RunningPackages, WantedPackages};
use kedge_hub_types::status::tally::Word;
use serde::Deserialize;
use utoipa::IntoParams;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::conditions::reality;
use super::desired::Streams;
use super::fleet::Order;
use super::names::{self, Mentioned};
use super::page::{self, PageQuery};
use crate::store::api::conditions::MemberFilter;
use crate::store::api::contents::Content;
use crate::store::api::drift::RunningSum;
use crate::store::catalog::Visible;

/// Of what.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DriftQuery {
    pub environment: Option<String>,
    pub cluster_type: Option<String>,
    pub ring: Option<String>,
    pub workload: Option<String>,
    /// The maximum number of groups, up to 500.
    pub limit: Option<usize>,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

/// One assignment of one environment while it is summed up.
#[derive(Default)]
struct Sum {
    counts: RealityCounts,
    converging: u64,
    failed: u64,
    /// By packages: all, and those that are only last heard.
    running: BTreeMap<String, (u64, u64)>,
    /// Members by what their ring should run.
    wanted: BTreeMap<String, u64>,
    rings: BTreeSet<String>,
}

/// Desired against reality.
#[utoipa::path(get, path = "/drift", tag = "fleet", params(DriftQuery), responses((status = OK, body = DriftSummary)))]
pub async fn drift(
    State(state): State<ApiState>,
    caller: Caller,
    query: Result<Query<DriftQuery>, QueryRejection>,
) -> Result<Json<DriftSummary>, ApiError> {
    against(&state, &caller, &query?.0).await.map(Json)
}

/// Desired against reality, as the caller may see it.
pub(crate) async fn against(state: &ApiState, caller: &Caller, query: &DriftQuery) -> Result<DriftSummary, ApiError> {
    let paging = PageQuery { limit: query.limit, cursor: query.cursor.clone(), ..PageQuery::default() };
    let (limit, skipped) = (paging.limit()?, paging.from::<usize>()?.unwrap_or_default());
    let visible = caller.visible();
    let targets = match &query.workload {
        Some(workload) => Some(state.store.targets_of(workload, query.environment.as_deref()).await?),
        None => None,
    };
    let filter = MemberFilter {
        environment: query.environment.clone(),
        cluster_type: query.cluster_type.clone(),
        ring: query.ring.clone(),
        assignments: targets.as_ref().map(|targets| targets.iter().map(|(_, name)| name.clone()).collect()),
        ..MemberFilter::default()
    };
    let desired = state.desired.streams(&state.store).await?;
    let sums = sums(state, &visible, &filter, targets.as_deref(), &desired).await?;
    if sums.is_empty() {
        let mentioned = Mentioned {
            environment: query.environment.as_deref(),
            cluster_type: query.cluster_type.as_deref(),
            ring: query.ring.as_deref(),
            workload: query.workload.as_deref(),
            ..Mentioned::default()
        };
        names::check(state, caller, &mentioned).await?;
    }
    let mut view = DriftSummary::default();
    for sum in sums.values() {
        view.totals.as_desired += sum.counts.as_desired;
        view.totals.differs += sum.counts.differs;
        view.totals.drifted += sum.counts.drifted;
        view.totals.unknown += sum.counts.unknown;
    }
    view.notes = went_back(state, &sums).await?;
    let mut order: Vec<(&(String, String, String), &Sum)> = sums.iter().collect();
    let along = Order::of(state).await?;
    order.sort_by_cached_key(|(name, sum)| (sum.rank(), along.place(&name.0), (*name).clone()));
    if order.len() > skipped + limit {
        view.next = page::cursor(&(skipped + limit));
    }
    let shown: Vec<_> = order.into_iter().skip(skipped).take(limit).collect();
    let named: Vec<(String, String)> =
        shown.iter().map(|((environment, _, target), _)| (environment.clone(), target.clone())).collect();
    let workloads = state.store.workloads_of(&named).await?;
    let packages: BTreeSet<&String> =
        shown.iter().flat_map(|(_, sum)| sum.running.keys().chain(sum.wanted.keys())).collect();
    let packages: Vec<String> = packages.into_iter().cloned().collect();
    let contents = contents(state, &packages, &desired).await?;
    for ((environment, cluster_type, target), sum) in shown {
        let workload = workloads.get(&(environment.clone(), target.clone())).cloned();
        view.groups.push(DriftGroup {
            environment: environment.clone(),
            assignment: format!("{cluster_type}/{target}"),
            cluster_type: cluster_type.clone(),
            workload,
            ..sum.group(&contents, &wanted_by_ring(&desired, environment, cluster_type, target, &sum.rings))
        });
    }
    Ok(view)
}

/// What went back is desired again, and Git asks for something else.
async fn went_back(state: &ApiState, sums: &BTreeMap<(String, String, String), Sum>) -> Result<Vec<String>, ApiError> {
    let environments: BTreeSet<&String> = sums.keys().map(|(environment, ..)| environment).collect();
    let mut notes = Vec::new();
    for environment in environments {
        let blocked = state.store.rollouts_blocked(environment).await?;
        let here = blocked
            .into_iter()
            .filter(|row| sums.contains_key(&(environment.clone(), row.cluster_type.clone(), row.assignment.clone())));
        let ids: BTreeSet<kedge_rollout::RolloutId> = here.map(|row| row.rollout).collect();
        for id in ids {
            let Some(stored) = state.store.rollout(id).await? else { continue };
            let cause = &stored.rollout.cause;
            let commit = cause.named();
            let (commit, subject) = (commit.get(..10).unwrap_or(commit), &cause.subject);
            let what = match stored.rollout.phase {
                kedge_rollout::Phase::Aborted { .. } => "aborted",
                _ => "rolled back",
            };
            notes.push(format!("rollout {id} of {environment} was {what}: Git asks for {commit} “{subject}”"));
        }
    }
    Ok(notes)
}

/// By environment, cluster type and target.
async fn sums(
    state: &ApiState,
    visible: &Visible,
    filter: &MemberFilter,
    targets: Option<&[(String, String)]>,
    desired: &Streams,
) -> Result<BTreeMap<(String, String, String), Sum>, ApiError> {
    let own: Option<BTreeSet<(String, String)>> = match visible {
        Visible::All => None,
        Visible::Workspaces(workspaces) => Some(state.store.own_assignments(workspaces).await?.into_iter().collect()),
    };
    let targets: Option<BTreeSet<&(String, String)>> = targets.map(|targets| targets.iter().collect());
    let is_asked = |sum: &RunningSum| {
        let environment = &sum.stream.environment;
        let named = (environment.clone(), sum.assignment.clone());
        let whole = || (environment.clone(), format!("{}/{}", sum.stream.cluster_type, sum.assignment));
        targets.as_ref().is_none_or(|targets| targets.contains(&named))
            && own.as_ref().is_none_or(|own| own.contains(&whole()))
    };
    let mut sums: BTreeMap<(String, String, String), Sum> = BTreeMap::new();
    if filter.assignments.as_ref().is_some_and(Vec::is_empty) {
        return Ok(sums);
    }
    for row in state.store.running_sums(visible, filter).await?.iter().filter(|row| is_asked(row)) {
        let wanted = wanted(desired, row);
        sums.entry(place(row)).or_default().add(row, wanted);
    }
    for row in state.store.drift_sums(visible, filter).await?.iter().filter(|row| is_asked(row)) {
        if let Some(sum) = sums.get_mut(&place(row)) {
            sum.drift(row, wanted(desired, row));
        }
    }
    Ok(sums)
}

fn place(row: &RunningSum) -> (String, String, String) {
    (row.stream.environment.clone(), row.stream.cluster_type.clone(), row.assignment.clone())
}

fn wanted<'a>(desired: &'a Streams, row: &RunningSum) -> &'a str {
    desired.get(&row.stream).map_or("", |state| state.packages(&row.assignment))
}

impl Sum {
    fn add(&mut self, row: &RunningSum, wanted: &str) {
        match reality(row.condition, false, &row.running, wanted) {
            Reality::AsDesired => self.counts.as_desired += row.count,
            Reality::Unknown => self.counts.unknown += row.count,
            Reality::Differs | Reality::Drifted => self.counts.differs += row.count,
        }
        match row.condition {
            Word::Converging => self.converging += row.count,
            Word::Failed => self.failed += row.count,
            Word::Converged | Word::Unknown => {}
        }
        let running = self.running.entry(row.running.clone()).or_default();
        running.0 += row.count;
        running.1 += if row.condition == Word::Unknown { row.count } else { 0 };
        *self.wanted.entry(wanted.to_owned()).or_default() += row.count;
        self.rings.insert(row.stream.ring.clone());
    }

    /// Drift isn't counted as it arrives: those that tell of it are taken from where they were.
    fn drift(&mut self, row: &RunningSum, wanted: &str) {
        let from = match row.running == wanted {
            true => &mut self.counts.as_desired,
            false => &mut self.counts.differs,
        };
        let moved = row.count.min(*from);
        *from -= moved;
        self.counts.drifted += moved;
    }

    /// What needs somebody comes first.
    fn rank(&self) -> u8 {
        match (self.counts.drifted > 0 || self.failed > 0, self.counts.differs > 0, self.counts.unknown > 0) {
            (true, ..) => 0,
            (_, true, _) => 1,
            (_, _, true) => 2,
            _ => 3,
        }
    }

    fn group(&self, contents: &BTreeMap<String, Content>, rings: &[WantedPackages]) -> DriftGroup {
        let most = self.wanted.iter().max_by_key(|(_, count)| **count).map(|(packages, _)| packages.clone());
        let desired_packages = most.unwrap_or_default();
        let mut running: Vec<RunningPackages> =
            self.running.iter().map(|(packages, counts)| running_view(packages, *counts, contents)).collect();
        running.sort_by(|one, other| other.count.cmp(&one.count).then_with(|| one.packages.cmp(&other.packages)));
        let differ = rings.iter().any(|ring| ring.packages != desired_packages);
        DriftGroup {
            desired_version: contents.get(&desired_packages).and_then(|content| content.version.clone()),
            desired_packages,
            rings: if differ { rings.to_vec() } else { Vec::new() },
            running,
            reality: self.counts,
            converging: self.converging,
            failed: self.failed,
            ..DriftGroup::default()
        }
    }
}

/// What some rings of a cluster type should run of an assignment.
pub(super) fn wanted_by_ring(
    desired: &Streams,
    environment: &str,
    cluster_type: &str,
    target: &str,
    rings: &BTreeSet<String>,
) -> Vec<WantedPackages> {
    let of = |ring: &String| {
        let stream = kedge_model::wire::Stream::new(environment, cluster_type, ring);
        let entry = desired.get(&stream).and_then(|state| state.entries.get(target));
        WantedPackages {
            ring: ring.clone(),
            packages: entry.map(|entry| entry.packages.clone()).unwrap_or_default(),
            version: entry.and_then(|entry| entry.version.clone()),
            commit: entry.and_then(|entry| entry.workload_commit.clone()),
        }
    };
    rings.iter().map(of).collect()
}

pub(super) fn running_view(
    packages: &str,
    counts: (u64, u64),
    contents: &BTreeMap<String, Content>,
) -> RunningPackages {
    let content = contents.get(packages);
    RunningPackages {
        packages: packages.to_owned(),
        version: content.and_then(|content| content.version.clone()),
        commit: content.map(|content| content.workload_commit.clone()).filter(|commit| !commit.is_empty()),
        count: counts.0,
        unknown: counts.1,
    }
}

/// What pairs of packages are: as it was written down when they were first desired, or as a state of now says.
pub(super) async fn contents(
    state: &ApiState,
    packages: &[String],
    desired: &Streams,
) -> Result<BTreeMap<String, Content>, ApiError> {
    let mut found = state.store.contents(packages).await?;
    let whole = |found: &BTreeMap<String, Content>, packages: &String| {
        found.get(packages).is_some_and(|content| content.platform.is_some())
    };
    if packages.iter().all(|packages| whole(&found, packages)) {
        return Ok(found);
    }
    for entry in desired.values().flat_map(|wanted| wanted.entries.values()) {
        if entry.workload_commit.is_some() && !whole(&found, &entry.packages) {
            let content = Content {
                platform: entry.platform,
                workload: entry.workload,
                version: entry.version.clone(),
                platform_commit: entry.platform_commit.clone().unwrap_or_default(),
                workload_commit: entry.workload_commit.clone().unwrap_or_default(),
            };
            found.insert(entry.packages.clone(), content);
        }
    }
    Ok(found)
}
