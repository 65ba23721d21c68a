//! Clusters: who they are, where they belong, what they were last heard to run; and what people do to them.

use kedge_api::clusters::{Carrier, ChangeClusterRequest, ClusterDetail, ClusterFacts, ClusterSummary, IssueCounts};
use kedge_api::join_tokens::{JoinTokenCreated, ReplaceRequest};
use kedge_api::page::Page;
use kedge_hub_types::status::warnings;
use kedge_model::shown::is_hidden;
use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue};
use kedge_model::Labels;
use kedge_model::wire::{ClusterId, Facts, Stream};
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::fleet::Order;
use super::join;
use super::names::{self, Mentioned};
use super::page::{self, Listed, MAX_CHANGES, PageQuery, moment};
use super::rollouts::about;
use super::services::{JoinWish, MoveWish, ReportedStatus};
use crate::store::api::clusters::{self as stored, ClusterFilter, ClusterKey, ClusterSeen};
use crate::store::api::names::NameKind;
use crate::store::catalog::{Kind, Visible};

/// Which clusters.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ClustersQuery {
    pub environment: Option<String>,
    pub cluster_type: Option<String>,
    pub ring: Option<String>,
    /// `active`, `retired`, `revoked`, `replaced`
    pub state: Option<String>,
    pub site: Option<String>,
    /// `Unknown` for those that missed their check-in, `Known` for the others.
    pub condition: Option<String>,
    /// A code that their agents warn of, such as `DiskLow`; `AgentWarning` for those that the hub doesn't know.
    pub warning: Option<String>,
    /// Names that begin with this.
    pub name_prefix: Option<String>,
    /// `region=west,size in (a,b),!edge`
    pub label_selector: Option<String>,
    /// At most this many items, up to 500.
    pub limit: Option<usize>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Only what changed after this number (`kedge-tick` of an answer before).
    pub after: Option<i64>,
    /// With `after`: wait at most this long (`30s`) for a change.
    pub wait: Option<String>,
}

/// How a file that a person brought is called among carriers.
const FILE: &str = "file";
/// How a cluster is called that the caller doesn't see.
const HIDDEN: &str = "another cluster";

/// Clusters, along the promotion chain.
#[utoipa::path(get, path = "/clusters", tag = "clusters", params(ClustersQuery),
    responses((status = OK, body = Page<ClusterSummary>)))]
pub async fn clusters(
    State(state): State<ApiState>,
    caller: Caller,
    query: Result<Query<ClustersQuery>, QueryRejection>,
) -> Result<(HeaderMap, Listed<ClusterSummary>), ApiError> {
    let query = query?.0;
    let paging =
        PageQuery { limit: query.limit, cursor: query.cursor.clone(), after: query.after, wait: query.wait.clone() };
    let silent = match query.condition.as_deref() {
        None => None,
        Some("Unknown") => Some(true),
        Some("Known") => Some(false),
        Some(other) => {
            let error = names::no_such("cluster condition", other, ["Known", "Unknown"]);
            let hint = error.hint.clone().unwrap_or_default();
            return Err(error.hint(format!("{hint}; `kedge get conditions` lists those of assignments")));
        }
    };
    names::word("cluster state", query.state.as_deref(), &["active", "retired", "revoked", "replaced"])?;
    names::word("warning", query.warning.as_deref(), &warnings::kinds())?;
    let filter = ClusterFilter {
        environment: query.environment,
        cluster_type: query.cluster_type,
        ring: query.ring,
        state: query.state,
        site: query.site,
        name_prefix: query.name_prefix,
        silent,
        warning: query.warning,
        labels: page::selector(query.label_selector.as_deref())?,
        after: query.after,
        from: paging.from::<ClusterKey>()?,
        limit: if query.after.is_some() { MAX_CHANGES } else { paging.limit()? },
    };
    let visible = caller.visible();
    let order = Order::of(&state).await?;
    if let Some(after) = query.after {
        return page::follow(&state, after, paging.wait()?, || async {
            let (found, more) = state.store.clusters_page(&visible, &filter, order.names()).await?;
            if more.is_some() {
                return Err(page::too_old());
            }
            Ok(Page { items: views(&state, &visible, found).await?, removed: Vec::new(), next: None })
        })
        .await
        .map(|listed| (HeaderMap::new(), listed));
    }
    let tick = state.ticks.current(&state.store).await?;
    let (found, next) = state.store.clusters_page(&visible, &filter, order.names()).await?;
    let mut headers = HeaderMap::new();
    if found.is_empty() {
        let mentioned = Mentioned {
            environment: filter.environment.as_deref(),
            cluster_type: filter.cluster_type.as_deref(),
            ring: filter.ring.as_deref(),
            site: filter.site.as_deref(),
            ..Mentioned::default()
        };
        names::check(&state, &caller, &mentioned).await?;
        let note = names::unknown_labels(&state, &caller, &filter.labels).await?;
        headers.extend(note.and_then(|note| Some((page::NOTE, HeaderValue::from_str(&note).ok()?))));
    }
    let next = next.and_then(|key| page::cursor(&key));
    let page = Page { items: views(&state, &visible, found).await?, removed: Vec::new(), next };
    Ok((headers, Listed { page, tick }))
}

/// One cluster, by id or name, with the condition of what it runs.
#[utoipa::path(get, path = "/clusters/{cluster}", tag = "clusters", params(("cluster" = String, Path)),
    responses((status = OK, body = ClusterDetail)))]
pub async fn cluster(
    State(state): State<ApiState>,
    caller: Caller,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<ClusterDetail>, ApiError> {
    let (id, seen) = find(&state, &caller.visible(), &name?.0).await?;
    let ReportedStatus { mut conditions, mut holds, mut warnings } = state.services.reported_status(&id).await?;
    if let Visible::Workspaces(workspaces) = caller.visible() {
        let own = state.store.assignments_of(&seen.environment, &seen.cluster_type, &workspaces).await?;
        let is_own = |assignment: &str| own.contains(&format!("{}/{assignment}", seen.cluster_type));
        conditions.retain(|condition| is_own(&condition.assignment));
        holds.retain(|hold| is_own(&hold.assignment));
        warnings.retain(|warning| warnings::assignment_of(&warning.code).is_none_or(is_own));
        // Of the others the agent's words can name what isn't theirs.
        for warning in warnings.iter_mut().filter(|warning| warnings::assignment_of(&warning.code).is_none()) {
            warnings::about(&warning.code).told.clone_into(&mut warning.message);
        }
    }
    let (membership, token) = (seen.sequence, seen.token.clone());
    let issues = state.store.issue_counts(&caller.visible(), std::slice::from_ref(&seen.id)).await?.remove(&seen.id);
    let stream = Stream::new(&seen.environment, &seen.cluster_type, &seen.ring);
    let carriers = carriers(&state, &caller.visible(), std::slice::from_ref(&seen)).await?;
    let changing_since = state.store.permit_since(&id).await?.map(|at| moment(at.0));
    let (mut rollouts, mut pinned) = (Vec::new(), Vec::new());
    if caller.visible() == Visible::All {
        rollouts = about::of_stream(&state, &stream).await?;
        pinned = about::pinned(&state, &stream.environment, |of, _| *of == stream).await?;
    }
    Ok(Json(ClusterDetail {
        cluster: view(&state, seen, issues, &carriers),
        membership,
        token,
        conditions,
        holds,
        warnings,
        changing_since,
        rollouts,
        pinned,
    }))
}

/// Change where a cluster belongs, its labels, its site, or whether it fetches for the others there.
#[utoipa::path(patch, path = "/clusters/{cluster}", tag = "clusters", params(("cluster" = String, Path)),
    request_body = ChangeClusterRequest, responses((status = OK, body = ClusterDetail)))]
pub async fn change_cluster(
    State(state): State<ApiState>,
    caller: Caller,
    name: Result<Path<String>, PathRejection>,
    body: Result<Json<ChangeClusterRequest>, JsonRejection>,
) -> Result<Json<ClusterDetail>, ApiError> {
    let name = name?.0;
    caller.asked.set(action_of(body.as_ref().ok().map(|Json(body)| body)), &name, "");
    caller.platform("changing clusters")?;
    let body = body?.0;
    if body == ChangeClusterRequest::default() {
        let message = "say what to change: environment, cluster type, ring, labels, site, or whether it is a relay";
        return Err(ApiError::invalid("NothingAsked", message));
    }
    let (id, seen) = find_active(&state, &name).await?;
    let to = MoveWish { environment: body.environment, cluster_type: body.cluster_type, ring: body.ring };
    let environment = to.environment.clone().unwrap_or_else(|| seen.environment.clone());
    let moves = to != MoveWish::default();
    if moves {
        check_type(&state, &environment, to.cluster_type.as_deref().unwrap_or(&seen.cluster_type)).await?;
    }
    let labels = relabelled(&seen.labels, &body.labels)?;
    let (site, relay) = settled(&seen, body.site, body.relay)?;
    let (relabels, sets) = (labels != seen.labels, (&site, relay) != (&seen.site, seen.relay));
    if !(moves || relabels || sets) {
        return changed(&state, &caller, id).await;
    }
    let mut tx = state.store.write().await?;
    if moves {
        let detail = json!({
            "from": {"environment": seen.environment, "clusterType": seen.cluster_type, "ring": seen.ring},
            "to": {"environment": to.environment, "clusterType": to.cluster_type, "ring": to.ring},
        });
        state.services.move_cluster(&mut tx, &id, &to).await?;
        tx.audit(&caller.did("cluster.move", &label(&seen), &environment, detail)).await?;
    }
    if relabels {
        let set: BTreeMap<_, _> = body.labels.iter().filter(|(_, value)| value.is_some()).collect();
        let remove: Vec<_> = body.labels.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| key).collect();
        let detail = json!({"set": set, "remove": remove});
        state.services.relabel_cluster(&mut tx, &id, labels).await?;
        tx.audit(&caller.did("cluster.relabel", &label(&seen), &environment, detail)).await?;
    }
    if sets {
        let detail = json!({"site": site, "relay": relay});
        state.services.set_cluster(&mut tx, &id, site, relay).await?;
        tx.audit(&caller.did("cluster.set", &label(&seen), &environment, detail)).await?;
    }
    tx.commit().await?;
    changed(&state, &caller, id).await
}

/// What a refused request would have been, for the audit log.
fn action_of(body: Option<&ChangeClusterRequest>) -> &'static str {
    match body {
        None => "cluster.change",
        Some(body) if body.environment.is_some() || body.cluster_type.is_some() || body.ring.is_some() => {
            "cluster.move"
        }
        Some(body) if !body.labels.is_empty() => "cluster.relabel",
        Some(_) => "cluster.set",
    }
}

/// The labels that a cluster should have.
fn relabelled(labels: &Labels, changes: &BTreeMap<String, Option<String>>) -> Result<Labels, ApiError> {
    let set = changes.iter().filter_map(|(key, value)| Some((key.clone(), value.clone()?)));
    check_labels(&set.clone().collect())?;
    let mut labels = labels.clone();
    labels.extend(set);
    labels.retain(|key, _| changes.get(key).is_none_or(Option::is_some));
    Ok(labels)
}

/// Where a cluster should stand, and whether it relays there.
fn settled(seen: &ClusterSeen, site: Option<String>, relay: Option<bool>) -> Result<(Option<String>, bool), ApiError> {
    check_site(site.as_deref())?;
    let given = site.is_some() || relay.is_some();
    let site = site.map_or_else(|| seen.site.clone(), |site| Some(site).filter(|site| !site.is_empty()));
    let relay = relay.unwrap_or(seen.relay);
    if given && relay && site.is_none() {
        let error =
            ApiError::conflict("NoSite", format!("cluster {} belongs to no site, so it can't be a relay", seen.name));
        return Err(error.hint("name the site too: `kedge cluster set NAME --site SITE --relay on`"));
    }
    Ok((site, relay))
}

/// Make a join token with which a new host takes a cluster's place.
#[utoipa::path(post, path = "/clusters/{cluster}/replace", tag = "clusters", params(("cluster" = String, Path)),
    request_body = ReplaceRequest, responses((status = CREATED, body = JoinTokenCreated)))]
pub async fn replace_cluster(
    State(state): State<ApiState>,
    caller: Caller,
    name: Result<Path<String>, PathRejection>,
    body: Result<Json<ReplaceRequest>, JsonRejection>,
) -> Result<(axum::http::StatusCode, Json<JoinTokenCreated>), ApiError> {
    caller.platform("replacing clusters")?;
    let expires_at = join::expires_at(body?.0.expires.as_deref())?;
    let (id, seen) = find_active(&state, &name?.0).await?;
    let wish = JoinWish {
        environment: seen.environment.clone(),
        cluster_type: seen.cluster_type.clone(),
        labels: seen.labels.clone(),
        site: seen.site.clone(),
        replaces: Some(id),
        uses: 1,
        expires_at,
        created_by: caller.name.clone(),
    };
    let mut tx = state.store.write().await?;
    let made = state.services.create_join_token(&mut tx, wish).await?;
    let detail = json!({"token": made.id});
    tx.audit(&caller.did("cluster.replace", &label(&seen), &seen.environment, detail)).await?;
    tx.commit().await?;
    let made = JoinTokenCreated { id: made.id, token: made.text, expires_at: moment(expires_at.0) };
    Ok((axum::http::StatusCode::CREATED, Json(made)))
}

/// Take a cluster out of service: it counts nowhere any more, and what it runs stays.
#[utoipa::path(post, path = "/clusters/{cluster}/retire", tag = "clusters", params(("cluster" = String, Path)),
    responses((status = OK, body = ClusterDetail)))]
pub async fn retire_cluster(
    State(state): State<ApiState>,
    caller: Caller,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<ClusterDetail>, ApiError> {
    caller.platform("retiring clusters")?;
    let (id, seen) = find_active(&state, &name?.0).await?;
    let mut tx = state.store.write().await?;
    state.services.retire_cluster(&mut tx, &id).await?;
    tx.audit(&caller.did("cluster.retire", &label(&seen), &seen.environment, serde_json::Value::Null)).await?;
    tx.commit().await?;
    changed(&state, &caller, id).await
}

/// Readmit a cluster that was offline for too long.
#[utoipa::path(post, path = "/clusters/{cluster}/readmit", tag = "clusters", params(("cluster" = String, Path)),
    responses((status = OK, body = ClusterDetail, description = "it may renew its certificate")))]
pub async fn readmit_cluster(
    State(state): State<ApiState>,
    caller: Caller,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<ClusterDetail>, ApiError> {
    caller.platform("letting clusters in again")?;
    let (id, seen) = find_active(&state, &name?.0).await?;
    if !needs_readmission(&state, &seen) {
        let message =
            format!("cluster {} wasn't offline for too long: it can come back without readmission", seen.name);
        return Err(ApiError::conflict("NotSilent", message));
    }
    let mut tx = state.store.write().await?;
    state.services.readmit_cluster(&mut tx, &id).await?;
    let detail = serde_json::json!({"lastContact": moment(seen.last_contact)});
    tx.audit(&caller.did("cluster.readmit", &label(&seen), &seen.environment, detail)).await?;
    tx.commit().await?;
    changed(&state, &caller, id).await
}

/// Whether a person has to let it in again.
fn needs_readmission(state: &ApiState, seen: &ClusterSeen) -> bool {
    let Some(longest) = state.services.longest_silence(&seen.environment) else { return false };
    let longest = i64::try_from(longest.as_millis()).unwrap_or(i64::MAX);
    let heard = seen.last_contact.max(seen.readmitted_at);
    seen.state == "active" && crate::store::now().0.saturating_sub(heard) > longest
}

/// Refuse a cluster's key, at once and for good.
#[utoipa::path(post, path = "/clusters/{cluster}/revoke", tag = "clusters", params(("cluster" = String, Path)),
    responses((status = OK, body = ClusterDetail)))]
pub async fn revoke_cluster(
    State(state): State<ApiState>,
    caller: Caller,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<ClusterDetail>, ApiError> {
    caller.platform("revoking clusters")?;
    let (id, seen) = find(&state, &Visible::All, &name?.0).await?;
    if matches!(seen.state.as_str(), "revoked" | "replaced") {
        return Err(ApiError::conflict("AlreadyShutOut", format!("cluster {} is {} already", seen.name, seen.state)));
    }
    let mut tx = state.store.write().await?;
    state.services.revoke_cluster(&mut tx, &id).await?;
    tx.audit(&caller.did("cluster.revoke", &label(&seen), &seen.environment, serde_json::Value::Null)).await?;
    tx.commit().await?;
    changed(&state, &caller, id).await
}

/// Tells who holds its poll, and shows how it is now.
pub(super) async fn changed(state: &ApiState, caller: &Caller, id: ClusterId) -> Result<Json<ClusterDetail>, ApiError> {
    state.services.cluster_changed(&id).await;
    cluster(State(state.clone()), caller.clone(), Ok(Path(id.to_string()))).await
}

pub(super) async fn find_active(state: &ApiState, name: &str) -> Result<(ClusterId, ClusterSeen), ApiError> {
    find_active_of(state, &Visible::All, name).await
}

/// One that the caller doesn't see is none.
pub(super) async fn find_active_of(
    state: &ApiState,
    visible: &Visible,
    name: &str,
) -> Result<(ClusterId, ClusterSeen), ApiError> {
    let (id, seen) = find(state, visible, name).await?;
    if seen.state != "active" {
        return Err(ApiError::conflict("NotActive", format!("cluster {} is {}", seen.name, seen.state)));
    }
    Ok((id, seen))
}

/// By id or name. Of several with one name the active one is meant.
pub(super) async fn find(
    state: &ApiState,
    visible: &Visible,
    name: &str,
) -> Result<(ClusterId, ClusterSeen), ApiError> {
    let mut found = state.store.clusters_named(visible, name).await?;
    if found.len() > 1 {
        let active = found.iter().filter(|cluster| cluster.state == "active").count();
        if active == 1 {
            found.retain(|cluster| cluster.state == "active");
        } else {
            let ids: Vec<&str> = found.iter().map(|cluster| cluster.id.as_str()).collect();
            let message = format!("{} clusters are called {name}", found.len());
            return Err(
                ApiError::conflict("Ambiguous", message).hint(format!("name one by its id: {}", ids.join(", ")))
            );
        }
    }
    let Some(seen) = found.pop() else {
        return Err(names::absent(state, visible, NameKind::Cluster, name, None).await);
    };
    let id = seen.id.parse().map_err(|_| crate::store::StoreError::Corrupt(format!("cluster id {}", seen.id)))?;
    Ok((id, seen))
}

/// A mistyped name would make a stream that nothing is ever published for.
pub async fn check_type(state: &ApiState, environment: &str, cluster_type: &str) -> Result<(), ApiError> {
    let known = state.store.catalog_row(Kind::ClusterType, &Visible::All, environment, cluster_type).await?;
    if known.is_some() {
        return Ok(());
    }
    let (visible, unprocessable) = (Visible::All, axum::http::StatusCode::UNPROCESSABLE_ENTITY);
    let error = match state.store.names(NameKind::Environment, &visible, None).await?.contains(environment) {
        true => names::absent(state, &visible, NameKind::ClusterType, cluster_type, Some(environment)).await,
        false => names::absent(state, &visible, NameKind::Environment, environment, None).await,
    };
    Err(match error.reason {
        "NotFound" => ApiError { status: unprocessable, reason: "UnknownClusterType", ..error },
        _ => error,
    })
}

/// Labels stand in membership documents and in late-bound values: they stay small.
pub fn check_labels(labels: &Labels) -> Result<(), ApiError> {
    const MAX_LABELS: usize = 64;
    const MAX_LENGTH: usize = 253;
    let fits = |text: &str| text.len() <= MAX_LENGTH && !text.contains(char::is_control);
    let all_fit = labels.iter().all(|(key, value)| !key.is_empty() && fits(key) && fits(value));
    if labels.len() <= MAX_LABELS && all_fit {
        return Ok(());
    }
    let message = format!("labels are at most {MAX_LABELS} pairs of plain text, each up to {MAX_LENGTH} bytes");
    Err(ApiError::invalid("BadLabels", message))
}

/// The name of a site stands in memberships and on pages.
pub fn check_site(site: Option<&str>) -> Result<(), ApiError> {
    const MAX_LENGTH: usize = 253;
    match site {
        Some(name) if name.len() > MAX_LENGTH || name.contains(is_hidden) => {
            Err(ApiError::invalid("BadSite", format!("a site's name is plain text of up to {MAX_LENGTH} bytes")))
        }
        _ => Ok(()),
    }
}

pub(super) fn label(seen: &ClusterSeen) -> String {
    format!("{} ({})", seen.name, seen.id)
}

async fn views(state: &ApiState, visible: &Visible, found: Vec<ClusterSeen>) -> Result<Vec<ClusterSummary>, ApiError> {
    let (mut issues, mut holds) = (BTreeMap::new(), Vec::new());
    let ids: Vec<String> = found.iter().map(|seen| seen.id.clone()).collect();
    for ids in ids.chunks(page::MAX_LIMIT) {
        issues.extend(state.store.issue_counts(visible, ids).await?);
        if !ids.is_empty() {
            holds.extend(state.store.held(visible, Some(ids)).await?);
        }
    }
    if let Visible::Workspaces(workspaces) = visible {
        let own: BTreeSet<(String, String)> = state.store.own_assignments(workspaces).await?.into_iter().collect();
        holds.retain(|hold| {
            own.contains(&(hold.environment.clone(), format!("{}/{}", hold.cluster_type, hold.assignment)))
        });
    }
    let mut held: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for hold in holds {
        held.entry(hold.id).or_default().insert(hold.assignment);
    }
    let carriers = carriers(state, visible, &found).await?;
    let of = |seen: ClusterSeen| {
        let issues = issues.get(&seen.id).copied();
        let held = held.get(&seen.id).into_iter().flatten().cloned().collect();
        ClusterSummary { held, ..view(state, seen, issues, &carriers) }
    };
    Ok(found.into_iter().map(of).collect())
}

/// The names of those who carry for these.
async fn carriers(
    state: &ApiState,
    visible: &Visible,
    found: &[ClusterSeen],
) -> Result<BTreeMap<String, String>, ApiError> {
    let ids: BTreeSet<&String> = found.iter().filter_map(|seen| seen.via.as_ref()).filter(|via| *via != FILE).collect();
    let ids: Vec<String> = ids.into_iter().cloned().collect();
    let mut names = BTreeMap::new();
    for ids in ids.chunks(page::MAX_LIMIT) {
        names.extend(state.store.cluster_names(visible, ids).await?);
    }
    Ok(names)
}

fn via(text: String, carriers: &BTreeMap<String, String>) -> Carrier {
    match text.as_str() {
        FILE => Carrier { cluster: None, name: text },
        _ => match carriers.get(&text) {
            Some(name) => Carrier { name: name.clone(), cluster: Some(text) },
            None => Carrier { cluster: None, name: HIDDEN.to_owned() },
        },
    }
}

fn view(
    state: &ApiState,
    seen: ClusterSeen,
    issues: Option<stored::IssueCounts>,
    carriers: &BTreeMap<String, String>,
) -> ClusterSummary {
    let needs_readmission = needs_readmission(state, &seen);
    let facts: Facts = serde_json::from_str(&seen.facts).unwrap_or_default();
    ClusterSummary {
        id: seen.id,
        name: seen.name,
        environment: seen.environment,
        cluster_type: seen.cluster_type,
        ring: seen.ring,
        labels: seen.labels,
        site: seen.site,
        state: seen.state,
        generation: seen.generation,
        joined_at: moment(seen.joined_at),
        last_contact: moment(seen.last_contact),
        via: seen.via.map(|text| via(text, carriers)),
        relay: seen.relay,
        check_in_deadline: moment(seen.check_in_deadline),
        unknown_since: seen.unknown_since.map(moment),
        looked_at: seen.look_at.map(moment),
        certificate_until: moment(seen.certificate_until),
        needs_readmission,
        cloned_since: seen.cloned_since.map(moment),
        facts: ClusterFacts {
            agent_version: facts.agent_version,
            architecture: facts.architecture,
            system: facts.system,
        },
        held: Vec::new(),
        issues: issues.map(|of| IssueCounts { converging: of.converging, failed: of.failed, drifted: of.drifted }),
    }
}
