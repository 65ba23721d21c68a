//! What a stolen token, a stolen agent and a curious team get: nothing that isn't theirs.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Method, Request, header};
use futures_util::stream;
use kedge_model::kinds::Offline;
use kedge_model::wire::{Envelope, HoldDocument, HoldEntry, SigningKey, Timestamp};
use serde_json::json;

use super::fixture::Hub;
use super::rollouts::{COMMIT, fleet, govern, rolls, run};
use crate::store::agents::holds::HoldWriter;

async fn no_name_of_an_agent_is_a_command_that_people_are_shown(hub: Hub) {
    let cluster = hub.cluster(1, "a; touch PWNED #", "drone", "{}").await;
    let hold = HoldEntry {
        assignment: "beacon;touch${IFS}x".to_owned(),
        by: "platform team".to_owned(),
        reason: "a\u{202e}b".to_owned(),
        since: Timestamp(5),
    };
    let document = HoldDocument { cluster, sequence: 1, written_at: Timestamp(6), holds: vec![hold] };
    let envelope = Envelope::sign(&document, &SigningKey::from_seed(&[1; 32]).unwrap()).unwrap();
    let mut tx = hub.store.write().await.unwrap();
    tx.put_hold_document(&document, HoldWriter::Cluster, &envelope.to_json().unwrap()).await.unwrap();
    tx.commit().await.unwrap();
    let problems = hub.get(&hub.platform, "/problems").await.ok().body;
    let held = problems["items"].as_array().unwrap().iter().find(|one| one["code"] == "Held").unwrap().clone();
    assert_eq!(held["command"], "kedge-agent unhold 'beacon;touch${IFS}x' # on 'a; touch PWNED #'");
    // Who it says it was counts on its own host alone.
    assert_eq!(held["examples"][0]["message"], "held by platform team@a; touch PWNED #: a\u{fffd}b");
}

async fn who_may_not_import_sends_no_file(hub: Hub) {
    let never = stream::pending::<Result<Bytes, std::io::Error>>();
    let request = Request::builder()
        .method(Method::POST)
        .uri("/api/v1/status/import")
        .header(header::AUTHORIZATION, format!("Bearer {}", hub.viewer))
        .body(Body::from_stream(never))
        .unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(5), hub.call(request)).await.expect("it is refused at once");
    answer.refused(403, "Forbidden");
}

async fn a_team_is_told_nothing_of_rollouts_of_others(hub: Hub) {
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |_| {}).await;
    fleet(&hub).await;
    let own = hub.get(&hub.team, "/rollout-status?environment=dev").await.ok();
    assert_eq!(own.body["rollouts"][0]["id"], 7, "its own it sees");
    // Now it moves what belongs to another workspace.
    let sql = "UPDATE rollout_items SET assignment = 'spy-functional-test', workload = 'spy'";
    run(&hub, sql, &[]).await;
    hub.get(&hub.team, "/rollouts/7").await.refused(404, "NotFound");
    let digits = &COMMIT[..12];
    for query in
        ["", "?environment=dev", "?workload=spy", &format!("?sourceCommit={digits}"), "?sourceCommit=0123456789ab"]
    {
        let answer = hub.get(&hub.team, &format!("/rollout-status{query}")).await;
        assert_eq!(answer.body["rollouts"].as_array().map_or(0, Vec::len), 0, "{query}: {}", answer.text);
        for told in ["faster", "Ada", "rollout 7", "superseded", COMMIT] {
            assert!(!answer.text.contains(told), "{query}: {told} in {}", answer.text);
        }
    }
    let all = hub.get(&hub.viewer, "/rollout-status").await.ok();
    assert_eq!(all.body["rollouts"][0]["id"], 7);
    for path in ["/rollouts?workload=", "/fleet?workload="] {
        let others = hub.get(&hub.team, &format!("{path}spy")).await;
        let nobodys = hub.get(&hub.team, &format!("{path}zzz")).await;
        assert_eq!((others.status.as_u16(), nobodys.status.as_u16()), (404, 404), "{path}: {}", others.text);
    }
    hub.cluster(3, "other-1", "other", "{}").await;
    for name in ["other-1", "nobody"] {
        let body = json!({"assignment": "spy-functional-test"});
        hub.post(&hub.team, &format!("/clusters/{name}/hold"), body).await.refused(404, "NotFound");
    }
}

async fn a_revoked_token_hears_nothing_of_what_it_waited_for(hub: Hub) {
    let id = hub.get(&hub.team, "/whoami").await.ok().body["token"].as_str().unwrap().to_owned();
    let tick = hub.get(&hub.team, "/clusters").await.ok().tick();
    let change = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        hub.delete(&hub.administrator, &format!("/access-tokens/{id}")).await.ok();
        hub.cluster(1, "drone-1", "drone", "{}").await;
    };
    let path = format!("/clusters?after={tick}&wait=20s");
    let (answer, ()) = tokio::join!(hub.get(&hub.team, &path), change);
    let answer = answer.refused(401, "TokenRevoked");
    assert!(!answer.text.contains("drone-1"));
}

async fn the_description_of_the_api_is_for_those_who_log_in(hub: Hub) {
    hub.get("", "/openapi.json").await.refused(401, "NoToken");
    assert!(hub.get(&hub.viewer, "/openapi.json").await.ok().text.contains("\"openapi\":\"3.1"));
}

async fn nobody_is_added_who_looks_like_another(hub: Hub) {
    for name in ["pla\u{200b}to", "\u{202e}evil", "plat\u{43e}", "pl\u{430}to", "a\u{1b}[2J"] {
        let answer = hub.post(&hub.administrator, "/people", json!({"name": name})).await;
        answer.refused(400, "BadName");
    }
    hub.post(&hub.administrator, "/people", json!({"name": "Анна"})).await.ok();
    hub.post(&hub.administrator, "/people", json!({"name": "Łukasz Müller"})).await.ok();
}

on_each_database! {
    no_name_of_an_agent_is_a_command_that_people_are_shown,
    who_may_not_import_sends_no_file,
    a_team_is_told_nothing_of_rollouts_of_others,
    a_revoked_token_hears_nothing_of_what_it_waited_for,
    the_description_of_the_api_is_for_those_who_log_in,
    nobody_is_added_who_looks_like_another,
}
