//! Argo CD: Applications and ApplicationSets, as their controllers write their status. Pure; called by `judged`.

use serde_json::Value;

use super::conditions::{self, Conditions, Status};
use super::judged::{Judged, MAX_ITEMS, Reads, Standing, Subject, is_commit, revision, text, time};
use super::name::Kind;

pub fn judge(kind: &Kind, subject: &Subject<'_>) -> Judged {
    match kind.kind.as_str() {
        "Application" => application(subject),
        "ApplicationSet" => application_set(subject),
        _ => conditions::judge(subject),
    }
}

fn application(subject: &Subject<'_>) -> Judged {
    let status = subject.status;
    let sync = text(status, &["sync", "status"]).unwrap_or("Unknown");
    let health = text(status, &["health", "status"]).unwrap_or("Unknown");
    let phase = text(status, &["operationState", "phase"]).unwrap_or_default();
    let mut judged = Judged { reads: reads(subject.spec), path: path(subject.spec), ..Judged::default() };
    revisions(status, sync == "Synced", &mut judged);
    let told = |key| text(status, &[key, "message"]).unwrap_or_default();
    let ended = time(status, &["operationState", "finishedAt"]);
    let changed = time(status, &["health", "lastTransitionTime"]);
    if let Some(error) = first_error(status) {
        judged.standing = Standing::Failed;
        judged.say(text(error, &["type"]).unwrap_or_default(), text(error, &["message"]).unwrap_or_default());
        judged.since = time(error, &["lastTransitionTime"]);
        return judged;
    }
    match (sync, health) {
        // What is synced now was synced by a later operation than the failed one.
        (sync, _) if matches!(phase, "Failed" | "Error") && sync != "Synced" => {
            judged.standing = Standing::Failed;
            judged.say("SyncFailed", told("operationState"));
            judged.since = ended;
        }
        (_, "Degraded") => {
            judged.standing = Standing::Failed;
            let why = Some(told("health")).filter(|told| !told.is_empty()).unwrap_or("its health is Degraded");
            judged.say("Degraded", why);
            judged.since = changed;
        }
        ("Synced", "Healthy") => {
            judged.standing = Standing::Ready;
            judged.say("Synced", told("operationState"));
            judged.since = ended.max(changed);
        }
        ("Synced", "Suspended") => {
            (judged.standing, judged.suspended) = (Standing::Ready, true);
            judged.since = changed;
        }
        (sync, health) => {
            let automatic = subject.spec.get("syncPolicy").is_some_and(|policy| policy.get("automated").is_some());
            let hand = if sync == "OutOfSync" && !automatic { "; it is synced by hand only" } else { "" };
            let why = Some(told("health")).filter(|told| !told.is_empty()).map(|why| format!(": {why}"));
            judged.say(health, &format!("{sync}, {health}{hand}{}", why.unwrap_or_default()));
        }
    }
    judged
}

/// Which commits run, and which are wanted: `sync` tells what is compared with, which runs only once it is synced.
fn revisions(status: &Value, synced: bool, judged: &mut Judged) {
    let compared = listed(status.get("sync"));
    let done = status.get("operationState").and_then(|state| state.get("syncResult"));
    let last = status.get("history").and_then(Value::as_array).and_then(|history| history.last());
    let runs = match synced {
        true => compared.clone(),
        false => Some(listed(last)).filter(|runs| !runs.is_empty()).unwrap_or_else(|| {
            let well = text(status, &["operationState", "phase"]) == Some("Succeeded");
            if well { listed(done) } else { Vec::new() }
        }),
    };
    judged.attempted = Some(compared.join(", ")).filter(|compared| !compared.is_empty());
    judged.revision = Some(runs.join(", ")).filter(|runs| !runs.is_empty());
    judged.commits = runs.into_iter().filter(|revision| is_commit(revision)).collect();
}

/// `revisions` of several sources, or the one `revision`.
fn listed(value: Option<&Value>) -> Vec<String> {
    let Some(value) = value else { return Vec::new() };
    let several = value.get("revisions").and_then(Value::as_array).into_iter().flatten().take(MAX_ITEMS);
    let several: Vec<String> = several.filter_map(|one| revision(one, &[])).collect();
    if several.is_empty() { revision(value, &["revision"]).into_iter().collect() } else { several }
}

/// `ComparisonError`, `InvalidSpecError`, `SyncError`, …; warnings end otherwise.
fn first_error(status: &Value) -> Option<&Value> {
    let list = status.get("conditions")?.as_array()?;
    list.iter().take(MAX_ITEMS).find(|one| text(one, &["type"]).is_some_and(|kind| kind.ends_with("Error")))
}

/// The repository of its only Git source.
fn reads(spec: &Value) -> Option<Reads> {
    let source = sources(spec).find(|source| text(source, &["chart"]).is_none())?;
    let branch = text(source, &["targetRevision"]).filter(|revision| *revision != "HEAD");
    Some(Reads { repo: text(source, &["repoURL"])?.to_owned(), branch: branch.map(str::to_owned) })
}

fn path(spec: &Value) -> Option<String> {
    sources(spec).find_map(|source| text(source, &["path"])).map(str::to_owned)
}

fn sources(spec: &Value) -> impl Iterator<Item = &Value> {
    let several = spec.get("sources").and_then(Value::as_array).into_iter().flatten().take(MAX_ITEMS);
    spec.get("source").into_iter().chain(several)
}

fn application_set(subject: &Subject<'_>) -> Judged {
    let conditions = Conditions::of(subject);
    let mut judged = Judged::default();
    match (conditions.get("ErrorOccurred"), conditions.get("ResourcesUpToDate")) {
        (Some(error), _) if error.status == Status::True => error.tell(&mut judged, Standing::Failed),
        (_, Some(done)) if done.status == Status::True => done.tell(&mut judged, Standing::Ready),
        (_, Some(done)) => done.tell(&mut judged, Standing::Progressing),
        _ => judged.message = "its controller hasn't reported on it yet".to_owned(),
    }
    judged
}
