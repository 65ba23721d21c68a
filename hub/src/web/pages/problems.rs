//! `/problems`: what is wrong with what Git describes, with the place and the way out: errors, warnings, repositories that
//! can't be read, publishes that wait for a person.

use askama::Template;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Redirect;
use serde::Deserialize;

use super::asked::{self, ROWS, some};
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::fleet::{self, FleetQuery};
use crate::api::objects::{self, FetchWish, Item, ObjectQuery, RepositorySeen};
use crate::catalog::view::ProblemView;
use crate::store::tokens::Role;
use crate::web::frame::{Frame, Section};
use crate::web::part::place::bare;
use crate::web::part::{Filters, Pages, Place, When};
use crate::web::{Confirmed, Show, Viewer, WebError, links};

#[derive(Template)]
#[template(path = "problems.html")]
pub struct Problems {
    frame: Frame,
    filters: Filters,
    wrong: Option<ApiError>,
    parts: Vec<Part>,
    waiting: Vec<Waiting>,
    failing: Vec<Repository>,
    good: Vec<Repository>,
    /// More repositories than are shown.
    more: bool,
    may_fetch: bool,
    may_confirm: bool,
    /// Nothing at all is wrong.
    calm: bool,
}

/// Errors, or warnings.
struct Part {
    error: bool,
    title: &'static str,
    /// Of the whole list, whatever assignment is asked for.
    count: u64,
    link: String,
    rows: Vec<Row>,
    pages: Pages,
}

struct Row {
    key: String,
    /// The place that a link leads to; of several environments the same problem may be listed twice.
    id: Option<String>,
    code: String,
    message: String,
    hint: Option<String>,
    place: Option<Place>,
    related: Vec<Place>,
    environment: String,
    environment_link: String,
    assignment: Option<(String, String)>,
    quarantines: bool,
    since: When,
}

/// A publish that would remove more than half.
struct Waiting {
    environment: String,
    cluster_type: String,
    removed: usize,
    confirmed: u64,
    link: String,
}

struct Repository {
    url: String,
    shown: String,
    page: Option<String>,
    environment: String,
    last_good: Option<When>,
    error: String,
    hint: Option<String>,
    since: Option<When>,
    next_try: Option<When>,
    forced: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Wanted {
    environment: String,
    state: String,
    assignment: String,
    workspace: String,
    cursor: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct FetchForm {
    url: String,
}

pub async fn page(
    State(state): State<ApiState>,
    viewer: Viewer,
    query: Result<Query<Wanted>, QueryRejection>,
) -> Result<(StatusCode, Show<Problems>), WebError> {
    let wanted = query?.0;
    let (mut parts, mut wrong, mut status) = (Vec::new(), None, StatusCode::OK);
    let glance = FleetQuery { environment: some(&wanted.environment), ..FleetQuery::default() };
    let counts = match fleet::glance(&state, &viewer.caller, &glance).await {
        Ok(fleet) => fleet.problems,
        Err(error) if error.status == StatusCode::NOT_FOUND => {
            (status, wrong) = (error.status, Some(error));
            Default::default()
        }
        Err(error) => return Err(error.into()),
    };
    for (word, title, count) in [("error", "Errors", counts.errors), ("warning", "Warnings", counts.warnings)] {
        if !wanted.state.is_empty() && wanted.state != word {
            continue;
        }
        let (found, refused, code) = asked::answered(part(&state, &viewer, &wanted, word, title, count).await)?;
        parts.extend(found);
        if refused.is_some() {
            (status, wrong) = (code, refused);
        }
    }
    let filters = Filters::of("/problems")
        .choice("environment", "Environment", &wanted.environment, asked::environments(&state, &viewer).await?)
        .choice("state", "Severity", &wanted.state, ["error", "warning"])
        .text("assignment", "Assignment", &wanted.assignment, "drone/hello-test");
    let whole = wanted.state.is_empty() && wanted.assignment.is_empty() && wanted.cursor.is_empty();
    let (mut failing, mut good, mut more, mut waiting) = (Vec::new(), Vec::new(), false, Vec::new());
    if whole && wrong.is_none() {
        (failing, more) = repositories(&state, &viewer, &wanted, "failing").await?;
        let (read, others) = repositories(&state, &viewer, &wanted, "good").await?;
        (good, more) = (read, more || others);
        waiting = publishes(&state, &viewer, &wanted).await?;
    }
    let calm = whole
        && wrong.is_none()
        && failing.is_empty()
        && waiting.is_empty()
        && parts.iter().all(|part: &Part| part.rows.is_empty());
    Ok((
        status,
        Show(Problems {
            calm,
            frame: Frame::of(&viewer, "Problems", Section::Problems),
            filters,
            wrong,
            parts,
            waiting,
            failing,
            good,
            more,
            may_fetch: viewer.caller.role != Role::Viewer,
            may_confirm: viewer.caller.role == Role::Platform,
        }),
    ))
}

/// The hub looks at a repository now.
pub async fn fetch(
    State(state): State<ApiState>,
    Confirmed { viewer, form }: Confirmed<FetchForm>,
) -> Result<Redirect, WebError> {
    objects::fetch_repository(State(state), viewer.caller, Ok(Json(FetchWish { url: form.url }))).await?;
    Ok(Redirect::to("/problems#repositories"))
}

impl Wanted {
    fn query(&self, state: &str, limit: usize) -> ObjectQuery {
        ObjectQuery {
            environment: some(&self.environment),
            assignment: some(&self.assignment),
            workspace: some(&self.workspace),
            state: some(state),
            cursor: some(&self.cursor),
            limit: Some(limit),
            ..ObjectQuery::default()
        }
    }
}

async fn part(
    state: &ApiState,
    viewer: &Viewer,
    wanted: &Wanted,
    word: &str,
    title: &'static str,
    count: u64,
) -> Result<Part, ApiError> {
    // Both together are as long as one alone.
    let alone = !wanted.state.is_empty();
    let query = wanted.query(word, if alone { ROWS } else { ROWS / 2 });
    let listed = objects::problems(State(state.clone()), viewer.caller.clone(), Ok(Query(query))).await?;
    let pairs = [
        ("environment", wanted.environment.as_str()),
        ("state", word),
        ("assignment", &wanted.assignment),
        ("workspace", &wanted.workspace),
    ];
    let cursor = some(&wanted.cursor);
    let pages = Pages::of("/problems", &pairs, cursor.as_deref().filter(|_| alone), listed.page.next.as_deref());
    let single = !wanted.environment.is_empty();
    let rows = listed.page.items.into_iter().map(|item| row(item, single)).collect();
    let count = if wanted.assignment.is_empty() && wanted.workspace.is_empty() { count } else { 0 };
    Ok(Part { error: word == "error", title, count, link: links::query("/problems", &pairs), rows, pages })
}

fn row(item: Item<ProblemView>, single: bool) -> Row {
    let ProblemView { environment, id, assignment, quarantines, finding } = item.object;
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
        code: finding.code,
        message: finding.message,
        hint: finding.hint,
        environment,
        quarantines,
    }
}

/// Those that can be read, or those that can't, and whether there are more.
async fn repositories(
    state: &ApiState,
    viewer: &Viewer,
    wanted: &Wanted,
    word: &str,
) -> Result<(Vec<Repository>, bool), WebError> {
    let query = wanted.query(word, ROWS / 2);
    let listed = objects::repositories(State(state.clone()), viewer.caller.clone(), Ok(Query(query))).await?;
    let more = listed.page.next.is_some();
    Ok((listed.page.items.into_iter().map(repository).collect(), more))
}

fn repository(item: Item<RepositorySeen>) -> Repository {
    let RepositorySeen { environment, repository } = item.object;
    let failing = repository.failing.unwrap_or_default();
    Repository {
        shown: bare(&repository.url),
        page: links::repository(&repository.url),
        last_good: When::maybe(repository.last_good.as_deref()),
        since: some(&failing.since).as_deref().map(When::clock),
        next_try: When::maybe(failing.next_try.as_deref()),
        url: repository.url,
        error: failing.error,
        hint: failing.hint,
        forced: repository.forced,
        environment,
    }
}

async fn publishes(state: &ApiState, viewer: &Viewer, wanted: &Wanted) -> Result<Vec<Waiting>, WebError> {
    let query = ObjectQuery { environment: some(&wanted.environment), ..ObjectQuery::default() };
    let listed = objects::environments(State(state.clone()), viewer.caller.clone(), Ok(Query(query))).await?;
    let mut waiting = Vec::new();
    for environment in listed.page.items {
        let name = environment.object.name;
        waiting.extend(environment.object.waiting.into_iter().map(|publish| Waiting {
            link: links::confirm(&name, &publish.cluster_type),
            environment: name.clone(),
            removed: publish.removed.len(),
            confirmed: publish.confirmed,
            cluster_type: publish.cluster_type,
        }));
    }
    Ok(waiting)
}
