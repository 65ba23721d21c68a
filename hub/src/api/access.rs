//! Access tokens: what people and programs log in with.

use kedge_api::access_tokens::{AccessTokenCreated, AccessTokenRequest, AccessTokenSummary};
use kedge_api::page::Page;
use kedge_model::shown::is_hidden;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use kedge_model::quantity::parse_duration;
use kedge_model::wire::Timestamp;
use serde_json::json;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::page::{self, ListQuery, Listed, moment};
use super::people;
use crate::store::api::access::AccessToken;
use crate::store::tokens::{Grant, NewToken, Role};
use crate::store::{Tx, now};

/// A token that nobody renews was forgotten: it ends by itself.
const LIFE: Duration = Duration::from_secs(365 * 24 * 3600);
/// What is said for a token without an end.
const NEVER: &str = "never";
/// A name that fits in a line of the log.
const MAX_NAME: usize = 100;
const MAX_WORKSPACES: usize = 100;

/// Make an access token.
#[utoipa::path(post, path = "/access-tokens", tag = "access", request_body = AccessTokenRequest,
    responses((status = CREATED, body = AccessTokenCreated)))]
pub async fn create_access_token(
    State(state): State<ApiState>,
    caller: Caller,
    body: Result<Json<AccessTokenRequest>, JsonRejection>,
) -> Result<(StatusCode, Json<AccessTokenCreated>), ApiError> {
    caller.administrator("making access tokens")?;
    let body = body?.0;
    let role: Role = body.role.parse().map_err(|error| ApiError::invalid("BadRole", format!("{error}")))?;
    let person = people::named(&state, &body.person).await?;
    let name = body.name.as_deref().unwrap_or(&person.name);
    check(name, &body.workspaces, role)?;
    let expires = end(body.expires.as_deref(), now())?;
    let token = NewToken::generate();
    let mut tx = state.store.write().await?;
    // One after the other: a person doesn't get two roles at once that exclude each other.
    tx.tick().await?;
    check_roles(&mut tx, &person.id, &person.name, role).await?;
    let (workspaces, created_by) = (body.workspaces.as_slice(), caller.person.as_str());
    let grant = Grant { person: &person.id, name, role, workspaces, expires, created_by };
    tx.insert_api_token(&token, &grant).await?;
    let detail = json!({
        "person": person.id, "personName": person.name, "name": name, "role": role.as_str(), "workspaces": workspaces,
        "expiresAt": expires.map(|at| moment(at.0)),
    });
    tx.audit(&caller.did("access-token.create", &token.id, "", detail)).await?;
    tx.commit().await?;
    let expires_at = expires.map(|at| moment(at.0));
    Ok((StatusCode::CREATED, Json(AccessTokenCreated { id: token.id.clone(), token: token.text(), expires_at })))
}

/// Access tokens.
#[utoipa::path(get, path = "/access-tokens", tag = "access", params(ListQuery),
    responses((status = OK, body = Page<AccessTokenSummary>)))]
pub async fn access_tokens(
    State(state): State<ApiState>,
    caller: Caller,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Listed<AccessTokenSummary>, ApiError> {
    caller.sees_people("the list of access tokens")?;
    let query = query?.0.paging();
    let limit = query.limit()?;
    let tick = state.ticks.current(&state.store).await?;
    let after = query.from::<String>()?.unwrap_or_default();
    let mut found = state.store.access_tokens(&after, i64::try_from(limit + 1).unwrap_or(i64::MAX)).await?;
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).and_then(|last| page::cursor(&last.id));
    Ok(Listed { page: Page { items: found.into_iter().map(view).collect(), removed: Vec::new(), next }, tick })
}

/// Revoke an access token. Everybody may revoke their own.
#[utoipa::path(delete, path = "/access-tokens/{id}", tag = "access", params(("id" = String, Path)),
    responses((status = NO_CONTENT, description = "it is revoked")))]
pub async fn revoke_access_token(
    State(state): State<ApiState>,
    caller: Caller,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, ApiError> {
    let id = id?.0;
    let own = state.store.access_token(&id).await?.is_some_and(|token| token.person == caller.person);
    if !own {
        caller.administrator("revoking other people's access tokens")?;
    }
    let mut tx = state.store.write().await?;
    if !tx.revoke_access_token(&id, now().0).await? {
        return Err(ApiError::not_found(format!("access token {id} that isn't revoked already")));
    }
    tx.audit(&caller.did("access-token.revoke", &id, "", serde_json::Value::Null)).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// When a token that is made now ends. None: never, and only for who asks for that.
fn end(asked: Option<&str>, now: Timestamp) -> Result<Option<Timestamp>, ApiError> {
    let life = match asked {
        None => LIFE,
        Some(NEVER) => return Ok(None),
        Some(text) => parse_duration(text).map_err(|error| {
            ApiError::invalid("BadExpiry", format!("`expires`: {error}")).hint("write `90d`, or `never`")
        })?,
    };
    if life.is_zero() {
        return Err(ApiError::invalid("BadExpiry", "`expires` is zero: the token would be good for nothing"));
    }
    let millis = i64::try_from(life.as_millis()).unwrap_or(i64::MAX);
    // Later than dates can be written is as good as never, and isn't what was asked for.
    let end = now.0.checked_add(millis).filter(|end| !moment(*end).is_empty());
    let end = end.ok_or_else(|| ApiError::invalid("BadExpiry", "`expires` is too long").hint("write `never`"))?;
    Ok(Some(Timestamp(end)))
}

/// Who makes tokens mustn't approve: no person is an administrator and something else that acts.
async fn check_roles(tx: &mut Tx, person: &str, name: &str, role: Role) -> Result<(), ApiError> {
    let acts = |role: &Role| matches!(role, Role::Platform | Role::Application);
    let roles = tx.roles_of(person).await?;
    let other = match role {
        Role::Administrator => roles.into_iter().find(acts),
        Role::Platform | Role::Application => roles.into_iter().find(|role| *role == Role::Administrator),
        Role::Viewer => None,
    };
    let Some(other) = other else { return Ok(()) };
    Err(ApiError::conflict(
        "RolesExclude",
        format!("{name} has a token of the role {other}, and who makes tokens can't approve"),
    )
    .hint(format!(
        "revoke that token first (`kedge access list`), or make the one of the role {role} for another person"
    )))
}

fn check(name: &str, workspaces: &[String], role: Role) -> Result<(), ApiError> {
    let plain = |text: &str| !text.trim().is_empty() && text.len() <= MAX_NAME && !text.contains(is_hidden);
    if !plain(name) {
        let message = format!("`name` is plain text of up to {MAX_NAME} bytes: the audit log shows it");
        return Err(ApiError::invalid("BadName", message));
    }
    if workspaces.len() > MAX_WORKSPACES || !workspaces.iter().all(|workspace| plain(workspace)) {
        return Err(ApiError::invalid("BadWorkspaces", format!("`workspaces` are up to {MAX_WORKSPACES} names")));
    }
    match (role, workspaces.is_empty()) {
        (Role::Application, true) => {
            Err(ApiError::invalid("BadWorkspaces", "an application team's token names its workspaces"))
        }
        (Role::Viewer | Role::Platform | Role::Administrator, false) => {
            let message = format!("a token of the role {role} isn't bound to workspaces");
            Err(ApiError::invalid("BadWorkspaces", message).hint("leave `workspaces` out, or choose `application`"))
        }
        _ => Ok(()),
    }
}

fn view(token: AccessToken) -> AccessTokenSummary {
    let state = if token.revoked_at.is_some() {
        "revoked"
    } else if token.expires_at.is_some_and(|until| until <= now().0) {
        "expired"
    } else {
        "good"
    };
    AccessTokenSummary {
        id: token.id,
        person: token.person,
        person_name: token.person_name,
        name: token.name,
        role: token.role.as_str().to_owned(),
        workspaces: token.workspaces,
        state: state.to_owned(),
        created_at: moment(token.created_at),
        created_by: token.created_by,
        expires_at: token.expires_at.map(moment),
        revoked_at: token.revoked_at.map(moment),
        last_used: token.last_used.map(moment),
    }
}
