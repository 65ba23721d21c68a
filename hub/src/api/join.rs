//! Join tokens: what a person hands to a new cluster.

use std::time::Duration;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use kedge_api::join_tokens::{JoinTokenCreated, JoinTokenRequest, JoinTokenSummary};
use kedge_api::page::Page;
use kedge_model::quantity::parse_duration;
use kedge_model::wire::Timestamp;
use serde_json::json;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::clusters::{check_labels, check_site, check_type};
use super::page::{self, ListQuery, Listed, moment};
use super::services::{JoinTokenSeen, JoinWish};
use crate::store::now;

/// A person comes to the new host within a day.
const DEFAULT_LIFE: Duration = Duration::from_secs(86_400);
/// A token that is good for longer is forgotten somewhere.
const MAX_LIFE: Duration = Duration::from_secs(366 * 86_400);
/// A factory's worth.
const MAX_USES: u64 = 1_000_000;

/// When a token that lives so long ends.
pub fn expires_at(expires: Option<&str>) -> Result<Timestamp, ApiError> {
    let life = expires.map(parse_duration).transpose();
    let life = life.map_err(|error| ApiError::invalid("BadExpiry", format!("`expires`: {error}")))?;
    let life = life.unwrap_or(DEFAULT_LIFE);
    if life.is_zero() || life > MAX_LIFE {
        return Err(ApiError::invalid("BadExpiry", "`expires` is more than nothing and at most 366 days"));
    }
    let millis = i64::try_from(life.as_millis()).unwrap_or(i64::MAX);
    Ok(Timestamp(now().0.saturating_add(millis)))
}

/// Make a join token.
#[utoipa::path(post, path = "/join-tokens", tag = "clusters", request_body = JoinTokenRequest,
    responses((status = CREATED, body = JoinTokenCreated)))]
pub async fn create_join_token(
    State(state): State<ApiState>,
    caller: Caller,
    body: Result<Json<JoinTokenRequest>, JsonRejection>,
) -> Result<(StatusCode, Json<JoinTokenCreated>), ApiError> {
    if let Ok(Json(body)) = &body {
        caller.asked.set("join-token.create", "", &body.environment);
    }
    caller.platform("making join tokens")?;
    let body = body?.0;
    let expires_at = expires_at(body.expires.as_deref())?;
    let uses = body.uses.unwrap_or(1);
    if uses == 0 || uses > MAX_USES {
        return Err(ApiError::invalid("BadUses", format!("`uses` is between 1 and {MAX_USES}")));
    }
    check_labels(&body.labels)?;
    check_site(body.site.as_deref())?;
    check_type(&state, &body.environment, &body.cluster_type).await?;
    let detail = json!({
        "clusterType": body.cluster_type, "labels": body.labels, "site": body.site, "uses": uses,
        "expiresAt": moment(expires_at.0),
    });
    let wish = JoinWish {
        environment: body.environment.clone(),
        cluster_type: body.cluster_type,
        labels: body.labels,
        site: body.site.filter(|site| !site.is_empty()),
        replaces: None,
        uses,
        expires_at,
        created_by: caller.name.clone(),
    };
    let mut tx = state.store.write().await?;
    let made = state.services.create_join_token(&mut tx, wish).await?;
    tx.audit(&caller.did("join-token.create", &made.id, &body.environment, detail)).await?;
    tx.commit().await?;
    let made = JoinTokenCreated { id: made.id, token: made.text, expires_at: moment(expires_at.0) };
    Ok((StatusCode::CREATED, Json(made)))
}

/// Join tokens, newest first.
#[utoipa::path(get, path = "/join-tokens", tag = "clusters", params(ListQuery),
    responses((status = OK, body = Page<JoinTokenSummary>)))]
pub async fn join_tokens(
    State(state): State<ApiState>,
    caller: Caller,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Listed<JoinTokenSummary>, ApiError> {
    caller.not_application("the list of join tokens")?;
    let query = query?.0.paging();
    let limit = query.limit()?;
    let tick = state.ticks.current(&state.store).await?;
    let before = query.from::<(i64, String)>()?.map(|(at, id)| (Timestamp(at), id));
    let mut found = state.services.join_tokens(before, i64::try_from(limit + 1).unwrap_or(i64::MAX)).await?;
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).and_then(|last| page::cursor(&(last.created_at.0, &last.id)));
    Ok(Listed { page: Page { items: found.into_iter().map(view).collect(), removed: Vec::new(), next }, tick })
}

/// Revoke a join token: no further cluster can join with it; clusters that joined stay.
#[utoipa::path(delete, path = "/join-tokens/{id}", tag = "clusters", params(("id" = String, Path)),
    responses((status = NO_CONTENT, description = "it is revoked")))]
pub async fn revoke_join_token(
    State(state): State<ApiState>,
    caller: Caller,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, ApiError> {
    caller.platform("revoking join tokens")?;
    let id = id?.0;
    let mut tx = state.store.write().await?;
    if !state.services.revoke_join_token(&mut tx, &id).await? {
        return Err(ApiError::not_found(format!("join token {id} that isn't revoked already")));
    }
    tx.audit(&caller.did("join-token.revoke", &id, "", serde_json::Value::Null)).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

fn view(seen: JoinTokenSeen) -> JoinTokenSummary {
    let state = if seen.revoked_at.is_some() {
        "revoked"
    } else if seen.expires_at <= now() {
        "expired"
    } else if seen.uses_left == 0 {
        "used up"
    } else {
        "good"
    };
    JoinTokenSummary {
        id: seen.id,
        environment: seen.environment,
        cluster_type: seen.cluster_type,
        labels: seen.labels,
        site: seen.site,
        replaces: seen.replaces.map(|id| id.to_string()),
        uses: seen.uses,
        uses_left: seen.uses_left,
        state: state.to_owned(),
        expires_at: moment(seen.expires_at.0),
        created_by: seen.created_by,
        created_at: moment(seen.created_at.0),
    }
}
