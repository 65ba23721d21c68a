//! What stands before every page: rates for strangers, the count, and the headers that tell a browser what a page may do.

use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::{WebError, session};
use crate::api::limit::Whose;
use crate::api::{ApiState, gate};
use crate::connections::address::network;
use crate::metrics::Route;

/// Scripts, styles and pictures come from here alone; nothing inline, no frame around us, forms go home.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Where sessions begin.
const LOGIN: &str = "/login";

const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Requests are limited by where they come from, until a session is proven: those are limited by their token. Whoever logs in
/// has proven nothing yet, whatever cookie comes with it.
pub async fn watch(State(state): State<ApiState>, mut request: Request, next: Next) -> Response {
    let address = gate::address_of(&request);
    let proven = match session::prove(&state, request.headers()).await {
        Ok(proven) => proven,
        Err(error) => return WebError::from(error).into_response(),
    };
    let charged = proven.is_none() || request.uri().path().starts_with(LOGIN);
    if charged
        && let Some(address) = address
        && let Err(seconds) = state.limits.take(Whose::Address(network(address)), Instant::now())
    {
        return WebError::from(gate::too_many(seconds)).into_response();
    }
    let whose = match (&proven, address) {
        (Some(proven), _) => proven.token_id().to_owned(),
        (None, Some(address)) => network(address).to_string(),
        (None, None) => String::new(),
    };
    if let Some(proven) = proven {
        request.extensions_mut().insert(proven);
    }
    let request = match state.bodies.watch(&whose, request) {
        Ok(request) => request,
        Err(busy) => return WebError::from(busy).into_response(),
    };
    let response = next.run(request).await;
    state.count(Route::Page, response.status());
    response
}

pub async fn guard(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if response.headers().contains_key(header::VARY) {
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("cookie"));
    }
    response
}
