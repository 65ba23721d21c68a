//! The audit log, newest first.

use std::collections::BTreeSet;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use kedge_api::audit::AuditEntry;
use kedge_api::page::Page;
use serde::Deserialize;
use serde_json::Value;
use utoipa::IntoParams;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::names;
use super::page::{self, Listed, MAX_CHANGES, PageQuery, moment};
use crate::store::api::audit::{AuditFilter, Audited};
use crate::store::tokens::Role;

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
    /// The maximum number of items, up to 500.
    pub limit: Option<usize>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Only what was written after this number (`kedge-tick` of an answer before).
    pub after: Option<i64>,
    /// With `after`: wait so long (`30s`) for a change.
    pub wait: Option<String>,
}

/// What people and programs do on a hub, as the log calls it; refused requests to other routes stand there by their path.
pub(super) const ACTIONS: [&str; 45] = [
    "access-token.create",
    "access-token.revoke",
    "bundle.export",
    "cluster.change",
    "cluster.hold",
    "cluster.lift-hold",
    "cluster.move",
    "cluster.readmit",
    "cluster.relabel",
    "cluster.release",
    "cluster.replace",
    "cluster.retire",
    "cluster.revoke",
    "cluster.set",
    "cluster.sign",
    "join-token.create",
    "join-token.revoke",
    "login",
    "operation.reapply",
    "operation.restart",
    "person.add",
    "person.remove",
    "person.set",
    "policy.approve",
    "promotion.approve",
    "promotion.override",
    "promotion.promote",
    "publish.confirm",
    "repository.fetch",
    "rollout.abort",
    "rollout.approve",
    "rollout.now",
    "rollout.override",
    "rollout.pause",
    "rollout.pin",
    "rollout.resume",
    "rollout.rollback",
    "rollout.start",
    "session.begin",
    "session.end",
    "status.import",
    "DELETE ",
    "PATCH ",
    "POST ",
    "PUT ",
];

/// The audit log. An application team sees what it did itself.
#[utoipa::path(get, path = "/audit", tag = "access", params(AuditQuery), responses((status = OK, body = Page<AuditEntry>)))]
pub async fn audit(
    State(state): State<ApiState>,
    caller: Caller,
    query: Result<Query<AuditQuery>, QueryRejection>,
) -> Result<Listed<AuditEntry>, ApiError> {
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
        done: false,
        limit: limit + 1,
    };
    let addresses = caller.sees_addresses();
    if let Some(after) = query.after {
        filter.limit = MAX_CHANGES;
        return page::follow(&state, after, paging.wait()?, || async {
            let items = state.store.audit_page(&filter).await?.into_iter().map(|one| view(one, addresses)).collect();
            Ok(Page { items, removed: Vec::new(), next: None })
        })
        .await;
    }
    let tick = state.ticks.current(&state.store).await?;
    let mut found = state.store.audit_page(&filter).await?;
    if found.iter().all(|one| one.entry.result != "done") {
        check(&state, &caller, &filter).await?;
    }
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).and_then(|last| page::cursor(&last.number));
    let items = found.into_iter().map(|one| view(one, addresses)).collect();
    Ok(Listed { page: Page { items, removed: Vec::new(), next }, tick })
}

/// Nothing was found that was done: because nothing happened, or because there is no such name. What the log mentions counts as
/// known, but for an environment that only refused writes mention: anybody can name one.
async fn check(state: &ApiState, caller: &Caller, filter: &AuditFilter) -> Result<(), ApiError> {
    let mentions = async |filter: AuditFilter| {
        let found = state.store.audit_page(&AuditFilter { limit: 1, ..filter }).await?;
        Ok::<bool, ApiError>(!found.is_empty())
    };
    if filter.environment.is_some() {
        let checked = names::environment(state, caller, filter.environment.as_deref()).await;
        let environment = filter.environment.clone();
        if checked.is_err() && !mentions(AuditFilter { environment, done: true, ..AuditFilter::default() }).await? {
            return checked;
        }
    }
    if let Some(token) = &filter.token
        && state.store.access_token(token).await?.is_none()
        && !mentions(AuditFilter { token: Some(token.clone()), ..AuditFilter::default() }).await?
    {
        let message = format!("there is no access token with the id `{}`", names::harmless(token));
        return Err(ApiError::new(StatusCode::NOT_FOUND, "UnknownName", message)
            .hint("`kedge access list` shows their ids, and `kedge audit -o wide` those that wrote something"));
    }
    if let Some(prefix) = &filter.action_prefix
        && !ACTIONS.iter().any(|action| action.starts_with(prefix.as_str()))
        && !mentions(AuditFilter { action_prefix: Some(prefix.clone()), ..AuditFilter::default() }).await?
    {
        let groups: BTreeSet<&str> = ACTIONS.iter().filter_map(|action| Some(action.split_once('.')?.0)).collect();
        let near = names::nearest(prefix, ACTIONS.iter().copied());
        let error = match near {
            Some(_) => names::no_such("action", prefix, ACTIONS),
            None => names::no_such("action", prefix.trim_end_matches('.'), groups),
        };
        return Err(error);
    }
    Ok(())
}

/// Takes people's e-mail addresses out of what a write or an entry of history says: the lists of people, and those behind an
/// author's name.
pub(super) fn hide_addresses(detail: &mut Value) {
    match detail {
        Value::Object(fields) => {
            fields.remove("emails");
            fields.values_mut().for_each(hide_addresses);
        }
        Value::Array(items) => items.iter_mut().for_each(hide_addresses),
        Value::String(text) => *text = without_address(text).to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// `Ann <ann@example.org>` as `Ann`; any other text as it is.
pub(super) fn without_address(text: &str) -> &str {
    match text.strip_suffix('>').and_then(|text| text.rsplit_once(" <")) {
        Some((name, address)) if address.contains('@') && !address.contains(char::is_whitespace) => name,
        _ => text,
    }
}

fn view(audited: Audited, addresses: bool) -> AuditEntry {
    let Audited { number, at, mut entry } = audited;
    if !addresses {
        hide_addresses(&mut entry.detail);
    }
    AuditEntry {
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
