//! Evidence: what was true when a commit passed, as the hub signed it.

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kedge_api::evidence::{EvidenceDetail, EvidenceSummary};
use kedge_api::page::Page;
use serde::Deserialize;
use serde_json::Value;
use utoipa::IntoParams;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::history;
use super::names;
use super::page::{self, Listed, PageQuery, moment};
use crate::store::StoreError;
use crate::store::promotion::evidence::{EvidenceFilter, EvidenceRow};

/// Which evidence.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EvidenceQuery {
    pub environment: Option<String>,
    /// Of `main`, or of an application's source; its first digits are enough.
    pub commit: Option<String>,
    /// The maximum number of items, up to 500.
    pub limit: Option<usize>,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

/// Evidence, the newest first.
#[utoipa::path(get, path = "/evidence", tag = "promotions", params(EvidenceQuery),
    responses((status = OK, body = Page<EvidenceSummary>)))]
pub async fn evidence(
    State(state): State<ApiState>,
    caller: Caller,
    query: Result<Query<EvidenceQuery>, QueryRejection>,
) -> Result<Listed<EvidenceSummary>, ApiError> {
    caller.not_application("evidence")?;
    let query = query?.0;
    let paging = PageQuery { limit: query.limit, cursor: query.cursor, after: None, wait: None };
    let limit = paging.limit()?;
    // Its first digits will do.
    let commit = match &query.commit {
        Some(commit) => Some(state.store.history_commit(commit).await?.unwrap_or_else(|| commit.clone())),
        None => None,
    };
    let filter = EvidenceFilter {
        environment: query.environment,
        commit,
        before: paging.from()?,
        limit: i64::try_from(limit + 1).unwrap_or(i64::MAX),
    };
    let tick = state.ticks.current(&state.store).await?;
    let mut found = state.store.evidence(&filter).await?;
    if found.is_empty() {
        names::environment(&state, &caller, filter.environment.as_deref()).await?;
        if let Some(commit) = &query.commit {
            history::check_digits(&state, &caller, commit).await?;
        }
    }
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).and_then(|last| page::cursor(&last.id));
    Ok(Listed { page: Page { items: found.into_iter().map(view).collect(), removed: Vec::new(), next }, tick })
}

/// One statement with the signed envelope.
#[utoipa::path(get, path = "/evidence/{id}", tag = "promotions", params(("id" = i64, Path)),
    responses((status = OK, body = EvidenceDetail)))]
pub async fn one_evidence(
    State(state): State<ApiState>,
    caller: Caller,
    id: Result<Path<i64>, PathRejection>,
) -> Result<Json<EvidenceDetail>, ApiError> {
    caller.not_application("evidence")?;
    let id = id?.0;
    let found = state.store.one_evidence(id).await?;
    let (row, body) = found.ok_or_else(|| ApiError::not_found(format!("evidence {id}")))?;
    let envelope: Value = serde_json::from_str(&body).map_err(corrupt)?;
    let payload = envelope["payload"].as_str().unwrap_or_default();
    let statement = serde_json::from_slice(&STANDARD.decode(payload).map_err(corrupt)?).map_err(corrupt)?;
    Ok(Json(EvidenceDetail { evidence: view(row), statement, envelope }))
}

fn view(row: EvidenceRow) -> EvidenceSummary {
    EvidenceSummary {
        id: row.id,
        environment: row.environment,
        commit: row.commit,
        kind: row.kind,
        rollout: row.rollout,
        event: row.event,
        created_at: moment(row.created_at.0),
    }
}

fn corrupt(error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("evidence: {error}"))
}
