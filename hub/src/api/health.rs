//! For those who watch the hub itself: is it alive, is it ready, and its numbers. The first two say yes or no to anybody; the
//! numbers are for who shows a token, or on a listener of their own that the operator opens.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::routing::get;

use super::answer::ApiError;
use super::caller::Caller;
use super::{ApiState, gate};
use crate::metrics::{CONTENT_TYPE, Route};

/// Longer isn't ready.
const PATIENCE: Duration = Duration::from_secs(2);
/// A scrape looks up sums in the database.
const SCRAPE_TIME: Duration = Duration::from_secs(10);

pub fn routes(state: &ApiState) -> Router<ApiState> {
    let metrics = Router::new()
        .route("/metrics", get(guarded_metrics))
        .layer(from_fn_with_state(state.clone(), gate::let_in))
        .layer(from_fn_with_state(SCRAPE_TIME, gate::in_time));
    Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz)).merge(metrics)
}

/// The listener that serves nothing but numbers, to whoever reaches it.
pub fn metrics_alone(state: ApiState) -> Router {
    let routes = Router::new().route("/metrics", get(metrics)).route("/healthz", get(healthz));
    routes.layer(from_fn_with_state(SCRAPE_TIME, gate::in_time)).with_state(state)
}

/// The process answers.
async fn healthz(State(state): State<ApiState>) -> &'static str {
    state.count(Route::Health, StatusCode::OK);
    "ok\n"
}

/// The database is reached; keys were loaded before the first request. Leading isn't needed: every hub serves. Why not is in
/// the log: a stranger gets yes or no.
async fn readyz(State(state): State<ApiState>) -> (StatusCode, &'static str) {
    let ready = match tokio::time::timeout(PATIENCE, state.store.current_tick()).await {
        Ok(Ok(_)) => (StatusCode::OK, "ok\n"),
        Ok(Err(error)) => {
            tracing::warn!(error = %kedge_hub_types::causes::chain(&error), "not ready: the database fails");
            (StatusCode::SERVICE_UNAVAILABLE, "no\n")
        }
        Err(_) => {
            tracing::warn!(patience = ?PATIENCE, "not ready: the database doesn't answer");
            (StatusCode::SERVICE_UNAVAILABLE, "no\n")
        }
    };
    state.count(Route::Health, ready.0);
    ready
}

/// Sums over all workspaces: not for one application team.
async fn guarded_metrics(state: State<ApiState>, caller: Caller) -> Result<impl IntoResponse, ApiError> {
    caller.not_application("/metrics")?;
    metrics(state).await
}

async fn metrics(State(state): State<ApiState>) -> Result<impl IntoResponse, ApiError> {
    state.metrics.gathered.refresh(&state.store).await;
    let text = state.metrics.encode().map_err(|_| ApiError::unavailable("the metrics can't be written"))?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text))
}
