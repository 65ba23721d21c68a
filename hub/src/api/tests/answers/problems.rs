//! Everything that needs somebody: each kind is there, a cause hides its consequences, and nobody sees what isn't theirs.

use kedge_model::kinds::Offline;
use kedge_model::wire::{Stream, Timestamp};
use kedge_rollout::Phase;
use kedge_status::{Condition, Severity};
use serde_json::{Value, json};

use super::{HELLO, Newcomer, SILENT_SINCE, SPY, Standing, all, drones, failed, join, join_warning, report};
use crate::api::page::moment;
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

async fn agents_that_warn_of_the_same_are_one_problem_with_the_list_behind_it(hub: Hub) {
    for (number, standing) in
        [(1, Standing::InContact), (2, Standing::InContact), (3, Standing::Silent), (4, Standing::Retired)]
    {
        let name = format!("drone-{number}");
        let told = Some(vec![(HELLO, report(Condition::Converged, "new"))]);
        let new = Newcomer { number, name: &name, stream: drones(), standing, told };
        let low = format!("less than {number} MiB\nof the disk are free");
        let mut warnings = vec![("DiskLow", Severity::Error, low.as_str())];
        if number == 2 {
            warnings.push(("DiskLimit.spy-functional-test", Severity::Warning, "too much of spy"));
            warnings.push(("DiskLimit.hello-functional-test", Severity::Warning, "too much of hello"));
            warnings.push(("Brand\u{202e}New", Severity::Warning, "spy: nobody knows this"));
        }
        join_warning(&hub, new, &warnings).await;
    }
    let low = one(&hub, "DiskLow").await;
    assert_eq!((&low["kind"], &low["severity"], &low["count"]), (&json!("clusters"), &json!("error"), &json!(3)));
    assert_eq!(low["message"], "3 clusters of dev warn: the disk is nearly full, and nothing more is fetched");
    assert_eq!(low["hint"], "make room on the host, or lower `disk_reserve` in agent.toml");
    assert_eq!(low["command"], "kedge get clusters -e dev --warning DiskLow");
    assert_eq!(low["link"], "/clusters?environment=dev&state=active&warning=DiskLow");
    assert_eq!(low["since"], moment(SILENT_SINCE + 1));
    let examples: Vec<&Value> = low["examples"].as_array().unwrap().iter().collect();
    assert_eq!((examples.len(), &examples[0]["cluster"]), (3, &json!("drone-1")));
    assert_eq!(examples[0]["message"], "less than 1 MiB of the disk are free");
    // Two assignments of one cluster are one cluster; what the hub doesn't know can't make the list longer.
    assert_eq!(
        (&one(&hub, "DiskLimit").await["count"], &one(&hub, "AgentWarning").await["count"]),
        (&json!(1), &json!(1))
    );
    let told = &one(&hub, "AgentWarning").await["examples"][0]["message"];
    assert_eq!(told, "Brand New: spy: nobody knows this");
    for limit in [1, 2, 100] {
        let found = all(&hub, &hub.viewer, "/clusters?environment=dev&state=active&warning=DiskLow", limit).await;
        let names: Vec<&str> = found.iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["drone-1", "drone-2", "drone-3"], "pages of {limit}");
    }
    let offline = all(&hub, &hub.viewer, "/clusters?warning=DiskLow&condition=Unknown", 10).await;
    assert_eq!((offline.len(), &offline[0]["name"]), (1, &json!("drone-3")));
    hub.get(&hub.viewer, "/clusters?warning=DiskLwo").await.refused(400, "UnknownName");
    // A team learns that its clusters warn, and nothing of what is another's.
    let own = hub.get(&hub.team, "/problems").await.ok();
    assert!(own.text.contains("DiskLow") && !own.text.contains("spy") && !own.text.contains("MiB"), "{}", own.text);
}

async fn a_warning_goes_with_its_cluster_and_ends_with_its_document(hub: Hub) {
    let told = Some(vec![(HELLO, report(Condition::Converged, "new"))]);
    let new = Newcomer { number: 1, name: "drone-1", stream: drones(), standing: Standing::InContact, told };
    let id = join_warning(&hub, new, &[("ClockOff", Severity::Warning, "two hours ahead")]).await;
    let place = async |from, to| {
        let mut tx = hub.store.write().await.unwrap();
        tx.place_cluster(&id, from, to).await.unwrap();
        tx.commit().await.unwrap();
    };
    let (dev, stage) = (drones(), Stream::new("stage", "drone", Stream::ALL));
    assert_eq!(one(&hub, "ClockOff").await["environments"], json!(["dev"]));
    run(&hub, "UPDATE clusters SET environment = 'stage'", &[]).await;
    place(Some(&dev), Some(&stage)).await;
    let moved = one(&hub, "ClockOff").await;
    assert_eq!((&moved["environments"], &moved["count"]), (&json!(["stage"]), &json!(1)));
    assert_eq!(moved["examples"][0]["cluster"], "drone-1");
    place(Some(&stage), None).await;
    assert!(!codes(&hub, &hub.viewer, "/problems").await.contains(&"ClockOff".to_owned()));
    place(None, Some(&stage)).await;
    assert_eq!(one(&hub, "ClockOff").await["examples"][0]["message"], "two hours ahead");
}

on_each_database! {
    agents_that_warn_of_the_same_are_one_problem_with_the_list_behind_it,
    a_warning_goes_with_its_cluster_and_ends_with_its_document,
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
