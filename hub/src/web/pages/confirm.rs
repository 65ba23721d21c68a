//! A person's word before a cluster type loses more than half of its assignments: first what would go, then the word.

use askama::Template;
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Redirect;
use kedge_api::fleet::PresenceCounts;
use serde::Deserialize;

use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::fleet::{self, FleetQuery};
use crate::api::{objects, publish};
use crate::web::frame::{Frame, Section};
use crate::web::{Confirmed, Show, Viewer, WebError, links};

#[derive(Template)]
#[template(path = "confirm.html")]
pub struct Confirm {
    frame: Frame,
    environment: String,
    environment_link: String,
    cluster_type: String,
    link: String,
    action: String,
    removed: Vec<(String, String)>,
    /// More than are shown.
    more: usize,
    count: usize,
    confirmed: u64,
    clusters: PresenceCounts,
}

/// Nothing but the proof that it comes from our page.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Nothing {}

/// So many names are listed; the rest is a number.
const SHOWN: usize = 100;

pub async fn ask(
    State(state): State<ApiState>,
    viewer: Viewer,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<Show<Confirm>, WebError> {
    let (environment, cluster_type) = path?.0;
    viewer.caller.platform("confirming removals")?;
    let found =
        objects::environment(State(state.clone()), viewer.caller.clone(), Ok(Path(environment.clone()))).await?;
    let Json(item) = found;
    let waiting = item.object.waiting.into_iter().find(|waiting| waiting.cluster_type == cluster_type);
    let waiting = waiting.ok_or_else(|| {
        ApiError::conflict("NothingWaits", format!("no publish of {cluster_type} in {environment} waits for a word"))
            .hint("it was confirmed already, or what it would have removed is back")
    })?;
    let glance = FleetQuery { environment: Some(environment.clone()), ..FleetQuery::default() };
    let fleet = fleet::glance(&state, &viewer.caller, &glance).await?;
    let of_type = fleet.environments.into_iter().flat_map(|found| found.types).find(|found| found.name == cluster_type);
    let removed = waiting.removed.iter().take(SHOWN);
    let removed = removed.map(|name| (name.clone(), links::assignment(&environment, name))).collect();
    Ok(Show(Confirm {
        frame: Frame::of(&viewer, format!("Confirm removals from {cluster_type} in {environment}"), Section::Problems),
        environment_link: links::environment(&environment),
        link: links::cluster_type(&environment, &cluster_type),
        action: links::confirm(&environment, &cluster_type),
        removed,
        more: waiting.removed.len().saturating_sub(SHOWN),
        count: waiting.removed.len(),
        confirmed: waiting.confirmed,
        clusters: of_type.map(|found| found.clusters).unwrap_or_default(),
        environment,
        cluster_type,
    }))
}

pub async fn confirm(
    State(state): State<ApiState>,
    path: Result<Path<(String, String)>, PathRejection>,
    Confirmed { viewer, .. }: Confirmed<Nothing>,
) -> Result<Redirect, WebError> {
    let (environment, cluster_type) = path?.0;
    let back = links::environment(&environment);
    publish::confirm_publish(State(state), viewer.caller, Ok(Path((environment, cluster_type)))).await?;
    Ok(Redirect::to(&back))
}
