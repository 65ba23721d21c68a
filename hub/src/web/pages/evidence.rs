//! `/evidence`: what was true when a commit passed, as the hub signed it.

use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use kedge_api::evidence::EvidenceSummary;
use kedge_api::page::Page;
use serde::Deserialize;

use super::asked::{ROWS, answered, some};
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::evidence::{self, EvidenceQuery};
use crate::api::page::Listed;
use crate::web::frame::{Frame, Section};
use crate::web::part::{Chip, Filters, Pages, When};
use crate::web::{Show, Viewer, WebError, links};

#[derive(Template)]
#[template(path = "evidence.html")]
pub struct EvidenceList {
    frame: Frame,
    filters: Filters,
    wrong: Option<ApiError>,
    rows: Vec<Row>,
    pages: Pages,
}

struct Row {
    id: i64,
    link: String,
    environment: String,
    environment_link: String,
    chip: Chip,
    kind: String,
    event: String,
    rollout: Option<(i64, String)>,
    when: When,
}

#[derive(Template)]
#[template(path = "statement.html")]
pub struct Statement {
    frame: Frame,
    row: Row,
    statement: String,
    envelope: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Asked {
    environment: String,
    commit: String,
    cursor: String,
}

pub async fn list(
    State(state): State<ApiState>,
    viewer: Viewer,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<(StatusCode, Show<EvidenceList>), WebError> {
    let asked = asked?.0;
    let query = EvidenceQuery {
        environment: some(&asked.environment),
        commit: some(&asked.commit),
        limit: Some(ROWS),
        cursor: some(&asked.cursor),
    };
    let listed = evidence::evidence(State(state), viewer.caller.clone(), Ok(Query(query))).await;
    let (listed, wrong, status) = answered(listed)?;
    let listed = listed.unwrap_or_else(|| Listed { page: Page::default(), tick: 0 });
    let pairs = [("environment", asked.environment.as_str()), ("commit", asked.commit.as_str())];
    let cursor = Some(asked.cursor.as_str()).filter(|cursor| !cursor.is_empty());
    let page = EvidenceList {
        wrong,
        frame: Frame::of(&viewer, "Evidence", Section::Rollouts),
        filters: Filters::of("/evidence").text("environment", "Environment", &asked.environment, "").text(
            "commit",
            "Commit",
            &asked.commit,
            "all its digits",
        ),
        pages: Pages::of("/evidence", &pairs, cursor, listed.page.next.as_deref()),
        rows: listed.page.items.into_iter().map(Row::of).collect(),
    };
    Ok((status, Show(page)))
}

pub async fn page(
    State(state): State<ApiState>,
    viewer: Viewer,
    id: Result<Path<i64>, PathRejection>,
) -> Result<Show<Statement>, WebError> {
    let whole = evidence::one_evidence(State(state), viewer.caller.clone(), Ok(id?)).await?.0;
    let text = |value: &serde_json::Value| serde_json::to_string_pretty(value).unwrap_or_default();
    Ok(Show(Statement {
        frame: Frame::of(&viewer, format!("Evidence {}", whole.evidence.id), Section::Rollouts),
        statement: text(&whole.statement),
        envelope: text(&whole.envelope),
        row: Row::of(whole.evidence),
    }))
}

impl Row {
    fn of(view: EvidenceSummary) -> Row {
        Row {
            id: view.id,
            link: links::evidence(view.id),
            environment_link: links::promotion(&view.environment),
            environment: view.environment,
            chip: Chip::new(&view.commit, ""),
            kind: view.kind,
            event: view.event,
            rollout: view.rollout.map(|id| (id, links::rollout(u64::try_from(id).unwrap_or_default()))),
            when: When::of(&view.created_at),
        }
    }
}
