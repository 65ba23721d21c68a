//! For those who watch the hub itself: is it alive, is it ready, and its numbers.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;

use super::ApiState;
use super::answer::ApiError;
use crate::metrics::{CONTENT_TYPE, Route};

/// Longer isn't ready.
const PATIENCE: Duration = Duration::from_secs(2);

pub fn routes() -> Router<ApiState> {
    Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz)).route("/metrics", get(metrics))
}

/// The process answers.
async fn healthz(State(state): State<ApiState>) -> &'static str {
    state.count(Route::Health, StatusCode::OK);
    "ok\n"
}

/// The database is reached; keys were loaded before the first request. Leading isn't needed: every hub serves.
async fn readyz(State(state): State<ApiState>) -> Result<&'static str, ApiError> {
    let ready = match tokio::time::timeout(PATIENCE, state.store.current_tick()).await {
        Ok(Ok(_)) => Ok("ok\n"),
        Ok(Err(_)) | Err(_) => Err(ApiError::unavailable("the hub's database can't be reached just now")),
    };
    state.count(Route::Health, if ready.is_ok() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE });
    ready
}

async fn metrics(State(state): State<ApiState>) -> Result<impl IntoResponse, ApiError> {
    state.metrics.gathered.refresh(&state.store).await;
    let text = state.metrics.encode().map_err(|_| ApiError::unavailable("the metrics can't be written"))?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text))
}
