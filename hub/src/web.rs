//! The page: what people see of the fleet, made on the server and kept live by one small script. It asks what the API asks,
//! by the same functions and as the same caller. `run` serves the router beside the API's.

mod answer;
mod assets;
pub mod frame;
mod gate;
mod live;
pub mod pages;
pub mod part;
mod rings;
mod session;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};

use crate::api::gate::{in_time, stay_with_tls};
use crate::api::{ApiState, REQUEST_TIME, tag};
use crate::links;
pub use answer::{Show, WebError};
pub use session::{Confirmed, Viewer};

/// The largest form is a pasted plan.
const MAX_FORM: usize = 512 * 1024;
/// A token, and where to go.
const MAX_LOGIN: usize = 8 * 1024;

/// Every page, and the answer to addresses that nobody knows.
pub fn router(state: ApiState) -> Router {
    let pages = pages::routes()
        .route("/login", get(session::ask).post(session::log_in).layer(DefaultBodyLimit::max(MAX_LOGIN)))
        .route("/login/{code}", get(session::follow_link).post(session::take_link))
        .route("/logout", post(session::log_out))
        .layer(from_fn(tag::add));
    pages
        .route("/live", get(live::news))
        .fallback(answer::no_such_page)
        .method_not_allowed_fallback(answer::wrong_method)
        .layer(DefaultBodyLimit::max(MAX_FORM))
        .layer(from_fn_with_state(state.clone(), gate::watch))
        .layer(from_fn_with_state(REQUEST_TIME, in_time))
        .merge(assets::routes())
        .layer(from_fn(gate::guard))
        .layer(from_fn_with_state(state.clone(), stay_with_tls))
        .with_state(state)
}

#[cfg(test)]
mod tests;
