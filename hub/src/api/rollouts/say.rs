//! A person's word on a rollout. Any hub checks and writes it; the leader takes it, and the answer says what became of it.

use std::time::Duration;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use kedge_model::kinds::ApproverRole;
use kedge_rollout::{RingState, Rollout, RolloutId, Say, Word};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::view::RolloutWhole;
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::caller::Caller;
use crate::rollout::words::{self, SayError};
use crate::store::tokens::Role;

/// Why, and for which ring.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SayBody {
    /// An override and a rollback need one.
    #[serde(default)]
    pub reason: String,
    /// With `approve` and `override`; default: the ring that waits now.
    #[serde(default)]
    pub ring: Option<String>,
}

/// The leader takes a word within a second; one that is just elected takes a little longer.
const TAKEN_WITHIN: Duration = Duration::from_secs(8);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A sentence, not a story.
const MAX_REASON: usize = 500;

/// Say `approve`, `override`, `now`, `pause`, `resume`, `abort` or `rollback` to a rollout.
#[utoipa::path(post, path = "/rollouts/{id}/{word}", tag = "rollouts",
    params(("id" = u64, Path), ("word" = String, Path)), request_body = SayBody,
    responses((status = OK, body = RolloutWhole), (status = ACCEPTED, body = RolloutWhole,
        description = "it is written, and no hub leads just now to take it")))]
pub async fn say(
    State(state): State<ApiState>,
    caller: Caller,
    path: Result<Path<(u64, String)>, PathRejection>,
    body: Result<Json<SayBody>, JsonRejection>,
) -> Result<(StatusCode, Json<RolloutWhole>), ApiError> {
    let (id, verb) = path?.0;
    let SayBody { reason, ring } = body?.0;
    let id = RolloutId(id);
    let say = say_of(&verb, ring)?;
    check_reason(&reason)?;
    if reason.trim().is_empty() && matches!(say, Say::Override { .. } | Say::Rollback) {
        let message = format!("{verb} needs a written reason: it stays with the rollout");
        return Err(ApiError::invalid("ReasonNeeded", message));
    }
    // Also refuses who may not see it.
    let seen = super::whole(&state, &caller, id).await?;
    let word = caller.word(say, &reason);
    let done = tell(&state, &caller, id, word, seen.rollout.moves).await?;
    let status = if done { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(super::whole(&state, &caller, id).await?)))
}

/// Checks, writes, and waits for the leader. Whether it was taken in time.
pub(super) async fn tell(
    state: &ApiState,
    caller: &Caller,
    id: RolloutId,
    word: Word,
    seen_items: usize,
) -> Result<bool, ApiError> {
    let rollout = may(state, caller, id, &word, seen_items).await?;
    let mut tx = state.store.write().await?;
    let number = words::say(&mut tx, &rollout, &word).await?;
    let action = format!("rollout.{}", word.say.verb());
    let ring = match &word.say {
        Say::Approve { ring } | Say::Override { ring } => ring.clone(),
        _ => None,
    };
    let detail = json!({"reason": word.reason, "ring": ring, "lane": rollout.lane.to_string(), "word": number});
    tx.audit(&caller.did(&action, &format!("rollout {id}"), &rollout.environment, detail)).await?;
    tx.commit().await?;
    caller.asked.audited();
    state.services.spoken();
    taken(state, number).await
}

/// Whether the caller may say this now, and it would be taken. The rollout as it is.
pub(crate) async fn may(
    state: &ApiState,
    caller: &Caller,
    id: RolloutId,
    word: &Word,
    seen_items: usize,
) -> Result<Rollout, ApiError> {
    if !matches!(word.say, Say::Approve { .. }) {
        caller.platform("moving rollouts")?;
    }
    let rollout = words::check(&state.store, id, word).await.map_err(refuse)?;
    allowed(caller, &rollout, &word.say, seen_items)?;
    Ok(rollout)
}

async fn taken(state: &ApiState, number: i64) -> Result<bool, ApiError> {
    let until = tokio::time::Instant::now() + TAKEN_WITHIN;
    while tokio::time::Instant::now() < until {
        match state.store.word(number).await? {
            Some(word) if word.taken_at.is_some() => {
                return match word.refused {
                    None => Ok(true),
                    Some(why) => Err(ApiError::conflict("Refused", why)),
                };
            }
            _ => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
    Ok(false)
}

/// Approving is for the role that the ring's policy names; everything else for the platform team.
fn allowed(caller: &Caller, rollout: &Rollout, say: &Say, seen_items: usize) -> Result<(), ApiError> {
    let Say::Approve { ring } = say else { return Ok(()) };
    if caller.only_looks() {
        return Err(ApiError::forbidden(format!("a token of the role {} approves nothing", caller.role)));
    }
    if caller.role == Role::Platform {
        return Ok(());
    }
    let waiting = || rollout.rings.iter().find(|progress| progress.state == RingState::Waiting);
    let name = ring.clone().or_else(|| waiting().map(|progress| progress.ring.clone()));
    let role = name.and_then(|name| rollout.approval(&name)).map(|approval| approval.role);
    if role != Some(ApproverRole::Application) {
        return Err(ApiError::forbidden("the policy asks the platform team for this approval"));
    }
    if seen_items < rollout.items.len() {
        return Err(ApiError::forbidden(
            "this rollout moves workloads of other teams too: their approval isn't yours to give",
        ));
    }
    Ok(())
}

pub(in crate::api) fn check_reason(reason: &str) -> Result<(), ApiError> {
    if reason.len() > MAX_REASON || reason.contains(char::is_control) {
        return Err(ApiError::invalid("BadReason", format!("a reason is one line of up to {MAX_REASON} bytes")));
    }
    Ok(())
}

pub(crate) fn say_of(verb: &str, ring: Option<String>) -> Result<Say, ApiError> {
    let say = match verb {
        "approve" => Say::Approve { ring },
        "override" => Say::Override { ring },
        _ if ring.is_some() => {
            return Err(ApiError::invalid("BadBody", "`ring` goes with `approve` and `override` only"));
        }
        "now" => Say::Now,
        "pause" => Say::Pause,
        "resume" => Say::Resume,
        "abort" => Say::Abort,
        "rollback" => Say::Rollback,
        other => {
            return Err(ApiError::not_found(format!("word `{other}` for rollouts"))
                .hint("there are: approve, override, now, pause, resume, abort, rollback"));
        }
    };
    Ok(say)
}

fn refuse(error: SayError) -> ApiError {
    match error {
        SayError::Store(error) => error.into(),
        SayError::Unknown(id) => ApiError::not_found(format!("rollout {id}")),
        SayError::Refused(refused) if refused.reason == "RoleNeeded" => ApiError::forbidden(refused.message),
        SayError::Refused(refused) => ApiError::conflict(refused.reason, refused.message),
    }
}
