//! Joins against a fake hub: what is kept when, and what a person is told.

use std::collections::BTreeSet;
use std::sync::Mutex;

use kedge_durable::RealDisk;
use kedge_durable::fake::{Power, every_cut};
use kedge_model::wire::Digest;

use super::*;
use crate::clock::SystemClock;
use crate::link::fake::authority::{DAY, now};
use crate::link::fake::{Authority, FakeHub, Reply, Request, hub::whole};

struct Room {
    paths: Paths,
    folder: tempfile::TempDir,
}

impl Room {
    fn new() -> Room {
        let folder = tempfile::tempdir().unwrap();
        let room = Room { paths: Paths::below(folder.path()), folder };
        std::fs::create_dir_all(room.folder.path().join("etc/kedge")).unwrap();
        room.set_machine("first");
        room
    }

    fn set_machine(&self, id: &str) {
        std::fs::write(self.folder.path().join("etc/machine-id"), id).unwrap();
    }

    fn image_token(&self) -> std::path::PathBuf {
        self.folder.path().join("etc/kedge/join-token")
    }

    async fn join(&self, options: &JoinOptions) -> Result<Welcome, JoinError> {
        join(&disk(), &self.paths, Arc::new(SystemClock), options).await
    }

    fn identity(&self) -> Option<Identity> {
        Identity::read(&RealDisk, &self.paths).unwrap()
    }
}

fn disk() -> Arc<dyn Disk> {
    Arc::new(RealDisk)
}

/// Lets in whoever asks, once per key, as a hub does.
fn welcoming(authority: Arc<Authority>) -> impl FnMut(&Request) -> Reply + Send {
    move |request| welcome(&authority, request)
}

fn welcome(authority: &Authority, request: &Request) -> Reply {
    let asked: JoinRequest = serde_json::from_slice(&request.body).unwrap();
    let certificate = authority.certify(&asked.csr, (now().0 - DAY, now().0 + 90 * DAY));
    let own = crate::identity::certificate::chain(&certificate).unwrap();
    let cluster = ClusterId::of_public_key(&crate::identity::certificate::public_key(&own[0]).unwrap());
    let membership =
        Membership { name: asked.name, ..authority.membership(cluster, 1, &Stream::new("dev", "drone", "all")) };
    Reply::ok(&JoinAnswer {
        certificate,
        key_sets: authority.chain.clone(),
        membership: authority.sign(&membership),
        time: now(),
    })
}

fn token(hub: &FakeHub, authority: &Authority, id: &str) -> String {
    let (hub, secret) = (hub.address.clone(), "secret".to_owned());
    JoinToken { hub, authority: authority.pin(), id: id.to_owned(), secret }.to_string()
}

fn with(token: String) -> JoinOptions {
    JoinOptions { token: TokenSource::Text(token), name: Some("drone-1".to_owned()), again: false }
}

/// The keys of the requests that came.
fn keys(hub: &FakeHub) -> Vec<String> {
    let csr = |request: &Request| serde_json::from_slice::<JoinRequest>(&request.body).unwrap().csr;
    let spki = |csr: String| {
        use x509_parser::prelude::FromDer as _;
        let (_, pem) = x509_parser::pem::parse_x509_pem(csr.as_bytes()).unwrap();
        let (_, request) =
            x509_parser::certification_request::X509CertificationRequest::from_der(&pem.contents).unwrap();
        Digest::of(&request.certification_request_info.subject_pki.subject_public_key.data).to_string()
    };
    hub.requests().iter().map(csr).map(spki).collect()
}

#[tokio::test]
async fn a_join_keeps_identity_for_root_alone_and_says_who_it_is() {
    use std::os::unix::fs::PermissionsExt as _;
    let (authority, room) = (Arc::new(Authority::new()), Room::new());
    let hub = FakeHub::start(&authority, welcoming(Arc::clone(&authority))).await;
    let welcome = room.join(&with(token(&hub, &authority, "t"))).await.unwrap();
    let identity = room.identity().unwrap();
    assert_eq!((welcome.cluster, welcome.name.as_str()), (identity.cluster(), "drone-1"));
    assert_eq!((welcome.hub.as_str(), identity.hub()), (hub.address.as_str(), hub.address.as_str()));
    for which in ["a", "b"] {
        let mode = std::fs::metadata(room.paths.state().join(format!("identity.{which}"))).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        let bytes = std::fs::read(room.paths.state().join(format!("identity.{which}"))).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("secret"), "the token's secret isn't kept");
    }
    let request: JoinRequest = serde_json::from_slice(&hub.requests()[0].body).unwrap();
    assert_eq!(request.machine, machine::digest(&room.paths));
    assert_eq!((request.secret.as_str(), request.token_id.as_str()), ("secret", "t"));
    let memory = crate::desired::Memory::open(disk(), &room.paths, &identity).unwrap().memory;
    assert_eq!(memory.membership().stream, welcome.stream);
}

#[tokio::test]
async fn a_host_that_joined_is_told_where_and_nothing_is_asked() {
    let (authority, room) = (Arc::new(Authority::new()), Room::new());
    let hub = FakeHub::start(&authority, welcoming(Arc::clone(&authority))).await;
    room.join(&with(token(&hub, &authority, "t"))).await.unwrap();
    let before = room.identity().unwrap().cluster();
    let error = room.join(&with(token(&hub, &authority, "t2"))).await.unwrap_err();
    assert!(error.to_string().contains(&hub.address) && error.to_string().contains("drone-1"), "{error}");
    assert!(error.hint().unwrap().contains("--again"));
    assert_eq!((hub.requests().len(), room.identity().unwrap().cluster()), (1, before));
}

#[tokio::test]
async fn joining_again_makes_a_new_cluster_only_when_it_succeeds() {
    let (authority, room) = (Arc::new(Authority::new()), Room::new());
    let hub = FakeHub::start(&authority, welcoming(Arc::clone(&authority))).await;
    room.join(&with(token(&hub, &authority, "t"))).await.unwrap();
    let before = room.identity().unwrap().cluster();
    let refusing = FakeHub::start(&authority, |_| Reply::refusal(403, "TokenUsedUp")).await;
    let again = |hub: &FakeHub| JoinOptions { again: true, ..with(token(hub, &authority, "t2")) };
    let error = room.join(&again(&refusing)).await.unwrap_err();
    assert_eq!(error.code(), "TokenUsedUp");
    assert_eq!(room.identity().unwrap().cluster(), before, "the old one stays");
    let welcome = room.join(&again(&hub)).await.unwrap();
    assert_ne!(welcome.cluster, before);
    assert_eq!(room.identity().unwrap().cluster(), welcome.cluster);
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_with_the_same_key() {
    let (authority, room) = (Arc::new(Authority::new()), Room::new());
    let (signer, mut turn) = (Arc::clone(&authority), 0);
    let hub = FakeHub::start(&authority, move |request| {
        turn += 1;
        let Reply::Json(_, body) = welcome(&signer, request) else { unreachable!() };
        let answer = whole(200, "", &body);
        Reply::Cut(match turn {
            1 => Vec::new(),
            2 => answer[..answer.len() / 2].to_vec(),
            _ => answer,
        })
    })
    .await;
    let options = with(token(&hub, &authority, "t"));
    for _ in 0..2 {
        let error = room.join(&options).await.unwrap_err();
        assert_eq!(error.code(), "HubUnreachable", "{error:?}");
        assert!(room.identity().is_none());
    }
    room.join(&options).await.unwrap();
    let keys = keys(&hub);
    assert_eq!((keys.len(), BTreeSet::from_iter(keys).len()), (3, 1));
}

#[tokio::test]
async fn another_token_or_another_machine_gets_another_key() {
    let (authority, room) = (Arc::new(Authority::new()), Room::new());
    let hub = FakeHub::start(&authority, |_| Reply::refusal(403, "TokenExpired")).await;
    room.join(&with(token(&hub, &authority, "t"))).await.unwrap_err();
    room.join(&with(token(&hub, &authority, "t2"))).await.unwrap_err();
    room.set_machine("second");
    room.join(&with(token(&hub, &authority, "t2"))).await.unwrap_err();
    assert_eq!(BTreeSet::from_iter(keys(&hub)).len(), 3);
}

#[tokio::test]
async fn a_copied_disk_joins_without_more_words() {
    let (authority, room) = (Arc::new(Authority::new()), Room::new());
    let hub = FakeHub::start(&authority, welcoming(Arc::clone(&authority))).await;
    let first = room.join(&with(token(&hub, &authority, "t"))).await.unwrap();
    room.set_machine("second");
    assert!(!room.identity().unwrap().is_of_this_machine(&room.paths));
    let second = room.join(&with(token(&hub, &authority, "t2"))).await.unwrap();
    assert_ne!(first.cluster, second.cluster);
    assert!(room.identity().unwrap().is_of_this_machine(&room.paths));
}

#[tokio::test]
async fn another_hub_than_the_tokens_learns_nothing() {
    let (authority, room) = (Authority::new(), Room::new());
    let stranger = FakeHub::start(&Authority::new(), |_| Reply::Silence).await;
    let error = room.join(&with(token(&stranger, &authority, "t"))).await.unwrap_err();
    assert_eq!(error.code(), "WrongHub", "{error:?}");
    assert!(error.hint().unwrap().contains("another hub"));
    assert!(stranger.requests().is_empty());
}

#[tokio::test]
async fn each_refusal_says_why_and_what_helps() {
    let authority = Authority::new();
    for (status, reason) in [(401, "TokenUnknown"), (403, "TokenUsedUp"), (403, "TokenExpired"), (403, "TokenRevoked")]
    {
        let room = Room::new();
        let hub = FakeHub::start(&authority, move |_| Reply::refusal(status, reason)).await;
        let error = room.join(&with(token(&hub, &authority, "t"))).await.unwrap_err();
        assert_eq!((error.code(), error.hint().as_deref()), (reason, Some("ask")));
        assert!(room.identity().is_none());
    }
    let page = FakeHub::start(&authority, |_| Reply::Cut(whole(200, "", b"<html>portal</html>"))).await;
    let error = Room::new().join(&with(token(&page, &authority, "t"))).await.unwrap_err();
    assert!(error.to_string().contains("<html>portal"), "{error}");
}

#[tokio::test]
async fn an_answer_that_another_hub_could_have_made_is_not_believed() {
    let (authority, other) = (Arc::new(Authority::new()), Arc::new(Authority::new()));
    let (signer, foreign) = (Arc::clone(&authority), Arc::clone(&other));
    let hub = FakeHub::start(&authority, move |request| {
        let Reply::Json(_, body) = welcome(&signer, request) else { unreachable!() };
        let mut answer: JoinAnswer = serde_json::from_slice(&body).unwrap();
        let stream = Stream::new("dev", "drone", "all");
        answer.membership = foreign.sign(&foreign.membership(ClusterId::of_public_key(&[1; 32]), 1, &stream));
        Reply::ok(&answer)
    })
    .await;
    let room = Room::new();
    let error = room.join(&with(token(&hub, &authority, "t"))).await.unwrap_err();
    assert!(matches!(error, JoinError::Unbelievable(_)), "{error:?}");
    assert!(room.identity().is_none());
}

#[tokio::test]
async fn a_missing_or_damaged_token_is_said() {
    let room = Room::new();
    assert!(matches!(room.join(&JoinOptions::default()).await, Err(JoinError::NoToken { .. })));
    let damaged = room.join(&with("kedge-join-1.abc".to_owned())).await.unwrap_err();
    assert!(matches!(damaged, JoinError::Token(_)) && damaged.hint().is_some());
    let file = JoinOptions { token: TokenSource::File(room.folder.path().join("none")), ..JoinOptions::default() };
    assert!(matches!(room.join(&file).await, Err(JoinError::TokenFile { .. })));
    let away = JoinToken {
        hub: "https://127.0.0.1:1".to_owned(),
        authority: Digest::of(b""),
        id: "t".to_owned(),
        secret: "s".to_owned(),
    };
    let away = room.join(&with(away.to_string())).await.unwrap_err();
    assert_eq!(away.code(), "HubUnreachable");
    assert!(away.hint().unwrap().contains("same token"));
}

#[tokio::test(start_paused = true)]
async fn an_image_joins_by_itself_and_keeps_its_token_until_it_worked() {
    let (authority, room) = (Arc::new(Authority::new()), Room::new());
    let (signer, mut turn) = (Arc::clone(&authority), 0);
    let hub = FakeHub::start(&authority, move |request| {
        turn += 1;
        if turn == 1 { Reply::refusal(500, "Internal") } else { welcome(&signer, request) }
    })
    .await;
    std::fs::write(room.image_token(), format!("{}\n", token(&hub, &authority, "t"))).unwrap();
    let told = Mutex::new(Vec::new());
    let tell = |error: &JoinError| {
        assert!(room.image_token().exists());
        told.lock().unwrap().push(error.code().to_owned());
    };
    let identity = until_joined(&disk(), &room.paths, Arc::new(SystemClock), None, tell).await.unwrap();
    assert_eq!(*told.lock().unwrap(), ["Internal"]);
    assert_eq!(identity.cluster(), room.identity().unwrap().cluster());
    assert!(!room.image_token().exists());
}

#[tokio::test]
async fn a_lost_identity_is_made_anew_by_a_join() {
    let (authority, room) = (Arc::new(Authority::new()), Room::new());
    let hub = FakeHub::start(&authority, welcoming(Arc::clone(&authority))).await;
    room.join(&with(token(&hub, &authority, "t"))).await.unwrap();
    for which in ["a", "b"] {
        std::fs::write(room.paths.state().join(format!("identity.{which}")), b"rubbish").unwrap();
    }
    assert!(Identity::read(&RealDisk, &room.paths).is_err());
    let welcome = room.join(&with(token(&hub, &authority, "t2"))).await.unwrap();
    assert_eq!(room.identity().unwrap().cluster(), welcome.cluster);
}

#[tokio::test]
async fn two_joins_at_once_use_one_token() {
    let (authority, room) = (Arc::new(Authority::new()), Room::new());
    let hub = FakeHub::start(&authority, welcoming(Arc::clone(&authority))).await;
    let (first, second) = (with(token(&hub, &authority, "t")), with(token(&hub, &authority, "t2")));
    let (first, second) = tokio::join!(room.join(&first), room.join(&second));
    first.unwrap();
    assert!(matches!(second, Err(JoinError::Busy)), "{second:?}");
    assert_eq!(hub.requests().len(), 1);
}

#[tokio::test]
async fn a_host_at_1970_joins() {
    #[derive(Debug)]
    struct Epoch;
    impl Clock for Epoch {
        fn now(&self) -> Timestamp {
            Timestamp(0)
        }
    }
    let (authority, room) = (Arc::new(Authority::new()), Room::new());
    let hub = FakeHub::start(&authority, welcoming(Arc::clone(&authority))).await;
    join(&disk(), &room.paths, Arc::new(Epoch), &with(token(&hub, &authority, "t"))).await.unwrap();
}

#[test]
fn a_power_cut_during_a_join_never_loses_a_key_that_the_hub_saw() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (authority, room) = (Arc::new(Authority::new()), Room::new());
    std::fs::create_dir_all(room.paths.state()).unwrap();
    let hub = runtime.block_on(FakeHub::start(&authority, welcoming(Arc::clone(&authority))));
    let options = with(token(&hub, &authority, "t"));
    let seen_before = Mutex::new(0);
    let checked = every_cut(
        |disk| disk.make_folder(&room.paths.state()).unwrap(),
        |disk| {
            *seen_before.lock().unwrap() = hub.requests().len();
            runtime.block_on(join(&disk, &room.paths, Arc::new(SystemClock), &options)).map(drop)
        },
        |disk, power| {
            let stored = Ledger::<Stored>::read(disk, &identity::path(&room.paths)).unwrap().unwrap_or_default();
            assert!(power == Power::Cut || stored.joined.is_some());
            let seen = keys(&hub).split_off(*seen_before.lock().unwrap());
            let kept = stored.joined.map(|joined| joined.key).or(stored.pending.map(|pending| pending.key));
            let kept = kept.map(|pem| HostKey::from_pem(&pem).unwrap().signing().public());
            for key in seen {
                assert_eq!(kept.map(|kept| Digest::of(kept.as_bytes()).to_string()), Some(key));
            }
        },
    );
    assert!(checked > 10, "{checked}");
}
