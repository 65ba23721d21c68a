//! The one question about a commit of `main`, and about an environment whose inputs are broken: the answer is one that a pipeline can
//! rely on.

use kedge_model::kinds::Offline;
use kedge_model::wire::Timestamp;
use kedge_rollout::{Lane, Phase, RingState};
use kedge_status::Condition;
use serde_json::{Value, json};

use super::answers::Standing;
use super::fixture::Hub;
use super::rollouts::{govern, members, rolls, run, says};
use super::running::{drone, entry, runs};

const NEW: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const OLD: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn promotion(commit: &str, phase: &Value) -> Value {
    json!({"commit": commit, "subject": "Say it", "author": "Ada", "phase": phase, "createdAt": 1000})
}

async fn promoted(hub: &Hub, current: &str, promotions: Value) {
    let body = json!({"current": current, "promotions": promotions}).to_string();
    run(hub, "DELETE FROM promotions", &[]).await;
    let sql = "INSERT INTO promotions (environment, body, in_force, updated_at, tick) VALUES ('dev', $1, $2, 0, 1)";
    run(hub, sql, &[&body, current]).await;
}

async fn asked(hub: &Hub, more: &str) -> Value {
    hub.get(&hub.viewer, &format!("/rollout-status?environment=dev{more}")).await.ok().body
}

async fn a_commit_without_a_rollout_is_judged_by_its_promotion(hub: Hub) {
    govern(&hub, Offline::Complete).await;
    hub.state_of("dev", "drone", 1, 1_000_000, &entry("old")).await;
    drone(&hub, 1, Standing::InContact, runs(Condition::Converged, "old")).await;
    let of = format!("&mainCommit={}", &NEW[..12]);

    promoted(
        &hub,
        OLD,
        json!([promotion(NEW, &json!({"phase": "waiting"})), promotion(OLD, &json!({"phase": "passed"}))]),
    )
    .await;
    let waits = asked(&hub, &of).await;
    assert_eq!((&waits["complete"], &waits["ended"]), (&json!(false), &json!(false)), "{waits:#}");
    assert!(
        waits["headline"].as_str().unwrap().ends_with("not complete: bbbbbbbbbb is on its way in dev"),
        "{waits:#}"
    );

    let failed = json!({"phase": "failed", "why": "the schema says no"});
    promoted(&hub, NEW, json!([promotion(NEW, &failed), promotion(OLD, &json!({"phase": "passed"}))])).await;
    let failed = asked(&hub, &of).await;
    assert_eq!((&failed["state"], &failed["ended"]), (&json!("Failed"), &json!(true)), "{failed:#}");
    assert!(failed["headline"].as_str().unwrap().contains("failed in dev: the schema says no"), "{failed:#}");

    promoted(
        &hub,
        NEW,
        json!([promotion(NEW, &json!({"phase": "passed"})), promotion(OLD, &json!({"phase": "passed"}))]),
    )
    .await;
    let passed = asked(&hub, &of).await;
    assert_eq!(passed["complete"], true, "it changes nothing there: {passed:#}");

    // Main was rewritten: what is in force doesn't contain the old one.
    let gone = asked(&hub, &format!("&mainCommit={OLD}")).await;
    assert_eq!(gone["complete"], true, "it is known to have passed: {gone:#}");
    hub.services.behind.lock().unwrap().insert((OLD.to_owned(), NEW.to_owned()), false);
    let gone = asked(&hub, &format!("&mainCommit={OLD}")).await;
    assert_eq!((&gone["state"], &gone["ended"]), (&json!("Gone"), &json!(true)), "{gone:#}");
    assert_eq!(gone["notes"][0], "aaaaaaaaaa is no longer on main: dev is at bbbbbbbbbb");
}

async fn an_environment_with_a_quarantine_is_not_complete(hub: Hub) {
    govern(&hub, Offline::Complete).await;
    hub.state_of("dev", "drone", 1, 1_000_000, &entry("old")).await;
    drone(&hub, 1, Standing::InContact, runs(Condition::Converged, "old")).await;
    run(&hub, "UPDATE catalog SET state = 'rendered', note = '' WHERE kind = 'assignment'", &[]).await;
    let before = asked(&hub, "&workload=hello").await;
    assert_eq!(before["complete"], true, "{before:#}");
    let sql =
        "UPDATE catalog SET state = 'quarantined' WHERE kind = 'assignment' AND name = 'drone/hello-functional-test'";
    run(&hub, sql, &[]).await;
    let broken = asked(&hub, "&workload=hello").await;
    assert_eq!((&broken["complete"], &broken["ended"]), (&json!(false), &json!(true)), "{broken:#}");
    let headline = broken["headline"].as_str().unwrap();
    assert!(headline.contains("not complete: drone/hello-functional-test of dev is in quarantine"), "{headline}");
}

async fn a_rollout_that_only_removes_is_complete(hub: Hub) {
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |rollout| {
        rollout.rings.iter_mut().for_each(|ring| ring.state = RingState::Passed);
        rollout.phase = Phase::Complete { at: Timestamp(5000) };
    })
    .await;
    members(&hub, "canary", "Reporting", 3).await;
    run(&hub, "UPDATE rollout_items SET body = '{}'", &[]).await;
    let whole = hub.get(&hub.viewer, "/rollout-status?rollout=7").await.ok().body;
    assert_eq!(
        (&whole["complete"], &whole["headline"]),
        (&json!(true), &json!("complete: it only removes")),
        "{whole:#}"
    );
}

async fn what_went_back_is_said_where_as_desired_is(hub: Hub) {
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |rollout| {
        rollout.lane = Lane::Platform;
        rollout.cause.main = Some(NEW.to_owned());
        rollout.rings.iter_mut().for_each(|ring| ring.state = RingState::Returned);
        rollout.phase = Phase::RolledBack { why: "customers complain".to_owned(), at: Timestamp(2000) };
    })
    .await;
    says(&hub, "Converged", 1).await;
    members(&hub, "canary", "Reporting", 1).await;
    let sql = "INSERT INTO rollout_blocked (environment, lane, cluster_type, assignment, workload, fingerprint, rollout) \
               VALUES ('dev', 'platform', 'drone', 'hello-functional-test', 'hello', 'f', 7)";
    run(&hub, sql, &[]).await;
    let drift = hub.get(&hub.viewer, "/drift").await.ok().body;
    assert_eq!(drift["notes"][0], "rollout 7 of dev was rolled back: Git asks for bbbbbbbbbb “faster”");
    let status = asked(&hub, "").await;
    assert!(status["headline"].as_str().unwrap().starts_with("rolled back: "), "{status:#}");
    assert_eq!(status["lines"][0]["notYet"], 0, "nobody waits for a turn: {status:#}");
}

on_each_database! {
    a_commit_without_a_rollout_is_judged_by_its_promotion,
    an_environment_with_a_quarantine_is_not_complete,
    a_rollout_that_only_removes_is_complete,
    what_went_back_is_said_where_as_desired_is,
}
