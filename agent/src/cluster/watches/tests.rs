//! Watches at a server in trouble.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{KindKey, Sight, Standing, Watches};
use crate::cluster::fake::{Fake, Reply};
use crate::cluster::request::{ApiError, Call};
use crate::cluster::retry::persist;
use crate::goal::ObjectId;

fn object(version: u64) -> Value {
    json!({"metadata": {
        "name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": version.to_string(),
        "labels": {"kedge.dev/assignment": "web-eu"},
        "managedFields": [{"manager": "kedge", "operation": "Apply", "fieldsV1": {"f:a": {}}}],
    }})
}

fn list(version: u64, items: &Value) -> Reply {
    Reply::Whole(200, "", json!({"metadata": {"resourceVersion": version.to_string()}, "items": items}).to_string())
}

fn event(kind: &str, object: &Value) -> String {
    json!({"type": kind, "object": object}).to_string()
}

fn id() -> ObjectId {
    ObjectId {
        group: "apps".to_owned(),
        version: "v1".to_owned(),
        kind: "Deployment".to_owned(),
        plural: "deployments".to_owned(),
        namespace: Some("shop".to_owned()),
        name: "web".to_owned(),
    }
}

async fn follow(fake: &Fake) -> (Watches, UnboundedReceiver<BTreeSet<String>>) {
    let (tell, noticed) = unbounded_channel();
    let watches = Watches::start(fake.cluster.clone(), tell);
    let kinds = BTreeSet::from([KindKey::of(&id())]);
    watches.need(&kinds);
    watches.settle(&kinds, Duration::from_secs(5)).await.unwrap();
    (watches, noticed)
}

#[tokio::test]
async fn an_expired_watch_is_listed_again_and_tells_what_went() {
    let fake = Fake::start(|line, before| match before {
        0 => list(10, &json!([object(5)])),
        1 if line.contains("resourceVersion=10") => {
            Reply::Lines(vec![event("ERROR", &json!({"code": 410, "message": "too old resource version"}))], false)
        }
        2 => list(20, &Value::Null),
        _ => Reply::Lines(Vec::new(), true),
    })
    .await;
    let (watches, mut noticed) = follow(&fake).await;
    assert!(matches!(watches.sight(&id()), Sight::There(_)));
    assert_eq!(noticed.recv().await.unwrap(), BTreeSet::from(["web-eu".to_owned()]));
    assert_eq!(watches.sight(&id()), Sight::Absent);
}

#[tokio::test]
async fn a_broken_watch_goes_on_from_where_it_was() {
    let fake = Fake::start(|line, before| match before {
        0 => list(10, &json!([])),
        1 => Reply::Lines(
            vec![event("ADDED", &object(12)), event("BOOKMARK", &json!({"metadata": {"resourceVersion": "15"}}))],
            false,
        ),
        2 => Reply::Break,
        _ if line.contains("resourceVersion=15") => Reply::Lines(vec![event("DELETED", &object(16))], true),
        _ => panic!("{line}"),
    })
    .await;
    let (watches, mut noticed) = follow(&fake).await;
    noticed.recv().await.unwrap();
    noticed.recv().await.unwrap();
    assert_eq!(watches.sight(&id()), Sight::Absent);
    let asked = fake.asked.lock().unwrap().clone();
    assert!(asked[0].contains("labelSelector=kedge.dev%2Fassignment&limit="), "{asked:?}");
    assert!(asked[1].contains("watch=true") && asked[1].contains("allowWatchBookmarks=true"), "{asked:?}");
}

#[tokio::test]
async fn a_kind_that_may_not_be_seen_is_not_called_absent() {
    let fake = Fake::start(|_, _| Reply::Whole(403, "", json!({"message": "cannot list"}).to_string())).await;
    let (watches, _noticed) = follow(&fake).await;
    assert_eq!(watches.sight(&id()), Sight::Unknown(Standing::Refused("cannot list".to_owned())));
}

#[tokio::test]
async fn a_busy_server_gets_the_patience_it_asks_for() {
    let fake = Fake::start(|_, before| match before {
        0 => Reply::Whole(429, "Retry-After: 1\r\n", json!({"message": "too many requests"}).to_string()),
        1 => Reply::Break,
        2 => Reply::Whole(500, "", json!({"message": "etcdserver: leader changed"}).to_string()),
        _ => Reply::Whole(200, "", json!({"ok": true}).to_string()),
    })
    .await;
    let (began, call) = (std::time::Instant::now(), Call::get("/api".to_owned()));
    let answer: Value = persist(Duration::from_secs(20), &|| true, || fake.cluster.call(&call)).await.unwrap();
    assert!(answer["ok"] == true && began.elapsed() >= Duration::from_secs(1));
    assert_eq!(fake.asked.lock().unwrap().len(), 4);
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_passes() {
    let fake = Fake::start(|_, _| Reply::Whole(200, "", "<html>".to_owned())).await;
    let answer = fake.cluster.call::<Value>(&Call::get("/api".to_owned())).await;
    assert!(matches!(answer, Err(ApiError::Passing { .. })), "{answer:?}");
}
