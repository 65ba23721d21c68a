//! Links that log a browser in once: a terminal opens the page without showing a token to it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use kedge_api::people::LoginLink;
use kedge_model::wire::Timestamp;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::page::moment;
use crate::store::now;
use crate::store::sessions::{Secret, SessionKind};

/// Long enough to walk to another machine, short enough to be forgotten in a log.
const LIFE_MS: i64 = 10 * 60 * 1000;

/// Make a link that logs a browser in as the caller, once, within ten minutes.
#[utoipa::path(post, path = "/login-links", tag = "access", responses((status = CREATED, body = LoginLink)))]
pub async fn create_login_link(
    State(state): State<ApiState>,
    caller: Caller,
) -> Result<(StatusCode, Json<LoginLink>), ApiError> {
    let (secret, at) = (Secret::generate(), now());
    let until = Timestamp(at.0.saturating_add(LIFE_MS));
    let mut tx = state.store.write().await?;
    tx.insert_session(SessionKind::Link, &secret.hash(), &caller.token, until, at).await?;
    tx.commit().await?;
    let made = LoginLink { path: format!("/login/{}", secret.text()), expires_at: moment(until.0) };
    Ok((StatusCode::CREATED, Json(made)))
}
