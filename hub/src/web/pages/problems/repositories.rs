//! Repositories as the page of problems shows them: those that can't be read with their way out, and those that can.

use axum::extract::{Query, State};
use kedge_api::page::Stored;
use kedge_api::repositories::EnvironmentRepository;

use crate::api::ApiState;
use crate::api::objects::{self, ObjectQuery};
use crate::links::bare;
use crate::web::pages::asked::{ROWS, some};
use crate::web::part::When;
use crate::web::{Viewer, WebError, links};

pub struct Repository {
    pub url: String,
    pub shown: String,
    pub page: Option<String>,
    pub environment: String,
    pub last_good: Option<When>,
    pub error: String,
    pub hint: Option<String>,
    pub since: Option<When>,
    pub next_try: Option<When>,
    pub forced: Vec<String>,
}

/// Those that can be read, or those that can't, and whether there are more.
pub async fn repositories(
    state: &ApiState,
    viewer: &Viewer,
    environment: &str,
    word: &str,
) -> Result<(Vec<Repository>, bool), WebError> {
    let query = ObjectQuery {
        environment: some(environment),
        state: some(word),
        limit: Some(ROWS / 2),
        ..ObjectQuery::default()
    };
    let listed = objects::repositories(State(state.clone()), viewer.caller.clone(), Ok(Query(query))).await?;
    let more = listed.page.next.is_some();
    Ok((listed.page.items.into_iter().map(repository).collect(), more))
}

fn repository(item: Stored<EnvironmentRepository>) -> Repository {
    let EnvironmentRepository { environment, repository } = item.object;
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
