//! What a person does about a rollout. Any hub checks and writes it; the leader takes it, and the answer says what became of it.

use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use kedge_api::rollouts::{RolloutAction, RolloutActionRequest, RolloutDetail};
use kedge_model::kinds::ApproverRole;
use kedge_rollout::{RingState, Rollout, RolloutId, Say, Word};
use serde_json::json;

use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::caller::Caller;
use crate::rollout::words::{self, SayError};
use crate::store::tokens::Role;

/// The leader takes a word within a second; one that is just elected takes a little longer.
const TAKEN_WITHIN: Duration = Duration::from_secs(8);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A sentence, not a story.
const MAX_REASON: usize = 500;

/// Does it, when the caller may; whether a leader has done it already is in the status.
pub(crate) async fn act(
    state: &ApiState,
    caller: &Caller,
    id: u64,
    action: RolloutAction,
    request: RolloutActionRequest,
) -> Result<(StatusCode, Json<RolloutDetail>), ApiError> {
    let RolloutActionRequest { reason, ring } = request;
    let id = RolloutId(id);
    let say = say_of(action, ring)?;
    check_reason(&reason)?;
    if reason.trim().is_empty() && matches!(action, RolloutAction::Override | RolloutAction::Rollback) {
        let message = format!("{} needs a written reason: it stays with the rollout", action.as_str());
        return Err(ApiError::invalid("ReasonNeeded", message));
    }
    // Also refuses who may not see it.
    let seen = super::find(state, caller, id).await?.detail;
    let word = caller.word(say, &reason);
    let done = tell(state, caller, id, word, seen.rollout.moves).await?;
    let status = if done { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(super::find(state, caller, id).await?.detail)))
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

pub(crate) fn say_of(action: RolloutAction, ring: Option<String>) -> Result<Say, ApiError> {
    let say = match action {
        RolloutAction::Approve => Say::Approve { ring },
        RolloutAction::Override => Say::Override { ring },
        _ if ring.is_some() => {
            return Err(ApiError::invalid("BadBody", "`ring` goes with `approve` and `override` only"));
        }
        RolloutAction::Now => Say::Now,
        RolloutAction::Pause => Say::Pause,
        RolloutAction::Resume => Say::Resume,
        RolloutAction::Abort => Say::Abort,
        RolloutAction::Rollback => Say::Rollback,
    };
    Ok(say)
}

/// The action that an address of the page names.
pub(crate) fn action_named(word: &str) -> Result<RolloutAction, ApiError> {
    RolloutAction::ALL.into_iter().find(|action| action.as_str() == word).ok_or_else(|| {
        ApiError::not_found(format!("action `{word}` for rollouts"))
            .hint(format!("there are: {}", RolloutAction::ALL.map(RolloutAction::as_str).join(", ")))
    })
}

fn refuse(error: SayError) -> ApiError {
    match error {
        SayError::Store(error) => error.into(),
        SayError::Unknown(id) => ApiError::not_found(format!("rollout {id}")),
        SayError::Refused(refused) if refused.reason == "RoleNeeded" => ApiError::forbidden(refused.message),
        SayError::Refused(refused) => ApiError::conflict(refused.reason, refused.message),
    }
}
