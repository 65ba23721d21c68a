//! The pages, one file each. A handler asks the API's functions as its viewer and hands plain values to a template.

mod asked;
mod assignment;
mod commit;
mod compare;
mod drift;
mod evidence;
mod fleet;
mod history;
mod keys;
mod past;
mod promotion;
mod rollout;
mod rollouts;
mod workload;
mod workloads;

use axum::Router;
use axum::routing::{get, post};

use crate::api::ApiState;

pub fn routes() -> Router<ApiState> {
    Router::new().route("/", get(fleet::page)).route("/keys", get(keys::page)).merge(changes())
}

/// What should run and how it changes: workloads, rollouts, and what may be asked about them.
fn changes() -> Router<ApiState> {
    Router::new()
        .route("/workloads", get(workloads::page))
        .route("/workloads/{name}", get(workload::page))
        .route("/assignments/{environment}/{cluster_type}/{target}", get(assignment::page))
        .route("/rollouts", get(rollouts::page))
        .route("/rollouts/{id}", get(rollout::page))
        .route("/rollouts/{id}/{word}", get(rollout::say::ask).post(rollout::say::tell))
        .route("/promotions/{environment}", get(promotion::page))
        .route("/promotions/{environment}/{word}", get(promotion::ask).post(promotion::tell))
        .route("/policy", get(promotion::policy))
        .route("/policy/approve", post(promotion::agree))
        .route("/evidence", get(evidence::list))
        .route("/evidence/{id}", get(evidence::page))
        .route("/compare", get(compare::page))
        .route("/history", get(history::page))
        .route("/commits/{commit}", get(commit::page))
        .route("/drift", get(drift::page))
}
