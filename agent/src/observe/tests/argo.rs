//! Applications and ApplicationSets.

use super::*;

fn status(sync: &str, health: &str, phase: &str) -> Value {
    json!({
        "sync": {"status": sync, "revision": NEW},
        "health": {"status": health, "lastTransitionTime": "2026-11-16T12:00:00Z"},
        "history": [{"id": 0, "revision": "0".repeat(40)}, {"id": 1, "revision": OLD}],
        "operationState": {"phase": phase, "message": "one or more objects failed to apply",
            "finishedAt": "2026-11-16T11:59:00Z", "syncResult": {"revision": NEW}},
        "reconciledAt": "2026-11-16T12:03:00Z",
    })
}

fn of(status: Value) -> Judged {
    let spec = json!({"source": {"repoURL": "https://h/app", "targetRevision": "dev", "path": "./edge"},
        "syncPolicy": {"automated": {"prune": true}}});
    judged(&application(), &json!({"spec": spec, "status": status}))
}

#[test]
fn synced_and_healthy_is_ready_at_the_revision() {
    let judged = of(status("Synced", "Healthy", "Succeeded"));
    assert_eq!((judged.standing, judged.commits.as_slice()), (Standing::Ready, &[NEW.to_owned()][..]));
    assert_eq!(judged.reads.unwrap().branch.as_deref(), Some("dev"));
}

#[test]
fn what_is_out_of_sync_runs_what_was_synced_last() {
    let judged = of(status("OutOfSync", "Healthy", "Running"));
    assert_eq!((judged.standing, judged.revision.as_deref()), (Standing::Progressing, Some(OLD)));
    assert_eq!(judged.attempted.as_deref(), Some(NEW));
    let by_hand = super::judged(&application(), &json!({"spec": {}, "status": status("OutOfSync", "Healthy", "")}));
    assert_eq!(by_hand.message, "OutOfSync, Healthy; it is synced by hand only");
}

#[test]
fn a_failed_sync_and_a_degraded_application_fail() {
    let failed = of(status("OutOfSync", "Healthy", "Failed"));
    assert_eq!((failed.standing, failed.reason.as_str()), (Standing::Failed, "SyncFailed"));
    assert_eq!(failed.message, "one or more objects failed to apply");
    let degraded = of(status("Synced", "Degraded", "Succeeded"));
    assert_eq!((degraded.standing, degraded.reason.as_str()), (Standing::Failed, "Degraded"));
    assert_eq!(of(status("Synced", "Progressing", "Succeeded")).standing, Standing::Progressing);
    assert_eq!(of(status("OutOfSync", "Missing", "Running")).standing, Standing::Progressing);
}

#[test]
fn an_error_condition_is_the_reason() {
    let mut status = status("Unknown", "Healthy", "Succeeded");
    status["conditions"] = json!([
        {"type": "OrphanedResourceWarning", "message": "1 orphan", "lastTransitionTime": "2026-11-16T11:00:00Z"},
        {"type": "ComparisonError", "message": "Failed to load target state: rpc error: code = Unknown desc = authentication required",
         "lastTransitionTime": "2026-11-16T11:58:00Z"},
    ]);
    let judged = of(status);
    assert_eq!((judged.standing, judged.reason.as_str()), (Standing::Failed, "ComparisonError"));
    assert!(judged.message.ends_with("authentication required"));
}

#[test]
fn several_sources_have_several_revisions_and_a_chart_is_no_commit() {
    let mut status = status("Synced", "Healthy", "Succeeded");
    status["sync"] = json!({"status": "Synced", "revisions": ["4.2.0", NEW]});
    let spec = json!({"sources": [
        {"repoURL": "https://charts/x", "chart": "x", "targetRevision": "4.2.0"},
        {"repoURL": "https://h/values", "targetRevision": "HEAD", "ref": "values"},
    ]});
    let judged = super::judged(&application(), &json!({"spec": spec, "status": status}));
    assert_eq!(judged.revision, Some(format!("4.2.0, {NEW}")));
    assert_eq!(judged.commits, [NEW]);
    let reads = judged.reads.unwrap();
    assert_eq!((reads.repo.as_str(), reads.branch), ("https://h/values", None));
}

#[test]
fn an_application_that_nobody_looked_at_is_in_progress() {
    assert_eq!(of(Value::Null).standing, Standing::Progressing);
}

#[test]
fn a_set_of_applications_is_ready_when_they_are_up_to_date() {
    let kind = Kind::new(ARGO, "ApplicationSet");
    let of = |conditions: Value| judged(&kind, &json!({"status": {"conditions": conditions}})).standing;
    assert_eq!(
        of(json!([{"type": "ErrorOccurred", "status": "False"}, {"type": "ResourcesUpToDate", "status": "True"}])),
        Standing::Ready
    );
    assert_eq!(of(json!([{"type": "ErrorOccurred", "status": "True", "message": "no generator"}])), Standing::Failed);
    assert_eq!(of(json!([])), Standing::Progressing);
}
