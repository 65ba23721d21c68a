//! The pages, one file each. A handler asks the API's functions as its viewer and hands plain values to a template.

mod fleet;
mod keys;

use axum::Router;
use axum::routing::get;

use crate::api::ApiState;

pub fn routes() -> Router<ApiState> {
    Router::new().route("/", get(fleet::page)).route("/keys", get(keys::page))
}
