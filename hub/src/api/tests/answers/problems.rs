//! Everything that needs somebody: each kind is there, a cause hides its consequences, and nobody sees what isn't theirs.

use kedge_model::kinds::Offline;
use kedge_model::wire::Timestamp;
use kedge_rollout::Phase;
use kedge_status::Condition;
use serde_json::{Value, json};

use super::{HELLO, Newcomer, SPY, Standing, all, drones, failed, join, report};
use crate::api::tests::fixture::Hub;
use crate::api::tests::rollouts::{govern, rolls, run};

/// One drone where spy Failed, one that is silent.
async fn fleet(hub: &Hub, hello: Condition) {
    let told = Some(vec![(HELLO, report(hello, "new")), (SPY, report(failed(), "old"))]);
    join(hub, Newcomer { number: 1, name: "drone-1", stream: drones(), standing: Standing::InContact, told }).await;
    let told = Some(vec![(HELLO, report(Condition::Converged, "new"))]);
    join(hub, Newcomer { number: 2, name: "drone-2", stream: drones(), standing: Standing::Silent, told }).await;
    // Certificates of the fixture have ended long ago.
    run(hub, "UPDATE clusters SET certificate_until = 9000000000000", &[]).await;
}

async fn codes(hub: &Hub, token: &str, path: &str) -> Vec<String> {
    let items = all(hub, token, path, 3).await;
    items.iter().map(|item| item["code"].as_str().unwrap().to_owned()).collect()
}

async fn one(hub: &Hub, code: &str) -> Value {
    let items = all(hub, &hub.viewer, "/problems", 100).await;
    items.iter().find(|item| item["code"] == code).unwrap_or_else(|| panic!("no {code}: {items:#?}")).clone()
}

async fn everything_that_needs_somebody_is_one_list(hub: Hub) {
    fleet(&hub, Condition::Converged).await;
    let found = codes(&hub, &hub.viewer, "/problems").await;
    assert_eq!(found.len(), hub.get(&hub.viewer, "/problems").await.ok().body["total"].as_u64().unwrap() as usize);
    for code in ["AssignmentFailed", "ClusterOffline", "PublishWaiting", "RepositoryFailing", "HandEdit"] {
        assert!(found.iter().any(|known| known == code), "no {code} in {found:?}");
    }
    let spy = one(&hub, "AssignmentFailed").await;
    assert_eq!((&spy["kind"], &spy["severity"], &spy["count"]), (&json!("clusters"), &json!("error"), &json!(1)));
    assert_eq!(spy["message"], "drone/spy-functional-test is Failed on 1 cluster");
    assert_eq!(spy["examples"][0]["cluster"], "drone-1");
    assert_eq!(spy["examples"][0]["message"], "HealthCheck: one of two units runs");
    assert_eq!(spy["command"], "kedge get conditions -e dev --condition Failed");
    let offline = one(&hub, "ClusterOffline").await;
    assert_eq!(offline["command"], "kedge get clusters -e dev --condition Unknown");
    assert!(offline["since"].is_string(), "{offline}");
    let waiting = one(&hub, "PublishWaiting").await;
    assert_eq!(waiting["command"], "kedge publish confirm dev drone");
    for item in all(&hub, &hub.viewer, "/problems", 100).await {
        assert!(!item["command"].as_str().unwrap().is_empty(), "no way out of {item}");
        assert!(item["link"].as_str().unwrap().starts_with('/'), "no page for {item}");
    }
    let clusters = codes(&hub, &hub.viewer, "/problems?kind=clusters&state=error&environment=dev").await;
    assert_eq!(clusters, ["AssignmentFailed", "ClusterOffline"]);
    // A team sees its own, and no other team's name.
    let own = hub.get(&hub.team, "/problems").await.ok();
    assert!(!own.text.contains("spy") && !own.text.contains("PublishWaiting"), "{}", own.text);
    assert!(own.text.contains("ClusterOffline"), "{}", own.text);
}

async fn a_stopped_rollout_hides_the_failures_that_stopped_it(hub: Hub) {
    fleet(&hub, failed()).await;
    assert_eq!(one(&hub, "AssignmentFailed").await["count"], 1);
    let failures = |found: Vec<String>| found.iter().filter(|code| *code == "AssignmentFailed").count();
    assert_eq!(failures(codes(&hub, &hub.viewer, "/problems").await), 2);
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |rollout| {
        rollout.phase =
            Phase::Stopped { ring: "canary".to_owned(), why: "2 of 2 Failed".to_owned(), at: Timestamp(1500) };
    })
    .await;
    let stopped = one(&hub, "RolloutStopped").await;
    assert_eq!((&stopped["kind"], &stopped["command"]), (&json!("rollouts"), &json!("kedge rollout show 7")));
    assert!(stopped["message"].as_str().unwrap().contains("2 of 2 Failed"), "{stopped}");
    assert_eq!(stopped["brings"], json!(["drone/hello-functional-test is Failed on 1 cluster"]));
    assert_eq!(failures(codes(&hub, &hub.viewer, "/problems").await), 1, "spy's is a cause of its own");
}

async fn what_was_rolled_back_is_told_until_git_asks_for_something_else(hub: Hub) {
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |rollout| {
        rollout.phase = Phase::RolledBack { why: "orders are lost".to_owned(), at: Timestamp(1500) };
    })
    .await;
    run(
        &hub,
        "INSERT INTO rollout_blocked (environment, lane, cluster_type, assignment, workload, fingerprint, rollout) \
         SELECT environment, lane, 'drone', 'hello-functional-test', 'hello', 'f', id FROM rollouts WHERE id = 7",
        &[],
    )
    .await;
    assert!(one(&hub, "RolledBack").await["message"].as_str().unwrap().ends_with("was rolled back: orders are lost"));
    run(&hub, "DELETE FROM rollout_blocked", &[]).await;
    assert!(!codes(&hub, &hub.viewer, "/problems").await.contains(&"RolledBack".to_owned()));
}

async fn clones_and_certificates_that_are_not_renewed_are_told(hub: Hub) {
    fleet(&hub, Condition::Converged).await;
    let found = codes(&hub, &hub.viewer, "/problems?kind=clusters").await;
    assert!(!found.iter().any(|code| code.starts_with("Certificate") || code == "ClusterCloned"), "{found:?}");
    run(&hub, "UPDATE clusters SET cloned_since = 1000, certificate_until = 2000", &[]).await;
    let (cloned, certificate) = (one(&hub, "ClusterCloned").await, one(&hub, "CertificateExpiring").await);
    assert_eq!(cloned["count"], 2);
    // Of a cluster that is offline, that is the cause.
    assert_eq!((&certificate["count"], &certificate["severity"]), (&json!(1), &json!("error")));
}

on_each_database! {
    everything_that_needs_somebody_is_one_list,
    a_stopped_rollout_hides_the_failures_that_stopped_it,
    what_was_rolled_back_is_told_until_git_asks_for_something_else,
    clones_and_certificates_that_are_not_renewed_are_told,
}

#[tokio::test]
async fn an_environment_that_only_the_policy_names_is_no_mistake() {
    let hub = Hub::new().await;
    super::fleet::promote(&hub).await;
    assert_eq!(hub.get(&hub.viewer, "/rollouts?environment=prod").await.ok().body["items"], json!([]));
    hub.get(&hub.viewer, "/rollouts?environment=prd").await.refused(404, "UnknownName");
    let names = hub.get(&hub.viewer, "/promotions").await.ok();
    let items = names.body["items"].as_array().unwrap().iter().map(|item| item["environment"].as_str().unwrap());
    assert_eq!(items.collect::<Vec<_>>(), ["dev", "stage", "prod"], "along the chain, however the policy lists them");
}

#[tokio::test]
async fn a_word_that_is_no_kind_is_refused_with_the_nearest() {
    let hub = Hub::new().await;
    let answer = hub.get(&hub.viewer, "/problems?kind=rolouts").await.refused(400, "UnknownName");
    assert_eq!(answer.body["nearest"], "rollouts");
    let answer = hub.get(&hub.viewer, "/problems?environment=dve").await.refused(404, "UnknownName");
    assert_eq!((&answer.body["nearest"], &answer.body["hint"]), (&json!("dev"), &json!("did you mean `dev`?")));
}
