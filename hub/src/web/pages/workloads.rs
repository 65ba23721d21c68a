//! `/workloads`: every workload once, with what runs of it in each environment.

use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use kedge_api::counts::ConditionCounts;
use kedge_api::workloads::{VersionCount, WorkloadOverview, WorkloadPlace};
use serde::Deserialize;

use super::asked::{self, ROWS, some};
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::workloads::{WorkloadsQuery, workloads_overview};
use crate::web::frame::{Frame, Section};
use crate::web::part::{Bar, Filters, Four, Pages};
use crate::web::{Show, Viewer, WebError, links};

#[derive(Template)]
#[template(path = "workloads.html")]
pub struct Workloads {
    frame: Frame,
    filters: Filters,
    wrong: Option<ApiError>,
    /// Environments of this page's workloads, left to right.
    environments: Vec<(String, String)>,
    rows: Vec<Row>,
    pages: Pages,
}

struct Row {
    name: String,
    link: String,
    teams: Vec<(String, String)>,
    /// One for each of the page's environments.
    cells: Vec<Option<Cell>>,
}

/// A workload in an environment.
struct Cell {
    environment: String,
    versions: Vec<String>,
    bar: Bar,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Wanted {
    environment: String,
    workspace: String,
    name_prefix: String,
    cursor: String,
}

/// So many versions stand in a cell; the workload's page has all.
const VERSIONS: usize = 3;
/// More environments than this don't fit beside each other: the filter chooses one.
const COLUMNS: usize = 5;

pub async fn page(
    State(state): State<ApiState>,
    viewer: Viewer,
    query: Result<Query<Wanted>, QueryRejection>,
) -> Result<(StatusCode, Show<Workloads>), WebError> {
    let wanted = query?.0;
    let query = WorkloadsQuery {
        environment: some(&wanted.environment),
        workspace: some(&wanted.workspace),
        name_prefix: some(&wanted.name_prefix),
        limit: Some(ROWS),
        cursor: some(&wanted.cursor),
    };
    let listed = workloads_overview(State(state.clone()), viewer.caller.clone(), Ok(Query(query))).await;
    let (found, wrong, status) = asked::answered(listed)?;
    let (items, next) = found.map(|listed| (listed.page.items, listed.page.next)).unwrap_or_default();
    let names = columns(&items, &wanted.environment);
    let pairs = [
        ("environment", wanted.environment.as_str()),
        ("workspace", wanted.workspace.as_str()),
        ("namePrefix", wanted.name_prefix.as_str()),
    ];
    let page = Workloads {
        frame: Frame::of(&viewer, "Workloads", Section::Workloads),
        filters: Filters::of("/workloads")
            .text("namePrefix", "Name begins with", &wanted.name_prefix, "")
            .choice("environment", "Environment", &wanted.environment, asked::environments(&state, &viewer).await?)
            .text("workspace", "Team", &wanted.workspace, ""),
        wrong,
        rows: items.into_iter().map(|brief| Row::of(brief, &names)).collect(),
        environments: names.into_iter().map(|name| (links::environment(&name), name)).collect(),
        pages: Pages::of("/workloads", &pairs, some(&wanted.cursor).as_deref(), next.as_deref()),
    };
    Ok((status, Show(page)))
}

/// Along the chain, as each workload has them.
fn columns(items: &[WorkloadOverview], only: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut longest: Vec<&WorkloadOverview> = items.iter().collect();
    longest.sort_by_key(|brief| std::cmp::Reverse(brief.environments.len()));
    for place in longest.iter().flat_map(|brief| &brief.environments) {
        if !names.contains(&place.name) && (only.is_empty() || only == place.name) {
            names.push(place.name.clone());
        }
    }
    names.truncate(COLUMNS);
    names
}

impl Row {
    fn of(brief: WorkloadOverview, environments: &[String]) -> Row {
        let team = |name: &String| (links::query("/workloads", &[("workspace", name)]), name.clone());
        let cell = |name: &String| {
            let place = brief.environments.iter().find(|place| place.name == *name);
            place.map(|place| Cell::of(&brief.name, place))
        };
        Row {
            link: links::workload(&brief.name),
            teams: brief.workspaces.iter().map(team).collect(),
            cells: environments.iter().map(cell).collect(),
            name: brief.name,
        }
    }
}

impl Cell {
    fn of(workload: &str, place: &WorkloadPlace) -> Cell {
        let text = |version: &VersionCount| version.version.clone().unwrap_or_else(|| "no version".to_owned());
        let mut versions: Vec<String> = place.versions.iter().take(VERSIONS).map(text).collect();
        if place.versions.len() > VERSIONS {
            versions.push(format!("{} more", place.versions.len() - VERSIONS));
        }
        let pairs = [("environment", place.name.as_str()), ("workload", workload)];
        Cell { environment: place.name.clone(), versions, bar: four(place.conditions).bar("/conditions", &pairs) }
    }
}

pub fn four(counts: ConditionCounts) -> Four {
    Four { converged: counts.converged, converging: counts.converging, failed: counts.failed, unknown: counts.unknown }
}
