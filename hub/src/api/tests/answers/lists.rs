//! Rows of conditions, groups of drift, and a workload in every environment.

use kedge_model::wire::Stream;
use kedge_status::Condition;
use serde_json::{Value, json};

use super::{HELLO, Newcomer, SILENT_SINCE, SPY, Standing, all, drones, failed, join, packages, report, wanted};
use crate::api::page::moment;
use crate::api::tests::fixture::Hub;

fn member<'a>(number: u8, name: &'a str, standing: Standing, condition: Condition, running: &str) -> Newcomer<'a> {
    Newcomer { number, name, stream: drones(), standing, told: Some(vec![(HELLO, report(condition, running))]) }
}

/// One of each: plain, on the way, failed, drifted, silent, silent after a failure, retired, and one that said nothing.
async fn fleet(hub: &Hub) {
    wanted(hub, 3).await;
    join(hub, member(1, "plain", Standing::InContact, Condition::Converged, "new")).await;
    join(hub, member(2, "moving", Standing::InContact, Condition::Converging, "old")).await;
    join(hub, member(3, "broken", Standing::InContact, failed(), "old")).await;
    let mut drifted = member(4, "drifted", Standing::InContact, Condition::Converged, "new");
    if let Some(told) = &mut drifted.told {
        told[0].1.drift = Some("hello.conf was edited".to_owned());
    }
    join(hub, drifted).await;
    join(hub, member(5, "silent", Standing::Silent, Condition::Converged, "new")).await;
    join(hub, member(6, "silent-broken", Standing::Silent, failed(), "old")).await;
    join(hub, member(7, "retired", Standing::Retired, failed(), "old")).await;
    let joined = Newcomer { number: 8, name: "joined", stream: drones(), standing: Standing::InContact, told: None };
    join(hub, joined).await;
}

fn names(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["clusterName"].as_str().unwrap()).collect()
}

async fn a_silent_cluster_is_unknown_with_what_was_last_heard(hub: Hub) {
    fleet(&hub).await;
    let unknown = all(&hub, &hub.viewer, "/conditions?condition=Unknown", 10).await;
    assert_eq!(names(&unknown), ["silent", "silent-broken"]);
    let row = &unknown[1];
    assert_eq!(row["condition"], "Unknown");
    assert_eq!((&row["lastKnown"], &row["reason"]), (&json!("Failed"), &json!("Silent")));
    assert_eq!(row["message"], "last heard: Failed, HealthCheck");
    assert_eq!(row["since"], moment(SILENT_SINCE));
    assert_eq!((&row["version"], &row["reality"]), (&json!("1.0-old"), &json!("unknown")));
    assert_eq!(unknown[0]["lastKnown"], "Converged");
    assert_eq!(unknown[0]["version"], "1.0-new");
}

async fn failed_lists_show_nobody_who_is_silent(hub: Hub) {
    fleet(&hub).await;
    let failed = all(&hub, &hub.viewer, "/conditions?condition=Failed", 10).await;
    assert_eq!(names(&failed), ["broken"]);
    assert_eq!((&failed[0]["reason"], &failed[0]["workload"]), (&json!("HealthCheck"), &json!("hello")));
    assert_eq!(failed[0]["running"], packages("old").to_string());
    for path in [
        "reason=HealthCheck",
        "workload=hello&condition=Failed",
        "cluster=broken",
        "reality=differs&reason=HealthCheck",
    ] {
        let found = all(&hub, &hub.viewer, &format!("/conditions?{path}"), 10).await;
        assert_eq!(names(&found), ["broken"], "{path}");
    }
    let silent = all(&hub, &hub.viewer, "/conditions?reason=Silent", 10).await;
    assert_eq!(names(&silent), ["silent", "silent-broken"]);
}

async fn a_plain_report_has_its_age_and_version(hub: Hub) {
    fleet(&hub).await;
    let path = "/conditions?condition=Converged&assignment=drone/hello-functional-test";
    let found = all(&hub, &hub.viewer, path, 10).await;
    assert_eq!(names(&found), ["drifted", "plain"]);
    assert_eq!((&found[1]["version"], &found[1]["reality"]), (&json!("1.0-new"), &json!("asDesired")));
    assert!(found[1]["since"].as_str().unwrap().starts_with("20"), "{}", found[1]);
    assert_eq!((&found[0]["drift"], &found[0]["reality"]), (&json!("hello.conf was edited"), &json!("drifted")));
}

async fn questions_that_make_no_sense_are_refused(hub: Hub) {
    fleet(&hub).await;
    hub.get(&hub.viewer, "/conditions?condition=green").await.refused(400, "UnknownName");
    hub.get(&hub.viewer, "/conditions?reality=odd").await.refused(400, "BadQuery");
    hub.get(&hub.viewer, "/conditions?cursor=zz").await.refused(400, "BadCursor");
    hub.get(&hub.viewer, "/conditions?limit=0").await.refused(400, "BadLimit");
    hub.get(&hub.viewer, "/conditions?assignment=drone/x&clusterType=large").await.refused(400, "BadAssignment");
    hub.get(&hub.viewer, "/conditions?cluster=nobody").await.refused(404, "NotFound");
    hub.get(&hub.viewer, "/fleet?environment=nowhere").await.refused(404, "UnknownName");
    hub.get(&hub.viewer, "/drift?cursor=zz").await.refused(400, "BadCursor");
    hub.get(&hub.viewer, "/conditions?workload=unheard-of").await.refused(404, "UnknownName");
}

async fn drift_tells_desired_from_reality(hub: Hub) {
    fleet(&hub).await;
    sqlx::query(
        "INSERT INTO contents (packages, version, platform_commit, workload_commit) VALUES ($1, '0.9', 'p', 'w0')",
    )
    .bind(packages("old").to_string())
    .execute(hub.store.pool())
    .await
    .unwrap();
    // Another cluster type where everything is as it should be: nothing is desired there, and nothing runs.
    let calm = Stream::new("dev", "large", Stream::ALL);
    let mut told = report(Condition::Converged, "new");
    (told.desired, told.running) = (None, None);
    let new = Newcomer {
        number: 9,
        name: "calm",
        stream: calm,
        standing: Standing::InContact,
        told: Some(vec![(HELLO, told)]),
    };
    join(&hub, new).await;
    let view = hub.get(&hub.viewer, "/drift").await.ok().body;
    assert_eq!(view["totals"], json!({"asDesired": 2, "differs": 2, "drifted": 1, "unknown": 2}));
    let group = &view["groups"][0];
    assert_eq!((&group["environment"], &group["assignment"]), (&json!("dev"), &json!("drone/hello-functional-test")));
    assert_eq!((&group["workload"], &group["desiredPackages"]), (&json!("hello"), &json!(packages("new").to_string())));
    assert_eq!((&group["failed"], &group["converging"], &group["drifted"]), (&json!(1), &json!(1), &json!(1)));
    let old =
        json!({"packages": packages("old").to_string(), "version": "0.9", "commit": "w0", "count": 3, "unknown": 1});
    let running = group["running"].as_array().unwrap();
    assert!(running.contains(&old), "{running:?}");
    assert_eq!(running.iter().map(|one| one["count"].as_u64().unwrap()).sum::<u64>(), 6);
    assert_eq!(view["groups"][1]["assignment"], "large/hello-functional-test");
    let first = hub.get(&hub.viewer, "/drift?limit=1").await.ok().body;
    let next = first["next"].as_str().unwrap();
    let second = hub.get(&hub.viewer, &format!("/drift?limit=1&cursor={next}")).await.ok().body;
    assert_eq!(second["groups"][0]["assignment"], "large/hello-functional-test");
    assert_eq!((second.get("next"), &second["totals"]), (None, &view["totals"]));
    let none = hub.get(&hub.viewer, "/drift?workload=spy").await.ok().body;
    assert_eq!(none["groups"], json!([]));
}

async fn a_workload_is_shown_in_every_environment(hub: Hub) {
    fleet(&hub).await;
    let view = hub.get(&hub.viewer, "/workloads-overview/hello").await.ok().body;
    assert_eq!((&view["name"], &view["workspaces"]), (&json!("hello"), &json!(["harbour"])));
    let dev = &view["environments"][0];
    assert_eq!((&dev["name"], &dev["targets"]), (&json!("dev"), &json!([HELLO])));
    assert_eq!(dev["conditions"], json!({"converged": 2, "converging": 1, "failed": 1, "unknown": 2}));
    let assignments: Vec<&Value> = dev["assignments"].as_array().unwrap().iter().collect();
    assert_eq!(assignments[0]["name"], "drone/hello-functional-test");
    assert_eq!(assignments[0]["desired"][0]["packages"], packages("new").to_string());
    assert_eq!(assignments[0]["running"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&assignments[1]["name"], &assignments[1]["state"]),
        (&json!("large/hello-functional-test"), &json!("quarantined"))
    );
    hub.get(&hub.team, "/workloads-overview/hello").await.ok();
    hub.get(&hub.team, "/workloads-overview/spy").await.refused(404, "NotFound");
    hub.get(&hub.viewer, "/workloads-overview/unheard-of").await.refused(404, "NotFound");
}

async fn an_application_team_is_told_of_its_own(hub: Hub) {
    fleet(&hub).await;
    let told = vec![(HELLO, report(failed(), "old")), (SPY, report(failed(), "old"))];
    let both = Newcomer { number: 9, name: "both", stream: drones(), standing: Standing::InContact, told: Some(told) };
    join(&hub, both).await;
    let own = all(&hub, &hub.team, "/conditions?condition=Failed", 10).await;
    assert_eq!(names(&own), ["both", "broken"]);
    assert!(own.iter().all(|row| row["assignment"] == HELLO));
    for path in ["/conditions", "/drift", "/fleet", "/search?q=spy", "/search?q=drone"] {
        let answer = hub.get(&hub.team, path).await.ok();
        assert!(!answer.text.contains("spy"), "{path}: {}", answer.text);
    }
    assert_eq!(all(&hub, &hub.viewer, "/conditions?condition=Failed", 10).await.len(), 3);
}

on_each_database! {
    a_silent_cluster_is_unknown_with_what_was_last_heard,
    failed_lists_show_nobody_who_is_silent,
    a_plain_report_has_its_age_and_version,
    questions_that_make_no_sense_are_refused,
    drift_tells_desired_from_reality,
    a_workload_is_shown_in_every_environment,
    an_application_team_is_told_of_its_own,
}
