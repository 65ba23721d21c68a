//! Hold an assignment on a cluster, and let it go: first what it will do, then the word.

use askama::Template;
use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::Uri;
use axum::response::Redirect;
use kedge_api::clusters::ClusterDetail;
use kedge_api::holds::{HoldRequest, ReleaseRequest};
use serde::Deserialize;

use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::clusters;
use crate::api::holds;
use crate::web::frame::{Frame, Section};
use crate::web::part::{Said, When};
use crate::web::{Confirmed, Show, Viewer, WebError, links};

#[derive(Template)]
#[template(path = "hold.html")]
pub struct Hold {
    frame: Frame,
    /// Else it is released.
    holds: bool,
    cluster: String,
    link: String,
    assignment: String,
    /// What runs there now.
    said: Option<Said>,
    /// No contact since then: it obeys when it returns.
    silent: Option<When>,
    /// Others who hold it on the spot: that stays.
    others: Vec<String>,
    history: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Which {
    assignment: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct HoldForm {
    assignment: String,
    #[serde(default)]
    reason: String,
}

/// What a hold or its release will do.
pub async fn ask(
    State(state): State<ApiState>,
    viewer: Viewer,
    name: Result<Path<String>, PathRejection>,
    query: Result<Query<Which>, QueryRejection>,
    uri: Uri,
) -> Result<Show<Hold>, WebError> {
    let assignment = query?.0.assignment;
    if viewer.caller.only_looks() {
        viewer.caller.platform("holding assignments")?;
    }
    let Json(seen) = clusters::cluster(State(state), viewer.caller.clone(), name).await?;
    let holds = !uri.path().ends_with("/release");
    Ok(Show(page(&viewer, &seen, assignment, holds)?))
}

fn page(viewer: &Viewer, seen: &ClusterDetail, assignment: String, holds: bool) -> Result<Hold, ApiError> {
    let cluster = &seen.cluster;
    let known = seen.conditions.iter().find(|condition| condition.assignment == assignment);
    let of_it = || seen.holds.iter().filter(|hold| hold.assignment == assignment);
    if !holds && !of_it().any(|hold| hold.writer == "hub") {
        let error = ApiError::conflict("NotHeld", format!("the hub doesn't hold {assignment} on {}", cluster.name));
        return Err(error.hint("lift a hold of another cluster of the site with `kedge unhold --peers`; release a technician's hold on the host with `kedge-agent unhold`"));
    }
    let others = of_it().filter(|hold| hold.writer != "hub").map(|hold| hold.by.clone()).collect();
    let word = if holds { "Hold" } else { "Release" };
    Ok(Hold {
        frame: Frame::of(viewer, format!("{word} {assignment} on {}", cluster.name), Section::Clusters),
        holds,
        link: links::cluster(&cluster.id),
        cluster: cluster.name.clone(),
        said: known.map(|condition| Said::of(&super::facts(condition))),
        silent: cluster.unknown_since.as_deref().map(When::clock),
        others,
        history: links::query("/history", &[("cluster", &cluster.id)]),
        assignment,
    })
}

pub async fn hold(
    State(state): State<ApiState>,
    name: Result<Path<String>, PathRejection>,
    Confirmed { viewer, form }: Confirmed<HoldForm>,
) -> Result<Redirect, WebError> {
    let body = HoldRequest { assignment: form.assignment, reason: form.reason.trim().to_owned() };
    let Json(seen) = holds::hold(State(state), viewer.caller, name, Ok(Json(body))).await?;
    Ok(Redirect::to(&links::cluster(&seen.cluster.id)))
}

pub async fn release(
    State(state): State<ApiState>,
    name: Result<Path<String>, PathRejection>,
    Confirmed { viewer, form }: Confirmed<HoldForm>,
) -> Result<Redirect, WebError> {
    let body = ReleaseRequest { assignment: form.assignment, peers: false, reason: String::new() };
    let Json(seen) = holds::release(State(state), viewer.caller, name, Ok(Json(body))).await?;
    Ok(Redirect::to(&links::cluster(&seen.cluster.id)))
}
