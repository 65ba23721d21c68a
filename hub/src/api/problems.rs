//! Everything that needs attention, in one answer: what can't be read or rendered, what isn't delivered, clusters that fail, warn or
//! are offline, rollouts that stopped, approvals that are missing. Problems with one cause are one item, each with its way
//! out. Made from counts, so that it costs the same for ten clusters and for a hundred thousand.

mod changes;
mod clusters;
mod fold;
mod hub;
mod inputs;
mod known;
mod warnings;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use kedge_api::problems::{ProblemExample, ProblemKind, ProblemList, ProblemSeverity, ProblemSummary};
use serde::Deserialize;
use utoipa::IntoParams;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::conditions::{self, ConditionsQuery};
use super::names;
use super::page::{self, PageQuery, moment};
use crate::store::now;
pub(crate) use inputs::REPOSITORY_FAILING;
pub use known::KnownProblems;

/// Which problems.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ProblemsQuery {
    pub environment: Option<String>,
    /// `approvals`, `rollouts`, `clusters`, `delivery`, `schedule`, `git` or `hub`
    pub kind: Option<String>,
    /// `error`, `waiting` or `warning`
    pub state: Option<String>,
    /// The maximum number of items, up to 500.
    pub limit: Option<usize>,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

/// Items of a page whose clusters are named.
const NAMED: usize = 20;
/// Clusters that are named of each.
const CLUSTERS: usize = 3;

/// Everything that needs attention.
#[utoipa::path(get, path = "/problems", tag = "fleet", params(ProblemsQuery),
    responses((status = OK, description = "what needs somebody", body = ProblemList)))]
pub async fn problems(
    State(state): State<ApiState>,
    caller: Caller,
    query: Result<Query<ProblemsQuery>, QueryRejection>,
) -> Result<Json<ProblemList>, ApiError> {
    list(&state, &caller, &query?.0).await.map(Json)
}

/// A page of them.
pub(crate) async fn list(state: &ApiState, caller: &Caller, query: &ProblemsQuery) -> Result<ProblemList, ApiError> {
    let paging = PageQuery { limit: query.limit, cursor: query.cursor.clone(), ..PageQuery::default() };
    let (limit, from) = (paging.limit()?, paging.from::<String>()?);
    let kind = query.kind.as_deref().map(kind_named).transpose()?;
    let severity = query.state.as_deref().map(severity_named).transpose()?;
    names::environment(state, caller, query.environment.as_deref()).await?;
    let all = state.problems.fresh(state, caller).await?;
    let wanted = |one: &&ProblemSummary| {
        kind.is_none_or(|kind| one.kind == kind)
            && severity.is_none_or(|severity| one.severity == severity)
            && query.environment.as_ref().is_none_or(|wanted| one.environments.contains(wanted))
    };
    let chosen: Vec<&ProblemSummary> = all.iter().filter(wanted).collect();
    let of = |severity: ProblemSeverity| chosen.iter().filter(|one| one.severity == severity).count() as u64;
    let begin = match from {
        None => 0,
        // What the page before ended with may be solved by now: the list begins again then.
        Some(id) => chosen.iter().position(|one| one.id == id).map_or(0, |place| place + 1),
    };
    let mut items: Vec<ProblemSummary> = chosen.iter().skip(begin).take(limit).map(|one| (*one).clone()).collect();
    let more = begin + items.len() < chosen.len();
    let next = items.last().filter(|_| more).and_then(|last| page::cursor(&last.id));
    name_clusters(state, caller, &mut items).await?;
    Ok(ProblemList {
        total: chosen.len() as u64,
        errors: of(ProblemSeverity::Error),
        warnings: of(ProblemSeverity::Warning),
        waiting: of(ProblemSeverity::Waiting),
        items,
        next,
        at: moment(now().0),
    })
}

/// On whom, and why, for those that are shown first.
async fn name_clusters(state: &ApiState, caller: &Caller, items: &mut [ProblemSummary]) -> Result<(), ApiError> {
    for item in items.iter_mut().filter(|item| warnings::is_warning(item)).take(NAMED) {
        item.examples = warnings::examples(state, &caller.visible(), item, CLUSTERS).await?;
    }
    for item in items.iter_mut().filter(|item| item.code == clusters::FAILED).take(NAMED) {
        let [example] = item.examples.as_slice() else { continue };
        let query = ConditionsQuery {
            environment: item.environments.first().cloned(),
            assignment: example.assignment.clone(),
            condition: Some("Failed".to_owned()),
            limit: Some(CLUSTERS),
            ..ConditionsQuery::default()
        };
        let found = conditions::list(state, caller, &query).await?.page.items;
        if !found.is_empty() {
            let assignment = example.assignment.clone();
            item.since = found.iter().filter_map(|row| row.since.clone()).min();
            item.examples = found
                .into_iter()
                .map(|row| ProblemExample {
                    cluster: Some(row.cluster_name),
                    assignment: assignment.clone(),
                    message: told(row.reason, row.message),
                    ..ProblemExample::default()
                })
                .collect();
        }
    }
    Ok(())
}

/// The reason first.
fn told(reason: Option<String>, message: Option<String>) -> String {
    match (reason, message) {
        (Some(reason), Some(message)) => format!("{reason}: {message}"),
        (reason, message) => reason.or(message).unwrap_or_default(),
    }
}

fn kind_named(text: &str) -> Result<ProblemKind, ApiError> {
    let found = ProblemKind::ALL.into_iter().find(|kind| kind.as_str() == text);
    found.ok_or_else(|| names::no_such("kind of problem", text, ProblemKind::ALL.map(ProblemKind::as_str)))
}

fn severity_named(text: &str) -> Result<ProblemSeverity, ApiError> {
    let found = ProblemSeverity::ALL.into_iter().find(|severity| severity.as_str() == text);
    let words = ProblemSeverity::ALL.map(ProblemSeverity::as_str);
    found.ok_or_else(|| names::no_such("state of a problem", text, words))
}
