//! `/plan`: what a revision, or pasted files, would do to an environment: assignments, values and clusters, online and offline
//! ones. Nothing is written.

mod result;

use std::collections::BTreeMap;

use askama::Template;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use kedge_api::plans::PlanRequest;
use serde::Deserialize;

use super::asked::{self, some};
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::plan;
use crate::store::tokens::Role;
use crate::web::frame::{Frame, Section};
use crate::web::{Confirmed, Show, Viewer, WebError};
use result::Planned;

#[derive(Template)]
#[template(path = "plan.html")]
pub struct PlanPage {
    frame: Frame,
    environments: Vec<String>,
    environment: String,
    revision: String,
    of: String,
    /// Path and text of each file.
    files: Vec<(String, String)>,
    platform: bool,
    wrong: Option<ApiError>,
    planned: Option<Planned>,
}

/// A revision stands in the address, so that a colleague sees the same.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Wanted {
    environment: String,
    revision: String,
    of: String,
}

/// What was pasted doesn't fit into an address.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Form {
    environment: String,
    revision: String,
    of: String,
    path0: String,
    text0: String,
    path1: String,
    text1: String,
    path2: String,
    text2: String,
}

pub async fn page(
    State(state): State<ApiState>,
    viewer: Viewer,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<(StatusCode, Show<PlanPage>), WebError> {
    let Wanted { environment, revision, of } = wanted?.0;
    let form = Form { environment, revision, of, ..Form::default() };
    let asked = !form.environment.is_empty() && !form.revision.trim().is_empty();
    answer(&state, viewer, form, asked).await
}

pub async fn pasted(
    State(state): State<ApiState>,
    Confirmed { viewer, form }: Confirmed<Form>,
) -> Result<(StatusCode, Show<PlanPage>), WebError> {
    answer(&state, viewer, form, true).await
}

async fn answer(
    state: &ApiState,
    viewer: Viewer,
    form: Form,
    asked: bool,
) -> Result<(StatusCode, Show<PlanPage>), WebError> {
    let environments = asked::environments(state, &viewer).await?;
    let (mut planned, mut wrong, mut status) = (None, None, StatusCode::OK);
    if asked {
        match plan::plan(State(state.clone()), viewer.caller.clone(), Ok(Json(form.wish()))).await {
            Ok(view) => planned = Some(Planned::of(view.0)),
            // The fields stay, so that they can be mended.
            Err(error) if error.status.is_client_error() => {
                status = error.status;
                wrong = Some(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    let page = PlanPage {
        frame: Frame::of(&viewer, "Plan", Section::Plan),
        environments,
        platform: viewer.caller.role == Role::Platform,
        files: form.files().map(|(path, text)| (path.clone(), text.clone())).collect(),
        environment: form.environment,
        revision: form.revision,
        of: form.of,
        wrong,
        planned,
    };
    Ok((status, Show(page)))
}

impl Form {
    fn files(&self) -> impl Iterator<Item = (&String, &String)> {
        [(&self.path0, &self.text0), (&self.path1, &self.text1), (&self.path2, &self.text2)].into_iter()
    }

    fn wish(&self) -> PlanRequest {
        let named = self.files().filter(|(path, _)| !path.trim().is_empty());
        // Browsers send lines as CRLF.
        let pasted: BTreeMap<String, Option<String>> =
            named.map(|(path, text)| (path.trim().to_owned(), Some(text.replace("\r\n", "\n")))).collect();
        PlanRequest {
            environment: self.environment.clone(),
            revision: some(&self.revision),
            of: some(&self.of),
            pasted,
        }
    }
}
