//! The whole daemon below a folder, with a hub that answers over TLS.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::time::Duration;

use kedge_durable::Ledger;
use kedge_model::wire::{Digest, PollAnswer, PollRequest, Stream, Timestamp};
use tokio::sync::{Notify, watch};

use super::*;
use crate::identity::{self, Joined, Stored};
use crate::link::fake::{Authority, FakeHub, Reply};
use crate::report;

struct Place {
    _folder: tempfile::TempDir,
    paths: Paths,
    stop: watch::Sender<bool>,
    signals: Signals,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let (stop, shutdown) = watch::channel(false);
        let paths = Paths::below(folder.path());
        Place { _folder: folder, paths, stop, signals: Signals { shutdown, look: Arc::new(Notify::new()) } }
    }

    fn join(&self, joined: Joined) {
        std::fs::create_dir_all(self.paths.state()).unwrap();
        let opened = Ledger::<Stored>::open(Arc::new(RealDisk), &identity::path(&self.paths)).unwrap();
        let mut ledger = opened.ledger;
        ledger.write(&Stored { joined: Some(joined), pending: None }).unwrap();
    }

    /// Runs the daemon while the script goes on, and stops it then.
    async fn run(&self, script: impl Future<Output = ()>) -> Result<(), RunError> {
        let daemon = run(Config::default(), self.paths.clone(), self.signals.clone());
        let script = async {
            tokio::time::timeout(Duration::from_secs(60), script).await.unwrap();
            self.stop.send(true).unwrap();
        };
        let (ran, ()) = tokio::join!(daemon, script);
        ran
    }
}

fn stream() -> Stream {
    Stream::new("dev", "box", Stream::ALL)
}

fn answer() -> PollAnswer {
    PollAnswer {
        time: Timestamp(1_800_000_000_000),
        next: 600,
        promise: 900,
        key_sets: Vec::new(),
        membership: None,
        state: None,
        holds: None,
        want_status: true,
        want_proof: false,
    }
}

async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_host_that_has_not_joined_waits_and_stops_when_it_is_told() {
    let place = Place::new();
    let paths = place.paths.clone();
    place.run(until(move || paths.state().join("lock").exists())).await.unwrap();
}

#[tokio::test]
async fn a_second_agent_says_that_one_runs() {
    let place = Place::new();
    let _first = Lock::take(&place.paths).unwrap();
    let error = run(Config::default(), place.paths.clone(), place.signals.clone()).await.unwrap_err();
    assert_eq!(error.to_string(), "another kedge-agent runs here");
    assert!(error.hint().unwrap().contains("systemctl status"));
}

#[tokio::test]
async fn a_joined_host_polls_sends_its_status_and_tells_of_a_wrong_clock() {
    let (place, authority) = (Place::new(), Authority::new());
    let hub = FakeHub::start(&authority, |request| match request.path.as_str() {
        "/agent/v1/poll" => Reply::ok(&answer()),
        _ => Reply::ok(&serde_json::json!({})),
    })
    .await;
    place.join(authority.identity(&hub.address, &stream()).joined().clone());
    let sent = |path: &str| hub.requests().iter().filter(|request| request.path == path).count();
    place.run(until(|| sent("/agent/v1/status") > 0)).await.unwrap();
    let poll: PollRequest = serde_json::from_slice(&hub.requests()[0].body).unwrap();
    assert_eq!((poll.generation.0, poll.membership.0, poll.wait), (0, 1, Some(1)));
    assert_eq!(sent("/agent/v1/poll"), 1, "the hub said ten minutes");
    let shown = report::read(&RealDisk, &place.paths).unwrap().unwrap();
    assert!(shown.warnings["ClockOff"].message.contains("the hub's"), "{:?}", shown.warnings);
    assert!(shown.facts.contains_key("agentVersion"));
}

#[tokio::test]
async fn a_copied_disk_does_not_talk_and_says_why() {
    let (place, authority) = (Place::new(), Authority::new());
    let hub = FakeHub::start(&authority, |_| Reply::ok(&answer())).await;
    let joined = authority.identity(&hub.address, &stream()).joined().clone();
    place.join(Joined { machine: Some(Digest::of(b"another machine")), ..joined });
    std::fs::create_dir_all(place.paths.place("/etc")).unwrap();
    std::fs::write(place.paths.place("/etc/machine-id"), "0123456789abcdef0123456789abcdef\n").unwrap();
    let warned = || {
        let shown = report::read(&RealDisk, &place.paths).ok().flatten();
        shown.is_some_and(|shown| shown.warnings.contains_key("MachineChanged"))
    };
    place.run(until(warned)).await.unwrap();
    assert_eq!(hub.requests().len(), 0);
}
