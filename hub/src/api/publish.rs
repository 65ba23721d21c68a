//! A person's word before many removals.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::names::{self, Mentioned};

/// Confirm that a cluster type shall lose more than half of its assignments.
#[utoipa::path(post, path = "/environments/{environment}/cluster-types/{cluster_type}/confirm", tag = "objects",
    params(("environment" = String, Path), ("cluster_type" = String, Path)),
    responses((status = ACCEPTED, description = "it is confirmed and will be published")))]
pub async fn confirm_publish(
    State(state): State<ApiState>,
    caller: Caller,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<StatusCode, ApiError> {
    caller.platform("confirming removals")?;
    let (environment, cluster_type) = path?.0;
    // Who publishes writes the confirmation and the audit's entry, in one transaction.
    match state.services.confirm_publish(&caller, &environment, &cluster_type).await {
        Ok(()) => Ok(StatusCode::ACCEPTED),
        // One that is on its way out may not be described any more, so names are looked up only where nothing waits.
        Err(error) if error.reason == "NothingWaits" => {
            let (environment, cluster_type) = (Some(environment.as_str()), Some(cluster_type.as_str()));
            names::check(&state, &caller, &Mentioned { environment, cluster_type, ..Mentioned::default() }).await?;
            Err(error)
        }
        Err(error) => Err(error),
    }
}
