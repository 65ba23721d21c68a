//! Findings one by one: what is wrong with what Git describes, with the place and the way out.

use axum::extract::{Query, State};
use kedge_api::findings::FindingSummary;
use kedge_api::page::Stored;

use super::Wanted;
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::objects::{self, ObjectQuery};
use crate::web::pages::asked::{ROWS, some};
use crate::web::part::{Pages, Place, When};
use crate::web::{Viewer, links};

/// A page of findings.
pub struct Findings {
    pub rows: Vec<Row>,
    pub pages: Pages,
}

pub struct Row {
    pub key: String,
    /// The place that a link leads to; of several environments the same finding may be listed twice.
    pub id: Option<String>,
    pub error: bool,
    pub code: String,
    pub message: String,
    pub hint: Option<String>,
    pub place: Option<Place>,
    pub related: Vec<Place>,
    pub environment: String,
    pub environment_link: String,
    pub assignment: Option<(String, String)>,
    pub quarantines: bool,
    pub since: When,
}

pub async fn list(state: &ApiState, viewer: &Viewer, wanted: &Wanted) -> Result<Findings, ApiError> {
    let query = ObjectQuery {
        environment: some(&wanted.environment),
        assignment: some(&wanted.assignment),
        workspace: some(&wanted.workspace),
        state: some(&wanted.state),
        label_selector: some(&wanted.code).map(|code| format!("code={code}")),
        cursor: some(&wanted.cursor),
        limit: Some(ROWS),
        ..ObjectQuery::default()
    };
    let (_, listed) = objects::findings(State(state.clone()), viewer.caller.clone(), Ok(Query(query))).await?;
    let pairs = [
        ("environment", wanted.environment.as_str()),
        ("state", &wanted.state),
        ("code", &wanted.code),
        ("assignment", &wanted.assignment),
        ("workspace", &wanted.workspace),
    ];
    let cursor = some(&wanted.cursor);
    let pages = Pages::of("/problems", &pairs, cursor.as_deref(), listed.page.next.as_deref());
    let single = !wanted.environment.is_empty();
    Ok(Findings { rows: listed.page.items.into_iter().map(|item| row(item, single)).collect(), pages })
}

fn row(item: Stored<FindingSummary>, single: bool) -> Row {
    let FindingSummary { environment, id, assignment, quarantines, finding } = item.object;
    Row {
        environment_link: links::environment(&environment),
        assignment: assignment.map(|name| {
            let link = links::assignment(&environment, &name);
            (name, link)
        }),
        place: Place::maybe(finding.origin.as_ref()),
        related: finding.related.iter().map(Place::of).collect(),
        since: When::of(&item.updated_at),
        key: format!("{environment} {id}"),
        id: single.then_some(id),
        error: finding.severity == "error",
        code: finding.code,
        message: finding.message,
        hint: finding.hint,
        environment,
        quarantines,
    }
}
