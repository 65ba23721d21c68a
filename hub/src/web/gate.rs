//! What stands before every page: rates for strangers, the count, and the headers that tell a browser what a page may do.

use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::WebError;
use crate::api::limit::{Whose, counted};
use crate::api::{ApiState, gate};
use crate::metrics::Route;

/// Scripts, styles and pictures come from here alone; nothing inline, no frame around us, forms go home.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Requests that carry no session are limited by where they come from; sessions by their token.
pub async fn watch(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    let address = gate::address_of(&request);
    if request.headers().get(header::COOKIE).is_none()
        && let Some(address) = address
        && let Err(seconds) = state.limits.take(Whose::Address(counted(address)), Instant::now())
    {
        return WebError::from(gate::too_many(seconds)).into_response();
    }
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
