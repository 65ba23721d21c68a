//! What runs where, and the lists behind the numbers.

mod fleet;
mod lists;
mod numbers;
mod order;
mod problems;
#[cfg(feature = "figures")]
mod scale;
mod search;

use kedge_hub_types::status::prepared::Prepared;
use kedge_model::wire::{ClusterId, Digest, Generation, PackagesKey, SigningKey, Stream, Timestamp};
use kedge_status::{Condition, Nonce, Report, Severity, StatusDocument, Warning};
use serde_json::Value;

use super::fixture::Hub;
use crate::store::now;

pub const HELLO: &str = "hello-functional-test";
pub const SPY: &str = "spy-functional-test";
pub const GONE: &str = "gone-target";

/// How a cluster stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    InContact,
    Silent,
    Retired,
}

/// A cluster that is about to be there.
pub struct Newcomer<'a> {
    pub number: u8,
    pub name: &'a str,
    pub stream: Stream,
    pub standing: Standing,
    /// None: it has joined and said nothing.
    pub told: Option<Vec<(&'a str, Report)>>,
}

/// Since then the silent ones are.
pub const SILENT_SINCE: i64 = 1_700_000_000_000;

pub fn packages(name: &str) -> PackagesKey {
    PackagesKey::of_observed(&Digest::of(name.as_bytes()))
}

pub fn failed() -> Condition {
    Condition::Failed { reason: "HealthCheck".to_owned(), message: "one of two units runs".to_owned() }
}

pub fn report(condition: Condition, running: &str) -> Report {
    let at = Timestamp(now().0 - 60_000);
    Report {
        desired: Some(packages("new")),
        generation: Generation(1),
        running: Some(packages(running)),
        version: Some(format!("1.0-{running}")),
        condition,
        since: at,
        observed_at: at,
        drift: None,
        clock: 0,
    }
}

/// A member in the streams of `dev`.
pub async fn join(hub: &Hub, new: Newcomer<'_>) -> ClusterId {
    join_warning(hub, new, &[]).await
}

/// The same, and its agent warns of something.
pub async fn join_warning(hub: &Hub, new: Newcomer<'_>, warnings: &[(&str, Severity, &str)]) -> ClusterId {
    let key = SigningKey::from_seed(&[new.number; 32]).unwrap();
    let id = ClusterId::of_public_key(key.public().as_bytes());
    let mut tx = hub.store.write().await.unwrap();
    let tick = tx.tick().await.unwrap();
    sqlx::query(
        "INSERT INTO clusters (id, name, environment, cluster_type, ring, labels, public_key, facts, state, sequence, \
         membership, joined_at, token, certificate_serial, certificate_until, last_contact, promise_until, unknown_since, \
         generation, tick) VALUES ($1, $2, $3, $4, $5, '{}', $6, '{}', $7, 1, $6, 1000, 't', 's', 2000, 1500, 1600, $8, 7, $9)",
    )
    .bind(id.to_string())
    .bind(new.name)
    .bind(new.stream.environment.as_str())
    .bind(new.stream.cluster_type.as_str())
    .bind(new.stream.ring.as_str())
    .bind(key.public().as_bytes().as_slice())
    .bind(if new.standing == Standing::Retired { "retired" } else { "active" })
    .bind((new.standing == Standing::Silent).then_some(SILENT_SINCE))
    .bind(tick)
    .execute(tx.connection())
    .await
    .unwrap();
    if let Some(told) = &new.told {
        let mut document = StatusDocument::new(key.public(), 1, Nonce([new.number; 16]));
        for (assignment, report) in told {
            document.set_report(assignment, report).unwrap();
        }
        for (code, severity, message) in warnings {
            let since = Timestamp(SILENT_SINCE + i64::from(new.number));
            let warning = Warning { severity: *severity, message: (*message).to_owned(), since, clock: 0 };
            document.set_warning(code, &warning).unwrap();
        }
        let envelope = document.seal(&key, now(), None).unwrap();
        let prepared = Prepared::read(&[envelope], now(), Some(id)).unwrap();
        tx.put_document(&prepared, 0).await.unwrap();
    }
    if new.standing != Standing::Retired {
        tx.place_cluster(&id, None, Some(&new.stream)).await.unwrap();
    }
    tx.commit().await.unwrap();
    id
}

/// The drones of `dev` should run `new` of hello.
pub async fn wanted(hub: &Hub, generation: u64) {
    let entry = serde_json::json!([{
        "assignment": HELLO, "mode": "observe", "objects": [], "content": Digest::of(b"new").to_string(),
    }]);
    hub.state(generation, &entry.to_string()).await;
}

/// All pages of a list, each of so many.
pub async fn all(hub: &Hub, token: &str, path: &str, limit: usize) -> Vec<Value> {
    follow(hub, token, path, limit, None).await
}

pub async fn follow(hub: &Hub, token: &str, path: &str, limit: usize, mut cursor: Option<String>) -> Vec<Value> {
    let mut items = Vec::new();
    for _ in 0..1000 {
        let sign = if path.contains('?') { '&' } else { '?' };
        let next = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let page = hub.get(token, &format!("{path}{sign}limit={limit}{next}")).await.ok();
        let found = page.body["items"].as_array().unwrap();
        assert!(found.len() <= limit);
        items.extend(found.iter().cloned());
        cursor = page.body["next"].as_str().map(str::to_owned);
        if cursor.is_none() {
            return items;
        }
    }
    panic!("{path} never ends");
}

pub fn drones() -> Stream {
    Stream::new("dev", "drone", Stream::ALL)
}
