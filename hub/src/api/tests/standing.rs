//! An environment that doesn't run what Git says tells so: in the fleet's glance, in lists, in the one question, and in the audit log.

use kedge_model::kinds::Offline;
use kedge_model::wire::Timestamp;
use kedge_rollout::{Lane, Phase, RingState};
use serde_json::{Value, json};

use super::fixture::Hub;
use super::rollouts::{COMMIT, govern, leader, members, rolls, run, says};

const NEW: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const OLD: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// The platform's rollout 7 of a commit of main went back everywhere.
async fn went_back(hub: &Hub) {
    govern(hub, Offline::Complete).await;
    rolls(hub, Offline::Complete, |rollout| {
        rollout.lane = Lane::Platform;
        rollout.cause.main = Some(NEW.to_owned());
        rollout.rings.iter_mut().for_each(|ring| ring.state = RingState::Returned);
        rollout.phase = Phase::RolledBack { why: "customers complain".to_owned(), at: Timestamp(2000) };
    })
    .await;
    run(
        hub,
        "INSERT INTO rollout_blocked (environment, lane, cluster_type, assignment, workload, fingerprint, rollout) \
         VALUES ('dev', 'platform', 'drone', 'hello-functional-test', 'hello', 'f', 7)",
        &[],
    )
    .await;
    let sql = "INSERT INTO rollout_heads (environment, commit_id, main, at) VALUES ('dev', 'head', $1, 1)";
    run(hub, sql, &[NEW]).await;
    // The one before it is complete.
    let sql = "INSERT INTO rollouts (id, environment, lane, state, commit_id, main, body, skipped, issued, watched, \
               created_at, updated_at, ended_at, tick) SELECT 3, environment, lane, 'Complete', commit_id, $1, $2, '[]', \
               1, 0, 500, 600, 600, 2 FROM rollouts WHERE id = 7";
    let body: String =
        sqlx::query_scalar("SELECT body FROM rollouts WHERE id = 7").fetch_one(hub.store.pool()).await.unwrap();
    let mut before: Value = serde_json::from_str(&body).unwrap();
    before["id"] = json!(3);
    before["cause"]["main"] = json!(OLD);
    before["phase"] = json!({"phase": "complete", "at": 600});
    before["rings"].as_array_mut().unwrap().iter_mut().for_each(|ring| ring["state"] = json!("passed"));
    run(hub, sql, &[OLD, &before.to_string()]).await;
    let sql = "INSERT INTO rollout_items (rollout, cluster_type, assignment, workload, commit_id, body) \
               SELECT 3, cluster_type, assignment, workload, '', body FROM rollout_items WHERE rollout = 7";
    run(hub, sql, &[]).await;
    let sql = "INSERT INTO rollout_keys (rollout, ring, cluster_type, assignment, packages) \
               SELECT 3, ring, cluster_type, assignment, packages FROM rollout_keys WHERE rollout = 7";
    run(hub, sql, &[]).await;
}

async fn dev(hub: &Hub, token: &str) -> Value {
    hub.get(token, "/fleet").await.ok().body["environments"][0].clone()
}

async fn a_rolled_back_environment_says_so_and_names_the_commit_that_runs(hub: Hub) {
    went_back(&hub).await;
    let seen = dev(&hub, &hub.viewer).await;
    assert_eq!(seen["running"], json!([{"commit": OLD, "subject": "faster"}]), "{seen:#}");
    let notice = &seen["notices"][0];
    assert_eq!((&notice["kind"], &notice["rollout"]), (&json!("rolledBack"), &json!(7)), "{seen:#}");
    assert_eq!(notice["text"], format!("{} “faster” was rolled back: customers complain", &NEW[..10]));
    let own = dev(&hub, &hub.team).await;
    assert_eq!(own["notices"][0]["kind"], "rolledBack", "{own:#}");
    assert!(own.get("running").is_none() && !own.to_string().contains("customers"), "{own:#}");

    // Once Git asks for something else, nothing is left to do.
    run(&hub, "DELETE FROM rollout_blocked", &[]).await;
    let seen = dev(&hub, &hub.viewer).await;
    assert_eq!(seen["running"][0]["commit"], NEW, "what Git asks for is what runs: {seen:#}");
    assert!(!seen.to_string().contains("rolledBack"), "{seen:#}");
}

async fn a_rollout_that_went_back_is_settled_when_git_asks_for_something_else(hub: Hub) {
    went_back(&hub).await;
    members(&hub, "canary", "Reporting", 1).await;
    says(&hub, "Converged", 1).await;
    let listed = async || hub.get(&hub.viewer, "/rollouts").await.ok().body["items"][0].clone();
    let asked =
        async |more: &str| hub.get(&hub.viewer, &format!("/rollout-status?environment=dev{more}")).await.ok().body;
    assert!(listed().await.get("settled").is_none());
    let before = asked("").await;
    assert_eq!((&before["state"], &before["complete"]), (&json!("RolledBack"), &json!(false)), "{before:#}");

    run(&hub, "DELETE FROM rollout_blocked", &[]).await;
    // Nothing of the environment is in quarantine.
    run(&hub, "UPDATE catalog SET state = 'rendered', note = '' WHERE kind = 'assignment'", &[]).await;
    assert_eq!(listed().await["settled"], true);
    let after = asked("").await;
    assert_eq!((&after["state"], &after["ended"]), (&json!("Complete"), &json!(false)), "{after:#}");
    let named = asked(&format!("&sourceCommit={COMMIT}")).await;
    assert_eq!(named["complete"], false, "who asks for that very commit hears that it isn't there: {named:#}");
}

async fn the_audit_log_says_what_became_of_a_word(hub: Hub) {
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |_| {}).await;
    let newest = async || hub.get(&hub.platform, "/audit").await.ok().body["items"][0].clone();
    let number = {
        let task = leader(&hub, Some("it has ended meanwhile"));
        hub.post(&hub.platform, "/rollouts/7/pause", json!({"reason": "lunch"})).await.refused(409, "Refused");
        task.abort();
        let items = hub.get(&hub.platform, "/audit").await.ok().body["items"].clone();
        let said = items.as_array().unwrap().iter().find(|item| item["action"] == "rollout.pause").unwrap().clone();
        assert_eq!(said["result"], "refused: it has ended meanwhile", "{items:#}");
        said["detail"]["word"].as_i64().unwrap()
    };
    run(&hub, &format!("UPDATE rollout_words SET taken_at = NULL, refused = NULL WHERE id = {number}"), &[]).await;
    let said = async || {
        let items = hub.get(&hub.platform, "/audit").await.ok().body["items"].clone();
        items.as_array().unwrap().iter().find(|item| item["action"] == "rollout.pause").unwrap()["result"].clone()
    };
    assert_eq!(said().await, "waits for the leader");
    run(&hub, &format!("UPDATE rollout_words SET taken_at = 1 WHERE id = {number}"), &[]).await;
    assert_eq!(said().await, "done");
    assert!(newest().await["number"].as_i64() >= Some(number));
}

on_each_database! {
    a_rolled_back_environment_says_so_and_names_the_commit_that_runs,
    a_rollout_that_went_back_is_settled_when_git_asks_for_something_else,
    the_audit_log_says_what_became_of_a_word,
}
