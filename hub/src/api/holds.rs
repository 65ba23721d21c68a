//! Holds: a person's "don't touch this assignment there". The platform team holds anything, an application team its own.

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use kedge_api::clusters::ClusterDetail;
use kedge_api::holds::{HoldRequest, ReleaseRequest};
use kedge_model::wire::{ClusterId, HoldEntry};
use serde_json::json;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::clusters::{changed, find_active_of, label};
use crate::store::api::clusters::ClusterSeen;
use crate::store::catalog::{Kind, Visible};
use crate::store::now;

/// A sentence, not a story.
const MAX_REASON: usize = 500;

/// Hold an assignment on a cluster: nothing changes it there, until it is released.
#[utoipa::path(post, path = "/clusters/{cluster}/hold", tag = "clusters", params(("cluster" = String, Path)),
    request_body = HoldRequest, responses((status = OK, body = ClusterDetail)))]
pub async fn hold(
    State(state): State<ApiState>,
    caller: Caller,
    name: Result<Path<String>, PathRejection>,
    body: Result<Json<HoldRequest>, JsonRejection>,
) -> Result<Json<ClusterDetail>, ApiError> {
    let HoldRequest { assignment, reason } = body?.0;
    let (id, seen) = allowed(&state, &caller, &name?.0, &assignment).await?;
    check_reason(&reason)?;
    check_known(&state, &seen, &id, &assignment).await?;
    let detail = json!({"assignment": assignment, "reason": reason});
    let entry = HoldEntry { assignment, by: caller.name.clone(), reason, since: now() };
    let mut tx = state.store.write().await?;
    state.services.hold(&mut tx, &id, entry).await?;
    tx.audit(&caller.did("cluster.hold", &label(&seen), &seen.environment, detail)).await?;
    tx.commit().await?;
    changed(&state, &caller, id).await
}

/// Release a hold of an assignment on a cluster. A technician's own hold stays.
#[utoipa::path(post, path = "/clusters/{cluster}/release", tag = "clusters", params(("cluster" = String, Path)),
    request_body = ReleaseRequest, responses((status = OK, body = ClusterDetail)))]
pub async fn release(
    State(state): State<ApiState>,
    caller: Caller,
    name: Result<Path<String>, PathRejection>,
    body: Result<Json<ReleaseRequest>, JsonRejection>,
) -> Result<Json<ClusterDetail>, ApiError> {
    let ReleaseRequest { assignment, peers, reason } = body?.0;
    check_reason(&reason)?;
    let (id, seen) = allowed(&state, &caller, &name?.0, &assignment).await?;
    if peers {
        return lift(&state, &caller, &id, &seen, &assignment, &reason).await;
    }
    let mut tx = state.store.write().await?;
    if !state.services.release(&mut tx, &id, &assignment).await? {
        let message = format!("the hub doesn't hold {assignment} on {}", seen.name);
        return Err(ApiError::conflict("NotHeld", message)
            .hint("lift a hold of another cluster of the site with `kedge unhold --peers`; release a technician's hold on the host with `kedge-agent unhold`"));
    }
    let detail = json!({"assignment": assignment});
    tx.audit(&caller.did("cluster.release", &label(&seen), &seen.environment, detail)).await?;
    tx.commit().await?;
    changed(&state, &caller, id).await
}

/// Ends what other clusters of the site hold there, by a signed word that reaches the cluster through the hub, its peers or a stick.
async fn lift(
    state: &ApiState,
    caller: &Caller,
    id: &ClusterId,
    seen: &ClusterSeen,
    assignment: &str,
    reason: &str,
) -> Result<Json<ClusterDetail>, ApiError> {
    caller.platform("lifting a hold of the site")?;
    let mut tx = state.store.write().await?;
    let ended = state.services.lift(&mut tx, id, assignment, &caller.name, reason).await?;
    if ended.is_empty() {
        let message = format!("no other cluster of the site holds {assignment} on {}", seen.name);
        return Err(ApiError::conflict("NotHeld", message)
            .hint("release a technician's hold on the host with `kedge-agent unhold`"));
    }
    let detail = json!({"assignment": assignment, "reason": reason, "ended": ended});
    tx.audit(&caller.did("cluster.lift-hold", &label(seen), &seen.environment, detail)).await?;
    tx.commit().await?;
    changed(state, caller, *id).await
}

fn check_reason(reason: &str) -> Result<(), ApiError> {
    if reason.len() > MAX_REASON || reason.contains(char::is_control) {
        return Err(ApiError::invalid("BadReason", format!("a reason is one line of up to {MAX_REASON} bytes")));
    }
    Ok(())
}

/// Viewers hold nothing, an application team its own assignments only.
async fn allowed(
    state: &ApiState,
    caller: &Caller,
    name: &str,
    assignment: &str,
) -> Result<(ClusterId, ClusterSeen), ApiError> {
    if caller.only_looks() {
        caller.platform("holding assignments")?;
    }
    let (id, seen) = find_active_of(state, &caller.visible(), name).await?;
    if let Visible::Workspaces(workspaces) = caller.visible() {
        let own = state.store.assignments_of(&seen.environment, &seen.cluster_type, &workspaces).await?;
        if !own.contains(&format!("{}/{assignment}", seen.cluster_type)) {
            return Err(ApiError::forbidden(format!("{assignment} isn't an assignment of your workspaces")));
        }
    }
    Ok((id, seen))
}

/// A mistyped name would be held for ever and hold nothing.
async fn check_known(state: &ApiState, seen: &ClusterSeen, id: &ClusterId, assignment: &str) -> Result<(), ApiError> {
    let full = format!("{}/{assignment}", seen.cluster_type);
    let scheduled = state.store.catalog_row(Kind::Assignment, &Visible::All, &seen.environment, &full).await?;
    if scheduled.is_some() {
        return Ok(());
    }
    let known = state.services.reported_status(id).await?.conditions;
    if known.iter().any(|condition| condition.assignment == assignment) {
        return Ok(());
    }
    let names: Vec<&str> = known.iter().map(|condition| condition.assignment.as_str()).collect();
    let error = ApiError::not_found(format!("assignment {assignment} on {}", seen.name));
    let error = if names.is_empty() { error } else { error.hint(format!("there are: {}", names.join(", "))) };
    Err(error.near(assignment, names))
}
