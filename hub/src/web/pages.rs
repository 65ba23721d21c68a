//! The pages, one file each. A handler asks the API's functions as its viewer and hands plain values to a template.

mod asked;
mod cluster;
mod cluster_type;
mod clusters;
mod conditions;
mod confirm;
mod environment;
mod fleet;
mod keys;
mod past;
mod problems;
mod search;

use axum::Router;
use axum::routing::{get, post};

use crate::api::ApiState;

pub fn routes() -> Router<ApiState> {
    Router::new()
        .route("/", get(fleet::page))
        .route("/keys", get(keys::page))
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
