//! `/history`: what changed when, by whom and why, per environment, workload, cluster. An agent that was away delivers its past
//! with the true times.

use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;

use crate::api::ApiState;
use crate::api::history::{self, HistoryEntry, HistoryQuery};
use crate::api::objects::{self, ObjectQuery};
use crate::history::Kind;
use crate::web::frame::{Frame, Section};
use crate::web::part::filters::chosen;
use crate::web::part::{Chip, Filters, Mood, Pages, When};
use crate::web::{Show, Viewer, WebError, links};

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
    wrong: Option<(String, Option<String>)>,
}

/// One thing that happened.
struct Row {
    id: i64,
    when: When,
    recorded: When,
    late: bool,
    corrected: bool,
    kind: String,
    mood: Option<Mood>,
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

const ROWS: usize = 50;

pub async fn page(
    State(state): State<ApiState>,
    viewer: Viewer,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Show<History>, WebError> {
    let asked = asked?.0;
    let caller = viewer.caller.clone();
    let known = ObjectQuery { limit: Some(crate::api::page::MAX_LIMIT), ..ObjectQuery::default() };
    let known = objects::environments(State(state.clone()), caller.clone(), Ok(Query(known))).await?;
    let names: Vec<String> = known.page.items.into_iter().map(|item| item.object.name).collect();
    let (page, wrong) = match history::history(State(state), caller, Ok(Query(asked.query()))).await {
        Ok(listed) => (Some(listed.page), None),
        // A filter that isn't one leaves the filters standing, so that it can be mended.
        Err(error) if error.status == axum::http::StatusCode::BAD_REQUEST => (None, Some((error.message, error.hint))),
        Err(error) => return Err(error.into()),
    };
    let (items, next) = page.map(|page| (page.items, page.next)).unwrap_or_default();
    let cursor = Some(asked.cursor.as_str()).filter(|cursor| !cursor.is_empty());
    Ok(Show(History {
        frame: Frame::of(&viewer, "History", Section::History),
        filters: asked.filters(&names),
        pages: Pages::of("/history", &asked.pairs(), cursor, next.as_deref()),
        commit: chosen(&asked.commit).map(|commit| links::commit(&commit)),
        searching: items.is_empty() && next.is_some(),
        rows: items.into_iter().map(Row::of).collect(),
        wrong,
    }))
}

impl Asked {
    fn query(&self) -> HistoryQuery {
        HistoryQuery {
            environment: chosen(&self.environment),
            workload: chosen(&self.workload),
            cluster_type: chosen(&self.cluster_type),
            ring: chosen(&self.ring),
            assignment: chosen(&self.assignment),
            cluster: chosen(&self.cluster),
            kind: chosen(&self.kind),
            event: chosen(&self.event),
            who: chosen(&self.who),
            commit: chosen(&self.commit),
            since: chosen(&self.since),
            until: chosen(&self.until),
            limit: Some(ROWS),
            cursor: chosen(&self.cursor),
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
            mood: known.then(|| Mood::of(&entry.event)),
            kind: entry.kind,
            title: entry.title,
            who_link: links::query("/history", &[("who", &who)]),
            who,
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
