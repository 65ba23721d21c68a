//! For those who watch the hub itself: is it alive, is it ready, and its numbers.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;

use super::ApiState;
use super::answer::ApiError;
use super::rooms::RequestKind;

/// Longer isn't ready.
const PATIENCE: Duration = Duration::from_secs(2);

pub fn routes() -> Router<ApiState> {
    Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz)).route("/metrics", get(metrics))
}

/// The process answers.
async fn healthz(State(state): State<ApiState>) -> &'static str {
    state.rooms.count_request(RequestKind::Health, 200);
    "ok\n"
}

/// The database is reached and keys are loaded. Leading isn't needed: every hub serves.
async fn readyz(State(state): State<ApiState>) -> Result<&'static str, ApiError> {
    let ready = match tokio::time::timeout(PATIENCE, state.store.current_tick()).await {
        Ok(Ok(_)) if state.rooms.is_ready() => Ok("ok\n"),
        Ok(Ok(_)) => Err(ApiError::unavailable("the hub's keys aren't loaded yet")),
        Ok(Err(_)) | Err(_) => Err(ApiError::unavailable("the hub's database can't be reached just now")),
    };
    state.rooms.count_request(RequestKind::Health, if ready.is_ok() { 200 } else { 503 });
    ready
}

async fn metrics(State(state): State<ApiState>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], state.rooms.metrics())
}
