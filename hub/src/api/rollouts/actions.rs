//! What people do about a rollout: one path for each action. `say` checks it, writes it and waits for the leader.

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use kedge_api::rollouts::{RolloutAction, RolloutActionRequest, RolloutDetail};

use super::say::act;
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::caller::Caller;

type Id = Result<Path<u64>, PathRejection>;
type Request = Result<Json<RolloutActionRequest>, JsonRejection>;
type Acted = Result<(StatusCode, Json<RolloutDetail>), ApiError>;

/// Approve the ring that waits, or the one that is named.
#[utoipa::path(post, path = "/rollouts/{id}/approve", tag = "rollouts", params(("id" = u64, Path)),
    request_body = RolloutActionRequest,
    responses((status = OK, body = RolloutDetail), (status = ACCEPTED, body = RolloutDetail,
        description = "it is written, and no hub leads just now to do it")))]
pub async fn approve_rollout(State(state): State<ApiState>, caller: Caller, id: Id, body: Request) -> Acted {
    act(&state, &caller, id?.0, RolloutAction::Approve, body?.0).await
}

/// Count the gate of the ring that waits, or of the one that is named, as passed; needs a reason.
#[utoipa::path(post, path = "/rollouts/{id}/override", tag = "rollouts", params(("id" = u64, Path)),
    request_body = RolloutActionRequest,
    responses((status = OK, body = RolloutDetail), (status = ACCEPTED, body = RolloutDetail,
        description = "it is written, and no hub leads just now to do it")))]
pub async fn override_rollout(State(state): State<ApiState>, caller: Caller, id: Id, body: Request) -> Acted {
    act(&state, &caller, id?.0, RolloutAction::Override, body?.0).await
}

/// Let it go on outside its windows and during freezes; gates and approvals still count.
#[utoipa::path(post, path = "/rollouts/{id}/now", tag = "rollouts", params(("id" = u64, Path)),
    request_body = RolloutActionRequest,
    responses((status = OK, body = RolloutDetail), (status = ACCEPTED, body = RolloutDetail,
        description = "it is written, and no hub leads just now to do it")))]
pub async fn hurry_rollout(State(state): State<ApiState>, caller: Caller, id: Id, body: Request) -> Acted {
    act(&state, &caller, id?.0, RolloutAction::Now, body?.0).await
}

/// Let nothing further begin until it is resumed.
#[utoipa::path(post, path = "/rollouts/{id}/pause", tag = "rollouts", params(("id" = u64, Path)),
    request_body = RolloutActionRequest,
    responses((status = OK, body = RolloutDetail), (status = ACCEPTED, body = RolloutDetail,
        description = "it is written, and no hub leads just now to do it")))]
pub async fn pause_rollout(State(state): State<ApiState>, caller: Caller, id: Id, body: Request) -> Acted {
    act(&state, &caller, id?.0, RolloutAction::Pause, body?.0).await
}

/// Continue after a pause or a stop; earlier failures no longer count.
#[utoipa::path(post, path = "/rollouts/{id}/resume", tag = "rollouts", params(("id" = u64, Path)),
    request_body = RolloutActionRequest,
    responses((status = OK, body = RolloutDetail), (status = ACCEPTED, body = RolloutDetail,
        description = "it is written, and no hub leads just now to do it")))]
pub async fn resume_rollout(State(state): State<ApiState>, caller: Caller, id: Id, body: Request) -> Acted {
    act(&state, &caller, id?.0, RolloutAction::Resume, body?.0).await
}

/// Abort: no further ring begins, and clusters that were reached keep what they have.
#[utoipa::path(post, path = "/rollouts/{id}/abort", tag = "rollouts", params(("id" = u64, Path)),
    request_body = RolloutActionRequest,
    responses((status = OK, body = RolloutDetail), (status = ACCEPTED, body = RolloutDetail,
        description = "it is written, and no hub leads just now to do it")))]
pub async fn abort_rollout(State(state): State<ApiState>, caller: Caller, id: Id, body: Request) -> Acted {
    act(&state, &caller, id?.0, RolloutAction::Abort, body?.0).await
}

/// Put what ran before back on the clusters that were reached; needs a reason.
#[utoipa::path(post, path = "/rollouts/{id}/rollback", tag = "rollouts", params(("id" = u64, Path)),
    request_body = RolloutActionRequest,
    responses((status = OK, body = RolloutDetail), (status = ACCEPTED, body = RolloutDetail,
        description = "it is written, and no hub leads just now to do it")))]
pub async fn roll_back(State(state): State<ApiState>, caller: Caller, id: Id, body: Request) -> Acted {
    act(&state, &caller, id?.0, RolloutAction::Rollback, body?.0).await
}
