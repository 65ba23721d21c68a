//! `/api/v1` for people and programs, webhooks, health and metrics. Reads the store on any hub; what other modules do
//! (sign, publish, fetch) it asks of them through `Services`. `run` serves the router.

mod access;
pub(crate) mod airgap;
pub(crate) mod answer;
mod attempt;
pub(crate) mod audit;
pub(crate) mod bodies;
pub(crate) mod caller;
pub(crate) mod clusters;
pub(crate) mod compare;
pub(crate) mod conditions;
pub(crate) mod counts;
mod desired;
mod document;
pub(crate) mod drift;
pub(crate) mod evidence;
mod failed_logins;
pub(crate) mod fleet;
pub(crate) mod gate;
mod health;
pub(crate) mod history;
pub(crate) mod holds;
mod hooks;
mod join;
pub(crate) mod limit;
mod login;
pub(crate) mod names;
pub(crate) mod objects;
pub(crate) mod overview;
pub(crate) mod page;
mod people;
pub(crate) mod plan;
pub(crate) mod problems;
pub(crate) mod promotions;
pub(crate) mod publish;
mod refused_writes;
pub(crate) mod rollouts;
pub(crate) mod running;
pub(crate) mod search;
pub(crate) mod services;
pub(crate) mod states;
pub(crate) mod tag;
pub(crate) mod ticks;
pub(crate) mod workloads;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use tokio::sync::{Semaphore, watch};

use crate::config;
use crate::connections::shares::Shares;
use crate::metrics::{Metrics, Request, Route, Status};
use crate::store::Store;
pub use answer::ApiError;
pub use caller::Caller;
use desired::Desired;
pub use document::openapi;
use failed_logins::FailedLogins;
pub use health::metrics_alone;
pub use limit::Limits;
use problems::KnownProblems;
use refused_writes::RefusedWrites;
pub use services::{
    CountQuery, JoinTokenSeen, JoinWish, MadeToken, MoveWish, ReportedStatus, Services, SignWish, SignedRequest,
};
use ticks::Ticks;

/// Everything a request may need. Cheap to clone.
#[derive(Clone)]
pub struct ApiState {
    pub(crate) store: Store,
    pub(crate) services: Arc<dyn Services>,
    metrics: Arc<Metrics>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) ticks: Arc<Ticks>,
    desired: Arc<Desired>,
    pub(crate) problems: Arc<KnownProblems>,
    /// A certificate that has less time left than this should have been renewed.
    pub(crate) certificate_margin: Duration,
    /// Requests that wait for a change: each holds a connection.
    pub(crate) watchers: Arc<Semaphore>,
    pub(crate) shutdown: watch::Receiver<bool>,
    /// People reach it by TLS: cookies may insist on it.
    pub(crate) secure: bool,
    /// Where people reach it, when the configuration says so.
    pub(crate) public_url: Option<Arc<str>>,
    failed_logins: Arc<FailedLogins>,
    refused_writes: Arc<RefusedWrites>,
    /// Webhooks whose bodies are being read: nobody knows yet who sends them.
    hooks: Arc<Shares>,
    /// Bodies that are being read.
    pub(crate) bodies: Arc<bodies::Bodies>,
}

/// A request that isn't a watch ends by then; the database gives up sooner.
pub(crate) const REQUEST_TIME: Duration = Duration::from_secs(30);
/// The largest body is a set of labels.
const MAX_BODY: usize = 64 * 1024;
/// So many may wait for changes at once.
const MAX_WATCHERS: usize = 512;

/// Of certificates that live for ninety days.
const CERTIFICATE_MARGIN: Duration = Duration::from_secs(15 * 86_400);

impl ApiState {
    /// Agents renew at two thirds of a certificate's life; what has less than a sixth left wasn't renewed.
    #[must_use]
    pub fn with_certificate_lifetime(self, lifetime: Duration) -> ApiState {
        ApiState { certificate_margin: lifetime / 6, ..self }
    }

    /// Keys are loaded by now; long polls end when the shutdown says so.
    pub fn new(
        store: Store,
        services: Arc<dyn Services>,
        metrics: Arc<Metrics>,
        config: &config::Api,
        shutdown: watch::Receiver<bool>,
    ) -> ApiState {
        ApiState {
            store,
            services,
            metrics,
            limits: Arc::new(Limits::new(config.rate_per_token, config.rate_per_address)),
            ticks: Arc::new(Ticks::default()),
            desired: Arc::new(Desired::default()),
            problems: Arc::new(KnownProblems::default()),
            certificate_margin: CERTIFICATE_MARGIN,
            watchers: Arc::new(Semaphore::new(MAX_WATCHERS)),
            shutdown,
            secure: config.is_secure(),
            public_url: config.public_url.as_deref().map(Arc::from),
            failed_logins: Arc::new(FailedLogins::default()),
            refused_writes: Arc::new(RefusedWrites::default()),
            hooks: Shares::new(hooks::BOUNDS),
            bodies: Arc::new(bodies::Bodies::default()),
        }
    }

    pub(crate) fn count(&self, route: Route, status: StatusCode) {
        self.metrics.requests.get_or_create(&Request { route, status: Status::of(status) }).inc();
    }
}

impl fmt::Debug for ApiState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiState").finish_non_exhaustive()
    }
}

/// Every route for programs. What isn't here, the page answers.
pub fn router(state: ApiState) -> Router {
    let (api, _) = document::routes().split_for_parts();
    let api = api
        .route("/openapi.json", axum::routing::get(async || axum::Json(openapi())))
        .fallback(answer::no_such_route)
        .method_not_allowed_fallback(answer::wrong_method)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(axum::middleware::from_fn(tag::add))
        .layer(from_fn_with_state(state.clone(), gate::let_in))
        .layer(from_fn_with_state(REQUEST_TIME, gate::in_time));
    Router::new()
        .nest("/api/v1", api)
        .merge(health::routes(&state))
        .merge(hooks::routes(&state))
        .layer(from_fn_with_state(state.clone(), gate::stay_with_tls))
        .with_state(state)
}

#[cfg(test)]
pub(crate) mod tests;
