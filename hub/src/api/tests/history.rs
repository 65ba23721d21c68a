//! Looking back: who sees what, every filter, and what isn't understood.

use kedge_hub_types::history::what::Step;
use kedge_hub_types::history::{Entry, Place, What};
use kedge_model::wire::{ClusterId, Stream, Timestamp};
use serde_json::Value;

use super::fixture::Hub;
use crate::store::now;

const HOUR: i64 = 3_600_000;

fn condition(word: &str) -> What {
    What::Condition {
        condition: word.to_owned(),
        reason: (word == "Failed").then(|| "HealthCheck".to_owned()),
        message: (word == "Failed").then(|| "<b>the unit</b> doesn't answer".to_owned()),
        version: None,
        running: None,
        desired: None,
    }
}

/// Two teams' assignments on one cluster, a promotion, and what was written.
async fn fill(hub: &Hub) {
    let id = hub.cluster(1, "drone-1", "drone", "{}").await;
    let place = |target: &str| Place::cluster(&Stream::new("dev", "drone", Stream::ALL), id).target(target);
    let ago = |hours: i64| Timestamp(now().0 - hours * HOUR);
    let walked = What::Walked {
        repo: "https://h/control-plane".to_owned(),
        subject: "Raise the limit".to_owned(),
        made_at: Some(ago(7).0),
        head: None,
        steps: vec![Step { name: "read".to_owned(), ended_at: ago(6).0, took_ms: 40 }],
    };
    let promoted = What::Promotion {
        phase: "entered".to_owned(),
        subject: "Raise the limit".to_owned(),
        author: "ann".to_owned(),
        why: None,
        rollout: None,
    };
    let commit = "3f2a91c0ffee3f2a91c0ffee3f2a91c0ffee3f2a";
    let news = vec![
        Entry::new(ago(50), place("hello-functional-test"), condition("Failed")),
        Entry::new(ago(1), place("hello-functional-test"), condition("Converged")),
        Entry::new(ago(2), place("spy-functional-test"), condition("Failed")),
        Entry::new(ago(6), Place::environment("dev"), walked).commit(commit).by("ann"),
        Entry::new(ago(5), Place::environment("dev"), promoted).commit(commit).by("ann"),
    ];
    hub.store.record(news).await.unwrap();
}

fn titles(answer: &Value) -> Vec<&str> {
    answer["items"].as_array().unwrap().iter().map(|item| item["title"].as_str().unwrap()).collect()
}

async fn everybody_looks_back_at_what_is_theirs(hub: Hub) {
    fill(&hub).await;
    let all = hub.get(&hub.viewer, "/history?environment=dev&kind=condition,promotion,publish").await.ok();
    assert_eq!(
        titles(&all.body),
        [
            "drone/hello-functional-test converged on drone-1",
            "drone/spy-functional-test failed on drone-1: HealthCheck: <b>the unit</b> doesn't answer",
            "“Raise the limit” was promoted to dev",
            "“Raise the limit” was read and scheduled in dev within 40 ms",
            "drone/hello-functional-test failed on drone-1: HealthCheck: <b>the unit</b> doesn't answer",
        ]
    );
    let own = hub.get(&hub.team, "/history?kind=condition").await.ok();
    assert_eq!(titles(&own.body).len(), 2, "{}", own.text);
    let own = hub.get(&hub.team, "/history").await.ok();
    assert!(!own.text.contains("spy") && !own.text.contains("Raise the limit"), "{}", own.text);
    assert!(titles(&hub.get(&hub.team, "/history?who=ann").await.ok().body).is_empty());
    hub.get(&hub.team, "/history?workload=spy").await.refused(404, "UnknownName");
    hub.get(&hub.team, "/history?commit=3f2a91c0ffee").await.refused(404, "NotFound");
    hub.get(&hub.team, "/history/commits/3f2a91c0ffee").await.refused(404, "NotFound");
}

async fn filters_pages_and_times_are_understood_or_refused(hub: Hub) {
    fill(&hub).await;
    let count = async |query: &str| titles(&hub.get(&hub.platform, &format!("/history?{query}")).await.ok().body).len();
    assert_eq!(count("workload=hello&kind=condition").await, 2);
    assert_eq!(count("workload=hello&kind=condition&since=1d").await, 1);
    assert_eq!(count("workload=hello&until=1d").await, 1);
    assert_eq!(count("assignment=drone/hello-functional-test&event=Failed").await, 1);
    assert_eq!(count("cluster=drone-1&since=2020-01-01").await, 3);
    assert_eq!(count("commit=3f2a91").await, 2);
    let first = hub.get(&hub.platform, "/history?cluster=drone-1&limit=2").await.ok();
    let next = first.body["next"].as_str().unwrap();
    let second = hub.get(&hub.platform, &format!("/history?cluster=drone-1&limit=2&cursor={next}")).await.ok();
    assert_eq!((titles(&first.body).len(), titles(&second.body).len()), (2, 1));
    assert!(second.body["items"][0]["late"] == true && second.body.get("next").is_none(), "{}", second.text);
    for (query, reason) in [
        ("kind=gossip", "BadKind"),
        ("since=yesterday", "BadTime"),
        ("limit=0", "BadLimit"),
        ("cursor=x", "BadCursor"),
        ("colour=red", "BadQuery"),
    ] {
        hub.get(&hub.platform, &format!("/history?{query}")).await.refused(400, reason);
    }
    let way = hub.get(&hub.platform, "/history/commits/3f2a91c").await.ok();
    let steps: Vec<&str> =
        way.body["items"].as_array().unwrap().iter().map(|item| item["step"].as_str().unwrap()).collect();
    assert_eq!(steps, ["pushed", "read", "promoted"]);
    assert_eq!((&way.body["subject"], &way.body["items"][1]["tookMs"]), (&"Raise the limit".into(), &40.into()));
}

async fn a_mistyped_name_is_an_error_and_one_that_is_gone_is_not(hub: Hub) {
    fill(&hub).await;
    let earlier =
        Place::cluster(&Stream::new("old", "kiosk", "early"), ClusterId::of_public_key(&[9; 32])).target("till-all");
    let entry = Entry::new(Timestamp(now().0 - HOUR), earlier, condition("Converged"));
    hub.store.record(vec![entry]).await.unwrap();
    for (query, near) in [
        ("workload=helo", Some("hello")),
        ("clusterType=drne", Some("drone")),
        ("cluster=drone-2", Some("drone-1")),
        ("assignment=drone/hello-functional-tst", Some("hello-functional-test")),
        ("environment=dve", Some("dev")),
        ("ring=nowhere", None),
        ("commit=nonsense", None),
        ("commit=0123456789", None),
    ] {
        let answer = hub.get(&hub.platform, &format!("/history?{query}")).await;
        assert_eq!((answer.status.as_u16(), answer.body["nearest"].as_str()), (404, near), "{query}: {}", answer.text);
    }
    for query in
        ["environment=old&since=1m", "clusterType=kiosk&since=1m", "ring=early&since=1m", "workload=hello&until=5d"]
    {
        let answer = hub.get(&hub.platform, &format!("/history?{query}")).await.ok();
        assert!(titles(&answer.body).is_empty(), "{query}: {}", answer.text);
    }
}

async fn what_only_a_refused_write_names_is_not_known(hub: Hub) {
    fill(&hub).await;
    hub.post(&hub.platform, "/promotions/nope/approve", serde_json::json!({})).await;
    for path in
        ["/history?environment=nope", "/history?environment=nope&since=1d&kind=audit", "/audit?environment=nope"]
    {
        hub.get(&hub.platform, path).await.refused(404, "UnknownName");
    }
    assert!(hub.get(&hub.platform, "/audit").await.ok().text.contains("nope"), "what was tried is in the log");
    let answer = hub.get(&hub.platform, "/history?event=Faild").await.refused(400, "BadQuery");
    assert_eq!(answer.body["nearest"], "Failed", "{}", answer.text);
    for query in ["event=rolledBack", "event=cluster.move", "event=login", "who=root&kind=drift"] {
        hub.get(&hub.platform, &format!("/history?{query}")).await.ok();
    }
}

async fn addresses_of_people_are_for_those_who_see_people(hub: Hub) {
    fill(&hub).await;
    let new = serde_json::json!({"name": "cleo", "emails": ["cleo@example.org"]});
    hub.post(&hub.administrator, "/people", new).await.ok();
    let promoted = What::Promotion {
        phase: "entered".to_owned(),
        subject: "Lower it".to_owned(),
        author: "Ben <ben@example.org>".to_owned(),
        why: None,
        rollout: None,
    };
    let entry = Entry::new(Timestamp(now().0 - HOUR), Place::environment("dev"), promoted).by("Ben <ben@example.org>");
    hub.store.record(vec![entry]).await.unwrap();
    for path in ["/audit?action=person.", "/history?kind=audit,promotion"] {
        let seen = hub.get(&hub.viewer, path).await.ok();
        assert!(seen.text.contains("cleo") && !seen.text.contains("example.org"), "{path}: {}", seen.text);
        let seen = hub.get(&hub.administrator, path).await.ok();
        assert!(seen.text.contains("cleo@example.org"), "{path}: {}", seen.text);
    }
    assert!(hub.get(&hub.viewer, "/history?kind=promotion").await.ok().text.contains("\"Ben\""));
}

async fn a_write_and_a_refused_one_are_in_the_history(hub: Hub) {
    let id = hub.cluster(1, "drone-1", "drone", "{}").await;
    hub.post(&hub.platform, &format!("/clusters/{id}/retire"), serde_json::json!({})).await;
    hub.post(&hub.viewer, &format!("/clusters/{id}/retire"), serde_json::json!({})).await;
    let told = hub.get(&hub.platform, "/history?kind=audit").await.ok();
    let who: Vec<&str> =
        told.body["items"].as_array().unwrap().iter().map(|item| item["who"].as_str().unwrap()).collect();
    assert_eq!(who, ["victor", "anna"], "{}", told.text);
    assert!(titles(&told.body)[0].contains("was refused"), "{}", told.text);
    assert!(titles(&hub.get(&hub.team, "/history?kind=audit").await.ok().body).is_empty());
}

on_each_database! {
    everybody_looks_back_at_what_is_theirs,
    filters_pages_and_times_are_understood_or_refused,
    a_write_and_a_refused_one_are_in_the_history,
    what_only_a_refused_write_names_is_not_known,
    addresses_of_people_are_for_those_who_see_people,
    a_mistyped_name_is_an_error_and_one_that_is_gone_is_not,
}
