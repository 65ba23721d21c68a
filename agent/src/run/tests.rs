//! The whole daemon below a folder, with a hub that answers over TLS.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::time::Duration;

use kedge_durable::{Ledger, RealDisk};
use kedge_model::wire::{
    DesiredState, Digest, Envelope, Generation, MemberAnswer, PollAnswer, PollRequest, Presence, SiteAnswer,
    SiteRequest, Stream, Timestamp,
};
use tokio::sync::{Notify, watch};

use super::host::run;
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
        ledger.write(&Stored { joined: Some(joined), pending: None, ..Stored::default() }).unwrap();
    }

    /// Runs the daemon while the script goes on, and stops it then.
    async fn run(&self, script: impl Future<Output = ()>) -> Result<(), RunError> {
        let config = Config::load(None, &self.paths).unwrap();
        let daemon = run(config, self.paths.clone(), self.signals.clone());
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

/// Two hosts of a site, one of which has no way to the hub.
#[tokio::test]
async fn a_host_without_a_way_to_the_hub_is_carried_by_its_peer() {
    let (near, far, authority) = (Place::new(), Place::new(), Authority::new());
    let (state, served) = (authority.sign(&empty_state()), Arc::new(std::sync::Mutex::new(Vec::new())));
    let uploads = Arc::clone(&served);
    let hub = FakeHub::start(&authority, move |request| match request.path.as_str() {
        "/agent/v1/poll" => {
            let poll: PollRequest = serde_json::from_slice(&request.body).unwrap();
            let state = (poll.generation.0 == 0).then(|| state.clone());
            Reply::ok(&PollAnswer { state, next: 30, promise: 90, want_status: false, ..answer() })
        }
        "/agent/v1/site" => {
            let asked: SiteRequest = serde_json::from_slice(&request.body).unwrap();
            let present = asked.presences.iter().map(|sign| Presence::open(sign).unwrap());
            let members = present.map(|presence| MemberAnswer {
                cluster: presence.cluster(),
                membership: None,
                holds: None,
                turn: None,
                want_status: true,
                refused: None,
            });
            let members = members.collect();
            let (time, next) = (Timestamp(1_800_000_000_000), 60);
            Reply::ok(&SiteAnswer { time, next, key_sets: Vec::new(), states: Vec::new(), members, tick: 0 })
        }
        _ => {
            uploads.lock().unwrap().push(Envelope::from_json(&request.body).unwrap());
            Reply::ok(&serde_json::json!({}))
        }
    })
    .await;
    let ports = [free_port(), free_port()];
    let identities = [
        authority.member(&hub.address, "near", &stream(), "plant"),
        authority.member("https://127.0.0.1:1", "far", &stream(), "plant"),
    ];
    let far_cluster = identities[1].cluster();
    for (index, place) in [&near, &far].into_iter().enumerate() {
        place.join(identities[index].joined().clone());
        let (own, other) = (ports[index], ports[1 - index]);
        let settings =
            format!("[peers]\nmdns = false\nlisten = \"127.0.0.1:{own}\"\nstatic = [\"127.0.0.1:{other}\"]\n");
        std::fs::create_dir_all(place.paths.settings()).unwrap();
        std::fs::write(place.paths.settings().join("agent.toml"), settings).unwrap();
    }
    let knows_state = || {
        let known = Memory::read(&RealDisk, &far.paths).ok().flatten();
        known.is_some_and(|(_, state, _)| state.is_some_and(|state| state.generation.0 == 1))
    };
    let reported = || {
        let limits = kedge_status::Limits::default();
        let all = served.lock().unwrap();
        all.iter().any(|sent| kedge_status::read(sent, &limits).is_ok_and(|status| status.cluster == far_cluster))
    };
    let shown_via = || Some(crate::peers::shown::Shown::read(&far.paths)?.via()?.title());
    let script = async {
        until(|| knows_state() && reported() && shown_via().as_deref() == Some("near")).await;
        far.stop.send(true).unwrap();
    };
    let other = run(Config::load(None, &far.paths).unwrap(), far.paths.clone(), far.signals.clone());
    let (ran, ended) = tokio::join!(near.run(script), other);
    ran.unwrap();
    ended.unwrap();
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn empty_state() -> DesiredState {
    DesiredState {
        stream: stream(),
        generation: Generation(1),
        created_at: Timestamp(1),
        confirmed: 0,
        entries: Vec::new(),
        removed: Vec::new(),
        unmanaged: Vec::new(),
        source: None,
        turns: false,
        requires: Vec::new(),
    }
}
