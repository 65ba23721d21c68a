//! Bulk: start content again where it was stopped or went back, put a version where a selector says (in Git, because it should
//! last), restart, re-apply, and let rollouts begin outside their windows.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use kedge_api::operations::{
    OperationKind, OperationRequest, OperationResult, OperationSelector, StartRolloutRequest, WrittenFile,
};
use kedge_goyaml::{Key, Value as Yaml};
use kedge_hub_types::status::tally::Word as Condition;
use kedge_model::wire::{Digest, Stream};
use kedge_rollout::{Phase, Rollout, RolloutId, Say};
use serde_json::{Value, json};

use super::say;
use super::selection::{Chooser, Selection};
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::caller::Caller;
use crate::store::now;
use crate::store::rollout::{BlockedRow, RolloutFilter};

/// A version is a word of a release, not a text.
const MAX_VERSION: usize = 128;
/// So many rollouts of an environment haven't ended.
const UNFINISHED: i64 = 500;

/// Restart the rollout of a workload's content, or pin a version where the selector matches.
#[utoipa::path(post, path = "/rollouts", tag = "rollouts", request_body = StartRolloutRequest,
    responses((status = ACCEPTED, body = OperationResult)))]
pub async fn start_rollout(
    State(state): State<ApiState>,
    caller: Caller,
    body: Result<Json<StartRolloutRequest>, JsonRejection>,
) -> Result<(StatusCode, Json<OperationResult>), ApiError> {
    let body = body?.0;
    let action = if body.version.is_some() || body.commit.is_some() { "rollout.pin" } else { "rollout.start" };
    caller.asked.set(action, &body.workload, &body.environment);
    caller.platform("starting rollouts")?;
    need_reason(&body.reason)?;
    let selector = OperationSelector {
        environment: body.environment.clone(),
        workload: Some(body.workload.clone()),
        cluster_type: body.cluster_type.clone(),
        ring: body.ring.clone(),
    };
    let again_only = body.version.is_none() && body.commit.is_none();
    let selection =
        if again_only { Chooser(&selector).select(&state).await? } else { Chooser(&selector).resolve(&state).await? };
    let answer = match (&body.version, &body.commit) {
        (Some(_), Some(_)) => return Err(ApiError::invalid("BadBody", "give a version or a commit, not both")),
        (None, None) if body.until.is_some() => {
            return Err(ApiError::invalid("BadBody", "`until` goes with a version or a commit"));
        }
        (None, None) => again(&state, &caller, &body, &selector, selection).await?,
        _ => pin(&state, &caller, &body, selection).await?,
    };
    Ok((StatusCode::ACCEPTED, Json(answer)))
}

/// Restart, re-apply or apply now, on every cluster that a selector names.
#[utoipa::path(post, path = "/operations", tag = "rollouts", request_body = OperationRequest,
    responses((status = ACCEPTED, body = OperationResult)))]
pub async fn operate(
    State(state): State<ApiState>,
    caller: Caller,
    body: Result<Json<OperationRequest>, JsonRejection>,
) -> Result<(StatusCode, Json<OperationResult>), ApiError> {
    let OperationRequest { kind, selector, now: at_once, reason } = body?.0;
    let verb = match kind {
        OperationKind::Restart => "restart",
        OperationKind::Reapply => "reapply",
        OperationKind::Now => "now",
    };
    let object = selector.workload.as_deref().unwrap_or("*");
    caller.asked.set(&format!("operation.{verb}"), object, &selector.environment);
    caller.platform("bulk operations")?;
    say::check_reason(&reason)?;
    let mut selection = Chooser(&selector).resolve(&state).await?;
    let mut rollouts = Vec::new();
    if kind == OperationKind::Now || at_once {
        rollouts = let_begin(&state, &caller, &selector, &reason).await?;
    }
    let done = match kind {
        OperationKind::Now if rollouts.is_empty() => {
            return Err(ApiError::conflict("NothingWaits", "no rollout that the selector names waits for its window"));
        }
        OperationKind::Now => format!("{} may begin now", counted(rollouts.len(), "rollout")),
        OperationKind::Restart => raise(&state, &caller, &selector, &selection, verb, &reason).await?,
        OperationKind::Reapply => {
            keep_failed(&state, &selector, &mut selection).await?;
            raise(&state, &caller, &selector, &selection, verb, &reason).await?
        }
    };
    Ok((StatusCode::ACCEPTED, Json(told(&state, &selector.environment, selection, done, rollouts, None).await?)))
}

/// Head's content anew: what went back or was aborted may start again, what has stopped goes on.
async fn again(
    state: &ApiState,
    caller: &Caller,
    body: &StartRolloutRequest,
    selector: &OperationSelector,
    selection: Selection,
) -> Result<OperationResult, ApiError> {
    let mut rollouts = Vec::new();
    for rollout in unfinished(state, selector).await? {
        if matches!(rollout.phase, Phase::Stopped { .. } | Phase::Paused { .. }) {
            let items = rollout.items.len();
            say::tell(state, caller, rollout.id, caller.word(Say::Resume, &body.reason), items).await?;
            rollouts.push(rollout.id.0);
        }
    }
    let blocked = state.store.rollouts_blocked(&body.environment).await?;
    let fits = |row: &&BlockedRow| {
        row.workload == body.workload && body.cluster_type.as_ref().is_none_or(|wanted| *wanted == row.cluster_type)
    };
    let halted: BTreeSet<RolloutId> = blocked.iter().filter(fits).map(|row| row.rollout).collect();
    let everywhere = kept_everywhere(state, &halted).await?;
    for rollout in &everywhere {
        let items = rollout.items.len();
        say::tell(state, caller, rollout.id, caller.word(Say::Resume, &body.reason), items).await?;
        rollouts.push(rollout.id.0);
    }
    let is_resumed = |row: &BlockedRow| everywhere.iter().any(|rollout| rollout.id == row.rollout);
    // Of both lanes together: an assignment counts once.
    let places: BTreeSet<(String, String)> =
        blocked.iter().filter(fits).filter(|row| !is_resumed(row)).map(BlockedRow::place).collect();
    let mut tx = state.store.write().await?;
    let unblocked = tx.unblock(&body.environment, body.cluster_type.as_deref(), Some(&body.workload)).await?;
    if unblocked == 0 && rollouts.is_empty() {
        let message =
            format!("nothing of {} in {} was stopped, aborted or rolled back", body.workload, body.environment);
        return Err(ApiError::conflict("NothingToStart", message).hint(
            "`kedge rollout status` shows where it is; with --version or --commit another content is put there",
        ));
    }
    let detail = json!({"clusterType": body.cluster_type, "ring": body.ring, "reason": body.reason});
    tx.audit(&caller.did("rollout.start", &body.workload, &body.environment, detail)).await?;
    tx.commit().await?;
    state.services.spoken();
    let done = match rollouts.len() {
        0 => {
            let verb = if places.len() == 1 { "starts" } else { "start" };
            format!("{} of {} {verb} again", counted(places.len(), "assignment"), body.workload)
        }
        more => {
            let verb = if more == 1 { "goes" } else { "go" };
            format!("{} of {} {verb} on", counted(more, "rollout"), body.workload)
        }
    };
    // What others apply was never stopped: it isn't left out.
    let mut selection = Selection { not_applicable: Vec::new(), ..selection };
    if rollouts.is_empty() {
        let starts = |stream: &Stream, name: &str| places.contains(&(stream.cluster_type.clone(), name.to_owned()));
        for (stream, names) in &mut selection.streams {
            names.retain(|name| starts(stream, name));
        }
        selection.streams.retain(|_, names| !names.is_empty());
    }
    let done = match (rollouts.len(), selection.streams.len()) {
        (0, rings @ 1..) => format!("{done}, ring by ring, in {}", counted(rings, "stream")),
        _ => done,
    };
    told(state, &body.environment, selection, done, rollouts, None).await
}

/// Aborted ones whose content every ring has: nothing of it could begin anew, so the rollout itself goes on.
async fn kept_everywhere(state: &ApiState, halted: &BTreeSet<RolloutId>) -> Result<Vec<Rollout>, ApiError> {
    let mut found = Vec::new();
    for id in halted {
        let Some(whole) = state.store.whole_rollout(*id).await? else { continue };
        let aborted = matches!(whole.rollout.phase, Phase::Aborted { .. });
        if aborted && whole.rollout.rings.iter().all(|ring| ring.state.is_new()) {
            found.push(whole.rollout);
        }
    }
    Ok(found)
}

/// What should last is written to Git.
async fn pin(
    state: &ApiState,
    caller: &Caller,
    body: &StartRolloutRequest,
    selection: Selection,
) -> Result<OperationResult, ApiError> {
    let (key, value) = match (&body.version, &body.commit) {
        (Some(version), _) => ("version", version),
        (None, Some(commit)) => ("commit", commit),
        (None, None) => return Err(ApiError::invalid("BadBody", "give a version or a commit")),
    };
    let plain = |text: &str| !text.is_empty() && text.len() <= MAX_VERSION && !text.contains(char::is_control);
    if !plain(value) {
        return Err(ApiError::invalid("BadVersion", format!("`{key}` is plain text of up to {MAX_VERSION} bytes")));
    }
    let digits = |text: &str| text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if key == "commit" && !digits(value) {
        return Err(ApiError::invalid("BadCommit", "a Pin names a commit with all its digits")
            .hint("git rev-parse prints them"));
    }
    let until = body.until.as_deref().map(check_until).transpose()?;
    let named = json!([body.workload, body.cluster_type, body.ring]).to_string();
    let digest = Digest::of(named.as_bytes()).hex();
    let name = format!("{}-{}", body.workload, digest.get(..8).unwrap_or(&digest));
    let mut spec = json!({"workload": body.workload, key: value, "reason": body.reason});
    for (field, text) in [("rings", &body.ring), ("clusterTypes", &body.cluster_type)] {
        if let Some(text) = text {
            spec[field] = json!([text]);
        }
    }
    if let Some(until) = &until {
        spec["until"] = json!(until);
    }
    let object = json!({"apiVersion": "kedge.dev/v1alpha1", "kind": "Pin", "metadata": {"name": name}, "spec": spec});
    let text = kedge_goyaml::encode(&yaml(&object), 2);
    let file = format!("pins/{name}.yaml");
    let subject = format!("Pin {} to {key} {value}", body.workload);
    let message = format!("{subject}\n\n{}\n\nAsked for by {} through the hub.\n", body.reason, caller.name);
    let written = state.services.write_branch(&body.environment, &file, &text, &message).await?;
    let detail = json!({
        key: value, "clusterType": body.cluster_type, "ring": body.ring, "until": until, "reason": body.reason,
        "file": written.file, "commit": written.commit,
    });
    state.store.audit(&caller.did("rollout.pin", &body.workload, &body.environment, detail)).await?;
    let done = match &written.commit {
        Some(_) => format!("{subject} in {}: written to {}", body.environment, written.file),
        None => format!("{} of branch {} already contains it", written.file, written.branch),
    };
    told(state, &body.environment, selection, done, Vec::new(), Some(written)).await
}

/// As YAML that quotes what must be quoted.
fn yaml(value: &Value) -> Yaml {
    match value {
        Value::Object(fields) => {
            Yaml::Map(fields.iter().map(|(key, value)| (Key::String(key.clone()), yaml(value))).collect())
        }
        Value::Array(items) => Yaml::List(items.iter().map(yaml).collect()),
        Value::String(text) => Yaml::String(text.clone()),
        other => Yaml::String(other.to_string()),
    }
}

/// The beginning of a day in UTC, or a moment with its zone, that is to come.
fn check_until(text: &str) -> Result<String, ApiError> {
    let end = match text.parse::<jiff::Timestamp>() {
        Ok(moment) => Some(moment),
        Err(_) => {
            let day = text.parse::<jiff::civil::Date>().ok();
            day.and_then(|day| day.to_zoned(jiff::tz::TimeZone::UTC).ok()).map(|moment| moment.timestamp())
        }
    };
    match end {
        Some(end) if end.as_millisecond() > now().0 => Ok(text.to_owned()),
        Some(_) => Err(ApiError::invalid("BadUntil", format!("{text} is over already"))),
        None => Err(ApiError::invalid(
            "BadUntil",
            format!("`{text}` is neither a day (2026-12-01) nor a moment (RFC 3339)"),
        )),
    }
}

/// Raises the restart counters: the next generation of each stream tells its clusters.
async fn raise(
    state: &ApiState,
    caller: &Caller,
    selector: &OperationSelector,
    selection: &Selection,
    action: &str,
    reason: &str,
) -> Result<String, ApiError> {
    let mut tx = state.store.write().await?;
    let tick = tx.tick().await?;
    let mut placements = 0;
    for (stream, assignments) in &selection.streams {
        for assignment in assignments {
            tx.raise_restart(stream, assignment, tick).await?;
            placements += 1;
        }
    }
    let detail = json!({
        "workload": selector.workload, "clusterType": selector.cluster_type, "ring": selector.ring, "reason": reason,
        "streams": selection.streams.keys().map(ToString::to_string).collect::<Vec<_>>(),
    });
    let object = selector.workload.as_deref().unwrap_or("*");
    tx.audit(&caller.did(&format!("operation.{action}"), object, &selector.environment, detail)).await?;
    tx.commit().await?;
    state.services.spoken();
    let streams = counted(selection.streams.len(), "stream");
    Ok(format!("{action} asked for {} in {streams}", counted(placements, "assignment")))
}

/// Only where something failed is there something to try again.
async fn keep_failed(
    state: &ApiState,
    selector: &OperationSelector,
    selection: &mut Selection,
) -> Result<(), ApiError> {
    let filter = crate::store::status::counts::CountFilter {
        environment: &selector.environment,
        cluster_type: selector.cluster_type.as_deref(),
        ring: selector.ring.as_deref(),
        ..Default::default()
    };
    let counts = state.store.counts(&filter).await?;
    let failed = |stream: &Stream, assignment: &str| {
        counts.iter().any(|count| {
            count.condition == Condition::Failed && count.stream == *stream && count.assignment == assignment
        })
    };
    selection.streams = std::mem::take(&mut selection.streams)
        .into_iter()
        .map(|(stream, names)| {
            let names = names.into_iter().filter(|name| failed(&stream, name)).collect();
            (stream, names)
        })
        .filter(|(_, names): &(_, std::collections::BTreeSet<String>)| !names.is_empty())
        .collect();
    if selection.streams.is_empty() {
        return Err(ApiError::conflict(
            "NothingFailed",
            "nothing that the selector names has failed: nothing to apply again",
        ));
    }
    Ok(())
}

/// Says `now` to rollouts that haven't ended; those that heard it already are left out.
async fn let_begin(
    state: &ApiState,
    caller: &Caller,
    selector: &OperationSelector,
    reason: &str,
) -> Result<Vec<u64>, ApiError> {
    let mut told = Vec::new();
    for rollout in unfinished(state, selector).await? {
        let waits = matches!(rollout.phase, Phase::Active) && !rollout.words.iter().any(|word| word.say == Say::Now);
        if waits {
            let items = rollout.items.len();
            say::tell(state, caller, rollout.id, caller.word(Say::Now, reason), items).await?;
            told.push(rollout.id.0);
        }
    }
    Ok(told)
}

/// Rollouts that haven't ended and move something that the selector names.
async fn unfinished(state: &ApiState, selector: &OperationSelector) -> Result<Vec<Rollout>, ApiError> {
    let filter = RolloutFilter {
        environment: Some(&selector.environment),
        workload: selector.workload.as_deref(),
        cluster_type: selector.cluster_type.as_deref(),
        unfinished: true,
        limit: UNFINISHED,
        ..RolloutFilter::default()
    };
    let mut all = Vec::new();
    for stored in state.store.rollouts(&filter).await? {
        let id: RolloutId = stored.rollout.id;
        all.extend(state.store.whole_rollout(id).await?.map(|whole| whole.rollout));
    }
    Ok(all)
}

async fn told(
    state: &ApiState,
    environment: &str,
    selection: Selection,
    done: String,
    rollouts: Vec<u64>,
    written: Option<WrittenFile>,
) -> Result<OperationResult, ApiError> {
    let streams = selection.chosen(state, environment).await?;
    let Selection { not_applicable, held, .. } = selection;
    Ok(OperationResult { done, streams, not_applicable, held, rollouts, written })
}

fn need_reason(reason: &str) -> Result<(), ApiError> {
    say::check_reason(reason)?;
    match reason.trim().is_empty() {
        true => Err(ApiError::invalid("ReasonNeeded", "say why: it stays in the audit log and in Git")),
        false => Ok(()),
    }
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
