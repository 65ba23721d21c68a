//! The pages, one file each. A handler asks the API's functions as its viewer and hands plain values to a template.

mod asked;
mod assignment;
mod cluster;
mod cluster_type;
mod clusters;
mod commit;
mod compare;
mod conditions;
mod confirm;
mod drift;
mod environment;
mod evidence;
mod fleet;
mod history;
mod keys;
mod past;
mod plan;
mod problems;
mod promotion;
mod rollout;
mod rollouts;
mod search;
mod workload;
mod workloads;

use axum::Router;
use axum::routing::{get, post};

use crate::api::ApiState;

pub fn routes() -> Router<ApiState> {
    Router::new().route("/", get(fleet::page)).route("/keys", get(keys::page)).merge(changes()).merge(places())
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
        .route("/plan", get(plan::page).post(plan::pasted))
        .route("/history", get(history::page))
        .route("/commits/{commit}", get(commit::page))
        .route("/drift", get(drift::page))
}

/// What there is and how it is: environments, clusters, and what is wrong with them.
fn places() -> Router<ApiState> {
    Router::new()
        .route("/environments/{environment}", get(environment::page))
        .route("/environments/{environment}/confirm/{cluster_type}", get(confirm::ask).post(confirm::confirm))
        .route("/types/{environment}/{name}", get(cluster_type::page))
        .route("/clusters", get(clusters::page))
        .route("/clusters/{cluster}", get(cluster::page))
        .route("/clusters/{cluster}/hold", get(cluster::ask).post(cluster::hold))
        .route("/clusters/{cluster}/release", get(cluster::ask).post(cluster::release))
        .route("/conditions", get(conditions::page))
        .route("/problems", get(problems::page))
        .route("/problems/fetch", post(problems::fetch))
        .route("/search", get(search::page))
}
