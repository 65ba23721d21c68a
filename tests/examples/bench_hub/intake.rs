//! Status documents of 50 changes each over HTTP and mTLS: verified, counted, and durable before the answer.

use std::sync::Arc;
use std::time::Instant;

use kedge_model::wire::{PackagesKey, SigningKey};
use kedge_status::{Condition, Nonce, StatusDocument};
use kedge_tests::agent::crowd::Crowd;
use kedge_tests::agent::{Agent, body};
use kedge_tests::world::cluster::{block_on, now, report};
use kedge_tests::world::{Database, World};
use tokio::sync::Barrier;

use super::{Figures, rounded, scaled};

/// Clusters that send at once, each over a connection of its own.
const SENDERS: usize = 250;
/// Documents of each: every one a new epoch with its own 50 changes.
const DOCUMENTS: usize = 20;
const CHANGES: usize = 50;

pub fn measure(scale: f64, figures: &mut Figures) {
    let senders = scaled(SENDERS, scale);
    let world = World::start(Database::Sqlite).expect("a hub");
    world.await_first_states();
    let token = world.token("drone", &["--uses", &senders.to_string()]);
    let agents = block_on(Crowd::join(&token, senders)).unwrap();
    let key = {
        let mut drone = world.join("drone", "drone-of-the-bench");
        drone.await_generation(1);
        drone.agent.state.as_ref().expect("it has one").entries[0].packages_key()
    };
    let prepared: Vec<(Agent, Vec<Vec<u8>>)> = agents
        .into_iter()
        .map(|agent| {
            let documents = (0..DOCUMENTS).map(|number| document(&agent.identity.key, number, key)).collect();
            (agent, documents)
        })
        .collect();
    let bytes = prepared[0].1[0].len();

    let seconds = block_on(send_all(prepared));
    let count = senders * DOCUMENTS;
    eprintln!("intake: {count} documents of {CHANGES} changes ({bytes} bytes) by {senders} clusters in {seconds:.2} s");
    figures.insert("intake_per_s".to_owned(), rounded(count as f64 / seconds, 0));
}

fn document(key: &SigningKey, number: usize, packages: PackagesKey) -> Vec<u8> {
    let nonce = Nonce([u8::try_from(number % 256).unwrap(); 16]);
    let mut document = StatusDocument::new(key.public(), number as u64 + 1, nonce);
    for change in 0..CHANGES {
        let condition = match change % 2 {
            0 => Condition::Converging,
            _ => Condition::Converged,
        };
        let running = (condition == Condition::Converged).then_some(packages);
        let said = report(condition, Some(packages), running, kedge_model::wire::Generation(1));
        document.set_report("hello-functional-test", &said).unwrap();
    }
    assert_eq!(document.changes(), CHANGES);
    body(&document.seal(key, now(), None).unwrap())
}

/// Everybody connects first; the clock runs from the first document to the last answer.
async fn send_all(prepared: Vec<(Agent, Vec<Vec<u8>>)>) -> f64 {
    let barrier = Arc::new(Barrier::new(prepared.len() + 1));
    let tasks: Vec<_> = prepared
        .into_iter()
        .map(|(mut agent, documents)| {
            let barrier = Arc::clone(&barrier);
            tokio::spawn(async move {
                agent.connect().await.unwrap();
                barrier.wait().await;
                for document in documents {
                    let reply = agent.post("/agent/v1/status", &document).await.unwrap();
                    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
                }
            })
        })
        .collect();
    barrier.wait().await;
    let began = Instant::now();
    for task in tasks {
        task.await.unwrap();
    }
    began.elapsed().as_secs_f64()
}
