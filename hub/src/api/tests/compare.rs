//! Comparing, over a database, and planning as far as the API decides.

use serde_json::{Value, json};

use super::fixture::Hub;
use crate::catalog::testing;

const NAME: &str = "hello-functional-test";

fn entry(assignment: &str, version: &str, commit: &str) -> Value {
    let digest = |seed: &str| {
        format!("sha256:{}", kedge_model::wire::Digest::of(seed.as_bytes()).to_string().rsplit(':').next().unwrap())
    };
    let package = |seed: &str, commit: &str| json!({"digest": digest(seed), "size": 1, "repo": "https://git.example/r", "commit": commit});
    json!({
        "assignment": assignment, "mode": "apply", "version": version,
        "parameters": {"to": "host", "scope": "namespace", "conflicts": "fail", "timeoutSeconds": 1, "soakSeconds": 1,
            "rollback": "auto", "drift": "repair"},
        "platform": package(&format!("platform {commit}"), commit),
        "workload": package(&format!("workload {version}"), &format!("of-{version}")),
    })
}

fn workload<'a>(body: &'a Value, name: &str) -> &'a Value {
    body["workloads"].as_array().unwrap().iter().find(|one| one["workload"] == name).unwrap()
}

async fn a_side_is_the_same_as_itself(hub: Hub) {
    let answer = hub.get(&hub.platform, "/compare?left=dev&right=dev").await.ok();
    assert_eq!(
        answer.body["totals"],
        json!({"same": 2, "differ": 0, "onlyLeft": 0, "onlyRight": 0}),
        "{}",
        answer.text
    );
    assert_eq!(workload(&answer.body, "hello")["left"]["clusterTypes"], json!(["drone", "large"]));
    let none = hub.get(&hub.platform, "/compare?left=dev&right=dev&differing=true").await.ok();
    assert_eq!(none.body["workloads"], json!([]));
}

async fn cluster_types_differ_in_workloads_and_values(hub: Hub) {
    let answer = hub.get(&hub.viewer, "/compare?left=dev/drone&right=dev/large").await.ok();
    let hello = workload(&answer.body, "hello");
    assert_eq!(hello["differs"], json!(["configuration"]), "{}", answer.text);
    let region = &hello["configuration"][0];
    assert_eq!((&region["key"], &region["left"][0]["value"]), (&json!("REGION"), &json!("west")));
    assert_eq!(region["right"][0]["value"], "nowhere");
    assert_eq!(hello["right"]["quarantined"], json!([format!("large/{NAME}")]));
    assert_eq!(workload(&answer.body, "spy")["differs"], json!(["onlyLeft"]));
}

async fn an_earlier_time_is_read_from_states_and_published_files(hub: Hub) {
    let (one, two) = (entry(NAME, "1.0.0", "c1"), entry(NAME, "1.1.0", "c2"));
    hub.state_of("dev", "drone", 1, 1_000_000, &json!([one, entry("spy-functional-test", "1", "c1")])).await;
    hub.state_of("dev", "drone", 2, 9_000_000, &json!([two])).await;
    {
        let mut rendered = hub.services.rendered.lock().unwrap();
        rendered.insert("c1".to_owned(), "REGION: south\nDB_PASSWORD: hunter1\nPIN: \"0815\"\n".to_owned());
        rendered.insert("c2".to_owned(), "REGION: west\nDB_PASSWORD: hunter2\nPIN: \"4711\"\n".to_owned());
    }
    let path = "/compare?left=dev@1970-01-01T01:00:00Z&right=dev";
    for (token, sees) in [(&hub.platform, true), (&hub.viewer, false), (&hub.team, false)] {
        let answer = hub.get(token, path).await.ok();
        let hello = workload(&answer.body, "hello");
        assert_eq!(hello["differs"], json!(["version", "configuration", "clusterTypes"]), "{}", answer.text);
        assert_eq!((&hello["left"]["version"], &hello["right"]["version"]), (&json!("1.0.0"), &json!("1.1.0")));
        let keys: Vec<&Value> = hello["configuration"].as_array().unwrap().iter().map(|row| &row["key"]).collect();
        assert_eq!(keys, ["DB_PASSWORD", "PIN", "REGION"], "what is hidden is said to differ");
        assert_eq!(hello["configuration"][0]["redacted"], !sees);
        for secret in ["hunter1", "hunter2", "0815", "4711"] {
            assert_eq!(answer.text.contains(secret), sees, "{secret}: {}", answer.text);
        }
    }
    let own = hub.get(&hub.team, path).await.ok();
    assert!(!own.text.contains("spy"), "{}", own.text);
    assert!(own.body["left"].get("commit").is_none());
    let then = hub.get(&hub.platform, path).await.ok();
    assert_eq!(workload(&then.body, "spy")["left"]["version"], "1");
    hub.get(&hub.viewer, "/compare?left=dev@1970-01-01&right=dev").await.refused(404, "NothingThen");
}

async fn a_commit_that_is_gone_leaves_the_configuration_unknown(hub: Hub) {
    hub.state_of("dev", "drone", 1, 1_000_000, &json!([entry(NAME, "1", "gone")])).await;
    let answer = hub.get(&hub.viewer, "/compare?left=dev/drone@1970-01-02&right=dev/drone").await.ok();
    let hello = workload(&answer.body, "hello");
    assert_eq!((&hello["same"], &hello["configurationUnknown"]), (&json!(true), &json!(true)), "{}", answer.text);
}

async fn what_names_no_side_is_refused(hub: Hub) {
    for (query, status, reason) in [
        ("left=dev", 400, "BadQuery"),
        ("left=&right=dev", 400, "BadSide"),
        ("left=dev/a/b&right=dev", 400, "BadSide"),
        ("left=dev@soon&right=dev", 400, "BadTime"),
        ("left=dev@2999-01-01&right=dev", 400, "BadTime"),
        ("left=prod&right=dev", 404, "NotFound"),
        ("left=dev/none&right=dev", 404, "NotFound"),
        ("left=dev&right=dev&limit=0", 400, "BadLimit"),
        ("left=dev&right=dev&cursor=x", 400, "BadCursor"),
    ] {
        hub.get(&hub.viewer, &format!("/compare?{query}")).await.refused(status, reason);
    }
    hub.get(&hub.team, "/compare?left=dev/other&right=dev").await.refused(404, "NotFound");
}

async fn comparisons_come_in_pages(hub: Hub) {
    let scheduler = kedge_scheduler::Scheduler::new(testing::large(6));
    hub.update(&scheduler, None).await;
    let (mut names, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = hub.get(&hub.viewer, &format!("/compare?left=dev&right=dev&limit=3{cursor}")).await.ok();
        let found = page.body["workloads"].as_array().unwrap().iter();
        names.extend(found.map(|one| one["workload"].as_str().unwrap().to_owned()));
        let Some(next) = page.body["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(names, ["hello", "spy", "w0", "w1", "w2", "w3", "w4", "w5"]);
}

async fn plans_are_for_those_who_may_see_what_they_show(hub: Hub) {
    let revision = json!({"environment": "dev", "revision": " feature ", "of": "main"});
    let pasted = json!({"environment": "dev", "pasted": {"a.yaml": "x", "b.yaml": null}});
    for token in [&hub.platform, &hub.viewer, &hub.team] {
        hub.post(token, "/plan", revision.clone()).await.ok();
    }
    hub.post(&hub.platform, "/plan", pasted.clone()).await.ok();
    for token in [&hub.viewer, &hub.team] {
        hub.post(token, "/plan", pasted.clone()).await.refused(403, "Forbidden");
    }
    let asked = hub.services.asked();
    assert_eq!(asked[0], "plan dev Some(\"feature\") Some(Main) []");
    assert_eq!(asked[3], "plan dev None None [\"a.yaml\", \"b.yaml\"]");
    hub.post(&hub.platform, "/plan", json!({"environment": "dev"})).await.refused(400, "NothingToPlan");
    let elsewhere = json!({"environment": "prod", "revision": "x"});
    hub.post(&hub.platform, "/plan", elsewhere).await.refused(404, "NotFound");
    let of = json!({"environment": "dev", "revision": "x", "of": "y"});
    hub.post(&hub.platform, "/plan", of).await.refused(400, "BadPart");
    let large = json!({"environment": "dev", "pasted": {"a.yaml": "x".repeat(900_000)}});
    hub.post(&hub.platform, "/plan", large).await.ok();
    let larger = json!({"environment": "dev", "pasted": {"a.yaml": "x".repeat(3_000_000)}});
    hub.post(&hub.platform, "/plan", larger).await.refused(413, "TooLarge");
    let audit = hub.get(&hub.platform, "/audit").await.ok();
    assert_eq!(audit.body["items"], json!([]), "a plan writes nothing, refused or not");
}

on_each_database! {
    a_side_is_the_same_as_itself,
    cluster_types_differ_in_workloads_and_values,
    an_earlier_time_is_read_from_states_and_published_files,
    a_commit_that_is_gone_leaves_the_configuration_unknown,
    what_names_no_side_is_refused,
    comparisons_come_in_pages,
    plans_are_for_those_who_may_see_what_they_show,
}
