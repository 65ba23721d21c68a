//! Two sides of the fleet next to each other: gathers what `crate::compare` works on, from the catalog and the states for
//! now, from states and published files for an earlier time.

mod gather;
mod reported;
mod states;

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use kedge_api::comparisons::{Comparison, ComparisonTotals};
use serde::Deserialize;
use utoipa::IntoParams;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::names;
use super::page::{self, PageQuery};
use crate::compare::{self, SideError, SideName};
use crate::store::now;
use gather::Known;

/// What is compared.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CompareQuery {
    /// `stage`, `prod/drone` (a cluster type), `prod@2026-11-01T00:00:00Z` (at a time), `prod@2d` (so long ago).
    pub left: String,
    /// As `left`.
    pub right: String,
    /// This workload only.
    pub workload: Option<String>,
    /// Leave out workloads that are the same on both sides.
    pub differing: Option<bool>,
    /// The maximum number of workloads to compare, up to 500.
    pub limit: Option<usize>,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

/// Compare two environments, two cluster types, or one at two times, by workload.
#[utoipa::path(get, path = "/compare", tag = "compare", params(CompareQuery), responses((status = OK, body = Comparison)))]
pub async fn compare(
    State(state): State<ApiState>,
    caller: Caller,
    query: Result<Query<CompareQuery>, QueryRejection>,
) -> Result<Json<Comparison>, ApiError> {
    let query = query?.0;
    let paging = PageQuery { limit: query.limit, cursor: query.cursor.clone(), ..PageQuery::default() };
    let (limit, from) = (paging.limit()?, paging.from::<String>()?);
    let (left, right) = (parse(&query.left)?, parse(&query.right)?);
    let (left, right) = (Known::of(&state, &caller, left).await?, Known::of(&state, &caller, right).await?);
    let mut names: BTreeSet<&str> = left.workloads().chain(right.workloads()).collect();
    if let Some(wanted) = query.workload.as_deref()
        && !names.contains(wanted)
    {
        // Nothing differs where neither side has it: a mistyped name must not pass for that.
        let place = format!("workload in {} or {}", query.left, query.right);
        return Err(names::none_called(&place, wanted, names.iter().copied()));
    }
    names.retain(|name| from.as_deref().is_none_or(|from| *name > from));
    names.retain(|name| query.workload.as_deref().is_none_or(|wanted| *name == wanted));
    let more = names.len() > limit;
    let names: BTreeSet<String> = names.into_iter().take(limit).map(str::to_owned).collect();
    let next = names.last().filter(|_| more).and_then(page::cursor);
    let one = left.side(&state, &caller, &names).await?;
    let other = right.side(&state, &caller, &names).await?;
    let mut workloads = compare::compare(&one, &other);
    let totals = ComparisonTotals::of(&workloads);
    if query.differing == Some(true) {
        workloads.retain(|workload| !workload.same);
    }
    let mut notes = left.changed(&state, &names).await?;
    for note in right.changed(&state, &names).await? {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    Ok(Json(Comparison { left: left.view(&caller), right: right.view(&caller), totals, workloads, notes, next }))
}

fn parse(text: &str) -> Result<SideName, ApiError> {
    SideName::parse(text, now()).map_err(|error| {
        let reason = match &error {
            SideError::Shape(_) => "BadSide",
            SideError::Time(_) | SideError::Future(_) => "BadTime",
        };
        ApiError::invalid(reason, error.to_string()).hint(
            "a side is an environment (`stage`), a cluster type (`prod/drone`), either at a time \
             (`prod@2026-11-01T00:00:00Z`, `prod@2026-11-01`) or so long ago (`prod@2d`)",
        )
    })
}
