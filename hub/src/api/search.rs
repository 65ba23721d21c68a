//! Search over everything that has a name: clusters, workloads, targets, assignments, cluster types, environments, commits and
//! problems. What is named exactly comes first, then what begins with the text, then what has it inside.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use kedge_api::findings::FindingSummary;
use kedge_api::search::SearchResult;
use serde::Deserialize;
use utoipa::IntoParams;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::fleet::Order;
use crate::links;
use crate::store::api::search::{ClusterFound, NameFound, RolloutFound};
use crate::store::catalog::{Kind, Visible};

/// What to look for.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SearchQuery {
    /// A part of a name, the first digits of a commit or an id.
    #[serde(default)]
    pub q: String,
    /// The maximum number, up to 100.
    pub limit: Option<usize>,
}

const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 100;
/// Longer than any name.
const MAX_TEXT: usize = 253;

/// Search over everything.
#[utoipa::path(get, path = "/search", tag = "fleet", params(SearchQuery), responses((status = OK, body = [SearchResult])))]
pub async fn search(
    State(state): State<ApiState>,
    caller: Caller,
    query: Result<Query<SearchQuery>, QueryRejection>,
) -> Result<Json<Vec<SearchResult>>, ApiError> {
    find(&state, &caller, &query?.0).await.map(Json)
}

/// What the caller may see of what fits.
pub(crate) async fn find(
    state: &ApiState,
    caller: &Caller,
    query: &SearchQuery,
) -> Result<Vec<SearchResult>, ApiError> {
    let limit = match query.limit {
        None => DEFAULT_LIMIT,
        Some(limit) if (1..=MAX_LIMIT).contains(&limit) => limit,
        Some(_) => return Err(ApiError::invalid("BadLimit", format!("`limit` is between 1 and {MAX_LIMIT}"))),
    };
    let text = query.q.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    if text.len() > MAX_TEXT || text.contains(char::is_control) {
        return Err(ApiError::invalid("BadText", format!("`q` is a line of at most {MAX_TEXT} bytes")));
    }
    let (store, visible, order) = (&state.store, caller.visible(), Order::of(state).await?);
    let mut found = Vec::new();
    for kind in [Kind::Environment, Kind::Workload, Kind::ClusterType, Kind::DeploymentTarget, Kind::Assignment] {
        let mut named = objects(kind, store.find_names(kind, &visible, text, limit).await?, &order);
        named.sort_by_cached_key(|one| match &one.environment {
            Some(environment) => (one.name.clone(), order.place(environment)),
            None => (String::new(), order.place(&one.name)),
        });
        found.extend(named);
    }
    found.extend(store.find_clusters(&visible, text, limit).await?.into_iter().map(cluster));
    if visible == Visible::All {
        found.extend(promoted(state, text, &order).await?);
    }
    found.extend(store.find_rollouts(&visible, text, limit).await?.into_iter().filter_map(|one| rollout(one, text)));
    let problems = store.find_problems(&visible, text, limit).await?;
    found.extend(problems.into_iter().filter_map(|found| problem(found, text)));
    for same in found.chunk_by_mut(|one, other| (&one.kind, &one.name) == (&other.kind, &other.name)) {
        same.sort_by_cached_key(|one: &SearchResult| order.place(one.environment.as_deref().unwrap_or_default()));
    }
    // The sort is stable: kinds stay in the order above.
    found.sort_by_key(|found| rank(&found.name, text));
    found.truncate(limit);
    Ok(found)
}

/// Exactly, at the beginning, at the beginning of a part, or inside.
fn rank(name: &str, text: &str) -> u8 {
    let (name, text) = (name.to_lowercase(), text.to_lowercase());
    if name == text || name.rsplit('/').next() == Some(&text) {
        return 0;
    }
    if name.starts_with(&text) {
        return 1;
    }
    if name.split(['/', '-', '.', '_', ' ']).any(|part| part.starts_with(&text)) { 2 } else { 3 }
}

/// A workload is one thing in every environment; the others belong to theirs.
fn objects(kind: Kind, found: Vec<NameFound>, order: &Order) -> Vec<SearchResult> {
    let mut views = Vec::new();
    let mut workloads: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    for NameFound { environment, name, parent, workspace, state, .. } in found {
        let (detail, link) = match kind {
            Kind::Workload => {
                workloads.entry(name).or_insert_with(|| (workspace, Vec::new())).1.push(environment);
                continue;
            }
            Kind::Environment => ("environment".to_owned(), links::environment(&name)),
            Kind::ClusterType => (format!("cluster type in {environment}"), links::cluster_type(&environment, &name)),
            Kind::DeploymentTarget => (format!("target of {parent} in {environment}"), links::workload(&parent)),
            _ => {
                let state = if state == "quarantined" { ", quarantined" } else { "" };
                (format!("assignment in {environment}{state}"), links::assignment(&environment, &name))
            }
        };
        let environment = (kind != Kind::Environment).then_some(environment);
        views.push(SearchResult { kind: kind.as_str().to_owned(), environment, name, detail, link });
    }
    views.extend(workloads.into_iter().map(|(name, (workspace, environments))| SearchResult {
        kind: Kind::Workload.as_str().to_owned(),
        environment: None,
        detail: format!("workload of {workspace} in {}", order.listed(environments)),
        link: links::workload(&name),
        name,
    }));
    views
}

fn cluster(found: ClusterFound) -> SearchResult {
    let state = match (found.state.as_str(), found.silent) {
        ("active", true) => ", Unknown".to_owned(),
        ("active", false) => String::new(),
        (state, _) => format!(", {state}"),
    };
    SearchResult {
        kind: "cluster".to_owned(),
        detail: format!("{} in {}{state}", found.cluster_type, found.environment),
        environment: Some(found.environment),
        name: found.name,
        link: links::cluster(&found.id),
    }
}

/// Commits of main that environments know.
async fn promoted(state: &ApiState, text: &str, order: &Order) -> Result<Vec<SearchResult>, ApiError> {
    let (digits, words) = (text.to_ascii_lowercase(), text.to_lowercase());
    let mut commits: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    for (environment, row) in state.store.promotions().await? {
        for promotion in row.standing.promotions {
            let fits = (digits.len() >= 4 && promotion.commit.starts_with(&digits))
                || promotion.subject.to_lowercase().contains(&words);
            if fits {
                commits.entry(promotion.commit).or_insert((promotion.subject, Vec::new())).1.push(environment.clone());
            }
        }
    }
    let view = |(commit, (subject, environments)): (String, (String, Vec<String>))| SearchResult {
        kind: "commit".to_owned(),
        environment: None,
        detail: format!("{subject} ({})", order.listed(environments)),
        link: links::commit(&commit),
        name: commit,
    };
    Ok(commits.into_iter().map(view).collect())
}

fn rollout(found: RolloutFound, text: &str) -> Option<SearchResult> {
    let stored: kedge_rollout::Rollout = serde_json::from_str(&found.body).ok()?;
    let text = text.to_lowercase();
    let said = |words: &str| words.to_lowercase().contains(&text);
    let fits = found.commit.starts_with(&text)
        || stored.cause.main.as_ref().is_some_and(|main| main.starts_with(&text))
        || said(&stored.cause.subject)
        || said(&stored.cause.author)
        // A commit of an application's source that it moves to.
        || (text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let id = u64::try_from(found.id).ok()?;
    fits.then(|| SearchResult {
        kind: "rollout".to_owned(),
        detail: format!("{}, {} in {}", stored.cause.subject, found.state, found.environment),
        environment: Some(found.environment),
        name: format!("rollout {id}"),
        link: links::rollout(id),
    })
}

/// The row says it somewhere; a person looks for what is told, not for how it is stored.
fn problem(found: NameFound, text: &str) -> Option<SearchResult> {
    let view: FindingSummary = serde_json::from_str(&found.body).ok()?;
    let text = text.to_lowercase();
    let file = view.finding.origin.as_ref().map(|origin| origin.file.as_str()).unwrap_or_default();
    let told =
        [view.finding.message.as_str(), &view.finding.code, view.assignment.as_deref().unwrap_or_default(), file];
    told.iter().any(|words| words.to_lowercase().contains(&text)).then(|| SearchResult {
        kind: "problem".to_owned(),
        name: view.finding.code.clone(),
        detail: view.finding.message.clone(),
        link: problem_link(&found.environment, &view.finding.code, &found.name),
        environment: Some(found.environment),
    })
}

/// The list of an environment's findings, at one of them.
fn problem_link(environment: &str, code: &str, id: &str) -> String {
    let pairs = [("environment", environment), ("code", code)];
    format!("{}#{}", links::query("/problems", &pairs), links::part(id))
}

#[cfg(test)]
mod tests {
    use super::rank;

    #[test]
    fn what_is_named_exactly_comes_before_what_begins_so() {
        assert!(rank("drone", "drone") < rank("drone-1", "drone"));
        assert!(rank("drone-1", "drone") < rank("big-drone", "drone"));
        assert!(rank("big-drone", "drone") < rank("hydrones", "drone"));
        assert_eq!(rank("drone/Hello", "hello"), 0);
    }
}
