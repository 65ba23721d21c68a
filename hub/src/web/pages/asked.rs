//! What a list is narrowed by, as addresses say it: an empty field of a form asks for nothing.

use axum::extract::{Query, State};
use axum::http::StatusCode;

use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::objects::{self, ObjectQuery};
use crate::web::{Viewer, WebError};

/// Rows of a page: it stays under 50 kB, and a screen or two.
pub const ROWS: usize = 40;
/// More choices than this aren't a list to choose from.
const CHOICES: usize = 200;

/// What a list came to: its rows, or why the filters can't be meant.
pub type Answered<T> = (Option<T>, Option<ApiError>, StatusCode);

pub fn some(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// A filter that can't be meant is told on the page where it can be changed; every other refusal is a page of its own.
pub fn answered<T>(answer: Result<T, ApiError>) -> Result<Answered<T>, WebError> {
    match answer {
        Ok(found) => Ok((Some(found), None, StatusCode::OK)),
        Err(error) if matches!(error.status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND) => {
            let status = error.status;
            Ok((None, Some(error), status))
        }
        Err(error) => Err(error.into()),
    }
}

/// Names of environments to choose from.
pub async fn environments(state: &ApiState, viewer: &Viewer) -> Result<Vec<String>, WebError> {
    let query = Ok(Query(ObjectQuery { limit: Some(CHOICES), ..ObjectQuery::default() }));
    let listed = objects::environments(State(state.clone()), viewer.caller.clone(), query).await?;
    Ok(listed.page.items.into_iter().map(|item| item.object.name).collect())
}

/// Names of cluster types of an environment, or of all.
pub async fn cluster_types(state: &ApiState, viewer: &Viewer, environment: &str) -> Result<Vec<String>, WebError> {
    let environment = some(environment);
    let query = Ok(Query(ObjectQuery { environment, limit: Some(CHOICES), ..ObjectQuery::default() }));
    let listed = match objects::cluster_types(State(state.clone()), viewer.caller.clone(), query).await {
        Ok(listed) => listed,
        // The list itself says that there is no such environment.
        Err(error) if error.status == StatusCode::NOT_FOUND => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut names: Vec<String> = listed.page.items.into_iter().map(|item| item.object.name).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// Names of rings in the order of the policy, of an environment or of all; without a policy there is one, `all`.
pub async fn rings(state: &ApiState, environment: &str) -> Result<Vec<String>, WebError> {
    let policies = state.store.policies().await?;
    let mut names = Vec::new();
    let known = policies.in_force().into_iter().flat_map(|policy| &policy.environments);
    for ring in known.filter(|rules| environment.is_empty() || rules.name == environment).flat_map(|rules| &rules.rings)
    {
        if !names.contains(&ring.name) {
            names.push(ring.name.clone());
        }
    }
    Ok(if names.is_empty() { vec!["all".to_owned()] } else { names })
}
