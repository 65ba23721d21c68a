//! What Git describes: environments, cluster types, workloads, deployment targets, assignments, problems, repositories.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue};
use kedge_api::assignments::{AssignmentDetail, AssignmentSummary, DesiredAssignment, Provenance, ValueSummary};
use kedge_api::cluster_types::ClusterTypeSummary;
use kedge_api::deployment_targets::DeploymentTargetSummary;
use kedge_api::environments::EnvironmentSummary;
use kedge_api::findings::{Finding, FindingSummary};
use kedge_api::page::{Page, Removed, Stored};
use kedge_api::repositories::{EnvironmentRepository, FetchRequest, RepositorySummary};
use kedge_api::workloads::WorkloadSummary;
use kedge_model::Selector;
use kedge_model::wire::Stream;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::fleet::Order;
use super::names::{self, Mentioned};
use super::page::{self, Listed, MAX_CHANGES, PageQuery, moment};
use super::rollouts::about;
use super::running::{self, Asked, Git, Running};
use super::services::CountQuery;
use super::states::entry_of;
use crate::catalog::StoredValue;
use crate::store::api::conditions::MemberFilter;
use crate::store::api::names::NameKind;
use crate::store::catalog::{Filter, Kind, Known, Shown, Visible};
use crate::store::tokens::Role;
use crate::store::{StoreError, now};

/// Which objects.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ObjectQuery {
    pub environment: Option<String>,
    /// Assignments of this cluster type.
    pub cluster_type: Option<String>,
    /// Targets of this workload.
    pub workload: Option<String>,
    /// Problems of this assignment.
    pub assignment: Option<String>,
    pub workspace: Option<String>,
    /// `rendered` or `quarantined` for assignments, `error` or `warning` for problems, `good` or `failing` for
    /// repositories.
    pub state: Option<String>,
    /// Names that begin so.
    pub name_prefix: Option<String>,
    /// `region=west,size in (a,b),!edge`
    pub label_selector: Option<String>,
    /// The maximum number of items, up to 500.
    pub limit: Option<usize>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Only what changed after this number (`kedge-tick` of an answer before).
    pub after: Option<i64>,
    /// With `after`: wait so long (`30s`) for a change.
    pub wait: Option<String>,
}

/// The state of an assignment that Git doesn't describe any more.
pub const REMOVED: &str = "removed";

type Q = Result<Query<ObjectQuery>, QueryRejection>;
type P<T> = Result<Path<T>, PathRejection>;

impl ObjectQuery {
    fn paging(&self) -> PageQuery {
        PageQuery { limit: self.limit, cursor: self.cursor.clone(), after: self.after, wait: self.wait.clone() }
    }

    fn mentioned(&self) -> Mentioned<'_> {
        Mentioned {
            environment: self.environment.as_deref(),
            cluster_type: self.cluster_type.as_deref(),
            workload: self.workload.as_deref(),
            workspace: self.workspace.as_deref(),
            assignment: self.assignment.as_deref(),
            ..Mentioned::default()
        }
    }

    /// The parameters of all lists are one type: one that a list can't use is refused, never ignored.
    fn check_applies(&self, kind: Kind) -> Result<(), ApiError> {
        let (plural, own) = match kind {
            Kind::Environment => ("environments", None),
            Kind::ClusterType => ("cluster types", None),
            Kind::Workload => ("workloads", None),
            Kind::DeploymentTarget => ("deployment targets", Some("workload")),
            Kind::Assignment => ("assignments", Some("clusterType")),
            Kind::Problem => ("findings", Some("assignment")),
            Kind::Repository => ("repositories", None),
        };
        let given =
            [("clusterType", &self.cluster_type), ("workload", &self.workload), ("assignment", &self.assignment)];
        let Some((name, _)) = given.into_iter().find(|(name, value)| value.is_some() && own != Some(*name)) else {
            return Ok(());
        };
        let all =
            ["environment", "workspace", "state", "namePrefix", "labelSelector", "limit", "cursor", "after", "wait"];
        let takes: Vec<&str> = own.into_iter().chain(all).collect();
        Err(ApiError::invalid("BadQuery", format!("`{name}` doesn't apply to {plural}"))
            .hint(format!("the parameters are: {}", takes.join(", "))))
    }

    fn filter(&self, kind: Kind) -> Result<Filter, ApiError> {
        let words: &[&str] = match kind {
            Kind::Assignment => &["rendered", "quarantined"],
            Kind::Problem => &["error", "warning"],
            Kind::Repository => &["good", "failing"],
            Kind::ClusterType | Kind::Workload => &["good", "stale"],
            Kind::Environment | Kind::DeploymentTarget => &["good"],
        };
        let what = match kind {
            Kind::Problem => "a finding".to_owned(),
            kind => format!("{} {}", if kind.as_str().starts_with(['a', 'e']) { "an" } else { "a" }, kind.as_str()),
        };
        self.check_applies(kind)?;
        names::word(&format!("state of {}", what.replace('-', " ")), self.state.as_deref(), words)?;
        let paging = self.paging();
        Ok(Filter {
            environment: self.environment.clone(),
            parent: match kind {
                Kind::Assignment => self.cluster_type.clone(),
                Kind::DeploymentTarget => self.workload.clone(),
                Kind::Problem => self.assignment.clone(),
                _ => None,
            },
            workspace: self.workspace.clone(),
            state: self.state.clone(),
            name_prefix: self.name_prefix.clone(),
            labels: page::selector(self.label_selector.as_deref())?,
            after: self.after,
            from: paging.from()?,
            limit: if self.after.is_some() { MAX_CHANGES } else { paging.limit()? },
        })
    }
}

/// Environments.
#[utoipa::path(get, path = "/environments", tag = "objects", params(ObjectQuery),
    responses((status = OK, body = Page<Stored<EnvironmentSummary>>)))]
pub async fn environments(
    State(state): State<ApiState>,
    caller: Caller,
    query: Q,
) -> Result<Listed<Stored<EnvironmentSummary>>, ApiError> {
    list(&state, &caller, &query?.0, Kind::Environment, |shown| Ok(Some(environment_of(shown, &caller)?))).await
}

/// One environment.
#[utoipa::path(get, path = "/environments/{environment}", tag = "objects", params(("environment" = String, Path)),
    responses((status = OK, body = Stored<EnvironmentSummary>)))]
pub async fn environment(
    State(state): State<ApiState>,
    caller: Caller,
    name: P<String>,
) -> Result<Json<Stored<EnvironmentSummary>>, ApiError> {
    let name = name?.0;
    let known = row(&state, &caller, Kind::Environment, &name, &name).await?;
    Ok(Json(environment_of(&known.shown, &caller)?))
}

/// Cluster types.
#[utoipa::path(get, path = "/cluster-types", tag = "objects", params(ObjectQuery),
    responses((status = OK, body = Page<Stored<ClusterTypeSummary>>)))]
pub async fn cluster_types(
    State(state): State<ApiState>,
    caller: Caller,
    query: Q,
) -> Result<Listed<Stored<ClusterTypeSummary>>, ApiError> {
    list(&state, &caller, &query?.0, Kind::ClusterType, |shown| item(shown).map(Some)).await
}

/// One cluster type.
#[utoipa::path(get, path = "/cluster-types/{environment}/{name}", tag = "objects",
    params(("environment" = String, Path), ("name" = String, Path)), responses((status = OK, body = Stored<ClusterTypeSummary>)))]
pub async fn cluster_type(
    State(state): State<ApiState>,
    caller: Caller,
    path: P<(String, String)>,
) -> Result<Json<Stored<ClusterTypeSummary>>, ApiError> {
    one(&state, &caller, Kind::ClusterType, path).await
}

/// Workloads.
#[utoipa::path(get, path = "/workloads", tag = "objects", params(ObjectQuery),
    responses((status = OK, body = Page<Stored<WorkloadSummary>>)))]
pub async fn workloads(
    State(state): State<ApiState>,
    caller: Caller,
    query: Q,
) -> Result<Listed<Stored<WorkloadSummary>>, ApiError> {
    list(&state, &caller, &query?.0, Kind::Workload, |shown| item(shown).map(Some)).await
}

/// One workload.
#[utoipa::path(get, path = "/workloads/{environment}/{name}", tag = "objects",
    params(("environment" = String, Path), ("name" = String, Path)), responses((status = OK, body = Stored<WorkloadSummary>)))]
pub async fn workload(
    State(state): State<ApiState>,
    caller: Caller,
    path: P<(String, String)>,
) -> Result<Json<Stored<WorkloadSummary>>, ApiError> {
    one(&state, &caller, Kind::Workload, path).await
}

/// Deployment targets.
#[utoipa::path(get, path = "/deployment-targets", tag = "objects", params(ObjectQuery),
    responses((status = OK, body = Page<Stored<DeploymentTargetSummary>>)))]
pub async fn deployment_targets(
    State(state): State<ApiState>,
    caller: Caller,
    query: Q,
) -> Result<Listed<Stored<DeploymentTargetSummary>>, ApiError> {
    list(&state, &caller, &query?.0, Kind::DeploymentTarget, |shown| item(shown).map(Some)).await
}

/// One deployment target, by its full name.
#[utoipa::path(get, path = "/deployment-targets/{environment}/{name}", tag = "objects",
    params(("environment" = String, Path), ("name" = String, Path)),
    responses((status = OK, body = Stored<DeploymentTargetSummary>)))]
pub async fn deployment_target(
    State(state): State<ApiState>,
    caller: Caller,
    path: P<(String, String)>,
) -> Result<Json<Stored<DeploymentTargetSummary>>, ApiError> {
    one(&state, &caller, Kind::DeploymentTarget, path).await
}

/// Assignments.
#[utoipa::path(get, path = "/assignments", tag = "objects", params(ObjectQuery),
    responses((status = OK, body = Page<Stored<AssignmentSummary>>)))]
pub async fn assignments(
    State(state): State<ApiState>,
    caller: Caller,
    query: Q,
) -> Result<Listed<Stored<AssignmentSummary>>, ApiError> {
    list(&state, &caller, &query?.0, Kind::Assignment, |shown| assignment_of(shown).map(Some)).await
}

/// One assignment with its provenance.
#[utoipa::path(get, path = "/assignments/{environment}/{cluster_type}/{target}", tag = "objects",
    params(("environment" = String, Path), ("cluster_type" = String, Path), ("target" = String, Path)),
    responses((status = OK, body = AssignmentDetail)))]
pub async fn assignment(
    State(state): State<ApiState>,
    caller: Caller,
    path: P<(String, String, String)>,
) -> Result<Json<AssignmentDetail>, ApiError> {
    let (environment, cluster_type, target) = path?.0;
    let name = format!("{cluster_type}/{target}");
    let asked = Asked { environment: &environment, cluster_type: &cluster_type, target: &target };
    let (item, git, provenance) = match row(&state, &caller, Kind::Assignment, &environment, &name).await {
        Ok(known) => {
            let (git, provenance) = described(&known)?;
            (assignment_of(&known.shown)?, git, provenance)
        }
        Err(error) => match left_over(&state, &caller, asked).await? {
            Some(item) => (item, Git::default(), Provenance::default()),
            None => return Err(error),
        },
    };
    let removed = item.object.state == REMOVED;
    let stream = Stream::new(&environment, &cluster_type, Stream::ALL);
    let workload = item.object.workload.clone();
    let rollouts = about::of_assignment(&state, &environment, &cluster_type, &target, &workload).await?;
    let pinned = about::pinned(&state, &environment, |stream, assignment| {
        stream.cluster_type == cluster_type && assignment == target
    });
    let pinned = pinned.await?;
    let mut runs = running::of(&state, &caller, asked, &git).await?;
    // An empty configuration is like that of nothing, and isn't what Git says.
    runs.configurations.iter_mut().for_each(|one| one.as_in_git &= !removed);
    let mut desired = rings(&state, &stream, &target).await?;
    for ring in &mut desired {
        ring.configuration = runs.delivered.get(&ring.ring).cloned();
    }
    let counts = CountQuery {
        environment,
        cluster_type: Some(cluster_type),
        assignment: Some(target.clone()),
        ..CountQuery::default()
    };
    Ok(Json(AssignmentDetail {
        provenance,
        configuration: git.values.into_iter().map(|value| value.view(caller.sees_secrets())).collect(),
        desired,
        running: runs.rings,
        configurations: runs.configurations,
        counts: state.services.counts(&counts).await?,
        rollouts,
        pinned,
        note: removed
            .then(|| "Git doesn't describe it any more; a ring should still run it, or a cluster reports it".into()),
        assignment: item.object,
        updated_at: item.updated_at,
    }))
}

/// One that Git doesn't describe any more, where a ring should still run it or a cluster reports it: after a rollback, for example.
async fn left_over(
    state: &ApiState,
    caller: &Caller,
    asked: Asked<'_>,
) -> Result<Option<Stored<AssignmentSummary>>, ApiError> {
    let Asked { environment, cluster_type, target } = asked;
    let desired = state.desired.streams(&state.store).await?;
    let mut here =
        desired.iter().filter(|(stream, _)| stream.environment == environment && stream.cluster_type == cluster_type);
    let filter = MemberFilter {
        environment: Some(environment.to_owned()),
        cluster_type: Some(cluster_type.to_owned()),
        assignments: Some(vec![target.to_owned()]),
        ..MemberFilter::default()
    };
    if !here.any(|(_, wanted)| wanted.entries.contains_key(target))
        && state.store.running_sums(&Visible::All, &filter).await?.is_empty()
    {
        return Ok(None);
    }
    let whose = state.store.workloads_of(&[(environment.to_owned(), target.to_owned())]).await?;
    let workload = whose.into_values().next().unwrap_or_default();
    // It belongs to who has the workload.
    let of = state.store.catalog_row(Kind::Workload, &caller.visible(), environment, &workload).await?;
    if of.is_none() && caller.visible() != Visible::All {
        return Ok(None);
    }
    let updated_at = of.as_ref().map_or_else(|| now().0, |known| known.shown.updated_at);
    let object = AssignmentSummary {
        environment: environment.to_owned(),
        name: format!("{cluster_type}/{target}"),
        cluster_type: cluster_type.to_owned(),
        target: target.to_owned(),
        workload,
        workspace: of.map(|known| known.workspace).unwrap_or_default(),
        labels: BTreeMap::new(),
        policies: Vec::new(),
        state: REMOVED.to_owned(),
        quarantine: Vec::new(),
    };
    Ok(Some(Stored { object, updated_at: moment(updated_at) }))
}

fn described(known: &Known) -> Result<(Git, Provenance), ApiError> {
    let values: Vec<StoredValue> = if known.values.is_empty() { Vec::new() } else { parse(&known.values)? };
    let detail: Provenance = if known.detail.is_empty() { Provenance::default() } else { parse(&known.detail)? };
    Ok((Git { values, files: detail.files.clone() }, detail))
}

/// What runs of one assignment that the caller may see, and what Git says of it: nothing where Git doesn't describe it any more.
pub(crate) async fn running_of(
    state: &ApiState,
    caller: &Caller,
    environment: &str,
    name: &str,
) -> Result<(Running, Vec<ValueSummary>), ApiError> {
    let Some((cluster_type, target)) = name.split_once('/') else {
        return Ok((Running::default(), Vec::new()));
    };
    let git = match state.store.catalog_row(Kind::Assignment, &caller.visible(), environment, name).await? {
        Some(known) => described(&known)?.0,
        None => Git::default(),
    };
    let running = running::of(state, caller, Asked { environment, cluster_type, target }, &git).await?;
    let shown = git.values.into_iter().map(|value| value.view(caller.sees_secrets()));
    Ok((running, shown.collect()))
}

/// Single mistakes in files in Git; `/problems` lists everything that needs attention.
#[utoipa::path(get, path = "/findings", tag = "objects", params(ObjectQuery),
    responses((status = OK, body = Page<Stored<FindingSummary>>)))]
pub async fn findings(
    State(state): State<ApiState>,
    caller: Caller,
    query: Q,
) -> Result<(HeaderMap, Listed<Stored<FindingSummary>>), ApiError> {
    let query = query?.0;
    let listed = list(&state, &caller, &query, Kind::Problem, |shown| item(shown).map(Some)).await?;
    let mut headers = HeaderMap::new();
    if listed.page.items.is_empty() && query.after.is_none() && query.label_selector.is_some() {
        let note = unknown_code(&state, &caller, &page::selector(query.label_selector.as_deref())?).await?;
        headers.extend(note.and_then(|note| Some((page::NOTE, HeaderValue::from_str(&note).ok()?))));
    }
    Ok((headers, listed))
}

/// What to say of a selector that found nothing: findings have a code and a stage, and which codes there are today.
async fn unknown_code(state: &ApiState, caller: &Caller, selector: &Selector) -> Result<Option<String>, ApiError> {
    const KEYS: [&str; 2] = ["code", "stage"];
    if let Some(key) = selector.keys().into_iter().find(|key| !KEYS.contains(key)) {
        return Ok(Some(format!("no finding has the label `{key}`; they have `code` and `stage`")));
    }
    let Some(wanted) = selector.match_labels.get("code") else { return Ok(None) };
    let filter = Filter { limit: MAX_CHANGES, ..Filter::default() };
    let (all, _) = state.store.catalog_page(Kind::Problem, &caller.visible(), &filter).await?;
    let mut codes = BTreeSet::new();
    for shown in all {
        codes.insert(parse::<FindingSummary>(&shown.body)?.finding.code);
    }
    if codes.contains(wanted) {
        return Ok(None);
    }
    let hint = names::nearest(wanted, codes.iter().map(String::as_str));
    let hint = match hint {
        Some(near) => format!("; did you mean `{near}`?"),
        None if codes.is_empty() => String::new(),
        None => format!("; those that there are have: {}", codes.into_iter().collect::<Vec<_>>().join(", ")),
    };
    Ok(Some(format!("no finding has the code `{wanted}`{hint}")))
}

/// Repositories, with the last good commits and why one can't be read.
#[utoipa::path(get, path = "/repositories", tag = "objects", params(ObjectQuery),
    responses((status = OK, body = Page<Stored<EnvironmentRepository>>)))]
pub async fn repositories(
    State(state): State<ApiState>,
    caller: Caller,
    query: Q,
) -> Result<Listed<Stored<EnvironmentRepository>>, ApiError> {
    list(&state, &caller, &query?.0, Kind::Repository, |shown| {
        let mut found: Stored<EnvironmentRepository> = item(shown)?;
        shown.environment.clone_into(&mut found.object.environment);
        Ok(is_own(&found.object.repository, &caller).then_some(found))
    })
    .await
}

/// Fetch a repository now instead of at the next poll.
#[utoipa::path(post, path = "/repositories/fetch", tag = "objects", request_body = FetchRequest,
    responses((status = ACCEPTED, description = "it is being fetched")))]
pub async fn fetch_repository(
    State(state): State<ApiState>,
    caller: Caller,
    wish: Result<Json<FetchRequest>, axum::extract::rejection::JsonRejection>,
) -> Result<axum::http::StatusCode, ApiError> {
    let wish = wish?.0;
    if caller.only_looks() {
        return Err(ApiError::forbidden(format!("a token of the role {} only looks", caller.role)));
    }
    let filter = Filter { name_prefix: Some(wish.url.clone()), limit: MAX_CHANGES, ..Filter::default() };
    let (found, _) = state.store.catalog_page(Kind::Repository, &Visible::All, &filter).await?;
    let mut own = false;
    for shown in found.iter().filter(|shown| shown.name == wish.url) {
        own |= is_own(&parse(&shown.body)?, &caller);
    }
    if !own {
        return Err(ApiError::not_found(format!("repository {}", wish.url)));
    }
    state.store.audit(&caller.did("repository.fetch", &wish.url, "", serde_json::Value::Null)).await?;
    state.services.fetch(&wish.url);
    Ok(axum::http::StatusCode::ACCEPTED)
}

async fn list<T>(
    state: &ApiState,
    caller: &Caller,
    query: &ObjectQuery,
    kind: Kind,
    make: impl Fn(&Shown) -> Result<Option<T>, ApiError>,
) -> Result<Listed<T>, ApiError> {
    let filter = query.filter(kind)?;
    let visible = caller.visible();
    let Some(after) = query.after else {
        // The number first: what changes meanwhile is told again, never missed.
        let tick = state.ticks.current(&state.store).await?;
        let (shown, next) = along_the_chain(state, kind, &visible, filter).await?;
        if shown.is_empty() {
            names::check(state, caller, &query.mentioned()).await?;
        }
        let page =
            Page { items: made(&shown, make)?, removed: Vec::new(), next: next.and_then(|key| page::cursor(&key)) };
        return Ok(Listed { page, tick });
    };
    let wait = query.paging().wait()?;
    page::follow(state, after, wait, || changes(state, kind, &visible, &filter, after, &make)).await
}

/// A page of a list of several environments: one after the other as a commit reaches them, then what is of none.
async fn along_the_chain(
    state: &ApiState,
    kind: Kind,
    visible: &Visible,
    mut filter: Filter,
) -> Result<(Vec<Shown>, Option<(String, String)>), ApiError> {
    if filter.environment.is_some() {
        return Ok(state.store.catalog_page(kind, visible, &filter).await?);
    }
    let order = Order::of(state).await?;
    let mut environments = state.store.catalog_environments(kind).await?;
    environments.sort_by_cached_key(|name| (name.is_empty(), order.place(name)));
    let limit = filter.limit;
    let from = filter.from.take();
    let mut found = Vec::new();
    let begun = from.as_ref().map(|(environment, _)| (environment.is_empty(), order.place(environment)));
    let mut environments = environments.into_iter().peekable();
    while let Some(environment) = environments.next() {
        let place = (environment.is_empty(), order.place(&environment));
        if begun.as_ref().is_some_and(|begun| place < *begun) {
            continue;
        }
        filter.from = from.clone().filter(|(of, _)| *of == environment);
        filter.environment = Some(environment);
        filter.limit = limit - found.len();
        let (shown, next) = state.store.catalog_page(kind, visible, &filter).await?;
        found.extend(shown);
        if next.is_some() {
            return Ok((found, next));
        }
        if found.len() == limit && environments.peek().is_some() {
            // The next page begins behind the last of this one, wherever that is.
            let last = found.last().map(|last: &Shown| (last.environment.clone(), last.name.clone()));
            return Ok((found, last));
        }
    }
    Ok((found, None))
}

async fn changes<T>(
    state: &ApiState,
    kind: Kind,
    visible: &Visible,
    filter: &Filter,
    after: i64,
    make: &impl Fn(&Shown) -> Result<Option<T>, ApiError>,
) -> Result<Page<T>, ApiError> {
    let (shown, more) = state.store.catalog_page(kind, visible, filter).await?;
    let gone = state.store.catalog_gone(kind, visible, filter, after).await?;
    let (Some(gone), None) = (gone, more) else { return Err(page::too_old()) };
    let removed = gone.into_iter().map(|gone| Removed { environment: gone.environment, name: gone.name }).collect();
    Ok(Page { items: made(&shown, make)?, removed, next: None })
}

fn made<T>(shown: &[Shown], make: impl Fn(&Shown) -> Result<Option<T>, ApiError>) -> Result<Vec<T>, ApiError> {
    shown.iter().filter_map(|shown| make(shown).transpose()).collect()
}

async fn one<T: DeserializeOwned>(
    state: &ApiState,
    caller: &Caller,
    kind: Kind,
    path: P<(String, String)>,
) -> Result<Json<Stored<T>>, ApiError> {
    let (environment, name) = path?.0;
    Ok(Json(item(&row(state, caller, kind, &environment, &name).await?.shown)?))
}

async fn row(state: &ApiState, caller: &Caller, kind: Kind, environment: &str, name: &str) -> Result<Known, ApiError> {
    let found = state.store.catalog_row(kind, &caller.visible(), environment, name).await?;
    let (visible, what) = (
        caller.visible(),
        match kind {
            Kind::Environment => NameKind::Environment,
            Kind::ClusterType => NameKind::ClusterType,
            Kind::Workload => NameKind::Workload,
            Kind::DeploymentTarget => NameKind::Target,
            Kind::Assignment => NameKind::Assignment,
            Kind::Problem | Kind::Repository => {
                let what = kind.as_str();
                return found.ok_or_else(|| ApiError::not_found(format!("{what} {name} in {environment}")));
            }
        },
    );
    match found {
        Some(found) => Ok(found),
        None if kind == Kind::Environment => Err(names::absent(state, &visible, what, name, None).await),
        None => {
            names::environment(state, caller, Some(environment)).await?;
            Err(names::absent(state, &visible, what, name, Some(environment)).await)
        }
    }
}

/// What the rings of a cluster type should run of an assignment.
async fn rings(state: &ApiState, stream: &Stream, target: &str) -> Result<Vec<DesiredAssignment>, ApiError> {
    let filter = crate::store::api::states::StateFilter {
        environment: Some(stream.environment.clone()),
        cluster_type: Some(stream.cluster_type.clone()),
        limit: page::MAX_LIMIT,
        ..crate::store::api::states::StateFilter::default()
    };
    let mut rings = Vec::new();
    for seen in state.store.newest_states(&Visible::All, &filter).await? {
        if let Some(entry) = entry_of(&seen, target)? {
            let generation = u64::try_from(seen.generation).unwrap_or_default();
            rings.push(DesiredAssignment { ring: seen.stream.ring, generation, configuration: None, entry });
        }
    }
    Ok(rings)
}

fn environment_of(shown: &Shown, caller: &Caller) -> Result<Stored<EnvironmentSummary>, ApiError> {
    let mut found: Stored<EnvironmentSummary> = item(shown)?;
    if caller.role == Role::Application {
        // What is the platform's, or other teams', isn't theirs to see.
        found.object = EnvironmentSummary { name: found.object.name, ..EnvironmentSummary::default() };
    }
    Ok(found)
}

fn assignment_of(shown: &Shown) -> Result<Stored<AssignmentSummary>, ApiError> {
    let mut found: Stored<AssignmentSummary> = item(shown)?;
    if !shown.note.is_empty() {
        let reasons: Vec<Finding> = parse(&shown.note)?;
        found.object.quarantine.extend(reasons);
        "quarantined".clone_into(&mut found.object.state);
    }
    Ok(found)
}

pub(super) fn is_own(repository: &RepositorySummary, caller: &Caller) -> bool {
    owns(&caller.visible(), repository)
}

pub(super) fn owns(visible: &Visible, repository: &RepositorySummary) -> bool {
    match visible {
        Visible::All => true,
        Visible::Workspaces(own) => repository.workspaces.iter().any(|workspace| own.contains(workspace)),
    }
}

fn item<T: DeserializeOwned>(shown: &Shown) -> Result<Stored<T>, ApiError> {
    Ok(Stored { object: parse(&shown.body)?, updated_at: moment(shown.updated_at) })
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, ApiError> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("the catalog: {error}")).into())
}
