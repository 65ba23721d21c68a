//! How many clusters run what, in which condition: a lookup, however many clusters there are.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use kedge_api::counts::Counts;
use serde::Deserialize;
use utoipa::IntoParams;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::names::{self, Mentioned};
use super::services::CountQuery;
use crate::store::catalog::Visible;

/// Which counts.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CountsQuery {
    pub environment: String,
    pub cluster_type: Option<String>,
    pub ring: Option<String>,
    /// `<workload>-<target>`
    pub assignment: Option<String>,
    /// The packages that run, as `counts` names them.
    pub packages: Option<String>,
}

/// How many clusters of an environment are in which condition with which packages.
#[utoipa::path(get, path = "/counts", tag = "clusters", params(CountsQuery), responses((status = OK, body = Counts)))]
pub async fn counts(
    State(state): State<ApiState>,
    caller: Caller,
    query: Result<Query<CountsQuery>, QueryRejection>,
) -> Result<Json<Counts>, ApiError> {
    let query = query?.0;
    let asked = CountQuery {
        environment: query.environment.clone(),
        cluster_type: query.cluster_type,
        ring: query.ring,
        assignment: query.assignment,
        packages: query.packages,
    };
    let mut items = state.services.counts(&asked).await?;
    if let Visible::Workspaces(workspaces) = caller.visible() {
        let mut own = Vec::with_capacity(items.len());
        let mut known: Option<(String, Vec<String>)> = None;
        for item in items {
            if known.as_ref().is_none_or(|(cluster_type, _)| *cluster_type != item.cluster_type) {
                let names = state.store.assignments_of(&query.environment, &item.cluster_type, &workspaces).await?;
                known = Some((item.cluster_type.clone(), names));
            }
            let name = format!("{}/{}", item.cluster_type, item.assignment);
            if known.as_ref().is_some_and(|(_, names)| names.contains(&name)) {
                own.push(item);
            }
        }
        items = own;
    }
    if items.is_empty() {
        let mentioned = Mentioned {
            environment: Some(&query.environment),
            cluster_type: asked.cluster_type.as_deref(),
            ring: asked.ring.as_deref(),
            ..Mentioned::default()
        };
        names::check(&state, &caller, &mentioned).await?;
    }
    let total = items.iter().map(|item| item.count).sum();
    Ok(Json(Counts { environment: query.environment, items, total }))
}
