//! A gate that asks a real Prometheus, which scrapes a real address.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::Response;
use kedge_tests::lab::http::{Handler, Server};
use kedge_tests::lab::prometheus::Prometheus;
use kedge_tests::world::plant::{MOVED_WITHIN, Plant};
use kedge_tests::world::policy::Policy;

use crate::plants::{A_WHILE, CHAIN, small};

/// A service that says how many errors it has had.
fn service(errors: &Arc<AtomicU64>) -> Server {
    let errors = Arc::clone(errors);
    let handler: Handler = Arc::new(move |_| {
        let text = format!("# TYPE shop_errors gauge\nshop_errors {}\n", errors.load(Ordering::Relaxed));
        let response = Response::builder().header("content-type", "text/plain; version=0.0.4").body(Bytes::from(text));
        Box::pin(async move { response.unwrap() })
    });
    Server::start(handler)
}

#[track_caller]
fn await_word(plant: &Plant, environment: &str, commit: &str, word: &str) {
    plant.await_so(&format!("the gate of {environment} says {word:?}"), MOVED_WITHIN, |plant| {
        plant.rollout_of(environment, commit).is_some_and(|rollout| {
            plant.world.api.get(&format!("/api/v1/rollouts/{}", rollout["id"])).to_string().contains(word)
        })
    });
}

#[test]
fn a_gate_passes_and_fails_by_the_value_of_a_query() {
    let errors = Arc::new(AtomicU64::new(0));
    let server = service(&errors);
    let Some(prometheus) = Prometheus::start(server.address()) else { return };
    prometheus.await_value("up{job=\"lab\"}", 1.0);
    let url = prometheus.url();
    let gate = |query: &str| {
        format!(
            "gate: {{reached: 100%, checks: [{{name: errors, prometheus: {{url: \"{url}\", query: '{query}'}}, every: 1s}}]}}"
        )
    };
    let policy = Policy::chain(&CHAIN)
        .with("dev", &[&gate("max(shop_errors) < bool 5")])
        .with("stage", &[&gate("shop_errors unless (shop_errors >")]);
    let Some(plant) = small(&policy) else { return };
    let (stage, prod) = (plant.named("stage").unwrap(), plant.named("prod").unwrap());

    errors.store(9, Ordering::Relaxed);
    prometheus.await_value("shop_errors", 9.0);
    let commit = plant.push_main("Counted");
    await_word(&plant, "dev", &commit, "check errors says: 1 of 1 values of the query are zero or no number");
    plant.stays_so("stage waits", A_WHILE, |plant| plant.named("stage").as_deref() == Some(&stage));
    errors.store(1, Ordering::Relaxed);
    plant.await_named("stage", &commit);

    // What is written wrong says so, in the words of Prometheus, and never passes.
    await_word(&plant, "stage", &commit, "check errors says: the query fails: ");
    await_word(&plant, "stage", &commit, "parse error");
    plant.stays_so("prod waits", A_WHILE, |plant| plant.named("prod").as_deref() == Some(&prod));

    // Nobody answers any more: silence is no yes.
    server.close();
    prometheus.await_value("up{job=\"lab\"}", 0.0);
    let second = plant.push_main("Unseen");
    await_word(&plant, "dev", &second, "check errors says: the query gives nothing");
    plant.stays_so("stage keeps the first", A_WHILE, |plant| plant.named("stage").as_deref() == Some(&commit));
}
