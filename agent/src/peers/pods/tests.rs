//! A pod that leads and one that stands by, in one process: real sockets of the loopback, Secrets within a map.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use kedge_durable::{Disk, Ledger, RealDisk};
use kedge_model::wire::{Digest, Envelope, Timestamp};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::super::dial;
use super::super::shown::pods::Pods;
use super::super::tests::{PACKAGE, press, state, within};
use super::*;
use crate::clock::SystemClock;
use crate::cluster::lease::{Offer, Standing};
use crate::cluster::secret_ledger::tests::FakeSecretStore;
use crate::cluster::secret_ledger::{SecretLedger, SecretStore};
use crate::desired::Remembered;
use crate::identity::{Identity, Stored};
use crate::link::HubLink;
use crate::link::fake::Authority;
use crate::objects::Objects;
use crate::paths::Paths;

/// One node's folder.
struct Node {
    _folder: tempfile::TempDir,
    paths: Paths,
    objects: Objects,
}

/// A cluster that joined, with what it keeps in Secrets, and the pod that works for it.
struct World {
    identity: Identity,
    authority: Authority,
    secret_store: Arc<FakeSecretStore>,
    leader: Node,
    offer: watch::Sender<Option<Offer>>,
    standing: watch::Sender<Standing>,
    /// Carries what the leader offers to those that stand by, as the Lease does.
    lease: JoinSet<()>,
}

impl Node {
    fn new() -> Node {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        let objects = Objects::open(&paths.objects()).unwrap();
        Node { _folder: folder, paths, objects }
    }

    fn has_all(&self) -> bool {
        named().iter().all(|blob| self.objects.has(blob))
    }

    async fn until(&self, fits: impl Fn(&Node) -> bool) {
        within(async {
            while !fits(self) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    }

    fn trouble(&self) -> Option<(String, bool)> {
        match Pods::read(&self.paths)? {
            Pods::StandsBy { trouble, lied, .. } => trouble.map(|trouble| (trouble, lied)),
            Pods::Leads { .. } => None,
        }
    }

    fn lacks(&self) -> Option<usize> {
        match Pods::read(&self.paths)? {
            Pods::StandsBy { lacks, .. } => lacks,
            Pods::Leads { .. } => None,
        }
    }
}

impl World {
    fn new() -> World {
        let authority = Authority::new();
        let state = authority.sign(&state(1));
        World::that_follows(authority, state)
    }

    fn that_follows(authority: Authority, state: Envelope) -> World {
        let identity = authority.identity("https://127.0.0.1:1", &press());
        let (leader, secret_store) = (Node::new(), Arc::new(FakeSecretStore::default()));
        let (fenced, _) = watch::channel(false);
        let writer = "leader/1/x".to_owned();
        let (disk, _) = SecretLedger::take_over(
            Arc::clone(&secret_store) as Arc<dyn SecretStore>,
            &leader.paths,
            &leader.objects,
            writer,
            Arc::new(|| true),
            fenced,
        )
        .unwrap();
        let disk: Arc<dyn Disk> = Arc::new(disk);
        let joined = identity.joined();
        let stored = Stored { joined: Some(joined.clone()), pending: None, ..Stored::default() };
        let remembered = Remembered {
            keys: joined.keys.clone(),
            membership: joined.membership.clone(),
            state: Some(state),
            generations: Vec::new(),
            holds: None,
            hub_time: Timestamp(0),
        };
        let mut ledger = Ledger::open(Arc::clone(&disk), &crate::identity::path(&leader.paths)).unwrap().ledger;
        ledger.write(&stored).unwrap();
        let mut ledger = Ledger::open(disk, &crate::desired::path(&leader.paths)).unwrap().ledger;
        ledger.write(&remembered).unwrap();
        let (offer, mut offered) = watch::channel(None);
        let (standing, _) = watch::channel(Standing::By { holder: None, offer: None });
        let (tell, mut lease) = (standing.clone(), JoinSet::new());
        lease.spawn(async move {
            while offered.changed().await.is_ok() {
                let offer = offered.borrow_and_update().clone();
                tell.send_replace(Standing::By { holder: Some("leader".to_owned()), offer });
            }
        });
        World { identity, authority, secret_store, leader, offer, standing, lease }
    }

    fn link(&self, identity: &Identity) -> Arc<HubLink> {
        let (identity, clock) = (Identity::of(identity.joined().clone()).unwrap(), Arc::new(SystemClock));
        let authorities = &identity.joined().keys.authorities.clone();
        let (disk, paths) = (Arc::new(RealDisk), &self.leader.paths);
        Arc::new(HubLink::new(disk, paths, identity, authorities, Timestamp(0), clock).unwrap())
    }

    fn open_door(&self) -> PodDoor {
        let pod = Pod { ip: IpAddr::V4(Ipv4Addr::LOCALHOST), offer: self.offer.clone() };
        let door = PodDoor::open(pod, self.link(&self.identity), &self.leader.paths, &self.leader.objects);
        door.name(named());
        door
    }

    fn stand_by(&self, node: &Node) -> Mirror {
        let content = NodeContent { paths: node.paths.clone(), objects: node.objects.clone(), reserve: 0 };
        Mirror::start(content, Arc::clone(&self.secret_store) as Arc<dyn SecretStore>, self.standing.subscribe())
    }

    async fn address(&self) -> std::net::SocketAddr {
        let mut offered = self.offer.subscribe();
        within(offered.wait_for(Option::is_some)).await.unwrap().as_ref().unwrap().address
    }

    /// What one gets who asks the leader's door for this.
    async fn ask(&self, identity: &Identity, blob: &Digest) -> http::StatusCode {
        let mutual = self.link(identity).mutual().unwrap();
        let mut line = dial::dial(&mutual, self.address().await).await.unwrap();
        let path = format!("/peer/v1/blobs/{blob}");
        let most = Duration::from_secs(30);
        let sent = line.connection.send(http::Method::GET, &path, Default::default(), Default::default(), most).await;
        sent.unwrap().status()
    }
}

/// What the state names.
fn named() -> BTreeSet<Digest> {
    BTreeSet::from([Digest::of(b"platform"), Digest::of(PACKAGE)])
}

#[tokio::test]
async fn one_that_stands_by_gets_what_the_state_names_and_writes_no_secret() {
    let (world, node) = (World::new(), Node::new());
    for content in [b"platform".as_slice(), PACKAGE] {
        world.leader.objects.put(content).unwrap();
    }
    let (_door, writes) = (world.open_door(), world.secret_store.writes());
    let _mirror = world.stand_by(&node);
    node.until(|node| node.has_all() && node.lacks() == Some(0)).await;
    assert_eq!(node.objects.read_small(&Digest::of(PACKAGE), 1000).unwrap(), PACKAGE);
    assert_eq!(world.secret_store.writes(), writes);
    assert!(!node.paths.state().join("memory.a").exists(), "no ledger is written");
    let asked = |node: &Node| matches!(Pods::read(&node.paths), Some(Pods::Leads { asked, .. }) if asked.len() == 1);
    world.leader.until(asked).await;
}

#[tokio::test]
async fn what_reaches_the_leader_later_is_fetched_then() {
    let (world, node) = (World::new(), Node::new());
    world.leader.objects.put(b"platform").unwrap();
    let door = world.open_door();
    let _mirror = world.stand_by(&node);
    node.until(|node| node.lacks() == Some(1)).await;
    world.leader.objects.put(PACKAGE).unwrap();
    door.name(named());
    node.until(Node::has_all).await;
}

#[tokio::test]
async fn wrong_bytes_are_refused_and_shown() {
    let (world, node) = (World::new(), Node::new());
    world.leader.objects.put(b"platform").unwrap();
    let damaged = world.leader.objects.put(PACKAGE).unwrap();
    std::fs::write(world.leader.objects.path(&damaged), vec![b'x'; PACKAGE.len()]).unwrap();
    let _door = world.open_door();
    let _mirror = world.stand_by(&node);
    node.until(|node| node.trouble().is_some()).await;
    let (trouble, lied) = node.trouble().unwrap();
    assert!(lied && trouble.contains(&damaged.to_string()), "{trouble}");
    assert!(node.objects.has(&Digest::of(b"platform")) && !node.objects.has(&damaged));
}

#[tokio::test]
async fn nobody_but_the_cluster_itself_gets_anything_and_that_only_what_its_state_names() {
    let world = World::new();
    let package = world.leader.objects.put(PACKAGE).unwrap();
    let other = world.leader.objects.put(b"what another state named").unwrap();
    let _door = world.open_door();
    assert_eq!(world.ask(&world.identity, &package).await, http::StatusCode::OK);
    assert_eq!(world.ask(&world.identity, &other).await, http::StatusCode::NOT_FOUND);
    // Of the same fleet, even of the same stream.
    let stranger = world.authority.identity("https://127.0.0.1:1", &press());
    assert_eq!(world.ask(&stranger, &package).await, http::StatusCode::NOT_FOUND);
    let foreign = Authority::new().identity("https://127.0.0.1:1", &press());
    let mutual = world.link(&foreign).mutual().unwrap();
    assert!(dial::dial(&mutual, world.address().await).await.is_err(), "of another fleet");
}

#[tokio::test]
async fn a_leader_that_shows_another_key_is_asked_for_nothing() {
    let (world, node) = (World::new(), Node::new());
    world.leader.objects.put(PACKAGE).unwrap();
    let another = world.authority.identity("https://127.0.0.1:1", &press());
    let pod = Pod { ip: IpAddr::V4(Ipv4Addr::LOCALHOST), offer: world.offer.clone() };
    let door = PodDoor::open(pod, world.link(&another), &world.leader.paths, &world.leader.objects);
    door.name(named());
    let _mirror = world.stand_by(&node);
    node.until(|node| node.trouble().is_some()).await;
    assert!(node.trouble().unwrap().0.contains(&another.cluster().to_string()));
    assert!(!node.objects.has(&Digest::of(PACKAGE)));
}

#[tokio::test]
async fn a_door_that_is_closed_is_tried_again() {
    let (world, node) = (World::new(), Node::new());
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    world.offer.send_replace(Some(Offer { address: closed, mark: "x".to_owned() }));
    let _mirror = world.stand_by(&node);
    node.until(|node| node.trouble().is_some_and(|(_, lied)| !lied)).await;
    for content in [b"platform".as_slice(), PACKAGE] {
        world.leader.objects.put(content).unwrap();
    }
    let _door = world.open_door();
    node.until(Node::has_all).await;
}

#[tokio::test]
async fn the_cluster_is_asked_once_however_often_the_leader_fails() {
    let (world, node) = (World::new(), Node::new());
    let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, before) = (socket.local_addr().unwrap(), world.secret_store.reads());
    world.offer.send_replace(Some(Offer { address, mark: "x".to_owned() }));
    let _mirror = world.stand_by(&node);
    for _ in 0..3 {
        drop(within(socket.accept()).await.unwrap());
    }
    assert_eq!(world.secret_store.reads() - before, 2, "who it is, and what it runs");
}

#[tokio::test]
async fn what_nobody_names_any_more_goes_after_a_while() {
    let (world, node) = (World::new(), Node::new());
    let (old, young) = (node.objects.put(b"old").unwrap(), node.objects.put(b"young").unwrap());
    let then = std::time::SystemTime::now() - Duration::from_secs(40 * 24 * 3600);
    node.objects.read(&old).unwrap().set_modified(then).unwrap();
    let _door = world.open_door();
    let _mirror = world.stand_by(&node);
    node.until(|node| !node.objects.has(&old)).await;
    assert!(node.objects.has(&young));
}

#[tokio::test]
async fn a_state_that_the_hub_did_not_sign_names_nothing() {
    let forged = Authority::new().sign(&state(1));
    let (world, node) = (World::that_follows(Authority::new(), forged), Node::new());
    world.leader.objects.put(PACKAGE).unwrap();
    let _door = world.open_door();
    let _mirror = world.stand_by(&node);
    node.until(|node| node.trouble().is_some()).await;
    assert!(node.trouble().unwrap().0.contains("signed"), "{:?}", node.trouble());
    assert!(!node.objects.has(&Digest::of(PACKAGE)));
}

#[tokio::test]
async fn a_door_that_closes_is_no_longer_offered_nor_shown() {
    let mut world = World::new();
    let door = world.open_door();
    world.address().await;
    world.leader.until(|node| Pods::read(&node.paths).is_some()).await;
    drop(door);
    assert!(world.offer.borrow().is_none() && Pods::read(&world.leader.paths).is_none());
    world.lease.abort_all();
}
