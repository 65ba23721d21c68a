//! The link against a fake hub: what goes over the wire, whom it believes, and what it does about each fault.

mod downloads;

use std::sync::Mutex;

use kedge_durable::{Ledger, RealDisk};
use kedge_model::wire::{Generation, Heads, Profile, Sequence, Stream};

use super::fake::authority::{DAY, now};
use super::fake::{Authority, FakeHub, Reply, Request};
use super::*;
use crate::clock::SystemClock;
use crate::identity::{self, Stored};

/// A clock that a test sets.
#[derive(Debug)]
struct At(Mutex<i64>);

impl Clock for At {
    fn now(&self) -> Timestamp {
        Timestamp(*self.0.lock().unwrap())
    }
}

/// A host of its own folder.
struct Room {
    paths: Paths,
    folder: tempfile::TempDir,
}

const PATIENCE: Duration = Duration::from_secs(10);

impl Room {
    fn new() -> Room {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        std::fs::create_dir_all(paths.state()).unwrap();
        Room { paths, folder }
    }

    fn link(&self, identity: Identity) -> HubLink {
        self.link_at(identity, Arc::new(SystemClock))
    }

    /// As after a join: the identity is on disk.
    fn link_at(&self, identity: Identity, clock: Arc<dyn Clock>) -> HubLink {
        let mut ledger = Ledger::<Stored>::open(Arc::new(RealDisk), &identity::path(&self.paths)).unwrap().ledger;
        let keys = identity.origin().0.clone();
        ledger.write(&Stored { joined: Some(identity.joined().clone()), pending: None, ..Stored::default() }).unwrap();
        HubLink::new(Arc::new(RealDisk), &self.paths, identity, &keys.authorities, Timestamp(0), clock).unwrap()
    }
}

fn stream() -> Stream {
    Stream::new("dev", "drone", "all")
}

fn request() -> PollRequest {
    PollRequest {
        key_set: 1,
        membership: Sequence(1),
        generation: Generation(5),
        status: Heads { epoch: 1, nonce: "0".repeat(32), heads: vec!["0123456789abcdef".to_owned()] },
        look_age: 12,
        profile: Profile::Normal,
        wait: None,
        holds: 0,
    }
}

fn idle() -> PollAnswer {
    PollAnswer {
        time: now(),
        next: 0,
        promise: 30,
        key_sets: Vec::new(),
        membership: None,
        state: None,
        holds: None,
        want_status: false,
        want_proof: false,
    }
}

#[tokio::test]
async fn polls_share_one_connection_and_their_heads_are_short() {
    let (authority, room) = (Authority::new(), Room::new());
    let hub = FakeHub::start(&authority, |_| Reply::ok(&idle())).await;
    let link = room.link(authority.identity(&hub.address, &stream()));
    for _ in 0..3 {
        link.poll(&request(), PATIENCE).await.unwrap();
    }
    let seen = hub.requests();
    assert_eq!(seen.iter().map(|request| request.connection).collect::<Vec<_>>(), [0, 0, 0]);
    let host = hub.address.trim_start_matches("https://");
    let length = seen[0].body.len();
    assert_eq!(seen[0].head, format!("POST /agent/v1/poll HTTP/1.1\r\nhost: {host}\r\ncontent-length: {length}"));
    assert!(length < 200, "an idle poll is small: {length}");
    assert!(seen[0].certificate.is_some());
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_is_replaced_at_once() {
    let (authority, room) = (Authority::new(), Room::new());
    let answer = fake::hub::whole(200, "", &serde_json::to_vec(&idle()).unwrap());
    let hub = FakeHub::start(&authority, move |_| Reply::Cut(answer.clone())).await;
    let link = room.link(authority.identity(&hub.address, &stream()));
    for _ in 0..3 {
        link.poll(&request(), PATIENCE).await.unwrap();
    }
    assert_eq!(hub.requests().len(), 3);
}

#[tokio::test]
async fn a_document_goes_out_while_a_poll_is_held() {
    let (authority, room) = (Authority::new(), Room::new());
    let hub = FakeHub::start(&authority, |request| match request.path.as_str() {
        "/agent/v1/poll" => Reply::Silence,
        _ => Reply::Bytes(200, String::new(), Vec::new()),
    })
    .await;
    let link = room.link(authority.identity(&hub.address, &stream()));
    let document = authority.sign(&authority.membership(link.cluster(), 1, &stream()));
    let patience = Duration::from_secs(3);
    let request = request();
    let (poll, sent) = tokio::join!(link.poll(&request, patience), link.send(&document));
    assert!(matches!(poll, Err(LinkError::Slow { .. })), "{poll:?}");
    sent.unwrap();
    link.prove(&document).await.unwrap();
    assert_eq!(hub.requests().len(), 3);
}

#[tokio::test]
async fn the_clock_of_the_host_keeps_nobody_out() {
    let authority = Authority::new();
    let hub = FakeHub::start(&authority, |_| Reply::ok(&idle())).await;
    let now = now().0;
    let hours = 6 * 60 * 60 * 1000;
    for clock in [0, now - hours, now + hours, now + 400 * DAY, now + 20_000 * DAY] {
        let room = Room::new();
        let link = room.link_at(authority.identity(&hub.address, &stream()), Arc::new(At(Mutex::new(clock))));
        link.poll(&request(), PATIENCE).await.unwrap_or_else(|error| panic!("at {clock}: {}", error.sentence()));
    }
}

#[tokio::test]
async fn a_clock_that_jumps_between_polls_changes_nothing() {
    let (authority, room) = (Authority::new(), Room::new());
    let hub = FakeHub::start(&authority, |_| Reply::ok(&idle())).await;
    let clock = Arc::new(At(Mutex::new(now().0)));
    let link = room.link_at(authority.identity(&hub.address, &stream()), Arc::clone(&clock) as Arc<dyn Clock>);
    for jump in [0, -30 * 365 * DAY, 6 * 3_600_000, 3000 * DAY] {
        *clock.0.lock().unwrap() = now().0 + jump;
        link.disconnect();
        link.poll(&request(), PATIENCE).await.unwrap();
    }
}

#[tokio::test]
async fn a_hub_certificate_that_ended_before_its_last_word_is_refused() {
    let (authority, room) = (Authority::new(), Room::new());
    let ended = (now().0 - 100 * DAY, now().0 - 10 * DAY);
    let hub = FakeHub::start_with(&authority, "127.0.0.1", ended, |_| Reply::ok(&idle())).await;
    let link = room.link(authority.identity(&hub.address, &stream()));
    link.era.heard(now());
    let error = link.poll(&request(), PATIENCE).await.unwrap_err();
    assert!(matches!(error, LinkError::WrongHub { .. }), "{error:?}");
}

#[tokio::test]
async fn a_hub_of_another_authority_or_name_is_refused() {
    let authority = Authority::new();
    let stranger = FakeHub::start(&Authority::new(), |_| Reply::ok(&idle())).await;
    let link = Room::new().link(authority.identity(&stranger.address, &stream()));
    let error = link.poll(&request(), PATIENCE).await.unwrap_err();
    assert_eq!((error.code(), error.next()), ("WrongHub", Next::Backoff), "{error:?}");

    let dates = (now().0 - DAY, now().0 + DAY);
    let other = FakeHub::start_with(&authority, "other.example", dates, |_| Reply::ok(&idle())).await;
    let link = Room::new().link(authority.identity(&other.address, &stream()));
    assert_eq!(link.poll(&request(), PATIENCE).await.unwrap_err().code(), "WrongHub");
    assert!(other.requests().is_empty() && stranger.requests().is_empty());
}

#[tokio::test]
async fn a_new_authority_is_believed_as_soon_as_a_key_set_names_it() {
    let (mut authority, room) = (Authority::new(), Room::new());
    let identity = authority.identity("https://127.0.0.1:1", &stream());
    let old = identity.joined().clone();
    authority.replace_issuer();
    let hub = FakeHub::start(&authority, |_| Reply::ok(&idle())).await;
    let identity = Identity::of(identity::Joined { hub: hub.address.clone(), ..old }).unwrap();
    let link = room.link(identity);
    assert_eq!(link.poll(&request(), PATIENCE).await.unwrap_err().code(), "WrongHub");
    link.trust(&authority.keys.authorities).unwrap();
    link.poll(&request(), PATIENCE).await.unwrap();
}

/// Answers like a hub that takes only certificates that end after now; renews any.
fn strict(authority: Arc<Authority>) -> impl FnMut(&Request) -> Reply + Send {
    move |request| {
        let until = request.certificate.as_deref().and_then(Validity::of).map_or(Timestamp(0), |dates| dates.until);
        match request.path.as_str() {
            "/agent/v1/renew" => {
                let asked: RenewRequest = serde_json::from_slice(&request.body).unwrap();
                let certificate = authority.certify(&asked.csr, (now().0 - DAY, now().0 + 90 * DAY));
                Reply::ok(&RenewAnswer { certificate, time: now() })
            }
            _ if until <= now() => Reply::refusal(403, "CertificateExpired"),
            _ => Reply::ok(&idle()),
        }
    }
}

#[tokio::test]
async fn after_400_days_an_expired_certificate_renews_and_the_poll_goes_on() {
    let (authority, room) = (Arc::new(Authority::new()), Room::new());
    let hub = FakeHub::start(&authority, strict(Arc::clone(&authority))).await;
    let expired = authority.identity_for(&hub.address, &stream(), (now().0 - 490 * DAY, now().0 - 400 * DAY));
    let link = room.link(expired);
    link.poll(&request(), PATIENCE).await.unwrap();
    let paths: Vec<String> = hub.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/agent/v1/poll", "/agent/v1/renew", "/agent/v1/poll"]);
    let kept = Identity::read(&RealDisk, &room.paths).unwrap().unwrap();
    assert!(kept.validity().until > now(), "the new certificate is on disk");
}

#[tokio::test]
async fn a_certificate_is_renewed_at_two_thirds_by_the_hubs_time() {
    let (authority, room) = (Arc::new(Authority::new()), Room::new());
    let hub = FakeHub::start(&authority, strict(Arc::clone(&authority))).await;
    let due = authority.identity_for(&hub.address, &stream(), (now().0 - 61 * DAY, now().0 + 29 * DAY));
    // The host's own clock doesn't matter.
    let link = room.link_at(due, Arc::new(At(Mutex::new(0))));
    link.poll(&request(), PATIENCE).await.unwrap();
    link.poll(&request(), PATIENCE).await.unwrap();
    let paths: Vec<String> = hub.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/agent/v1/poll", "/agent/v1/renew", "/agent/v1/poll"]);
}

#[tokio::test]
async fn a_certificate_of_another_key_is_not_taken() {
    let (authority, room) = (Arc::new(Authority::new()), Room::new());
    let signer = Arc::clone(&authority);
    let hub = FakeHub::start(&authority, move |_| {
        let other = crate::identity::key::HostKey::generate().unwrap().request().unwrap();
        Reply::ok(&RenewAnswer { certificate: signer.certify(&other, (0, now().0 + DAY)), time: now() })
    })
    .await;
    let link = room.link(authority.identity(&hub.address, &stream()));
    let before = link.validity();
    let error = link.renew().await.unwrap_err();
    assert!(error.sentence().contains("another key"), "{error:?}");
    assert_eq!(Identity::read(&RealDisk, &room.paths).unwrap().unwrap().validity(), before);
}

#[tokio::test]
async fn refusals_carry_their_reason_and_when_to_come_back() {
    let (authority, room) = (Authority::new(), Room::new());
    let hub = FakeHub::start(&authority, |request| match request.path.as_str() {
        "/agent/v1/poll" => {
            let body = br#"{"reason":"Busy","message":"later"}"#.to_vec();
            Reply::Bytes(503, "retry-after: 7\r\n".to_owned(), body)
        }
        "/agent/v1/proof" => Reply::refusal(422, "NotProved"),
        _ => Reply::refusal(403, "Revoked"),
    })
    .await;
    let link = room.link(authority.identity(&hub.address, &stream()));
    let busy = link.poll(&request(), PATIENCE).await.unwrap_err();
    assert_eq!((busy.code(), busy.next()), ("Busy", Next::After(Duration::from_secs(7))));
    let document = authority.sign(&authority.membership(link.cluster(), 1, &stream()));
    let revoked = link.send(&document).await.unwrap_err();
    assert_eq!((revoked.code(), revoked.next(), revoked.hint().as_deref()), ("Revoked", Next::Rarely, Some("ask")));
    assert_eq!(link.prove(&document).await.unwrap_err().next(), Next::Drop);
    assert!(hub.requests().iter().all(|request| request.connection == 0), "a refusal keeps the connection");
}

#[tokio::test]
async fn what_is_no_hub_is_said_so() {
    let authority = Authority::new();
    for (page, words) in [
        (fake::hub::whole(200, "", b"<html>sign in</html>"), "<html>sign in"),
        (fake::hub::whole(502, "", b"<html>bad gateway</html>"), "bad gateway"),
        (b"SSH-2.0-OpenSSH\r\n\r\n".to_vec(), "isn't HTTP"),
    ] {
        let hub = FakeHub::start(&authority, move |_| Reply::Cut(page.clone())).await;
        let error = Room::new().link(authority.identity(&hub.address, &stream())).poll(&request(), PATIENCE).await;
        let error = error.unwrap_err();
        assert_eq!((error.code(), error.next()), ("NotAHub", Next::Backoff), "{error:?}");
        assert!(error.sentence().contains(words), "{}", error.sentence());
    }
}

#[tokio::test]
async fn answers_that_are_cut_or_broken_are_tried_again() {
    let authority = Authority::new();
    let answer = fake::hub::whole(200, "", &serde_json::to_vec(&idle()).unwrap());
    for at in [0, 1, 9, 17, 20, answer.len() - 1] {
        let cut = answer[..at].to_vec();
        let hub = FakeHub::start(&authority, move |_| Reply::Cut(cut.clone())).await;
        let error = Room::new().link(authority.identity(&hub.address, &stream())).poll(&request(), PATIENCE).await;
        assert_eq!(error.unwrap_err().next(), Next::Backoff, "cut at {at}");
    }
    let hub = FakeHub::start(&authority, |_| Reply::Json(200, b"{\"time\":".to_vec())).await;
    let error = Room::new().link(authority.identity(&hub.address, &stream())).poll(&request(), PATIENCE).await;
    assert!(matches!(error, Err(LinkError::Unreadable(_))));
    let hub = FakeHub::start(&authority, |_| Reply::Json(200, vec![b' '; MAX_POLL_ANSWER + 1])).await;
    let error = Room::new().link(authority.identity(&hub.address, &stream())).poll(&request(), PATIENCE).await;
    assert!(matches!(error, Err(LinkError::TooLarge(_))));
}

#[tokio::test]
async fn a_hub_that_is_away_is_unreachable_and_back_when_it_is_back() {
    let (authority, room) = (Authority::new(), Room::new());
    let hub = FakeHub::start(&authority, |_| Reply::ok(&idle())).await;
    let address = hub.address.clone();
    let link = room.link(authority.identity(&address, &stream()));
    link.reach().await.unwrap();
    drop(hub);
    tokio::task::yield_now().await;
    let error = link.poll(&request(), PATIENCE).await.unwrap_err();
    assert_eq!((error.code(), error.next()), ("HubUnreachable", Next::Backoff), "{error:?}");
    assert!(link.reach().await.is_err());
}

#[tokio::test]
async fn a_copied_disk_gets_no_link() {
    let (authority, room) = (Authority::new(), Room::new());
    let etc = room.folder.path().join("etc");
    std::fs::create_dir_all(&etc).unwrap();
    std::fs::write(etc.join("machine-id"), "first").unwrap();
    let joined = authority.identity("https://127.0.0.1:1", &stream()).joined().clone();
    let machine = crate::identity::machine::digest(&room.paths);
    let identity = || Identity::of(identity::Joined { machine, ..joined.clone() }).unwrap();
    let link = |identity: Identity| {
        let clock = Arc::new(SystemClock);
        HubLink::new(Arc::new(RealDisk), &room.paths, identity, &authority.keys.authorities, Timestamp(0), clock)
    };
    assert!(link(identity()).is_ok());
    std::fs::write(etc.join("machine-id"), "second").unwrap();
    let error = link(identity()).unwrap_err();
    assert_eq!((error.code(), error.next()), ("MachineChanged", Next::Rarely));
}

#[tokio::test]
async fn an_identity_that_a_new_join_replaced_stops_talking() {
    let (authority, room) = (Authority::new(), Room::new());
    let hub = FakeHub::start(&authority, |_| Reply::ok(&idle())).await;
    let link = room.link(authority.identity(&hub.address, &stream()));
    link.poll(&request(), PATIENCE).await.unwrap();
    let newer = room.link(authority.identity(&hub.address, &stream()));
    assert_eq!(link.poll(&request(), PATIENCE).await.unwrap_err().next(), Next::Restart);
    newer.poll(&request(), PATIENCE).await.unwrap();
}
