//! Lists, single objects, tokens, audit, limits and refusals.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use serde_json::json;

use super::fixture::Hub;
use crate::store::tokens::Role;

async fn a_request_without_a_valid_token_is_refused_with_the_way_out(hub: Hub) {
    let answer = hub.get("", "/clusters").await.refused(401, "NoToken");
    assert!(answer.headers.contains_key(header::WWW_AUTHENTICATE));
    assert!(answer.body["hint"].as_str().unwrap().contains("kedge login"));
    hub.get("nonsense", "/clusters").await.refused(401, "BadToken");
    let mut wrong = hub.platform.clone();
    let last = if wrong.ends_with('0') { '1' } else { '0' };
    wrong.pop();
    wrong.push(last);
    hub.get(&wrong, "/clusters").await.refused(401, "UnknownToken");
    let unknown = format!("kedge_{}_{}", "0".repeat(16), "0".repeat(64));
    hub.get(&unknown, "/clusters").await.refused(401, "UnknownToken");
}

async fn expired_and_revoked_tokens_are_over_at_once(hub: Hub) {
    let past = kedge_model::wire::Timestamp(1);
    let (_, old) = hub.store.add_api_token("old", Role::Viewer, &[], Some(past)).await.unwrap();
    hub.get(&old, "/whoami").await.refused(401, "TokenExpired");
    let (id, token) = hub.store.add_api_token("new", Role::Viewer, &[], None).await.unwrap();
    assert_eq!(hub.get(&token, "/whoami").await.ok().body["role"], "viewer");
    hub.delete(&token, &format!("/access-tokens/{id}")).await.ok();
    hub.get(&token, "/whoami").await.refused(401, "TokenRevoked");
    hub.delete(&hub.platform, &format!("/access-tokens/{id}")).await.refused(403, "Forbidden");
    hub.delete(&hub.administrator, &format!("/access-tokens/{id}")).await.refused(404, "NotFound");
}

async fn access_tokens_end_after_a_year_unless_asked_otherwise(hub: Hub) {
    let days = async |expires: serde_json::Value| {
        let body = json!({"person": "victor", "name": "ci", "role": "viewer", "expires": expires});
        let made = hub.post(&hub.administrator, "/access-tokens", body).await.ok();
        let listed = hub.get(&hub.platform, "/access-tokens").await.ok();
        let found = listed.body["items"].as_array().unwrap().iter().find(|item| item["id"] == made.body["id"]).cloned();
        assert_eq!(made.body["expiresAt"], found.unwrap()["expiresAt"], "it is said when it is made");
        let end: jiff::Timestamp = made.body["expiresAt"].as_str()?.parse().unwrap();
        Some((end.as_second() - jiff::Timestamp::now().as_second() + 60) / 86_400)
    };
    assert_eq!(days(json!(null)).await, Some(365));
    assert_eq!(days(json!("90d")).await, Some(90));
    assert_eq!(days(json!("never")).await, None);
    for expires in ["", "0s", "7 days", "Never", "100000000000d", "18446744073709551615d"] {
        let body = json!({"person": "victor", "name": "ci", "role": "viewer", "expires": expires});
        hub.post(&hub.administrator, "/access-tokens", body).await.refused(400, "BadExpiry");
    }
}

async fn pages_follow_each_other_without_gap_or_repetition(hub: Hub) {
    for number in 0..23 {
        hub.cluster(number, &format!("c-{:02}", number % 7), "drone", &format!(r#"{{"n":"{number}"}}"#)).await;
    }
    for filter in ["", "&environment=dev", "&labelSelector=n"] {
        let mut ids = Vec::new();
        let mut next = String::new();
        loop {
            let answer = hub.get(&hub.viewer, &format!("/clusters?limit=5{filter}{next}")).await.ok();
            let items = answer.body["items"].as_array().unwrap();
            assert!(items.len() <= 5);
            ids.extend(items.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
            match answer.body["next"].as_str() {
                Some(cursor) => next = format!("&cursor={cursor}"),
                None => break,
            }
        }
        assert_eq!(ids.len(), 23, "{filter}");
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 23, "{filter}");
    }
    let mut names = Vec::new();
    let mut next = String::new();
    loop {
        let answer = hub.get(&hub.viewer, &format!("/assignments?limit=1{next}")).await.ok();
        names.extend(answer.names().into_iter().map(str::to_owned));
        match answer.body["next"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(names, ["drone/hello-functional-test", "drone/spy-functional-test", "large/hello-functional-test"]);
}

async fn filters_narrow_a_list(hub: Hub) {
    hub.cluster(1, "a-1", "drone", r#"{"region":"west","size":"s"}"#).await;
    hub.cluster(2, "a-2", "drone", r#"{"region":"east"}"#).await;
    hub.cluster(3, "b-1", "large", r#"{"region":"we_st"}"#).await;
    for (query, names) in [
        ("labelSelector=region%3Dwest", vec!["a-1"]),
        ("labelSelector=region%20in%20(west,east)", vec!["a-1", "a-2"]),
        ("labelSelector=!size", vec!["a-2", "b-1"]),
        ("labelSelector=region%3Dwe_st", vec!["b-1"]),
        ("clusterType=large", vec!["b-1"]),
        ("namePrefix=a-", vec!["a-1", "a-2"]),
        ("condition=Unknown", vec![]),
        ("condition=Known&environment=dev&ring=all", vec!["a-1", "a-2", "b-1"]),
    ] {
        assert_eq!(hub.get(&hub.viewer, &format!("/clusters?{query}")).await.ok().names(), names, "{query}");
    }
    for (query, names) in [
        ("state=quarantined", vec!["large/hello-functional-test"]),
        ("clusterType=drone&workspace=harbour", vec!["drone/hello-functional-test"]),
        ("labelSelector=team%3Dspy", vec!["drone/spy-functional-test"]),
        ("namePrefix=large/", vec!["large/hello-functional-test"]),
    ] {
        assert_eq!(hub.get(&hub.viewer, &format!("/assignments?{query}")).await.ok().names(), names, "{query}");
    }
}

async fn what_cannot_be_understood_is_named(hub: Hub) {
    for (path, reason) in [
        ("/clusters?limit=0", "BadLimit"),
        ("/clusters?limit=501", "BadLimit"),
        ("/clusters?limit=x", "BadQuery"),
        ("/clusters?colour=red", "BadQuery"),
        ("/clusters?cursor=%25%25", "BadCursor"),
        ("/clusters?labelSelector=a%20b", "BadSelector"),
        ("/clusters?condition=Happy", "UnknownName"),
        ("/clusters?wait=30s", "BadWait"),
        ("/counts", "BadQuery"),
    ] {
        hub.get(&hub.viewer, path).await.refused(400, reason);
    }
    hub.get(&hub.viewer, "/nothing").await.refused(404, "NoSuchRoute");
    hub.send(Method::PUT, &hub.platform, "/clusters", None, &[]).await.refused(405, "WrongMethod");
    hub.get(&hub.viewer, "/clusters/nobody").await.refused(404, "NotFound");
    hub.post(&hub.platform, "/join-tokens", json!({"environment": "dev"})).await.refused(422, "BadBody");
    let big = json!({"person": "anna", "name": "x".repeat(100_000), "role": "viewer"});
    hub.post(&hub.administrator, "/access-tokens", big).await.refused(413, "TooLarge");
    let wrong = json!({"environment": "dev", "clusterType": "dron"});
    let answer = hub.post(&hub.platform, "/join-tokens", wrong).await.refused(422, "UnknownClusterType");
    assert_eq!(answer.body["nearest"], "drone", "{}", answer.text);
    let path = "/environments/dev/cluster-types/dron/confirm";
    let answer = hub.post(&hub.platform, path, json!(null)).await.refused(404, "UnknownName");
    assert_eq!(answer.body["nearest"], "drone", "{}", answer.text);
    let path = "/environments/dev/cluster-types/large/confirm";
    hub.post(&hub.platform, path, json!(null)).await.refused(404, "NothingWaits");
    let wrong = json!({"environment": "dev", "clusterType": "drone", "expires": "7 days"});
    hub.post(&hub.platform, "/join-tokens", wrong).await.refused(400, "BadExpiry");
    for body in [
        json!({"person": "anna", "role": "root"}),
        json!({"person": "anna", "role": "application"}),
        json!({"person": "anna", "role": "viewer", "workspaces": ["a"]}),
        json!({"person": "anna", "name": "\u{7}", "role": "viewer"}),
    ] {
        assert_eq!(hub.post(&hub.administrator, "/access-tokens", body).await.status, StatusCode::BAD_REQUEST);
    }
}

async fn an_unchanged_answer_is_not_sent_again(hub: Hub) {
    let first = hub.get(&hub.viewer, "/assignments").await.ok();
    let tag = first.headers[header::ETAG].to_str().unwrap().to_owned();
    assert!(tag.starts_with('"'), "strong: {tag}");
    let again = hub.send(Method::GET, &hub.viewer, "/assignments", None, &[(header::IF_NONE_MATCH, &tag)]).await;
    assert_eq!(again.status, StatusCode::NOT_MODIFIED);
    assert!(again.text.is_empty());
    assert_eq!(again.headers[header::ETAG].to_str().unwrap(), tag);
    let weak = format!("\"x\", W/{tag}");
    let again = hub.send(Method::GET, &hub.viewer, "/assignments", None, &[(header::IF_NONE_MATCH, &weak)]).await;
    assert_eq!(again.status, StatusCode::NOT_MODIFIED);
    let other = hub.send(Method::GET, &hub.team, "/assignments", None, &[(header::IF_NONE_MATCH, &tag)]).await;
    assert_eq!(other.status, StatusCode::OK, "another role sees something else");
    let mut scheduler = crate::catalog::testing::scheduler();
    let large = kedge_model::ObjectId { kind: kedge_model::Kind::ClusterType, owner: None, name: "large".to_owned() };
    let delta = scheduler.update([kedge_scheduler::Change::Remove(large)]);
    hub.update(&scheduler, Some(&delta)).await;
    let changed = hub.send(Method::GET, &hub.viewer, "/assignments", None, &[(header::IF_NONE_MATCH, &tag)]).await;
    assert_eq!(changed.status, StatusCode::OK);
}

async fn every_write_is_in_the_audit_log_done_or_refused(hub: Hub) {
    hub.cluster(1, "drone-1", "drone", "{}").await;
    hub.patch(&hub.platform, "/clusters/drone-1", json!({"clusterType": "large"})).await.ok();
    hub.post(&hub.viewer, "/clusters/drone-1/retire", json!({})).await.refused(403, "Forbidden");
    let body = json!({"person": "victor", "name": "ci", "role": "viewer"});
    let made = hub.post(&hub.administrator, "/access-tokens", body).await.ok();
    let audit = hub.get(&hub.platform, "/audit").await.ok();
    let items = audit.body["items"].as_array().unwrap();
    assert_eq!(items.len(), 3, "{}", audit.text);
    assert_eq!((items[0]["action"].as_str(), items[0]["who"].as_str()), (Some("access-token.create"), Some("root")));
    assert_eq!(items[0]["detail"]["personName"], "victor");
    assert_eq!(items[0]["address"], "10.0.0.7");
    assert!(!audit.text.contains(made.body["token"].as_str().unwrap()), "never a secret");
    assert_eq!((items[1]["who"].as_str(), items[1]["result"].as_str()), (Some("victor"), Some("refused: Forbidden")));
    // A refused write is found by what it was about, as one that is done.
    assert_eq!((&items[1]["action"], &items[1]["environment"]), (&"cluster.retire".into(), &items[2]["environment"]));
    assert_eq!(items[1]["object"], items[2]["object"]);
    assert_eq!(items[2]["action"], "cluster.move");
    assert_eq!(items[2]["detail"]["to"]["clusterType"], "large");
    assert_eq!(items[2]["result"], "done");
    let first = hub.get(&hub.platform, "/audit?limit=2").await.ok();
    let next = first.body["next"].as_str().unwrap();
    let rest = hub.get(&hub.platform, &format!("/audit?limit=2&cursor={next}")).await.ok();
    assert_eq!(rest.body["items"].as_array().unwrap().len(), 1);
    assert_eq!(hub.get(&hub.platform, "/audit?action=cluster.").await.ok().body["items"].as_array().unwrap().len(), 2);
}

/// The log is kept for ever: who may write nothing can't fill it.
async fn refused_writes_do_not_fill_the_log(hub: Hub) {
    for number in 0..60 {
        hub.post(&hub.viewer, "/people", json!({"name": format!("x{number}")})).await.refused(403, "Forbidden");
        hub.post(&hub.viewer, &format!("/nowhere/{number}"), json!({})).await.refused(404, "NoSuchRoute");
    }
    let of = async |query: &str| hub.get(&hub.platform, query).await.ok().body["items"].as_array().unwrap().len();
    assert_eq!(of("/audit?action=person.&limit=500").await, 1);
    assert_eq!(of("/audit?limit=500").await, 21, "few actions are told apart");
    hub.post(&hub.team, "/people", json!({"name": "x"})).await.refused(403, "Forbidden");
    assert_eq!(of("/audit?action=person.&limit=500").await, 2, "another token's first is said at once");
}

/// Who tries the secrets of a token that there is leaves that token's name.
async fn guesses_at_a_known_token_are_in_the_log_by_its_id(hub: Hub) {
    let id = hub.get(&hub.platform, "/whoami").await.ok().body["token"].as_str().unwrap().to_owned();
    let strange = format!("kedge_{}_{}", "0".repeat(16), "0".repeat(64));
    let unknown = hub.get(&strange, "/whoami").await.refused(401, "UnknownToken");
    for secret in 0..30 {
        let guessed = hub.get(&format!("kedge_{id}_{secret:064x}"), "/whoami").await.refused(401, "UnknownToken");
        assert_eq!(guessed.text, unknown.text, "an answer tells nobody which ids there are");
    }
    let audit = hub.get(&hub.platform, "/audit?action=login").await.ok();
    let items = audit.body["items"].as_array().unwrap();
    assert_eq!(items.len(), 2, "{}", audit.text);
    assert_eq!((items[0]["object"].as_str(), &items[0]["detail"]["personName"]), (Some(id.as_str()), &json!("anna")));
    assert_eq!((&items[0]["who"], &items[1]["object"]), (&json!("unknown"), &json!("")));
}

async fn one_name_for_several_clusters_asks_which(hub: Hub) {
    let first = hub.cluster(1, "twin", "drone", "{}").await;
    hub.cluster(2, "twin", "drone", "{}").await;
    let answer = hub.post(&hub.platform, "/clusters/twin/retire", json!({})).await.refused(409, "Ambiguous");
    assert!(answer.body["hint"].as_str().unwrap().contains(&first.to_string()));
    hub.post(&hub.platform, &format!("/clusters/{first}/retire"), json!({})).await.ok();
    assert_eq!(hub.services.asked(), [format!("retire {first}"), format!("changed {first}")]);
}

#[tokio::test]
async fn too_many_requests_are_told_when_to_come_back() {
    let hub = Hub::with_rates(2, 2).await;
    for _ in 0..4 {
        hub.get(&hub.viewer, "/whoami").await.ok();
    }
    let answer = hub.get(&hub.viewer, "/whoami").await.refused(429, "TooManyRequests");
    assert_eq!(answer.headers[header::RETRY_AFTER], "1");
    hub.get(&hub.platform, "/whoami").await.ok();
    for _ in 0..4 {
        hub.get("", "/whoami").await.refused(401, "NoToken");
    }
    hub.get("", "/whoami").await.refused(429, "TooManyRequests");
}

async fn a_database_that_is_away_is_503_with_retry_after(hub: Hub) {
    hub.store.close().await;
    let answer = hub.get(&hub.viewer, "/clusters").await.refused(503, "Unavailable");
    assert!(answer.headers.contains_key(header::RETRY_AFTER));
    let ready = hub.call(Request::get("/readyz").body(Body::empty()).unwrap()).await;
    assert_eq!((ready.status, ready.text.as_str()), (StatusCode::SERVICE_UNAVAILABLE, "no\n"), "nothing but no");
    let alive = hub.call(Request::get("/healthz").body(Body::empty()).unwrap()).await;
    assert_eq!(alive.status, StatusCode::OK);
}

async fn hooks_are_heard_when_they_are_signed_and_small(hub: Hub) {
    let hook = |signed: bool, size: usize| {
        let request = Request::post("/hooks/git");
        let request = if signed { request.header("x-hub-signature-256", "sha256=0") } else { request };
        request.body(Body::from(vec![b' '; size])).unwrap()
    };
    hub.call(hook(false, 10)).await.refused(401, "BadSignature");
    hub.call(hook(true, 2 * 1024 * 1024)).await.refused(413, "BadBody");
    assert_eq!(hub.call(hook(true, 10)).await.status, StatusCode::ACCEPTED);
    assert_eq!(hub.services.asked(), ["fetch https://git.example/app"]);
}

async fn metrics_are_open_metrics_for_who_may_see_all(hub: Hub) {
    hub.get(&hub.viewer, "/whoami").await.ok();
    let ask = async |token: &str| {
        let mut request = Request::get("/metrics");
        if !token.is_empty() {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        hub.call(request.body(Body::empty()).unwrap()).await
    };
    ask("").await.refused(401, "NoToken");
    ask("kedge_guess").await.refused(401, "BadToken");
    ask(&hub.team).await.refused(403, "Forbidden");
    ask(&hub.platform).await.ok();
    let answer = ask(&hub.viewer).await.ok();
    assert!(answer.headers[header::CONTENT_TYPE].to_str().unwrap().starts_with("application/openmetrics-text"));
    assert!(answer.text.contains("route=\"read\",status=\"2xx\"} 2"), "{}", answer.text);
    assert!(answer.text.ends_with("# EOF\n"));
}

/// `KEDGE_UPDATE=1` writes the file anew.
#[test]
fn the_committed_description_is_the_one_of_the_code() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json");
    let made = serde_json::to_string_pretty(&crate::api::openapi()).unwrap() + "\n";
    if std::env::var_os("KEDGE_UPDATE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == made, "docs/openapi.json differs from the code: run this test with KEDGE_UPDATE=1");
    assert!(made.contains("\"openapi\": \"3.1.0\""));
}

async fn one_request_changes_a_cluster_in_several_ways(hub: Hub) {
    let id = hub.cluster(1, "drone-1", "drone", r#"{"old": "x", "size": "s"}"#).await;
    hub.services.asked();
    let body = json!({"clusterType": "large", "labels": {"a": "b", "old": null}, "site": "harbour"});
    hub.patch(&hub.platform, "/clusters/drone-1", body).await.ok();
    let asked = hub.services.asked();
    assert_eq!(asked[0], format!("move {id} to Some(\"large\")"));
    assert_eq!(asked[1], format!("relabel {id} {:?}", BTreeMap::from([("a", "b"), ("size", "s")])));
    assert_eq!(asked[2], format!("set {id} Some(\"harbour\") false"));
    let audit = hub.get(&hub.platform, "/audit").await.ok();
    let items = audit.body["items"].as_array().unwrap();
    let actions: Vec<&str> = items.iter().map(|item| item["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["cluster.set", "cluster.relabel", "cluster.move"]);
    assert_eq!(items[1]["detail"], json!({"set": {"a": "b"}, "remove": ["old"]}));
    hub.patch(&hub.platform, "/clusters/drone-1", json!({})).await.refused(400, "NothingAsked");
    hub.patch(&hub.platform, "/clusters/drone-1", json!({"labels": {"a": 7}})).await.refused(422, "BadBody");
}

async fn a_refusal_is_problem_details(hub: Hub) {
    let refused = hub.get(&hub.platform, "/clusters/nobody").await.refused(404, "NotFound");
    assert_eq!(refused.headers[header::CONTENT_TYPE], "application/problem+json");
    assert_eq!(refused.body["type"], "urn:kedge:error:NotFound");
    assert_eq!((&refused.body["title"], &refused.body["status"]), (&json!("Not Found"), &json!(404)));
    assert!(refused.body["detail"].as_str().unwrap().contains("nobody"), "{}", refused.text);
    let nowhere = hub.get(&hub.platform, "/nowhere").await.refused(404, "NoSuchRoute");
    assert_eq!(nowhere.headers[header::CONTENT_TYPE], "application/problem+json");
}

on_each_database! {
    one_request_changes_a_cluster_in_several_ways,
    a_refusal_is_problem_details,
    a_request_without_a_valid_token_is_refused_with_the_way_out,
    expired_and_revoked_tokens_are_over_at_once,
    access_tokens_end_after_a_year_unless_asked_otherwise,
    pages_follow_each_other_without_gap_or_repetition,
    filters_narrow_a_list,
    what_cannot_be_understood_is_named,
    an_unchanged_answer_is_not_sent_again,
    every_write_is_in_the_audit_log_done_or_refused,
    refused_writes_do_not_fill_the_log,
    guesses_at_a_known_token_are_in_the_log_by_its_id,
    one_name_for_several_clusters_asks_which,
    a_database_that_is_away_is_503_with_retry_after,
    hooks_are_heard_when_they_are_signed_and_small,
    metrics_are_open_metrics_for_who_may_see_all,
}

#[tokio::test]
async fn names_that_there_are_not_are_errors_with_the_nearest() {
    let hub = Hub::new().await;
    for (path, status, nearest) in [
        ("/clusters?environment=nope", 404, None),
        ("/clusters?environment=dve", 404, Some("dev")),
        ("/clusters?environment=dev&clusterType=dron", 404, Some("drone")),
        ("/clusters?state=activ", 400, Some("active")),
        ("/clusters?site=nowhere", 404, None),
        ("/conditions?ring=al1", 404, None),
        ("/conditions?condition=failed", 400, Some("Failed")),
        ("/conditions?workload=helo", 404, Some("hello")),
        ("/assignments?environment=dew", 404, Some("dev")),
        ("/assignments?state=quarantine", 400, Some("quarantined")),
        ("/assignments?workspace=harbor", 404, Some("harbour")),
        ("/workloads?environment=dev&workspace=nobody", 404, None),
        ("/findings?state=errors", 400, Some("error")),
        ("/repositories?state=failed", 400, Some("failing")),
        ("/rollouts?state=Stoped", 400, Some("Stopped")),
        ("/rollouts?environment=nope", 404, None),
        ("/drift?environment=dve", 404, Some("dev")),
        ("/fleet?environment=dve", 404, Some("dev")),
        ("/fleet?workload=helo", 404, Some("hello")),
        ("/history?environment=dve", 404, Some("dev")),
        ("/evidence?environment=dve", 404, Some("dev")),
        ("/desired-states?environment=dve", 404, Some("dev")),
        ("/audit?environment=nope", 404, None),
        ("/audit?token=nope", 404, None),
        ("/counts?environment=dve", 404, Some("dev")),
        ("/counts?environment=dev&ring=al1", 404, None),
        ("/history?who=ana", 404, Some("anna")),
        ("/audit?action=foo.", 400, None),
        ("/audit?action=cluster.mvoe", 400, Some("cluster.move")),
        ("/compare?left=dev&right=dev&workload=helo", 404, Some("hello")),
        ("/rollout-status?environment=dev&workload=helo", 404, Some("hello")),
        ("/rollout-status?environment=dev&clusterType=dron", 404, Some("drone")),
        ("/rollout-status?environment=dev&ring=al1", 404, None),
    ] {
        let answer = hub.get(&hub.viewer, path).await.refused(status, "UnknownName");
        assert_eq!(answer.body["nearest"].as_str(), nearest, "{path}: {}", answer.text);
        assert!(answer.body["hint"].is_string(), "{path}: {}", answer.text);
    }
    for path in ["/rollouts?mainCommit=deadbeef", "/rollouts?sourceCommit=deadbeef", "/evidence?commit=deadbeef"] {
        let answer = hub.get(&hub.viewer, path).await.refused(404, "NotFound");
        assert!(answer.text.contains("there is no commit `deadbeef` in the history"), "{path}: {}", answer.text);
    }
    for (path, nearest) in [
        ("/desired-states/dev/dron/all", Some("drone")),
        ("/desired-states/dve/drone/all", Some("dev")),
        ("/clusters/nobody", None),
        ("/environments/dve", Some("dev")),
        ("/workloads/dev/helo", Some("hello")),
        ("/cluster-types/dev/dron", Some("drone")),
        ("/assignments/dev/drone/hello-functional-tst", Some("drone/hello-functional-test")),
        ("/compare?left=dve&right=dev", Some("dev")),
        ("/workloads-overview/helo", Some("hello")),
    ] {
        let answer = hub.get(&hub.viewer, path).await.refused(404, "NotFound");
        assert_eq!(answer.body["nearest"].as_str(), nearest, "{path}: {}", answer.text);
    }
    for (path, told) in [
        ("/workloads?clusterType=drone", "`clusterType` doesn't apply to workloads"),
        ("/repositories?workload=hello", "`workload` doesn't apply to repositories"),
        ("/findings?workload=hello", "`workload` doesn't apply to findings"),
        ("/problems?rign=canary", "there is no parameter `rign` here; there are: environment, kind, state"),
        ("/join-tokens?environment=dev", "there is no parameter `environment` here"),
        ("/rollouts/abc", "`abc` isn't a number"),
    ] {
        let answer = hub.get(&hub.viewer, path).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path}: {}", answer.text);
        assert!(answer.body["detail"].as_str().unwrap().contains(told), "{path}: {}", answer.text);
    }
    let answer = hub.get(&hub.viewer, "/findings?labelSelector=code%3DNope").await.ok();
    assert!(answer.headers["kedge-note"].to_str().unwrap().starts_with("no finding has the code `Nope`"));
    hub.cluster(1, "drone-1", "drone", r#"{"ring":"x"}"#).await;
    let answer = hub.get(&hub.viewer, "/clusters?labelSelector=rinng%3Dx").await.ok();
    assert_eq!(answer.headers["kedge-note"], "no cluster has the label `rinng`; did you mean `ring`?");
    let answer = hub.get(&hub.viewer, "/conditions?reason=foo").await.ok();
    assert_eq!(answer.headers["kedge-note"], "no condition has the reason `foo`");
    for path in ["/join-tokens", "/access-tokens", "/people"] {
        hub.get(&hub.platform, &format!("{path}?after=1&wait=1s")).await.refused(400, "BadQuery");
        hub.get(&hub.platform, &format!("{path}?limit=1")).await.ok();
    }
    // What exists and has nothing is an empty list.
    for path in [
        "/rollouts?environment=dev",
        "/conditions?environment=dev&workload=hello",
        "/audit?environment=dev&action=cluster.move",
    ] {
        assert_eq!(hub.get(&hub.viewer, path).await.ok().body["items"].as_array().map(Vec::len), Some(0), "{path}");
    }
    // A team isn't told names that aren't its own.
    let answer = hub.get(&hub.team, "/conditions?workload=spu").await.refused(404, "UnknownName");
    assert!(answer.body["nearest"].is_null() && !answer.text.contains("spy"), "{}", answer.text);
}
