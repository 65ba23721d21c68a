//! Webhooks of a real hub: a rollout that fails and one that completes, told to a receiver that is away for a while, by a hub
//! that is killed in between.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http::HeaderMap;
use kedge_tests::lab::await_true;
use kedge_tests::lab::http::{Handler, Server, plain};
use kedge_tests::world::plant::{LINE, Lane, MOVED_WITHIN, PRESS, Plant};
use kedge_tests::world::policy::Policy;
use kedge_tests::world::{Database, secret_file};
use ring::hmac;
use serde_json::Value;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// The lines of a hub's configuration that name a destination.
pub(crate) fn destination(secrets: &Path, name: &str, url: &str) -> String {
    let secret = secret_file(secrets, name, SECRET);
    let kinds = r#"["rollout", "failure", "drift", "promotion", "cluster"]"#;
    format!(
        "[[events]]\nname = {name:?}\nurl = {url:?}\nsecret_file = {:?}\nkinds = {kinds}",
        secret.display().to_string()
    )
}

/// Takes events whose signature is right. Answers 500 to some of them, and is slow now and then.
struct Receiver {
    server: Server,
    taken: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
}

impl Receiver {
    fn start() -> Receiver {
        let taken: Arc<Mutex<Vec<(HeaderMap, Bytes)>>> = Arc::default();
        let (kept, count) = (Arc::clone(&taken), AtomicUsize::new(0));
        let handler: Handler = Arc::new(move |request| {
            let (head, body) = request.into_parts();
            let number = count.fetch_add(1, Ordering::Relaxed);
            let (kept, fails) = (Arc::clone(&kept), number % 4 == 1);
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(if number % 5 == 0 { 200 } else { 0 })).await;
                if fails {
                    return plain(500, "not now");
                }
                kept.lock().unwrap().push((head.headers, body));
                plain(200, "taken")
            })
        });
        Receiver { server: Server::start(handler), taken }
    }

    fn events(&self) -> Vec<Value> {
        let taken = self.taken.lock().unwrap();
        taken.iter().map(|(_, body)| serde_json::from_slice(body).unwrap()).collect()
    }

    fn has(&self, kind: &str) -> bool {
        self.events().iter().any(|event| event["type"] == kind)
    }

    #[track_caller]
    fn await_type(&self, kind: &str) {
        await_true(&format!("{kind} arrives"), MOVED_WITHIN, || self.has(kind));
    }

    /// Every signature verifies, and of every subject events came in order.
    #[track_caller]
    fn check(&self) {
        let key = base64::engine::general_purpose::STANDARD.decode(SECRET.trim_start_matches("whsec_")).unwrap();
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        let mut last: BTreeMap<String, i64> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for (headers, body) in self.taken.lock().unwrap().iter() {
            let text = |name: &str| headers[name].to_str().unwrap().to_owned();
            let mut message = format!("{}.{}.", text("webhook-id"), text("webhook-timestamp")).into_bytes();
            message.extend_from_slice(body);
            let tag = text("webhook-signature");
            let tag = base64::engine::general_purpose::STANDARD.decode(tag.strip_prefix("v1,").unwrap()).unwrap();
            hmac::verify(&key, &message, &tag).expect("the signature is right");
            let event: Value = serde_json::from_slice(body).unwrap();
            let id: i64 = event["id"].as_str().unwrap().parse().unwrap();
            if seen.insert(id) {
                let subject = event["subject"].as_str().unwrap().to_owned();
                let before = last.insert(subject.clone(), id);
                assert!(before.is_none_or(|before| before < id), "{subject}: {before:?}, then {id}");
            }
        }
    }
}

#[test]
fn rollouts_and_failures_are_told_in_order_although_receiver_and_hub_fall_over() {
    let receiver = Receiver::start();
    let gone = Receiver::start();
    gone.server.close();
    let secrets = tempfile::tempdir().unwrap();
    let policy = Policy::chain(&["dev"]);
    let started = Plant::start_with(Database::Sqlite, Some(&policy), |settings, _| {
        settings.more.push(destination(secrets.path(), "operations", &format!("{}/", receiver.server.url())));
        settings.more.push(destination(secrets.path(), "gone", &format!("{}/", gone.server.url())));
    });
    let Some(mut plant) = started else { return };
    plant.add("dev", LINE, "", 2);
    plant.add("dev", PRESS, "", 1);
    plant.await_converged("dev");
    plant.await_state("dev", Lane::Platform, "Complete");
    receiver.await_type("dev.kedge.cluster.joined");

    // A change that fails: the rollout stops, and the failure itself is told with the cluster's name.
    let sick = plant.push_app("dev", "sick version");
    plant.await_rollout("dev", &sick, "Stopped");
    receiver.await_type("dev.kedge.rollout.stopped");
    receiver.await_type("dev.kedge.assignment.failed");
    let failed = receiver.events().into_iter().find(|event| event["type"] == "dev.kedge.assignment.failed").unwrap();
    assert_eq!(failed["data"]["environment"], "dev");
    // The update limiter decides which of them changes first.
    let names = ["dev-factory-line-1", "dev-factory-line-2", "dev-press-1"];
    assert!(names.contains(&failed["data"]["clusterName"].as_str().unwrap()), "{failed}");

    // While the receiver is away a better one goes through, and the hub is killed twice.
    receiver.server.close();
    let better = plant.push_app("dev", "version 3");
    plant.await_rollout("dev", &better, "Complete");
    for _ in 0..2 {
        plant.world.hub.kill();
        plant.world.hub.start_again();
    }
    receiver.server.open();
    receiver.await_type("dev.kedge.rollout.complete");
    receiver.check();

    // Nothing that the history has of these kinds is missing.
    let told: BTreeSet<String> =
        receiver.events().iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect();
    let history = plant.world.api.list("/api/v1/history?environment=dev&kind=rollout");
    assert!(!history.is_empty());
    for entry in &history {
        let id = entry["id"].as_str().map_or_else(|| entry["id"].to_string(), str::to_owned);
        await_true(&format!("{entry} is told"), MOVED_WITHIN, || {
            told.contains(&id) || receiver.events().iter().any(|event| event["id"] == id.as_str())
        });
    }
    // The one that was never there held nobody, and gets everything when it comes.
    gone.server.open();
    gone.await_type("dev.kedge.rollout.complete");
    gone.check();
}
