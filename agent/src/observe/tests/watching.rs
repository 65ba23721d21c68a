//! The observer against an API server by hand: plain HTTP, so that every request is seen and a watch can be ended at will.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kedge_model::wire::{
    DesiredState, Digest, Entry, Generation, Mode, ObjectRef, Observation, PlatformSource, Stream, Timestamp,
};
use kedge_status::Condition;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, watch};

use super::super::{NOT_OBSERVED, Observer, PLATFORM_SOURCE};
use super::*;
use crate::external::ObserverReport;

const NOW: Timestamp = Timestamp(1_794_830_400_000);
const FLUX: &str = "/apis/source.toolkit.fluxcd.io";

/// What the server holds, and what it was asked.
#[derive(Default)]
struct Held {
    sources: Vec<Value>,
    forbidden: bool,
    expired: bool,
    asked: Vec<String>,
}

struct ApiServer {
    held: Arc<Mutex<Held>>,
    events: broadcast::Sender<Value>,
    /// How many watches have begun.
    watches: watch::Receiver<usize>,
    address: String,
}

impl ApiServer {
    async fn start() -> ApiServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (held, (events, _)) = (Arc::<Mutex<Held>>::default(), broadcast::channel(16));
        let (mine, sender) = (Arc::clone(&held), events.clone());
        let (begun, watches) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&mine), sender.subscribe(), begun.clone()));
            }
        });
        ApiServer { held, events, watches, address }
    }

    fn observer(&self) -> Observer {
        let config = kube::Config::new(self.address.parse().unwrap());
        Observer::new(kube::Client::try_from(config).unwrap(), tokio::runtime::Handle::current())
    }

    fn set(&self, change: impl FnOnce(&mut Held)) {
        change(&mut self.held.lock().unwrap());
    }

    fn asked(&self) -> Vec<String> {
        self.held.lock().unwrap().asked.clone()
    }
}

async fn answer(
    mut stream: TcpStream,
    held: Arc<Mutex<Held>>,
    mut events: broadcast::Receiver<Value>,
    begun: watch::Sender<usize>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let line = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
    let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let watching = target.contains("watch=true");
    let (code, body) = {
        let mut held = held.lock().unwrap();
        held.asked.push(line);
        held.reply(&target)
    };
    if !watching || code != 200 {
        let text = body.to_string();
        let reply = format!(
            "HTTP/1.1 {code} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
            text.len()
        );
        _ = stream.write_all(reply.as_bytes()).await;
        return;
    }
    let begin = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
    _ = stream.write_all(begin.as_bytes()).await;
    begun.send_modify(|count| *count += 1);
    while let Ok(event) = events.recv().await {
        if stream.write_all(format!("{event}\n").as_bytes()).await.is_err() {
            return;
        }
    }
}

impl Held {
    fn reply(&mut self, target: &str) -> (u16, Value) {
        let path = target.split('?').next().unwrap_or_default();
        let status = |code: u16, message: &str| {
            (code, json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}))
        };
        if path == FLUX {
            let version = json!({"groupVersion": "source.toolkit.fluxcd.io/v1", "version": "v1"});
            return (
                200,
                json!({"kind": "APIGroup", "apiVersion": "v1", "name": "source.toolkit.fluxcd.io",
                "versions": [version], "preferredVersion": version}),
            );
        }
        if path == format!("{FLUX}/v1") {
            return (
                200,
                json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "source.toolkit.fluxcd.io/v1",
                "resources": [{"name": "gitrepositories", "singularName": "", "namespaced": true, "kind": "GitRepository", "verbs": []}]}),
            );
        }
        if path.ends_with("/gitrepositories") {
            if self.forbidden {
                return status(403, "gitrepositories is forbidden: User \"kedge\" cannot list");
            }
            if target.contains("watch=true") && std::mem::take(&mut self.expired) {
                return status(410, "too old resource version");
            }
            return (
                200,
                json!({"kind": "GitRepositoryList", "apiVersion": "source.toolkit.fluxcd.io/v1",
                "metadata": {"resourceVersion": "7"}, "items": self.sources}),
            );
        }
        status(404, "the server could not find the requested resource")
    }
}

fn source(commit: &str, ready: bool) -> Value {
    let condition = match ready {
        true => condition("Ready", "True", "Succeeded", "stored artifact"),
        false => condition("Ready", "False", "GitOperationFailed", "authentication required"),
    };
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"name": "app", "namespace": "flux-system", "generation": 2, "resourceVersion": "6"},
        "spec": {"url": "https://h/platform", "ref": {"branch": "dev"}},
        "status": {"conditions": [condition], "artifact": {"revision": format!("dev@sha1:{commit}")}},
    })
}

fn state(kind: &str, platform: bool) -> DesiredState {
    let object = ObjectRef {
        // No longer served: the served one is found.
        api_version: "source.toolkit.fluxcd.io/v1beta2".to_owned(),
        kind: kind.to_owned(),
        namespace: Some("flux-system".to_owned()),
        name: "app".to_owned(),
    };
    let observation =
        Observation { objects: vec![object], expected_commit: Some(NEW.to_owned()), content: Digest::of(b"x") };
    let source = PlatformSource {
        repo: "https://h/platform".to_owned(),
        branch: "dev".to_owned(),
        path: ".".to_owned(),
        commit: NEW.to_owned(),
    };
    DesiredState {
        stream: Stream::new("dev", "drone", "all"),
        generation: Generation(1),
        created_at: NOW,
        confirmed: 1,
        entries: vec![Entry {
            assignment: "app".to_owned(),
            mode: Mode::Observe(observation),
            restart: 0,
            requires: Vec::new(),
        }],
        removed: Vec::new(),
        unmanaged: Vec::new(),
        source: platform.then_some(source),
        turns: false,
        requires: Vec::new(),
    }
}

/// Waits until what is observed is as the test wants it.
async fn until(
    observer: &mut Observer,
    state: &DesiredState,
    fits: impl Fn(&ObserverReport) -> bool,
) -> ObserverReport {
    let waiting = async {
        loop {
            let seen = observer.observed(state, |_| None, NOW);
            if fits(&seen) {
                return seen;
            }
            observer.next().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap()
}

fn condition_of(seen: &ObserverReport) -> Option<&Condition> {
    seen.sightings["app"].as_ref().map(|sighting| &sighting.condition)
}

#[tokio::test]
async fn what_the_server_tells_is_seen_with_get_list_and_watch_only() {
    let mut server = ApiServer::start().await;
    server.set(|held| held.sources = vec![source(OLD, true)]);
    let (mut observer, state) = (server.observer(), state("GitRepository", false));
    observer.follow(&state);
    assert_eq!(condition_of(&observer.observed(&state, |_| None, NOW)), None);
    let seen = until(&mut observer, &state, |seen| condition_of(seen) == Some(&Condition::Converging)).await;
    assert_eq!(seen.warnings[NOT_OBSERVED], None);

    server.watches.wait_for(|count| *count > 0).await.unwrap();
    server.events.send(json!({"type": "MODIFIED", "object": source(NEW, true)})).unwrap();
    until(&mut observer, &state, |seen| condition_of(seen) == Some(&Condition::Converged)).await;
    server.events.send(json!({"type": "MODIFIED", "object": source(NEW, false)})).unwrap();
    let seen = until(&mut observer, &state, |seen| matches!(condition_of(seen), Some(Condition::Failed { .. }))).await;
    let sighting = seen.sightings["app"].clone().unwrap();
    assert!(
        matches!(sighting.condition, Condition::Failed { message, .. } if message.ends_with("authentication required"))
    );
    server.events.send(json!({"type": "DELETED", "object": source(NEW, false)})).unwrap();
    until(&mut observer, &state, |seen| condition_of(seen) == Some(&Condition::Converging)).await;

    let asked = server.asked();
    assert!(asked.iter().all(|line| line.starts_with("GET ")), "{asked:?}");
    let named = asked.iter().filter(|line| line.contains("/namespaces/flux-system/gitrepositories")).count();
    assert_eq!(named, 2, "one list and one watch of the one object: {asked:?}");
    assert!(asked.iter().any(|line| line.contains("metadata.name%3Dapp")), "{asked:?}");
}

#[tokio::test]
async fn a_watch_that_is_too_old_lists_again() {
    let server = ApiServer::start().await;
    server.set(|held| (held.sources, held.expired) = (vec![source(OLD, true)], true));
    let (mut observer, state) = (server.observer(), state("GitRepository", false));
    observer.follow(&state);
    until(&mut observer, &state, |seen| condition_of(seen) == Some(&Condition::Converging)).await;
    server.set(|held| held.sources = vec![source(NEW, true)]);
    until(&mut observer, &state, |seen| condition_of(seen) == Some(&Condition::Converged)).await;
}

#[tokio::test]
async fn what_may_not_be_seen_is_unknown_and_a_right_that_is_given_is_noticed() {
    let server = ApiServer::start().await;
    server.set(|held| (held.sources, held.forbidden) = (vec![source(NEW, true)], true));
    let (mut observer, state) = (server.observer(), state("GitRepository", false));
    observer.follow(&state);
    let seen = until(&mut observer, &state, |seen| condition_of(seen) == Some(&Condition::Unknown)).await;
    let warning = seen.warnings[NOT_OBSERVED].clone().unwrap();
    assert!(warning.contains("User \"kedge\" cannot list"), "{warning}");
    server.set(|held| held.forbidden = false);
    until(&mut observer, &state, |seen| condition_of(seen) == Some(&Condition::Converged)).await;
}

#[tokio::test]
async fn a_kind_that_is_not_served_is_unknown_and_the_platform_is_still_found() {
    let server = ApiServer::start().await;
    server.set(|held| held.sources = vec![source(NEW, true)]);
    let (mut observer, state) = (server.observer(), state("Bucket", true));
    observer.follow(&state);
    let seen =
        until(&mut observer, &state, |seen| condition_of(seen) == Some(&Condition::Unknown) && seen.platform.is_some())
            .await;
    assert!(seen.warnings[NOT_OBSERVED].clone().unwrap().contains("doesn't serve the kind Bucket"));
    assert_eq!(seen.platform, Some(format!("GitRepository flux-system/app at dev@sha1:{NEW}")));
    // No Kustomization is served here that could apply it.
    assert!(seen.warnings[PLATFORM_SOURCE].clone().unwrap().ends_with("nothing applies it"));
}

#[tokio::test]
async fn a_state_without_observed_assignments_asks_nothing() {
    let server = ApiServer::start().await;
    let mut observer = server.observer();
    let mut state = state("GitRepository", true);
    state.entries.clear();
    observer.follow(&state);
    assert_eq!(observer.observed(&state, |_| None, NOW).sightings.len(), 0);
    tokio::task::yield_now().await;
    assert!(server.asked().is_empty());
}
