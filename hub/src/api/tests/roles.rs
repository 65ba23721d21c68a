//! Who sees and does what.

use axum::http::Method;
use serde_json::json;

use super::fixture::Hub;

async fn only_the_platform_team_sees_secret_values(hub: Hub) {
    let path = "/assignments/dev/drone/hello-functional-test";
    for (token, sees) in [(&hub.platform, true), (&hub.viewer, false), (&hub.team, false)] {
        let answer = hub.get(token, path).await.ok();
        assert_eq!(answer.text.contains("hunter2"), sees, "{}", answer.text);
        assert_eq!(answer.text.contains("4711"), sees, "writeOnly in a schema: {}", answer.text);
        let values = answer.body["configuration"].as_array().unwrap();
        let of = |key: &str| values.iter().find(|value| value["key"] == key).unwrap();
        assert_eq!(of("DB_PASSWORD")["secret"], true);
        assert_eq!(of("REGION")["value"], "west");
        assert_eq!(of("REGION")["secret"], false);
        let candidates = of("REGION")["candidates"].as_array().unwrap();
        assert_eq!(candidates[1]["effect"], "wins");
        assert_eq!(candidates[1]["origin"]["file"], "all.yaml");
        assert_eq!(candidates[1]["origin"]["revision"], "dev@sha1:1f0e0d0c0b0a");
    }
}

async fn an_application_team_sees_its_workspaces_only(hub: Hub) {
    hub.cluster(1, "drone-1", "drone", "{}").await;
    hub.cluster(2, "other-1", "other", "{}").await;
    for (path, all, own) in [
        ("/assignments", 3, 2),
        ("/workloads", 2, 1),
        ("/deployment-targets", 2, 1),
        ("/cluster-types", 2, 2),
        ("/environments", 1, 1),
        ("/repositories", 2, 1),
        ("/clusters", 2, 1),
    ] {
        let count = async |token| hub.get(token, path).await.ok().body["items"].as_array().unwrap().len();
        assert_eq!(count(&hub.platform).await, all, "{path}");
        assert_eq!(count(&hub.viewer).await, all, "{path}");
        assert_eq!(count(&hub.team).await, own, "{path}");
        let answer = hub.get(&hub.team, path).await;
        assert!(!answer.text.contains("spy") && !answer.text.contains("intelligence"), "{}", answer.text);
    }
    for path in [
        "/assignments/dev/drone/spy-functional-test",
        "/workloads/dev/spy",
        "/deployment-targets/dev/spy-functional-test",
        "/clusters/other-1",
        "/desired-states/dev/other/all",
    ] {
        hub.get(&hub.team, path).await.refused(404, "NotFound");
    }
    let problems = hub.get(&hub.team, "/findings").await.ok();
    let items = problems.body["items"].as_array().unwrap();
    assert!(!items.is_empty() && items.iter().all(|item| item["assignment"] == "large/hello-functional-test"));
    let environment = hub.get(&hub.team, "/environments/dev").await.ok();
    assert!(environment.body.get("waiting").is_none() && environment.body.get("totals").is_none());
    let counts = hub.get(&hub.team, "/counts?environment=dev").await.ok();
    assert_eq!(counts.body["total"], 73);
    let cluster = hub.get(&hub.team, "/clusters/drone-1").await.ok();
    assert_eq!(cluster.body["conditions"].as_array().unwrap().len(), 1);
}

async fn an_application_team_sees_its_own_entries_of_a_state(hub: Hub) {
    let entry = |name: &str| json!({"assignment": name, "mode": "observe", "objects": [], "content": format!("sha256:{}", "0".repeat(64))});
    let entries = json!([entry("hello-functional-test"), entry("spy-functional-test")]);
    hub.state(3, &entries.to_string()).await;
    let all = hub.get(&hub.viewer, "/desired-states").await.ok();
    assert_eq!(all.body["items"][0]["entries"].as_array().unwrap().len(), 2);
    assert_eq!(all.body["items"][0]["generation"], 3);
    let own = hub.get(&hub.team, "/desired-states/dev/drone/all").await.ok();
    assert_eq!(own.body["entries"].as_array().unwrap().len(), 1);
    assert!(!own.text.contains("spy"));
    hub.get(&hub.team, "/desired-states/dev/drone/all/envelope").await.refused(403, "Forbidden");
    let signed = hub.get(&hub.viewer, "/desired-states/dev/drone/all/envelope").await.ok();
    assert_eq!(signed.body["payloadType"], "application/vnd.kedge.desired-state.v1+json");
    let assignment = hub.get(&hub.team, "/assignments/dev/drone/hello-functional-test").await.ok();
    assert_eq!(assignment.body["desired"][0]["generation"], 3);
    assert_eq!(assignment.body["counts"][0]["count"], 73);
}

/// Every write: which role may do it.
async fn writes_are_for_those_they_belong_to(hub: Hub) {
    hub.cluster(1, "drone-1", "drone", "{}").await;
    let fetch = json!({"url": "https://git.example/harbour/hello"});
    let others = json!({"url": "https://git.example/secret/spy"});
    let join = json!({"environment": "dev", "clusterType": "drone"});
    let access = json!({"person": "victor", "name": "x", "role": "viewer"});
    let person = json!({"name": "x"});
    let own_hold = json!({"assignment": "hello-functional-test"});
    let other_hold = json!({"assignment": "spy-functional-test"});
    for (method, path, body, viewer, team, platform) in [
        (Method::POST, "/join-tokens", join, 403, 403, 201),
        (Method::DELETE, "/join-tokens/j1", json!(null), 403, 403, 204),
        (Method::POST, "/access-tokens", access, 403, 403, 403),
        (Method::DELETE, "/access-tokens/0000000000000000", json!(null), 403, 403, 403),
        (Method::POST, "/people", person, 403, 403, 403),
        (Method::PATCH, "/people/victor", json!({"emails": []}), 403, 403, 403),
        (Method::DELETE, "/people/victor", json!(null), 403, 403, 403),
        (Method::PATCH, "/clusters/drone-1", json!({"clusterType": "large"}), 403, 403, 200),
        (Method::PATCH, "/clusters/drone-1", json!({"labels": {"a": "b"}}), 403, 403, 200),
        (Method::POST, "/clusters/drone-1/replace", json!({}), 403, 403, 201),
        (Method::POST, "/clusters/drone-1/retire", json!(null), 403, 403, 200),
        (Method::POST, "/clusters/drone-1/revoke", json!(null), 403, 403, 200),
        (Method::POST, "/clusters/drone-1/hold", own_hold.clone(), 403, 200, 200),
        (Method::POST, "/clusters/drone-1/release", own_hold, 403, 200, 200),
        (Method::POST, "/clusters/drone-1/hold", other_hold, 403, 403, 200),
        (Method::POST, "/environments/dev/cluster-types/drone/confirm", json!(null), 403, 403, 202),
        (Method::POST, "/repositories/fetch", fetch, 403, 202, 202),
        (Method::POST, "/repositories/fetch", others, 403, 404, 202),
    ] {
        for (token, status) in [(&hub.viewer, viewer), (&hub.team, team), (&hub.platform, platform)] {
            let body = (!body.is_null()).then(|| body.clone());
            let answer = hub.send(method.clone(), token, path, body, &[]).await;
            assert_eq!(answer.status.as_u16(), status, "{method} {path}: {}", answer.text);
        }
    }
    let asked = hub.services.asked();
    assert!(asked.iter().any(|line| line == "anna confirms dev/drone"), "{asked:?}");
}

async fn lists_of_tokens_and_audit_are_not_for_everybody(hub: Hub) {
    hub.get(&hub.platform, "/access-tokens").await.ok();
    hub.get(&hub.viewer, "/access-tokens").await.refused(403, "Forbidden");
    hub.get(&hub.viewer, "/join-tokens").await.ok();
    hub.get(&hub.team, "/join-tokens").await.refused(403, "Forbidden");
    hub.post(&hub.platform, "/join-tokens", json!({"environment": "dev", "clusterType": "drone"})).await.ok();
    hub.post(&hub.team, "/repositories/fetch", json!({"url": "https://git.example/harbour/hello"})).await.ok();
    let own = hub.get(&hub.team, "/audit").await.ok();
    assert_eq!(own.body["items"].as_array().unwrap().len(), 1, "{}", own.text);
    assert_eq!(own.body["items"][0]["action"], "repository.fetch");
    assert_eq!(hub.get(&hub.viewer, "/audit").await.ok().body["items"].as_array().unwrap().len(), 2);
}

on_each_database! {
    only_the_platform_team_sees_secret_values,
    an_application_team_sees_its_workspaces_only,
    an_application_team_sees_its_own_entries_of_a_state,
    writes_are_for_those_they_belong_to,
    lists_of_tokens_and_audit_are_not_for_everybody,
}
