//! `/types/{environment}/{name}`: what should run on clusters of a type, ring by ring, and what does?

use std::collections::BTreeMap;

use askama::Template;
use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use kedge_api::assignments::AssignmentSummary;
use kedge_api::cluster_types::ClusterTypeSummary;
use kedge_api::desired_states::DesiredStateSummary;
use kedge_api::fleet::{FleetRing, FleetType};
use kedge_api::page::Stored;
use serde::Deserialize;

use super::asked::{ROWS, some};
use super::fleet::column::{Group, four};
use super::past::{self, Past};
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::counts::{self, CountsQuery};
use crate::api::fleet::{FleetQuery, glance};
use crate::api::history::HistoryQuery;
use crate::api::objects::{self, ObjectQuery};
use crate::api::states::{self, StateQuery};
use crate::store::tokens::Role;
use crate::web::frame::{Frame, Section};
use crate::web::part::{Bar, Chip, Four, Pages, Place, Tone, When};
use crate::web::{Show, Viewer, WebError, links};

#[derive(Template)]
#[template(path = "cluster_type.html")]
pub struct ClusterType {
    frame: Frame,
    environment: String,
    environment_link: String,
    name: String,
    /// None: it isn't described any more, and clusters of it are still there.
    described: Option<ClusterTypeSummary>,
    origin: Option<Place>,
    stale: Option<When>,
    clusters: u64,
    clusters_link: String,
    silent: u64,
    silent_link: String,
    bar: Bar,
    rings: Vec<Ring>,
    rows: Vec<Row>,
    pages: Pages,
    past: Past,
    links: Links,
    may_join: bool,
}

struct Ring {
    group: Group,
    silent: u64,
    silent_link: String,
    state: Option<Issued>,
}

/// The newest desired state of a ring.
struct Issued {
    generation: u64,
    entries: usize,
    removed: usize,
    at: When,
    commit: Option<Chip>,
}

struct Row {
    name: String,
    target: String,
    link: String,
    workload: String,
    workload_link: String,
    workspace: String,
    quarantined: bool,
    /// The version that each ring should run, when they differ.
    versions: Vec<(String, String)>,
    bar: Bar,
}

struct Links {
    conditions: String,
    drift: String,
    history: String,
    problems: String,
    rollouts: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wanted {
    cursor: String,
}

/// Each assignment has a bar: half as many rows as elsewhere.
const SHOWN: usize = ROWS / 2;
const PAST: usize = 8;

pub async fn page(
    State(state): State<ApiState>,
    viewer: Viewer,
    path: Result<Path<(String, String)>, PathRejection>,
    query: Result<Query<Wanted>, QueryRejection>,
) -> Result<Show<ClusterType>, WebError> {
    let ((environment, name), cursor) = (path?.0, query?.0.cursor);
    let (caller, at) = (viewer.caller.clone(), (environment.clone(), name.clone()));
    let described = match objects::cluster_type(State(state.clone()), caller.clone(), Ok(Path(at))).await {
        Ok(Json(item)) => Some(item.object),
        Err(ApiError { status: StatusCode::NOT_FOUND, .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let asked = FleetQuery { environment: Some(environment.clone()), ..FleetQuery::default() };
    let fleet = glance(&state, &caller, &asked).await?;
    let types = fleet.environments.into_iter().flat_map(|found| found.types);
    let seen = types.into_iter().find(|found| found.name == name);
    let seen = match (seen, &described) {
        (Some(seen), _) => seen,
        (None, Some(_)) => FleetType { name: name.clone(), ..FleetType::default() },
        (None, None) => return Err(ApiError::not_found(format!("cluster type {name} in {environment}")).into()),
    };
    let states = issued(&state, &viewer, &environment, &name).await?;
    let listed = ObjectQuery {
        environment: Some(environment.clone()),
        cluster_type: Some(name.clone()),
        limit: Some(SHOWN),
        cursor: some(&cursor),
        ..ObjectQuery::default()
    };
    let listed = objects::assignments(State(state.clone()), caller.clone(), Ok(Query(listed))).await?;
    let counts = sums(&state, &viewer, &environment, &name).await?;
    let next = listed.page.next.clone();
    let pairs = [("environment", environment.as_str()), ("clusterType", name.as_str())];
    let link = links::cluster_type(&environment, &name);
    let history = HistoryQuery {
        environment: Some(environment.clone()),
        cluster_type: Some(name.clone()),
        ..HistoryQuery::default()
    };
    let past = past::of(&state, &viewer, history, PAST, links::query("/history", &pairs)).await?;
    Ok(Show(ClusterType {
        frame: Frame::of(&viewer, format!("{name} in {environment}"), Section::Fleet),
        environment_link: links::environment(&environment),
        origin: described.as_ref().map(|described| Place::of(&described.origin)),
        stale: described.as_ref().and_then(|described| described.stale_since.as_deref().map(When::clock)),
        clusters: seen.clusters.total,
        clusters_link: members(&pairs, &[]),
        silent: seen.clusters.unknown,
        silent_link: members(&pairs, &[("condition", "Unknown")]),
        bar: four(seen.conditions).bar("/conditions", &pairs),
        rings: rings(&seen, &pairs, &states),
        rows: listed.page.items.into_iter().map(|item| row(item, &states, &counts)).collect(),
        pages: Pages::of(&link, &[], some(&cursor).as_deref(), next.as_deref()),
        past,
        links: Links::of(&pairs, &name),
        may_join: viewer.caller.role == Role::Platform && described.is_some(),
        described,
        environment,
        name,
    }))
}

/// The newest state of each ring.
async fn issued(
    state: &ApiState,
    viewer: &Viewer,
    environment: &str,
    cluster_type: &str,
) -> Result<Vec<DesiredStateSummary>, WebError> {
    let query = StateQuery {
        environment: Some(environment.to_owned()),
        cluster_type: Some(cluster_type.to_owned()),
        ..StateQuery::default()
    };
    let listed = states::desired_states(State(state.clone()), viewer.caller.clone(), Ok(Query(query))).await?;
    Ok(listed.page.items)
}

/// How many clusters are in which condition, by assignment.
async fn sums(
    state: &ApiState,
    viewer: &Viewer,
    environment: &str,
    cluster_type: &str,
) -> Result<BTreeMap<String, Four>, WebError> {
    let query = CountsQuery {
        environment: environment.to_owned(),
        cluster_type: Some(cluster_type.to_owned()),
        ring: None,
        assignment: None,
        packages: None,
    };
    let Json(found) = counts::counts(State(state.clone()), viewer.caller.clone(), Ok(Query(query))).await?;
    let mut sums: BTreeMap<String, Four> = BTreeMap::new();
    for count in found.items.into_iter().filter(|count| count.cluster_type == cluster_type) {
        sums.entry(count.assignment).or_default().add(Tone::of(&count.condition), count.count);
    }
    Ok(sums)
}

fn members(pairs: &[(&str, &str)], more: &[(&'static str, &'static str)]) -> String {
    let all: Vec<(&str, &str)> = pairs.iter().chain(more).copied().chain([("state", "active")]).collect();
    links::query("/clusters", &all)
}

fn rings(seen: &FleetType, pairs: &[(&str, &str)], states: &[DesiredStateSummary]) -> Vec<Ring> {
    let mut rings = seen.rings.clone();
    for state in states {
        if !rings.iter().any(|ring| ring.name == state.ring) {
            rings.push(FleetRing { name: state.ring.clone(), ..Default::default() });
        }
    }
    let ring = |ring: &FleetRing| {
        let within: Vec<(&str, &str)> = pairs.iter().copied().chain([("ring", ring.name.as_str())]).collect();
        let state = states.iter().find(|state| state.ring == ring.name);
        Ring {
            group: Group::of(&ring.name, String::new(), ring.clusters, ring.conditions, &within),
            silent: ring.clusters.unknown,
            silent_link: members(&within, &[("condition", "Unknown")]),
            state: state.map(|state| Issued {
                generation: state.generation,
                entries: state.entries.len(),
                removed: state.removed.len(),
                at: When::of(&state.created_at),
                commit: state.source.as_ref().map(|source| Chip::new(&source.commit, "")),
            }),
        }
    };
    rings.iter().map(ring).collect()
}

fn row(item: Stored<AssignmentSummary>, states: &[DesiredStateSummary], counts: &BTreeMap<String, Four>) -> Row {
    let assignment = item.object;
    let target = assignment.name.split_once('/').map_or(assignment.name.as_str(), |(_, target)| target).to_owned();
    let mut versions: Vec<(String, String)> = Vec::new();
    for state in states {
        let entry = state.entries.iter().find(|entry| entry.assignment == target);
        if let Some(version) = entry.and_then(|entry| entry.version.clone()) {
            versions.push((state.ring.clone(), version));
        }
    }
    if versions.len() == states.len() && versions.windows(2).all(|two| two[0].1 == two[1].1) {
        versions.truncate(1);
        versions.iter_mut().for_each(|(ring, _)| ring.clear());
    }
    let pairs = [("environment", assignment.environment.as_str()), ("assignment", assignment.name.as_str())];
    Row {
        link: links::assignment(&assignment.environment, &assignment.name),
        workload_link: links::workload(&assignment.workload),
        quarantined: assignment.state == "quarantined",
        bar: counts.get(&target).copied().unwrap_or_default().bar("/conditions", &pairs),
        versions,
        target,
        name: assignment.name,
        workload: assignment.workload,
        workspace: assignment.workspace,
    }
}

impl Links {
    fn of(pairs: &[(&str, &str)], name: &str) -> Links {
        let environment = pairs.first().map(|(_, environment)| *environment).unwrap_or_default();
        Links {
            conditions: links::query("/conditions", pairs),
            drift: links::query("/drift", pairs),
            history: links::query("/history", pairs),
            problems: links::query("/problems", &[("environment", environment)]),
            rollouts: links::query("/rollouts", &[("environment", environment), ("clusterType", name)]),
        }
    }
}
