//! `/history`: what changed when, by whom and why, per environment, workload, cluster. An agent that was away delivers its past
//! with the true times.

use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use kedge_api::history::HistoryEntry;
use kedge_hub_types::history::Kind;
use serde::Deserialize;

use super::asked::{self, ROWS, some};
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::history::{self, HistoryQuery};
use crate::web::frame::{Frame, Section};
use crate::web::part::{Chip, Filters, Pages, Tone, When};
use crate::web::{Show, Viewer, WebError, links, rings};

#[derive(Template)]
#[template(path = "history.html")]
pub struct History {
    frame: Frame,
    filters: Filters,
    rows: Vec<Row>,
    pages: Pages,
    /// The way of the commit that is asked for.
    commit: Option<String>,
    /// Nothing on this page, and there is more.
    searching: bool,
    /// A filter that isn't one: why, and what to do.
    wrong: Option<ApiError>,
}

/// One thing that happened.
struct Row {
    id: i64,
    when: When,
    recorded: When,
    late: bool,
    corrected: bool,
    kind: String,
    tone: Option<Tone>,
    title: String,
    who: String,
    who_link: String,
    chip: Option<Chip>,
    environment: String,
    environment_link: String,
    workload: Option<(String, String)>,
    assignment: Option<(String, String)>,
    cluster_type: Option<(String, String)>,
    ring: String,
    cluster: Option<(String, String)>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Asked {
    environment: String,
    workload: String,
    cluster_type: String,
    ring: String,
    assignment: String,
    cluster: String,
    kind: String,
    event: String,
    who: String,
    commit: String,
    since: String,
    until: String,
    cursor: String,
}

pub async fn page(
    State(state): State<ApiState>,
    viewer: Viewer,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<(StatusCode, Show<History>), WebError> {
    let wanted = asked?.0;
    let caller = viewer.caller.clone();
    let names = asked::environments(&state, &viewer).await?;
    let listed = history::history(State(state), caller, Ok(Query(wanted.query()))).await;
    let (found, wrong, status) = asked::answered(listed)?;
    let (items, next) = found.map(|listed| (listed.page.items, listed.page.next)).unwrap_or_default();
    let cursor = Some(wanted.cursor.as_str()).filter(|cursor| !cursor.is_empty());
    let page = History {
        frame: Frame::of(&viewer, "History", Section::History),
        filters: wanted.filters(&names),
        pages: Pages::of("/history", &wanted.pairs(), cursor, next.as_deref()),
        commit: some(&wanted.commit).map(|commit| links::commit(&commit)),
        searching: items.is_empty() && next.is_some(),
        rows: items.into_iter().map(Row::of).collect(),
        wrong,
    };
    Ok((status, Show(page)))
}

impl Asked {
    fn query(&self) -> HistoryQuery {
        HistoryQuery {
            environment: some(&self.environment),
            workload: some(&self.workload),
            cluster_type: some(&self.cluster_type),
            ring: some(&self.ring),
            assignment: some(&self.assignment),
            cluster: some(&self.cluster),
            kind: some(&self.kind),
            event: some(&self.event),
            who: some(&self.who),
            commit: some(&self.commit),
            since: some(&self.since),
            until: some(&self.until),
            limit: Some(ROWS),
            cursor: some(&self.cursor),
        }
    }

    fn pairs(&self) -> [(&'static str, &str); 12] {
        [
            ("environment", &self.environment),
            ("workload", &self.workload),
            ("clusterType", &self.cluster_type),
            ("ring", &self.ring),
            ("assignment", &self.assignment),
            ("cluster", &self.cluster),
            ("kind", &self.kind),
            ("event", &self.event),
            ("who", &self.who),
            ("commit", &self.commit),
            ("since", &self.since),
            ("until", &self.until),
        ]
    }

    fn filters(&self, environments: &[String]) -> Filters {
        let mut filters = Filters::of("/history")
            .choice("environment", "Environment", &self.environment, environments)
            .choice("kind", "Kind", &self.kind, Kind::ALL.map(Kind::as_str))
            .text("workload", "Workload", &self.workload, "")
            .text("cluster", "Cluster", &self.cluster, "name")
            .text("who", "Who", &self.who, "")
            .text("commit", "Commit", &self.commit, "first digits")
            .text("since", "Since", &self.since, "7d, 2026-11-01")
            .text("until", "Until", &self.until, "");
        // What only links ask for is shown when it narrows the list.
        let rare = [
            ("clusterType", "Cluster type", &self.cluster_type),
            ("ring", "Ring", &self.ring),
            ("assignment", "Assignment", &self.assignment),
            ("event", "Event", &self.event),
        ];
        for (name, label, value) in rare.into_iter().filter(|(.., value)| !value.is_empty()) {
            filters = filters.text(name, label, value, "");
        }
        filters
    }
}

impl Row {
    fn of(entry: HistoryEntry) -> Row {
        let environment = entry.environment;
        let known = ["Converged", "Converging", "Failed", "Unknown"].contains(&entry.event.as_str());
        let who = entry.who.unwrap_or_default();
        Row {
            id: entry.id,
            when: When::of(&entry.at),
            recorded: When::of(&entry.recorded_at),
            late: entry.late,
            corrected: entry.corrected,
            tone: known.then(|| Tone::of(&entry.event)),
            kind: entry.kind,
            title: entry.title,
            who_link: links::query("/history", &[("who", &who)]),
            who: rings::person(&who),
            chip: entry.commit.as_deref().map(|commit| Chip::new(commit, "")),
            environment_link: links::environment(&environment),
            workload: entry.workload.map(|name| (links::workload(&name), name)),
            assignment: entry.assignment.map(|name| (links::assignment(&environment, &name), name)),
            cluster_type: entry.cluster_type.map(|name| (links::cluster_type(&environment, &name), name)),
            ring: entry.ring.unwrap_or_default(),
            cluster: entry.cluster.map(|id| (links::cluster(&id), entry.cluster_name.unwrap_or_else(|| short_id(&id)))),
            environment,
        }
    }
}

/// A cluster that isn't known any more has its id left.
fn short_id(id: &str) -> String {
    id.chars().take(12).collect()
}
