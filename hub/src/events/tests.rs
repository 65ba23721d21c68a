//! Dispatchers with a real HTTP receiver that fails, is slow, refuses and goes away, and with a leader that is cut off.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use base64::Engine as _;
use kedge_hub_types::events::EventKind;
use kedge_hub_types::history::{Entry, Place, Recorded, What};
use kedge_model::wire::{ClusterId, Timestamp};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::dispatcher::{EventDispatcher, Pace};
use super::window::Window;
use super::*;
use crate::store::catalog::Kind as CatalogKind;
use crate::store::{now, test_database};

const SECRET: &str = "a secret of some length\n";
const QUICK: Pace = Pace {
    look: Duration::from_millis(10),
    first: Duration::from_millis(5),
    longest: Duration::from_millis(40),
    refused: Duration::from_millis(60),
    problem: Duration::from_secs(3600),
};
const SOON: Duration = Duration::from_secs(20);

/// What a receiver answers to an event.
type Answer = Arc<dyn Fn(&Value) -> (StatusCode, Duration) + Send + Sync>;

/// A program of others.
#[derive(Clone)]
struct Receiver {
    address: SocketAddr,
    taken: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
    answer: Arc<Mutex<Answer>>,
    count: Arc<watch::Sender<usize>>,
    task: Arc<JoinHandle<()>>,
}

impl Receiver {
    async fn start(answer: impl Fn(&Value) -> (StatusCode, Duration) + Send + Sync + 'static) -> Receiver {
        Receiver::on("127.0.0.1:0".parse().unwrap(), answer).await
    }

    async fn on(
        address: SocketAddr,
        answer: impl Fn(&Value) -> (StatusCode, Duration) + Send + Sync + 'static,
    ) -> Receiver {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let taken: Arc<Mutex<Vec<(HeaderMap, Bytes)>>> = Arc::default();
        let answer: Arc<Mutex<Answer>> = Arc::new(Mutex::new(Arc::new(answer)));
        let count = Arc::new(watch::Sender::new(0));
        let state = (taken.clone(), answer.clone(), count.clone());
        let router = Router::new().route("/", post(take)).with_state(state);
        let task = tokio::spawn(async move { axum_serve(listener, router).await });
        Receiver { address, taken, answer, count, task: Arc::new(task) }
    }

    fn destination(&self, folder: &TempDir, name: &str) -> Destination {
        destination(folder, name, &format!("http://{}/", self.address))
    }

    fn events(&self) -> Vec<Value> {
        self.taken.lock().unwrap().iter().map(|(_, body)| serde_json::from_slice(body).unwrap()).collect()
    }

    async fn await_count(&self, count: usize) {
        let mut heard = self.count.subscribe();
        let waited = tokio::time::timeout(SOON, heard.wait_for(|have| *have >= count)).await;
        assert!(waited.is_ok(), "{} of {count} arrived", self.events().len());
    }

    fn now_answers(&self, answer: impl Fn(&Value) -> (StatusCode, Duration) + Send + Sync + 'static) {
        *self.answer.lock().unwrap() = Arc::new(answer);
    }
}

type Shared = (Arc<Mutex<Vec<(HeaderMap, Bytes)>>>, Arc<Mutex<Answer>>, Arc<watch::Sender<usize>>);

async fn take(State((taken, answer, count)): State<Shared>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let event: Value = serde_json::from_slice(&body).unwrap();
    let answer = Arc::clone(&answer.lock().unwrap());
    let (status, delay) = answer(&event);
    tokio::time::sleep(delay).await;
    if status.is_success() {
        taken.lock().unwrap().push((headers, body));
        count.send_modify(|count| *count += 1);
    }
    status
}

/// Axum without its own server: the workspace doesn't build that.
async fn axum_serve(listener: TcpListener, router: Router) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        let service = hyper_util::service::TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let io = hyper_util::rt::TokioIo::new(stream);
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, service).await;
        });
    }
}

fn taken(_: &Value) -> (StatusCode, Duration) {
    (StatusCode::NO_CONTENT, Duration::ZERO)
}

fn destination(folder: &TempDir, name: &str, url: &str) -> Destination {
    let secret_file = folder.path().join("secret");
    std::fs::write(&secret_file, SECRET).unwrap();
    Destination {
        name: name.to_owned(),
        url: url.to_owned(),
        secret_file,
        kinds: EventKind::DEFAULT.to_vec(),
        environments: Vec::new(),
    }
}

fn rollout(number: u64, phase: &str) -> Entry {
    let what = What::Rollout {
        rollout: number,
        phase: phase.to_owned(),
        lane: "platform".to_owned(),
        subject: "raise the limit".to_owned(),
        items: 3,
        why: None,
        commit: "4f2a91c0".to_owned(),
    };
    Entry::new(now(), Place::environment("prod"), what).commit("4f2a91c0").by("anna")
}

fn condition(cluster: u8, word: &str) -> Entry {
    let place = Place {
        cluster_type: "drone".to_owned(),
        ring: "canary".to_owned(),
        workload: "hello".to_owned(),
        assignment: "drone/hello-prod".to_owned(),
        cluster: Some(ClusterId::of_public_key(&[cluster; 32])),
        ..Place::environment("prod")
    };
    let what = match word {
        "Drifted" => What::Drifted { drift: "a file was edited".to_owned() },
        word => What::Condition {
            condition: word.to_owned(),
            reason: Some("HealthCheckFailed".to_owned()),
            message: None,
            version: None,
            running: None,
            desired: None,
        },
    };
    Entry::new(now(), place, what)
}

/// A dispatcher as `Events::lead` makes it, in a hurry.
async fn dispatcher(store: &Store, destination: &Destination) -> EventDispatcher {
    let known = store.open_deliveries(Term(0), &[&destination.name]).await.unwrap();
    let source = Arc::new(Source { address: "https://hub.test:7443".to_owned(), era: String::new() });
    let mut dispatcher = EventDispatcher::new(store.clone(), Term(0), destination.clone(), known[0].clone(), source);
    dispatcher.pace = QUICK;
    dispatcher
}

async fn await_saved(store: &Store, what: impl Fn(&Delivery) -> bool) -> Delivery {
    let begun = std::time::Instant::now();
    loop {
        let known = store.deliveries().await.unwrap();
        if let Some(delivery) = known.iter().find(|delivery| what(delivery)) {
            return delivery.clone();
        }
        assert!(begun.elapsed() < SOON, "{known:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Each event at least once, and of each subject in the order of the history. What was sent again counts when it first came.
fn assert_whole_and_ordered(events: &[Value], ids: usize) {
    let mut seen: BTreeSet<i64> = BTreeSet::new();
    let mut last: BTreeMap<String, i64> = BTreeMap::new();
    for event in events {
        let id: i64 = event["id"].as_str().unwrap().parse().unwrap();
        let subject = event["subject"].as_str().unwrap().to_owned();
        if seen.insert(id) {
            let before = last.insert(subject.clone(), id);
            assert!(before.is_none_or(|before| before < id), "{subject}: {before:?} before {id}");
        }
    }
    assert_eq!(seen.len(), ids, "every event came");
}

#[tokio::test]
async fn events_arrive_signed_and_only_those_that_were_asked_for() {
    let (folder, store) = test_database::sqlite().await;
    let receiver = Receiver::start(taken).await;
    let before = dispatcher(&store, &receiver.destination(&folder, "ops")).await;
    let entries = vec![
        rollout(7, "started"),
        condition(1, "Converging"),
        condition(1, "Failed"),
        condition(2, "Drifted"),
        Entry::new(now(), Place::environment("prod"), What::Back),
        rollout(7, "stopped"),
    ];
    store.record(entries).await.unwrap();
    let task = tokio::spawn(before.run());
    receiver.await_count(4).await;
    let delivery = await_saved(&store, |delivery| delivery.sent == 4).await;
    assert_eq!(delivery.entry, store.newest_history().await.unwrap());
    assert_eq!((delivery.waiting_since, delivery.failing_since), (None, None));
    let events = receiver.events();
    let types: BTreeSet<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let expected = [
        "dev.kedge.assignment.drifted",
        "dev.kedge.assignment.failed",
        "dev.kedge.rollout.started",
        "dev.kedge.rollout.stopped",
    ];
    assert_eq!(types, BTreeSet::from(expected));
    let started = events.iter().find(|event| event["type"] == "dev.kedge.rollout.started").unwrap();
    assert_eq!(started["specversion"], "1.0");
    assert_eq!(started["source"], "https://hub.test:7443");
    assert_eq!(started["subject"], "environments/prod/rollouts/7");
    assert_eq!(started["datacontenttype"], "application/json");
    assert!(started["time"].as_str().unwrap().ends_with('Z'));
    assert_eq!((&started["data"]["environment"], &started["data"]["who"]), (&"prod".into(), &"anna".into()));
    assert!(started["data"]["title"].as_str().unwrap().contains("raise the limit"), "{started}");
    assert_eq!(started["data"]["detail"]["items"], 3);
    for (headers, body) in receiver.taken.lock().unwrap().iter() {
        let text = |name: &str| headers[name].to_str().unwrap().to_owned();
        let event: Value = serde_json::from_slice(body).unwrap();
        assert!(text("content-type").starts_with("application/cloudevents+json"));
        assert_eq!(text("webhook-id"), event["id"]);
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.trim().as_bytes());
        let mut message = format!("{}.{}.", text("webhook-id"), text("webhook-timestamp")).into_bytes();
        message.extend_from_slice(body);
        let tag = base64::engine::general_purpose::STANDARD
            .decode(text("webhook-signature").strip_prefix("v1,").unwrap())
            .unwrap();
        ring::hmac::verify(&key, &message, &tag).unwrap();
        assert!((text("webhook-timestamp").parse::<i64>().unwrap() - now().0 / 1000).abs() < 30);
    }
    task.abort();
}

#[tokio::test]
async fn other_environments_are_left_out_and_what_is_of_none_is_not() {
    let (folder, store) = test_database::sqlite().await;
    let receiver = Receiver::start(taken).await;
    let only = Destination { environments: vec!["stage".to_owned()], ..receiver.destination(&folder, "ops") };
    let dispatcher = dispatcher(&store, &only).await;
    let mut staged = rollout(8, "started");
    staged.place.environment = "stage".to_owned();
    let repository = What::Repository { failing: true, url: "https://git.test/a".to_owned(), error: None };
    store.record(vec![rollout(7, "started"), staged, Entry::new(now(), Place::default(), repository)]).await.unwrap();
    let task = tokio::spawn(dispatcher.run());
    receiver.await_count(2).await;
    await_saved(&store, |delivery| delivery.sent == 2).await;
    let subjects: BTreeSet<String> =
        receiver.events().iter().map(|event| event["subject"].as_str().unwrap().to_owned()).collect();
    let expected = ["environments/stage/rollouts/8", "repositories/https://git.test/a"].map(str::to_owned);
    assert_eq!(subjects, BTreeSet::from(expected));
    task.abort();
}

#[tokio::test]
async fn a_receiver_that_fails_is_slow_and_goes_away_loses_nothing() {
    let (folder, store) = test_database::sqlite().await;
    let tries = Arc::new(Mutex::new(0_u32));
    let counted = Arc::clone(&tries);
    let receiver = Receiver::start(move |_| {
        let mut tries = counted.lock().unwrap();
        *tries += 1;
        // Two of three fail, and some answers take their time.
        let status = if tries.is_multiple_of(3) { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        (status, Duration::from_millis(u64::from(*tries % 7)))
    })
    .await;
    let dispatcher = dispatcher(&store, &receiver.destination(&folder, "ops")).await;
    for number in 0..60 {
        store.record(vec![rollout(number % 5, "active"), condition((number % 4) as u8, "Failed")]).await.unwrap();
    }
    let task = tokio::spawn(dispatcher.run());
    receiver.await_count(40).await;
    // It goes away for a while, and comes back at the same address.
    receiver.task.abort();
    let failing = await_saved(&store, |delivery| delivery.failing_since.is_some()).await;
    assert!(failing.error.is_some() && failing.waiting_since.is_some(), "{failing:?}");
    let first = receiver.events();
    let again = loop {
        // Connections of the first one may still hold the port for a moment.
        match TcpListener::bind(receiver.address).await {
            Ok(listener) => {
                drop(listener);
                break Receiver::on(receiver.address, taken).await;
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    await_saved(&store, |delivery| delivery.waiting_since.is_none() && delivery.failing_since.is_none()).await;
    let all: Vec<Value> = receiver.events().into_iter().chain(again.events()).collect();
    assert!(all.len() >= first.len());
    assert_whole_and_ordered(&all, 120);
    task.abort();
}

#[tokio::test]
async fn a_leader_that_is_cut_off_again_and_again_loses_nothing_and_keeps_the_order() {
    let (folder, store) = test_database::sqlite().await;
    let receiver = Receiver::start(|_| (StatusCode::OK, Duration::from_millis(2))).await;
    let destination = receiver.destination(&folder, "ops");
    let first = dispatcher(&store, &destination).await;
    drop(first);
    for number in 0..100 {
        store.record(vec![rollout(number % 3, "active"), condition((number % 20) as u8, "Failed")]).await.unwrap();
    }
    for round in 0..8 {
        let task = tokio::spawn(dispatcher(&store, &destination).await.run());
        receiver.await_count(round * 20 + 1).await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
    }
    let task = tokio::spawn(dispatcher(&store, &destination).await.run());
    await_saved(&store, |delivery| delivery.waiting_since.is_none() && delivery.entry > 0).await;
    let newest = store.newest_history().await.unwrap();
    await_saved(&store, |delivery| delivery.entry == newest).await;
    assert_whole_and_ordered(&receiver.events(), 200);
    task.abort();
}

#[tokio::test]
async fn an_event_that_is_refused_holds_only_its_subject_and_is_given_up_in_the_end() {
    let (folder, store) = test_database::sqlite().await;
    let receiver = Receiver::start(|event| {
        let refused =
            event["type"] == "dev.kedge.rollout.started" && event["subject"] == "environments/prod/rollouts/1";
        (if refused { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK }, Duration::ZERO)
    })
    .await;
    let dispatcher = dispatcher(&store, &receiver.destination(&folder, "ops")).await;
    let entries = vec![rollout(1, "started"), rollout(1, "stopped"), rollout(2, "started"), rollout(2, "complete")];
    store.record(entries).await.unwrap();
    let task = tokio::spawn(dispatcher.run());
    receiver.await_count(3).await;
    let delivery = await_saved(&store, |delivery| delivery.waiting_since.is_none()).await;
    assert_eq!((delivery.sent, delivery.given_up, delivery.failing_since), (3, 1, None));
    let subjects: Vec<String> = receiver.events().iter().map(|event| event["subject"].to_string()).collect();
    assert!(subjects[2].contains("rollouts/1"), "the other one didn't wait: {subjects:?}");
    task.abort();
}

#[tokio::test]
async fn a_destination_that_fails_for_long_is_a_problem_until_it_is_over_and_holds_no_other() {
    let (folder, store) = test_database::sqlite().await;
    let bad = Receiver::start(|_| (StatusCode::UNAUTHORIZED, Duration::ZERO)).await;
    let good = Receiver::start(taken).await;
    let destination = bad.destination(&folder, "bad");
    let mut failing = dispatcher(&store, &destination).await;
    failing.pace = Pace { problem: Duration::ZERO, ..QUICK };
    let problems = async || store.catalog_digests(CatalogKind::Problem, "", None).await.unwrap().into_keys();
    store.record(vec![rollout(1, "started")]).await.unwrap();
    let task = tokio::spawn(failing.run());
    let begun = std::time::Instant::now();
    while problems().await.next().is_none() {
        assert!(begun.elapsed() < SOON);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(problems().await.collect::<Vec<_>>(), ["events/bad"]);
    bad.now_answers(taken);
    bad.await_count(1).await;
    while problems().await.next().is_some() {
        assert!(begun.elapsed() < SOON);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    task.abort();

    // All destinations at once, as the leader runs them, on a database that came from a backup; one of them is nobody's address.
    let mut tx = store.write().await.unwrap();
    tx.set_meta(RESTORED_AT, "1794854403000").await.unwrap();
    tx.commit().await.unwrap();
    let nowhere = destination_nowhere(&folder).await;
    let events = Events::new(store.clone(), &[nowhere, good.destination(&folder, "good")], "https://hub.test:7443");
    let task = tokio::spawn(events.lead(Term(0)));
    await_saved(&store, |delivery| delivery.name == "good").await;
    assert!(
        store.deliveries().await.unwrap().iter().all(|delivery| delivery.name != "bad"),
        "nobody names it any more"
    );
    store.record(vec![rollout(2, "started")]).await.unwrap();
    good.await_count(1).await;
    assert_eq!(good.events()[0]["subject"], "environments/prod/rollouts/2", "what was before is not for a new one");
    let id = good.events()[0]["id"].to_string();
    assert!(id.starts_with("\"1794854403000-"), "numbers of before aren't used again: {id}");
    await_saved(&store, |delivery| delivery.name == "nowhere" && delivery.failing_since.is_some()).await;
    task.abort();
}

async fn destination_nowhere(folder: &TempDir) -> Destination {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    destination(folder, "nowhere", &format!("http://{}/", listener.local_addr().unwrap()))
}

#[tokio::test]
async fn a_round_that_fails_is_one_failure_and_the_next_try_comes_soon() {
    let (folder, store) = test_database::sqlite().await;
    let receiver = Receiver::start(|_| (StatusCode::BAD_GATEWAY, Duration::ZERO)).await;
    let mut dispatcher = dispatcher(&store, &receiver.destination(&folder, "ops")).await;
    // Sixteen failures in a row would mean minutes.
    dispatcher.pace = Pace { first: Duration::from_millis(50), longest: Duration::from_secs(600), ..QUICK };
    store.record((0..16).map(|number| rollout(number, "started")).collect()).await.unwrap();
    let task = tokio::spawn(dispatcher.run());
    await_saved(&store, |delivery| delivery.failing_since.is_some()).await;
    receiver.now_answers(taken);
    receiver.await_count(16).await;
    task.abort();
}

#[tokio::test]
async fn a_secret_that_cannot_be_read_makes_events_wait() {
    let (folder, store) = test_database::sqlite().await;
    let receiver = Receiver::start(taken).await;
    let destination = receiver.destination(&folder, "ops");
    let dispatcher = dispatcher(&store, &destination).await;
    std::fs::remove_file(&destination.secret_file).unwrap();
    store.record(vec![rollout(1, "started")]).await.unwrap();
    let task = tokio::spawn(dispatcher.run());
    let delivery = await_saved(&store, |delivery| delivery.failing_since.is_some()).await;
    assert!(delivery.error.unwrap().contains("secret can't be read") && receiver.events().is_empty());
    std::fs::write(&destination.secret_file, SECRET).unwrap();
    receiver.await_count(1).await;
    task.abort();
}

fn recorded(id: i64) -> Recorded {
    Recorded {
        id,
        at: Timestamp(id),
        recorded_at: Timestamp(id),
        corrected: false,
        kind: kedge_hub_types::history::Kind::Rollout,
        event: "started".to_owned(),
        place: Place::default(),
        cluster_name: None,
        commit: None,
        who: None,
        detail: Value::Null,
    }
}

proptest::proptest! {
    /// Whatever is settled in whatever order: never two of a subject at once, never a later one first, and the cursor passes
    /// nothing that is open.
    #[test]
    fn the_window_keeps_the_order_of_each_subject(
        wanted in proptest::collection::vec(proptest::option::of(0_u8..4), 1..60),
        choices in proptest::collection::vec(0_usize..8, 0..200),
    ) {
        let mut window = Window::new(0);
        let mut open: BTreeMap<i64, u8> = BTreeMap::new();
        for (id, subject) in (1_i64..).zip(&wanted) {
            window.take(recorded(id), subject.map(|subject| subject.to_string()));
            open.extend(subject.map(|subject| (id, subject)));
        }
        for choice in choices {
            let ready = window.ready(tokio::time::Instant::now(), 16);
            proptest::prop_assert_eq!(ready.is_empty(), open.is_empty());
            for pending in &ready {
                let first = open.iter().find(|(_, subject)| subject.to_string() == pending.subject);
                proptest::prop_assert_eq!(first.map(|(id, _)| *id), Some(pending.entry.id));
            }
            let settled = open.keys().next().map_or(i64::try_from(wanted.len()).unwrap(), |first| first - 1);
            proptest::prop_assert_eq!(window.settled(), settled);
            if let Some(pending) = ready.get(choice % ready.len().max(1)) {
                window.settle(pending.entry.id);
                open.remove(&pending.entry.id);
            }
        }
    }
}
