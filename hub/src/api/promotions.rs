//! PromotionList: which commit of `main` is where, what waits for what, and what people say about it and about a looser policy.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use kedge_api::promotions::{
    ApproveRequest, EnvironmentPromotion, PromoteRequest, PromotionList, PromotionPolicySummary, PromotionSummary,
    RefusedCommit,
};
use kedge_model::kinds::{Offline, Promoter};
use kedge_rollout::approval::approvals_given;
use kedge_rollout::{Chain, Promotion, PromotionPhase, Say, Word, hear_promotion};
use serde_json::json;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::fleet::chain;
use super::page::moment;
use super::rollouts::say::check_reason;
use super::rollouts::view;
use crate::promotion::policy::quorum;
use crate::store::promotion::words::About;
use crate::store::promotion::{Policies, PolicyRow, PromotionRow};

/// The leader takes a word within a second; one that is just elected takes a little longer.
const TAKEN_WITHIN: Duration = Duration::from_secs(8);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The policy in force and where each environment is.
#[utoipa::path(get, path = "/promotions", tag = "promotions", responses((status = OK, body = PromotionList)))]
pub async fn promotions(State(state): State<ApiState>, caller: Caller) -> Result<Json<PromotionList>, ApiError> {
    caller.not_application("the promotion of the platform")?;
    let policies = state.store.policies().await?;
    let rows = state.store.promotions().await?;
    let policy = policies.in_force();
    let names = policy.map(|policy| chain(policy)).unwrap_or_default();
    let items = names.iter().map(|name| environment_view(&policies, name, rows.get(name))).collect();
    Ok(Json(PromotionList {
        items,
        policy: policies.force.as_ref().filter(|row| row.policy.is_some()).map(policy_view),
        waiting: policies
            .waiting
            .as_ref()
            .map(|row| PromotionPolicySummary { approvals: policy_approvals(&policies), ..policy_view(row) }),
        broken: policies.broken.as_ref().map(policy_view),
    }))
}

/// Where one environment is.
#[utoipa::path(get, path = "/promotions/{environment}", tag = "promotions", params(("environment" = String, Path)),
    responses((status = OK, body = EnvironmentPromotion)))]
pub async fn promotion(
    State(state): State<ApiState>,
    caller: Caller,
    environment: Result<Path<String>, PathRejection>,
) -> Result<Json<EnvironmentPromotion>, ApiError> {
    caller.not_application("the promotion of the platform")?;
    Ok(Json(one(&state, &environment?.0).await?))
}

/// Let the commit of `main` that waits for its window, or the one that is named, into an environment now.
#[utoipa::path(post, path = "/promotions/{environment}/start", tag = "promotions",
    params(("environment" = String, Path)), request_body = PromoteRequest,
    responses((status = OK, body = EnvironmentPromotion), (status = ACCEPTED, body = EnvironmentPromotion,
        description = "it is written, and no hub leads just now to do it")))]
pub async fn start_promotion(
    State(state): State<ApiState>,
    caller: Caller,
    environment: Result<Path<String>, PathRejection>,
    body: Result<Json<PromoteRequest>, JsonRejection>,
) -> Result<(StatusCode, Json<EnvironmentPromotion>), ApiError> {
    promote(&state, &caller, environment, body, Say::Now).await
}

/// Let a commit of `main` into an environment although the environments before it haven't passed; needs a reason.
#[utoipa::path(post, path = "/promotions/{environment}/override", tag = "promotions",
    params(("environment" = String, Path)), request_body = PromoteRequest,
    responses((status = OK, body = EnvironmentPromotion), (status = ACCEPTED, body = EnvironmentPromotion,
        description = "it is written, and no hub leads just now to do it")))]
pub async fn override_promotion(
    State(state): State<ApiState>,
    caller: Caller,
    environment: Result<Path<String>, PathRejection>,
    body: Result<Json<PromoteRequest>, JsonRejection>,
) -> Result<(StatusCode, Json<EnvironmentPromotion>), ApiError> {
    promote(&state, &caller, environment, body, Say::Override { ring: None }).await
}

async fn promote(
    state: &ApiState,
    caller: &Caller,
    environment: Result<Path<String>, PathRejection>,
    body: Result<Json<PromoteRequest>, JsonRejection>,
    say: Say,
) -> Result<(StatusCode, Json<EnvironmentPromotion>), ApiError> {
    let overrides = matches!(say, Say::Override { .. });
    if let (Ok(Path(environment)), Ok(Json(body))) = (&environment, &body) {
        let action = if overrides { "promotion.override" } else { "promotion.promote" };
        caller.asked.set(action, body.commit.as_deref().unwrap_or_default(), environment);
    }
    caller.platform("promoting")?;
    let PromoteRequest { commit, reason } = body?.0;
    if overrides && reason.trim().is_empty() {
        return Err(ApiError::invalid("ReasonNeeded", "an override needs a written reason: it stays in the evidence"));
    }
    speak(state, caller, environment?.0, commit, say, reason).await
}

/// Agree to a promotion that waits for people.
#[utoipa::path(post, path = "/promotions/{environment}/approve", tag = "promotions",
    params(("environment" = String, Path)), request_body = ApproveRequest,
    responses((status = OK, body = EnvironmentPromotion), (status = ACCEPTED, body = EnvironmentPromotion,
        description = "it is written, and no hub leads just now to take it")))]
pub async fn approve_promotion(
    State(state): State<ApiState>,
    caller: Caller,
    environment: Result<Path<String>, PathRejection>,
    body: Result<Json<ApproveRequest>, JsonRejection>,
) -> Result<(StatusCode, Json<EnvironmentPromotion>), ApiError> {
    if let (Ok(Path(environment)), Ok(Json(body))) = (&environment, &body) {
        caller.asked.set("promotion.approve", body.commit.as_deref().unwrap_or_default(), environment);
    }
    caller.platform("approving promotions")?;
    let ApproveRequest { commit, reason } = body?.0;
    speak(&state, &caller, environment?.0, commit, Say::Approve { ring: None }, reason).await
}

/// Agree to a policy that is looser than the one in force.
#[utoipa::path(post, path = "/policy/approve", tag = "promotions", request_body = ApproveRequest,
    responses((status = OK, body = PromotionList), (status = ACCEPTED, body = PromotionList,
        description = "it is written, and no hub leads just now to take it")))]
pub async fn approve_policy(
    State(state): State<ApiState>,
    caller: Caller,
    body: Result<Json<ApproveRequest>, JsonRejection>,
) -> Result<(StatusCode, Json<PromotionList>), ApiError> {
    caller.platform("approving a policy")?;
    let ApproveRequest { reason, .. } = body?.0;
    check_reason(&reason)?;
    let Some(waiting) = state.store.policies().await?.waiting else {
        return Err(ApiError::conflict("NothingWaits", "no policy waits for an approval"));
    };
    let word = caller.word(Say::Approve { ring: None }, &reason);
    let mut tx = state.store.write().await?;
    let number = tx.say_on_promotion(&About::Policy, &word).await?;
    let detail = json!({"commit": waiting.commit, "looser": waiting.reasons, "reason": reason, "word": number});
    tx.audit(&caller.did("policy.approve", &waiting.commit, "", detail)).await?;
    tx.commit().await?;
    caller.asked.audited();
    let status = taken(&state, number).await?;
    Ok((status, promotions(State(state), caller).await?))
}

async fn speak(
    state: &ApiState,
    caller: &Caller,
    environment: String,
    commit: Option<String>,
    say: Say,
    reason: String,
) -> Result<(StatusCode, Json<EnvironmentPromotion>), ApiError> {
    check_reason(&reason)?;
    let standing = one(state, &environment).await?;
    let commit = commit.map(|commit| named(&standing, &commit)).transpose()?;
    let verb = match &say {
        Say::Override { .. } => "override",
        Say::Approve { .. } => "approve",
        _ => "promote",
    };
    let word = caller.word(say, &reason);
    may_say(state, &environment, commit.as_deref(), &word).await?;
    let mut tx = state.store.write().await?;
    // Which one is meant is settled here, with the entry that names it: another may wait when the leader takes the word.
    let commit = match commit {
        Some(commit) => commit,
        None => tx
            .promotion_subject(&environment)
            .await?
            .ok_or_else(|| ApiError::conflict("NothingWaits", format!("nothing waits to enter {environment}")))?,
    };
    let action = format!("promotion.{verb}");
    caller.asked.set(&action, &commit, &environment);
    let about = About::Promotion { environment: environment.clone(), commit: Some(commit.clone()) };
    let number = tx.say_on_promotion(&about, &word).await?;
    let detail = json!({"commit": commit, "reason": reason, "word": number});
    tx.audit(&caller.did(&action, &commit, &environment, detail)).await?;
    tx.commit().await?;
    caller.asked.audited();
    let status = taken(state, number).await?;
    Ok((status, Json(one(state, &environment).await?)))
}

/// Whose role doesn't allow it is told at once, as with rollouts; all else is for the leader, who knows the newest.
async fn may_say(state: &ApiState, environment: &str, commit: Option<&str>, word: &Word) -> Result<(), ApiError> {
    let policies = state.store.policies().await?;
    let (Some(policy), Some(row)) = (policies.in_force(), state.store.promotion(environment).await?) else {
        return Ok(());
    };
    let environments = BTreeMap::from([(environment.to_owned(), row.standing)]);
    let chain = Chain { policy: Arc::clone(policy), environments };
    match hear_promotion(&chain, environment, commit, word.clone()) {
        Err(refused) if refused.reason == "RoleNeeded" => Err(ApiError::forbidden(refused.message)),
        _ => Ok(()),
    }
}

/// First digits stand for the commit that is known here; else the whole one is needed.
fn named(standing: &EnvironmentPromotion, commit: &str) -> Result<String, ApiError> {
    let digits = commit.to_ascii_lowercase();
    if !(7..=64).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(ApiError::invalid("BadCommit", "a commit is named by 7 to 64 hexadecimal digits"));
    }
    let known = standing.promotions.iter().find(|promotion| promotion.commit.starts_with(&digits));
    match known {
        Some(known) => Ok(known.commit.clone()),
        None if digits.len() >= 40 => Ok(digits),
        None => Err(ApiError::invalid("BadCommit", format!("{commit} isn't known in {} yet", standing.environment))
            .hint("give all its digits: git rev-parse main")),
    }
}

async fn taken(state: &ApiState, number: i64) -> Result<StatusCode, ApiError> {
    state.services.spoken();
    let until = tokio::time::Instant::now() + TAKEN_WITHIN;
    while tokio::time::Instant::now() < until {
        match state.store.promotion_word(number).await? {
            Some(word) => {
                return match word.refused {
                    None => Ok(StatusCode::OK),
                    Some(why) => Err(ApiError::conflict("Refused", why)),
                };
            }
            None => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
    Ok(StatusCode::ACCEPTED)
}

async fn one(state: &ApiState, environment: &str) -> Result<EnvironmentPromotion, ApiError> {
    let policies = state.store.policies().await?;
    let governed = policies.in_force().is_some_and(|policy| policy.environment(environment).is_some());
    if !governed {
        let known: Vec<&str> = policies
            .in_force()
            .into_iter()
            .flat_map(|policy| &policy.environments)
            .map(|one| one.name.as_str())
            .collect();
        return Err(ApiError::not_found(format!("promotion of `{environment}`"))
            .hint(match known.is_empty() {
                true => "no PromotionPolicy on main is in force, so no environment is promoted".to_owned(),
                false => format!("the PromotionPolicy on main promotes {}", known.join(", ")),
            })
            .near(environment, known));
    }
    let row = state.store.promotion(environment).await?;
    Ok(environment_view(&policies, environment, row.as_ref()))
}

fn environment_view(policies: &Policies, environment: &str, row: Option<&PromotionRow>) -> EnvironmentPromotion {
    let rules = policies.in_force().and_then(|policy| policy.environment(environment));
    let standing = row.map(|row| row.standing.clone()).unwrap_or_default();
    EnvironmentPromotion {
        environment: environment.to_owned(),
        after: rules.map(|rules| rules.after.clone()).unwrap_or_default(),
        rings: rules.iter().flat_map(|rules| &rules.rings).map(|ring| ring.name.clone()).collect(),
        offline_leaves_complete: rules.is_none_or(|rules| rules.offline == Offline::Complete),
        current: standing.current,
        in_force: row.and_then(|row| row.in_force.clone()),
        trouble: row.and_then(|row| row.trouble.clone()),
        refused: standing.refused.map(|named| RefusedCommit {
            commit: named.commit,
            by: named.by,
            at: moment(named.at.0),
            why: named.why,
        }),
        promotions: standing.promotions.iter().map(promotion_view).collect(),
    }
}

fn promotion_view(promotion: &Promotion) -> PromotionSummary {
    let why = match &promotion.phase {
        PromotionPhase::Failed { why } | PromotionPhase::Reopened { why } => why.clone(),
        PromotionPhase::Superseded { by } => format!("superseded by {by}"),
        PromotionPhase::Passed => promotion.remark.clone().unwrap_or_default(),
        _ => String::new(),
    };
    PromotionSummary {
        commit: promotion.commit.clone(),
        subject: promotion.subject.clone(),
        author: promotion.author.clone(),
        state: phase_word(&promotion.phase).to_owned(),
        why,
        created_at: moment(promotion.created_at.0),
        entered_at: promotion.entered_at.map(|at| moment(at.0)),
        passed_at: promotion.passed_at.map(|at| moment(at.0)),
        rollout: promotion.rollout.map(|id| id.0),
        waits_for: promotion.waits_for.clone(),
        skipped: promotion.skipped.clone(),
        actions: promotion.words.iter().map(view::action_entry).collect(),
        late_failed: promotion.late_failed,
    }
}

pub(super) fn phase_word(phase: &PromotionPhase) -> &'static str {
    match phase {
        PromotionPhase::Waiting => "Waiting",
        PromotionPhase::Entered => "Entered",
        PromotionPhase::Passed => "Passed",
        PromotionPhase::Failed { .. } => "Failed",
        PromotionPhase::Reopened { .. } => "Reopened",
        PromotionPhase::Superseded { .. } => "Superseded",
        PromotionPhase::Adopted => "Adopted",
    }
}

fn policy_view(row: &PolicyRow) -> PromotionPolicySummary {
    let policy = row.policy.as_ref();
    PromotionPolicySummary {
        promoter: match policy.map(|policy| policy.promoter).unwrap_or_default() {
            Promoter::Kedge => "kedge".to_owned(),
            Promoter::External => "external".to_owned(),
        },
        environments: policy.iter().flat_map(|policy| &policy.environments).map(|rules| rules.name.clone()).collect(),
        commit: row.commit.clone(),
        subject: row.subject.clone(),
        author: row.author.clone(),
        reasons: row.reasons.clone(),
        actions: row.words.iter().map(view::action_entry).collect(),
        approvals: None,
        since: moment(row.since.0),
    }
}

/// How far the approval of the looser policy is; none: one person is asked, and nobody has spoken.
pub(super) fn policy_approvals(policies: &Policies) -> Option<String> {
    let needed = quorum(policies.in_force().map(|policy| &**policy)).people;
    let approved = policies.waiting.as_ref()?.words.iter().filter(|word| matches!(word.say, Say::Approve { .. }));
    let people: BTreeMap<&str, &str> = approved
        .map(|word| (word.person.id.as_str(), word.who.as_str()))
        .filter(|(person, _)| !person.is_empty())
        .collect();
    (needed > 1 || !people.is_empty()).then(|| approvals_given(people.len(), needed, people.values().copied()))
}
