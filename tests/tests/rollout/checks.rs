//! Gates that ask something outside: a service with a JSON answer, a Prometheus.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use http::Response;
use kedge_tests::lab::http::{Handler, Server, plain};
use kedge_tests::world::plant::MOVED_WITHIN;
use kedge_tests::world::policy::Policy;

use crate::plants::{A_WHILE, CHAIN, small};

/// Answers of both kinds, and how often they were asked for.
#[derive(Debug, Default)]
struct Outside {
    smoke: AtomicBool,
    samples: AtomicBool,
    asked: AtomicU64,
}

impl Outside {
    fn serve(self: &Arc<Outside>) -> Server {
        let own = Arc::clone(self);
        let handler: Handler = Arc::new(move |request| {
            own.asked.fetch_add(1, Ordering::Relaxed);
            let answer = match request.uri().path() {
                "/smoke" => format!("{{\"result\": {{\"ok\": {}}}}}", own.smoke.load(Ordering::Relaxed)),
                "/api/v1/query" => {
                    let value = u8::from(own.samples.load(Ordering::Relaxed));
                    format!(
                        "{{\"status\": \"success\", \"data\": {{\"resultType\": \"vector\", \"result\": \
                         [{{\"metric\": {{}}, \"value\": [1700000000, \"{value}\"]}}]}}}}"
                    )
                }
                _ => return Box::pin(async { plain(404, "nothing here") }),
            };
            let response = Response::builder().header("content-type", "application/json").body(Bytes::from(answer));
            Box::pin(async move { response.unwrap() })
        });
        Server::start(handler)
    }
}

#[test]
fn a_gate_waits_for_its_external_checks_and_says_what_they_said() {
    let outside = Arc::new(Outside::default());
    let server = outside.serve();
    let url = server.url();
    let gate = format!(
        "gate: {{reached: 100%, checks: [{{name: smoke, http: {{url: \"{url}/smoke\", pointer: /result/ok, equals: true}}, every: 1s}}, \
         {{name: errors, prometheus: {{url: \"{url}\", query: \"errors < 1\"}}, every: 1s}}]}}"
    );
    let Some(plant) = small(&Policy::chain(&CHAIN).with("dev", &[&gate])) else { return };
    let old = plant.named("stage").unwrap();
    let commit = plant.push_main("Checked");
    plant.await_greeting(&["dev-factory-line-1", "dev-press-1"], "Checked");
    let waits = |words: [&str; 2]| {
        plant.await_so("it says what it waits for", MOVED_WITHIN, |plant| {
            plant.rollout_of("dev", &commit).is_some_and(|rollout| {
                let whole = plant.world.api.get(&format!("/api/v1/rollouts/{}", rollout["id"])).to_string();
                words.iter().all(|word| whole.contains(word))
            })
        });
    };
    waits(["smoke", "errors"]);
    plant.stays_so("stage waits", A_WHILE, |plant| plant.named("stage").as_deref() == Some(&old));
    outside.smoke.store(true, Ordering::Relaxed);
    plant.stays_so("one of two isn't enough", A_WHILE, |plant| plant.named("stage").as_deref() == Some(&old));
    outside.samples.store(true, Ordering::Relaxed);
    plant.await_named("stage", &commit);

    // Nobody is asked while nothing waits.
    plant.await_rollout("prod", &commit, "Complete");
    let asked = outside.asked.load(Ordering::Relaxed);
    plant.stays_so("they aren't asked any more", A_WHILE, |_| outside.asked.load(Ordering::Relaxed) <= asked + 2);
}
