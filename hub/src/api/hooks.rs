//! `POST /hooks/git`: a Git server says that something was pushed. The signature is the caller's only word.

use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::post;

use super::ApiState;
use super::answer::ApiError;
use super::gate;
use super::limit::Whose;
use crate::connections::address::network;
use crate::connections::shares::{Bounds, Owner};
use crate::metrics::Route;

/// A push of many commits is some hundred kilobytes.
const MAX_BODY: usize = 1024 * 1024;
/// Git servers send at once.
const TIME: Duration = Duration::from_secs(10);
/// Hooks that are read at one time. One that is refused is missed for one interval of polling.
pub const BOUNDS: Bounds = Bounds { all: 64, cluster: 64, address: 32 };
const BUSY_RETRY_S: u64 = 2;

pub fn routes(state: &ApiState) -> Router<ApiState> {
    Router::new()
        .route("/hooks/git", post(git))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(from_fn_with_state(state.clone(), slowly))
        .layer(from_fn_with_state(TIME, gate::in_time))
}

async fn git(
    State(state): State<ApiState>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<StatusCode, ApiError> {
    let counted = |status: StatusCode| state.count(Route::Hook, status);
    let heard = body
        .map_err(|error| ApiError::new(error.status(), "BadBody", error.body_text()))
        .and_then(|body| state.services.webhook(&headers, &body));
    match heard {
        Ok(urls) => {
            urls.iter().for_each(|url| state.services.fetch(url));
            counted(StatusCode::ACCEPTED);
            Ok(StatusCode::ACCEPTED)
        }
        Err(refused) => {
            counted(refused.status);
            Err(refused)
        }
    }
}

/// Anybody can reach the hook: checking signatures is work too, and bodies that come slowly take memory.
async fn slowly(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    let Some(address) = gate::address_of(&request) else { return next.run(request).await };
    if let Err(seconds) = state.limits.take(Whose::Address(network(address)), Instant::now()) {
        return gate::too_many(seconds).into_response();
    }
    match state.hooks.take_one(Owner { cluster: None, address }) {
        Ok(_share) => next.run(request).await,
        Err(_) => gate::too_many(BUSY_RETRY_S).into_response(),
    }
}
