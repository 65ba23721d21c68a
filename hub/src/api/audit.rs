//! The audit log, newest first.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::page::{self, Listed, MAX_CHANGES, Page, PageQuery, moment};
use crate::store::api::audit::{AuditFilter, Audited};
use crate::store::tokens::Role;

/// A write: who, when, what, from where, and how it ended.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditView {
    pub number: i64,
    pub at: String,
    /// The person's name.
    pub who: String,
    /// The person's id; empty before there were persons.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub person: String,
    /// Id of the access token.
    pub token: String,
    pub role: String,
    pub action: String,
    pub object: String,
    pub environment: String,
    pub detail: serde_json::Value,
    pub address: String,
    /// `done`, `refused: …` with the reason, or that it waits for the leader.
    pub result: String,
}

/// Which entries.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AuditQuery {
    /// Id of an access token.
    pub token: Option<String>,
    pub environment: Option<String>,
    /// Actions that begin so: `cluster.`
    pub action: Option<String>,
    /// At most so many items, up to 500.
    pub limit: Option<usize>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Only what was written after this number (`kedge-tick` of an answer before).
    pub after: Option<i64>,
    /// With `after`: wait so long (`30s`) for a change.
    pub wait: Option<String>,
}

/// The audit log. An application team sees what it did itself.
#[utoipa::path(get, path = "/audit", tag = "access", params(AuditQuery), responses((status = OK, body = Page<AuditView>)))]
pub async fn audit(
    State(state): State<ApiState>,
    caller: Caller,
    query: Result<Query<AuditQuery>, QueryRejection>,
) -> Result<Listed<AuditView>, ApiError> {
    let query = query?.0;
    let paging = PageQuery { limit: query.limit, cursor: query.cursor, after: query.after, wait: query.wait };
    let limit = paging.limit()?;
    let own = caller.role == Role::Application;
    if own && query.token.as_ref().is_some_and(|token| *token != caller.token) {
        return Err(ApiError::forbidden("an application team sees what it did itself"));
    }
    let mut filter = AuditFilter {
        token: if own { Some(caller.token.clone()) } else { query.token },
        environment: query.environment,
        action_prefix: query.action,
        before: paging.from()?,
        after: query.after,
        limit: limit + 1,
    };
    if let Some(after) = query.after {
        filter.limit = MAX_CHANGES;
        return page::follow(&state, after, paging.wait()?, || async {
            let items = state.store.audit_page(&filter).await?.into_iter().map(view).collect();
            Ok(Page { items, removed: Vec::new(), next: None })
        })
        .await;
    }
    let tick = state.ticks.current(&state.store).await?;
    let mut found = state.store.audit_page(&filter).await?;
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).and_then(|last| page::cursor(&last.number));
    Ok(Listed { page: Page { items: found.into_iter().map(view).collect(), removed: Vec::new(), next }, tick })
}

fn view(audited: Audited) -> AuditView {
    let Audited { number, at, entry } = audited;
    AuditView {
        number,
        at: moment(at),
        who: entry.who,
        person: entry.person,
        token: entry.token,
        role: entry.role,
        action: entry.action,
        object: entry.object,
        environment: entry.environment,
        detail: entry.detail,
        address: entry.address,
        result: entry.result,
    }
}
