//! Two and three agents in one process, over real sockets of the loopback.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::net::SocketAddr;

use kedge_durable::RealDisk;
use kedge_model::kinds::{Conflicts, Destination, Drift, Rollback, Scope};
use kedge_model::wire::{
    ApplyParameters, ClusterId, DesiredState, Digest, Entry, Generation, Heads, MemberAnswer, Mode, PackageRef,
    Packages, Presence, Profile, Sequence, SiteAnswer, SiteRequest, Stream, Timestamp, Turn,
};
use tokio::net::TcpListener;

use super::dial::{self, DialError};
use super::listener::{self, Asked, Door, Guard};
use super::*;
use crate::clock::SystemClock;
use crate::link::fake::{Authority, FakeHub, Reply};

pub(super) const PACKAGE: &[u8] = b"a package of the press";

/// One agent; stops when it is dropped.
struct Agent {
    folder: tempfile::TempDir,
    link: Arc<HubLink>,
    objects: Objects,
    own: Own,
    port: u16,
}

impl Agent {
    fn new(authority: &Authority, name: &str, stream: &Stream) -> Agent {
        Agent::at("https://127.0.0.1:1", authority, name, stream)
    }

    fn at(hub: &str, authority: &Authority, name: &str, stream: &Stream) -> Agent {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        let identity = authority.member(hub, name, stream, "plant");
        let own = own_of(authority, identity.joined().membership.clone());
        let authorities = authority.keys.authorities.clone();
        let link =
            HubLink::new(Arc::new(RealDisk), &paths, identity, &authorities, Timestamp(0), Arc::new(SystemClock));
        let objects = Objects::open(&paths.objects()).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Agent { folder, link: Arc::new(link.unwrap()), objects, own, port }
    }

    fn start(&self, others: &[u16]) -> Peers {
        let config = config::Peers {
            listen: SocketAddr::from(([127, 0, 0, 1], self.port)),
            mdns: false,
            fixed: others.iter().map(|port| format!("127.0.0.1:{port}")).collect(),
            ..config::Peers::default()
        };
        let place = Place {
            link: Arc::clone(&self.link),
            paths: Paths::below(self.folder.path()),
            clock: Arc::new(SystemClock),
            objects: self.objects.clone(),
            config,
            site: "plant".to_owned(),
        };
        Peers::start(place, self.own.clone())
    }
}

fn own_of(authority: &Authority, membership: Envelope) -> Own {
    let poll = PollRequest {
        key_set: 1,
        membership: Sequence(1),
        generation: Generation(0),
        status: Heads::default(),
        look_age: 0,
        profile: Profile::Normal,
        wait: None,
        holds: 0,
    };
    Own {
        keys: authority.keys.clone(),
        key_sets: Vec::new(),
        membership,
        state: None,
        status: None,
        holds: Vec::new(),
        peer_holds: Default::default(),
        poll,
        at: Instant::now(),
        online: false,
        offset: 0,
        wants: Vec::new(),
        waits: None,
    }
}

pub(super) fn press() -> Stream {
    Stream::new("prod", "press", Stream::ALL)
}

fn blob() -> BlobRef {
    BlobRef { digest: Digest::of(PACKAGE), size: PACKAGE.len() as u64 }
}

/// A state of the presses that names the package.
pub(super) fn state(generation: u64) -> DesiredState {
    let package = |content: &[u8]| PackageRef {
        digest: Digest::of(content),
        size: content.len() as u64,
        repo: "r".to_owned(),
        commit: "c".to_owned(),
        artifacts: Vec::new(),
    };
    let parameters = ApplyParameters {
        to: Destination::Host,
        namespace: None,
        scope: Scope::Namespace,
        conflicts: Conflicts::Fail,
        service_account: None,
        timeout_seconds: 60,
        soak_seconds: 0,
        rollback: Rollback::Auto,
        drift: Drift::Repair,
    };
    let packages = Packages { parameters, platform: package(b"platform"), workload: package(PACKAGE), version: None };
    let mode = Mode::Apply(Box::new(packages));
    DesiredState {
        stream: press(),
        generation: Generation(generation),
        created_at: Timestamp(1),
        confirmed: 1,
        entries: vec![Entry { assignment: "hello".to_owned(), mode, restart: 0, requires: Vec::new() }],
        removed: Vec::new(),
        unmanaged: Vec::new(),
        source: None,
        turns: false,
        requires: Vec::new(),
    }
}

pub(super) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(40), work).await.unwrap()
}

/// A door whose questions the test answers.
async fn door(agent: &Agent) -> (SocketAddr, mpsc::Receiver<Asked>) {
    let (ask, asked) = mpsc::channel(4);
    let server = Server::new(&Paths::below(agent.folder.path()), agent.objects.clone());
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(listener::serve(socket, Door { guard: Guard::Fleet(Arc::clone(&agent.link)), server, ask }));
    (address, asked)
}

#[tokio::test]
async fn both_ends_know_each_other_by_their_keys() {
    let authority = Authority::new();
    let (one, two) = (Agent::new(&authority, "one", &press()), Agent::new(&authority, "two", &press()));
    let (address, mut asked) = door(&one).await;
    let mut line = dial::dial(&two.link.mutual().unwrap(), address).await.unwrap();
    assert_eq!(line.cluster, one.link.cluster());
    let answer = tokio::spawn(async move { line.sync(b"hello".to_vec().into()).await.unwrap() });
    let Some(Asked::Sync { from, message, reply, .. }) = asked.recv().await else { panic!() };
    assert_eq!((from, &message[..]), (two.link.cluster(), &b"hello"[..]));
    reply.send(Some(b"you".to_vec())).unwrap();
    assert_eq!(&answer.await.unwrap()[..], b"you");
}

#[tokio::test]
async fn a_line_that_was_quiet_is_the_same_line_when_it_is_used_again() {
    let authority = Authority::new();
    let (one, two) = (Agent::new(&authority, "one", &press()), Agent::new(&authority, "two", &press()));
    let (address, mut asked) = door(&one).await;
    tokio::spawn(async move {
        while let Some(Asked::Sync { message, reply, .. }) = asked.recv().await {
            reply.send(Some(message.to_vec())).unwrap();
        }
    });
    let mut line = dial::dial(&two.link.mutual().unwrap(), address).await.unwrap();
    for (word, minutes) in [("at once", 0), ("after a rest", 1), ("and another", 5)] {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(60 * minutes)).await;
        tokio::time::resume();
        assert_eq!(within(line.sync(word.into())).await.unwrap(), word);
    }
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(10)).await;
    tokio::task::yield_now().await;
    tokio::time::advance(Duration::from_secs(6 * 60)).await;
    tokio::time::resume();
    within(async {
        while line.connection.is_open() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_stranger_of_another_fleet_is_turned_away_and_turns_away() {
    let (fleet, others) = (Authority::new(), Authority::new());
    let (here, stranger) = (Agent::new(&fleet, "here", &press()), Agent::new(&others, "stranger", &press()));
    let (address, mut asked) = door(&here).await;
    let dialled = dial::dial(&stranger.link.mutual().unwrap(), address).await;
    assert!(dialled.is_err(), "it doesn't take our certificate");
    let (address, _strangers) = door(&stranger).await;
    assert!(dial::dial(&here.link.mutual().unwrap(), address).await.is_err());
    assert!(asked.try_recv().is_err());
}

#[tokio::test]
async fn who_answers_in_anothers_place_is_found_out() {
    let authority = Authority::new();
    let (one, two) = (Agent::new(&authority, "one", &press()), Agent::new(&authority, "two", &press()));
    let (address, _asked) = door(&one).await;
    let wanted = ClusterId::of_public_key(&[7; 32]);
    let error = dial::dial_to(&two.link.mutual().unwrap(), wanted, &[address]).await.unwrap_err();
    assert!(matches!(error, DialError::Another { found, .. } if found == one.link.cluster()), "{error}");
}

#[tokio::test]
async fn a_state_reaches_the_peer_that_follows_its_stream() {
    let authority = Authority::new();
    let mut one = Agent::new(&authority, "one", &press());
    let two = Agent::new(&authority, "two", &press());
    one.own.state = Some(authority.sign(&state(3)));
    one.own.poll.generation = Generation(3);
    let (_first, mut second) = (one.start(&[]), two.start(&[one.port]));
    assert_eq!(brought(&mut second).await.state, one.own.state);
}

#[tokio::test]
async fn content_comes_from_a_peer_and_only_to_whom_it_is_meant_for() {
    let authority = Authority::new();
    let mut one = Agent::new(&authority, "one", &press());
    let mut two = Agent::new(&authority, "two", &press());
    let other = Agent::new(&authority, "three", &Stream::new("prod", "line", Stream::ALL));
    for agent in [&mut one, &mut two] {
        agent.own.state = Some(authority.sign(&state(1)));
        agent.own.poll.generation = Generation(1);
    }
    two.own.wants = vec![blob()];
    one.objects.put(PACKAGE).unwrap();
    let (_first, mut second) = (one.start(&[]), two.start(&[one.port]));
    within(async { while !second.news().await.content {} }).await;
    assert!(within(second.content().fetch(&blob(), &two.objects)).await.unwrap());
    assert_eq!(two.objects.read_small(&blob().digest, 1000).unwrap(), PACKAGE);

    // Of the same fleet and site, but of another stream.
    let mut line = dial::dial(&other.link.mutual().unwrap(), ([127, 0, 0, 1], one.port).into()).await.unwrap();
    let path = format!("/peer/v1/blobs/{}", blob().digest);
    let sent = line.connection.send(http::Method::GET, &path, Default::default(), Default::default(), WELL).await;
    assert_eq!(sent.unwrap().status(), http::StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_is_no_message_is_refused_and_shown() {
    let authority = Authority::new();
    let (one, misbehaving) = (Agent::new(&authority, "one", &press()), Agent::new(&authority, "liar", &press()));
    let mut first = one.start(&[]);
    let address = SocketAddr::from(([127, 0, 0, 1], one.port));
    let mutual = misbehaving.link.mutual().unwrap();
    let mut line = within(async {
        loop {
            if let Ok(line) = dial::dial(&mutual, address).await {
                return line;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert!(line.sync(b"{\"version\":".to_vec().into()).await.is_err());
    let news = within(first.news()).await;
    assert!(news.lies.is_some_and(|lies| lies.contains(&misbehaving.link.cluster().to_string())));
    let paths = Paths::below(one.folder.path());
    let shown = within(async {
        loop {
            if let Some(shown) = shown::Shown::read(&paths).filter(|shown| !shown.peers.is_empty()) {
                return shown;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let lies: BTreeSet<usize> = shown.peers.iter().map(|peer| peer.lies.len()).collect();
    assert_eq!(lies, BTreeSet::from([1]));
}

#[tokio::test]
async fn nothing_is_shared_with_whom_the_hub_has_revoked() {
    let authority = Authority::new();
    let hub = FakeHub::start(&authority, |request| {
        let asked: SiteRequest = serde_json::from_slice(&request.body).unwrap();
        let cluster = Presence::open(&asked.presences[0]).unwrap().cluster();
        let refused = Some("Revoked".to_owned());
        let member = MemberAnswer { cluster, membership: None, holds: None, turn: None, want_status: false, refused };
        let (time, members) = (Timestamp(1), vec![member]);
        Reply::ok(&SiteAnswer { time, next: 60, key_sets: Vec::new(), states: Vec::new(), members, tick: 0 })
    })
    .await;
    let mut near = Agent::at(&hub.address, &authority, "near", &press());
    let far = Agent::new(&authority, "far", &press());
    near.own.online = true;
    let (_first, second) = (near.start(&[]), far.start(&[near.port]));
    within(async {
        while hub.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    drop(second);
    let address = SocketAddr::from(([127, 0, 0, 1], near.port));
    let mut line = dial::dial(&far.link.mutual().unwrap(), address).await.unwrap();
    within(async {
        loop {
            let said = line.sync(br#"{"version":1}"#.to_vec().into()).await;
            if matches!(said, Err(crate::link::LinkError::Refused { status: 403, .. })) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
}

/// The first news that bring a state.
async fn brought(peers: &mut Peers) -> News {
    within(async {
        loop {
            let news = peers.news().await;
            if news.state.is_some() {
                return news;
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_turn_comes_for_a_sign_of_life_and_counts_for_who_gave_that_sign() {
    let authority = Arc::new(Authority::new());
    let (signer, mut given) = (Arc::clone(&authority), false);
    let hub = FakeHub::start(&authority, move |request| {
        let asked: SiteRequest = serde_json::from_slice(&request.body).unwrap();
        let members = asked.presences.iter().map(|presence| {
            let said = Presence::open(presence).unwrap();
            let (issued_at, asked) = (Timestamp(said.at.0 + 5), Some(said.at));
            let turn = Turn { cluster: said.cluster(), stream: press(), generation: Generation(3), issued_at, asked };
            // Only once: after that it is somebody else's turn.
            let turn = (!std::mem::replace(&mut given, true)).then(|| signer.sign(&turn));
            MemberAnswer {
                cluster: said.cluster(),
                membership: None,
                holds: None,
                turn,
                want_status: false,
                refused: None,
            }
        });
        let (time, members) = (Timestamp(1), members.collect());
        Reply::ok(&SiteAnswer { time, next: 60, key_sets: Vec::new(), states: Vec::new(), members, tick: 0 })
    })
    .await;
    let mut near = Agent::at(&hub.address, &authority, "near", &press());
    let mut far = Agent::new(&authority, "far", &press());
    (near.own.online, near.own.poll.generation) = (true, Generation(3));
    near.own.state = Some(authority.sign(&DesiredState { turns: true, ..state(3) }));
    let (_first, mut second) = (near.start(&[]), far.start(&[near.port]));
    let mut news = brought(&mut second).await;
    // The loop tells that it waits, and so does a person's command.
    far.own.waits = Some(Generation(3));
    second.tell(far.own.clone());
    while news.turn.is_none() {
        news = brought(&mut second).await;
    }
    let turn: Turn = news.turn.as_ref().unwrap().open(&authority.keys.trusted()).unwrap();
    assert_eq!((turn.cluster, turn.generation), (far.link.cluster(), Generation(3)));
    assert_eq!(news.state, near.own.state);
    let paths = Paths::below(far.folder.path());
    within(async {
        while shown::Shown::read(&paths).and_then(|shown| shown.waits) != Some(Generation(3)) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;

    // Begun again it hasn't asked for that turn, though its peer still has it.
    drop(second);
    let mut again = far.start(&[near.port]);
    assert_eq!(brought(&mut again).await.turn, None);
}

#[tokio::test]
async fn those_that_ask_for_nothing_make_room_for_others() {
    let authority = Authority::new();
    let here = Agent::new(&authority, "here", &press());
    let (address, _asked) = door(&here).await;
    let mut lines = Vec::new();
    // More than there are seats; each of another cluster.
    for number in 0..70 {
        let other = Agent::new(&authority, &format!("peer-{number}"), &press());
        lines.push(within(dial::dial(&other.link.mutual().unwrap(), address)).await.unwrap());
    }
    assert!(lines[69].connection.is_open());
    within(async {
        while lines[0].connection.is_open() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}
