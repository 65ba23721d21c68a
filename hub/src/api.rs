//! `/api/v1` for people and programs, webhooks, health and metrics. Reads the store on any hub; what other rooms do
//! (sign, publish, fetch) it asks of them through `Rooms`. `run` serves the router.

mod access;
mod answer;
mod audit;
mod caller;
mod clusters;
pub(crate) mod compare;
mod counts;
mod document;
mod evidence;
mod gate;
mod health;
mod holds;
mod hooks;
mod join;
mod limit;
mod objects;
mod page;
pub(crate) mod plan;
mod promotions;
mod publish;
mod rollouts;
mod rooms;
mod states;
mod tag;
mod ticks;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use tokio::sync::{Semaphore, watch};

use crate::config;
use crate::metrics::{Metrics, Request, Route, Status};
use crate::store::Store;
pub use answer::ApiError;
pub use caller::Caller;
pub use document::openapi;
pub use limit::Limits;
pub use rollouts::start::WrittenView;
pub use rooms::{
    ConditionSeen, CountQuery, CountSeen, HoldSeen, JoinTokenSeen, JoinWish, MadeToken, MoveWish, Rooms, TruthSeen,
    WarningSeen,
};
use ticks::Ticks;

/// Everything a request may need. Cheap to clone.
#[derive(Clone)]
pub struct ApiState {
    pub(crate) store: Store,
    pub(crate) rooms: Arc<dyn Rooms>,
    metrics: Arc<Metrics>,
    limits: Arc<Limits>,
    ticks: Arc<Ticks>,
    /// Requests that wait for a change: each holds a connection.
    watchers: Arc<Semaphore>,
    shutdown: watch::Receiver<bool>,
}

/// A request that isn't a watch ends by then; the database gives up sooner.
const REQUEST_TIME: Duration = Duration::from_secs(30);
/// The largest body is a set of labels.
const MAX_BODY: usize = 64 * 1024;
/// So many may wait for changes at once.
const MAX_WATCHERS: usize = 512;

impl ApiState {
    /// Keys are loaded by now; long polls end when the shutdown says so.
    pub fn new(
        store: Store,
        rooms: Arc<dyn Rooms>,
        metrics: Arc<Metrics>,
        config: &config::Api,
        shutdown: watch::Receiver<bool>,
    ) -> ApiState {
        ApiState {
            store,
            rooms,
            metrics,
            limits: Arc::new(Limits::new(config.rate_per_token, config.rate_per_address)),
            ticks: Arc::new(Ticks::default()),
            watchers: Arc::new(Semaphore::new(MAX_WATCHERS)),
            shutdown,
        }
    }

    fn count(&self, route: Route, status: StatusCode) {
        self.metrics.requests.get_or_create(&Request { route, status: Status::of(status) }).inc();
    }
}

impl fmt::Debug for ApiState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiState").finish_non_exhaustive()
    }
}

/// Every route of the listener for people and programs.
pub fn router(state: ApiState) -> Router {
    let (api, _) = document::routes().split_for_parts();
    let api = api
        .fallback(answer::no_such_route)
        .method_not_allowed_fallback(answer::wrong_method)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(axum::middleware::from_fn(tag::add))
        .layer(from_fn_with_state(state.clone(), gate::let_in))
        .layer(from_fn_with_state(REQUEST_TIME, gate::in_time));
    Router::new()
        .nest("/api/v1", api)
        .route("/api/v1/openapi.json", axum::routing::get(async || axum::Json(openapi())))
        .merge(health::routes())
        .merge(hooks::routes(&state))
        .fallback(answer::no_such_route)
        .with_state(state)
}

#[cfg(test)]
mod tests;
