//! `/environments/{name}`: which commit, which rings, which cluster types, and who is in which condition?

use askama::Template;
use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use kedge_api::environments::{EnvironmentSummary, WaitingRemovals};
use kedge_api::fleet::{FleetRing, FleetType};
use kedge_api::source::RepositoryFolder;
use serde::Deserialize;

use super::asked::ROWS;
use super::fleet::column::{Clusters, Column, Group, four};
use super::fleet::{self, Moving};
use super::past::{self, Past};
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::fleet::{FleetQuery, glance};
use crate::api::history::HistoryQuery;
use crate::api::{objects, states};
use crate::links::bare;
use crate::store::tokens::Role;
use crate::web::frame::{Frame, Section};
use crate::web::part::{Bar, Chip, Pages};
use crate::web::{Show, Viewer, WebError, links};

#[derive(Template)]
#[template(path = "environment.html")]
pub struct Environment {
    frame: Frame,
    name: String,
    column: Column,
    clusters: Clusters,
    after: Vec<(String, String)>,
    rings: Vec<Group>,
    types: Vec<Row>,
    pages: Pages,
    waiting: Vec<Waiting>,
    moving: Vec<Moving>,
    described: EnvironmentSummary,
    branch: Option<Folder>,
    gitops: Option<Folder>,
    published: Option<Chip>,
    /// The pull request's address.
    request: Option<String>,
    inputs: Vec<(String, Chip)>,
    past: Past,
    links: Links,
    quarantined: u64,
    may_confirm: bool,
    /// For who may let clusters in where there are none.
    may_join: bool,
}

/// A cluster type.
struct Row {
    name: String,
    link: String,
    clusters: u64,
    clusters_link: String,
    silent: u64,
    silent_link: String,
    bar: Bar,
    /// Each ring with the number of its state.
    rings: Vec<(String, Option<u64>)>,
}

struct Waiting {
    cluster_type: String,
    removed: usize,
    confirmed: u64,
    link: String,
}

struct Folder {
    text: String,
    page: Option<String>,
}

struct Links {
    /// Not for an application team.
    promotion: Option<String>,
    problems: String,
    drift: String,
    history: String,
    rollouts: String,
    plan: String,
    conditions: String,
}

/// Where the list of cluster types begins.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wanted {
    cursor: String,
}

const MOVING: usize = 6;
const PAST: usize = 8;

pub async fn page(
    State(state): State<ApiState>,
    viewer: Viewer,
    name: Result<Path<String>, PathRejection>,
    query: Result<Query<Wanted>, QueryRejection>,
) -> Result<Show<Environment>, WebError> {
    let (name, after) = (name?.0, query?.0.cursor);
    let asked = FleetQuery { environment: Some(name.clone()), ..FleetQuery::default() };
    let fleet = glance(&state, &viewer.caller, &asked).await?;
    let missing = || ApiError::not_found(format!("environment {name}"));
    let seen = fleet.environments.into_iter().next().ok_or_else(missing)?;
    // An environment that has clusters may be described no more.
    let described = objects::environment(State(state.clone()), viewer.caller.clone(), Ok(Path(name.clone()))).await;
    let described = described.map(|Json(item)| item.object).unwrap_or_default();
    let states = states::generations(&state, &name).await?;
    let link = links::environment(&name);
    let (types, next) = types(&name, &seen.types, &after, &states);
    let ring = |ring: &FleetRing| {
        let pairs = [("environment", name.as_str()), ("ring", ring.name.as_str())];
        Group::of(&ring.name, String::new(), ring.clusters, ring.conditions, &pairs)
    };
    let history = HistoryQuery { environment: Some(name.clone()), ..HistoryQuery::default() };
    let past = past::of(&state, &viewer, history, PAST, links::query("/history", &[("environment", &name)])).await?;
    Ok(Show(Environment {
        frame: Frame::of(&viewer, &name, Section::Fleet),
        clusters: Clusters::of(&name, &seen),
        after: seen.after.iter().map(|before| (before.clone(), links::environment(before))).collect(),
        rings: seen.rings.iter().map(ring).collect(),
        types,
        pages: Pages::of(&link, &[], (!after.is_empty()).then_some(after.as_str()), next.as_deref()),
        waiting: described.waiting.iter().map(|waiting| waits(&name, waiting)).collect(),
        moving: fleet::moving(&state, &viewer, Some(name.clone()), MOVING).await?,
        branch: described.control_plane.as_ref().map(folder),
        gitops: described.gitops.as_ref().map(folder),
        published: described
            .publish
            .as_ref()
            .and_then(|publish| publish.commit.as_deref())
            .map(|commit| Chip::new(commit, "")),
        request: described.publish.as_ref().and_then(|publish| publish.link.clone()).filter(|link| is_web(link)),
        inputs: described.inputs.iter().map(|input| (bare(&input.repo), Chip::new(&input.commit, ""))).collect(),
        past,
        links: Links::of(&name, viewer.caller.role),
        quarantined: seen.quarantined,
        may_confirm: viewer.caller.role == Role::Platform,
        may_join: viewer.caller.role == Role::Platform && seen.clusters.total == 0,
        column: Column::of(&seen, &mut Default::default()),
        described,
        name,
    }))
}

/// Those behind a name, and the name that the next page begins behind.
fn types(
    environment: &str,
    all: &[FleetType],
    after: &str,
    states: &[(String, String, u64)],
) -> (Vec<Row>, Option<String>) {
    let mut behind = all.iter().filter(|found| found.name.as_str() > after);
    let rows: Vec<Row> = behind.by_ref().take(ROWS / 2).map(|found| row(environment, found, states)).collect();
    let next = behind.next().and_then(|_| rows.last()).map(|row| row.name.clone());
    (rows, next)
}

fn row(environment: &str, found: &FleetType, states: &[(String, String, u64)]) -> Row {
    let pairs = [("environment", environment), ("clusterType", found.name.as_str())];
    let members = |more: (&'static str, &'static str)| {
        let all: Vec<(&str, &str)> = pairs.into_iter().chain([more, ("state", "active")]).collect();
        links::query("/clusters", &all)
    };
    let generation = |ring: &str| {
        let of = states.iter().find(|(of, name, _)| *of == found.name && name == ring);
        of.map(|(_, _, generation)| *generation)
    };
    let mut rings: Vec<(String, Option<u64>)> =
        found.rings.iter().map(|ring| (ring.name.clone(), generation(&ring.name))).collect();
    for (_, ring, generation) in states.iter().filter(|(of, ..)| *of == found.name) {
        if !rings.iter().any(|(known, _)| known == ring) {
            rings.push((ring.clone(), Some(*generation)));
        }
    }
    Row {
        name: found.name.clone(),
        link: links::cluster_type(environment, &found.name),
        clusters: found.clusters.total,
        clusters_link: members(("condition", "")),
        silent: found.clusters.unknown,
        silent_link: members(("condition", "Unknown")),
        bar: four(found.conditions).bar("/conditions", &pairs),
        rings,
    }
}

fn waits(environment: &str, waiting: &WaitingRemovals) -> Waiting {
    Waiting {
        link: links::confirm(environment, &waiting.cluster_type),
        cluster_type: waiting.cluster_type.clone(),
        removed: waiting.removed.len(),
        confirmed: waiting.confirmed,
    }
}

/// Only what a browser may follow becomes a link.
fn is_web(address: &str) -> bool {
    ["https://", "http://"].iter().any(|scheme| address.starts_with(scheme))
}

fn folder(folder: &RepositoryFolder) -> Folder {
    let path = folder.path.trim_matches(['.', '/']);
    let inside = if path.is_empty() { String::new() } else { format!(", {path}") };
    Folder {
        text: format!("{}, branch {}{inside}", bare(&folder.repo), folder.branch),
        page: links::repository(&folder.repo),
    }
}

impl Links {
    fn of(name: &str, role: Role) -> Links {
        let of = |path: &str| links::query(path, &[("environment", name)]);
        Links {
            promotion: (role != Role::Application).then(|| links::promotion(name)),
            problems: of("/problems"),
            drift: of("/drift"),
            history: of("/history"),
            rollouts: of("/rollouts"),
            plan: of("/plan"),
            conditions: of("/conditions"),
        }
    }
}
