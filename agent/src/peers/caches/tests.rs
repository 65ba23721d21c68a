//! An agent that works and a node's cache, in one process over real sockets.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use kedge_model::wire::{BlobRef, Digest};

use super::super::dial;
use super::super::pods::NodeContent;
use super::super::tests::{PACKAGE, within};
use super::cache::{self, Place};
use super::*;
use crate::identity::key::HostKey;
use crate::objects::Objects;
use crate::paths::Paths;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

struct Node {
    folder: tempfile::TempDir,
    paths: Paths,
    objects: Objects,
}

impl Node {
    fn new() -> Node {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        let objects = Objects::open(&paths.objects()).unwrap();
        Node { folder, paths, objects }
    }

    fn content(&self) -> NodeContent {
        NodeContent { paths: self.paths.clone(), objects: self.objects.clone(), reserve: 0 }
    }

    async fn until(&self, fits: impl Fn(&Node) -> bool) {
        within(async {
            while !fits(self) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    }
}

fn package() -> BlobRef {
    BlobRef { digest: Digest::of(PACKAGE), size: PACKAGE.len() as u64 }
}

/// As the Secret has it.
fn key_in(folder: &Path) -> CacheKey {
    let key = HostKey::generate().unwrap();
    std::fs::write(folder.join("tls.crt"), key.certificate().unwrap()).unwrap();
    std::fs::write(folder.join("tls.key"), key.to_pem()).unwrap();
    CacheKey::in_folder(folder).unwrap().unwrap()
}

/// A door, and where it is: at the usual port, or at another one beside other tests'.
async fn open(key: &CacheKey, node: &Node) -> (CacheDoor, SocketAddr) {
    let shared = key.clone();
    let own = move || std::future::ready(Ok::<_, String>(shared.clone()));
    let door = CacheDoor::open(HERE, own, &node.paths, &node.objects);
    let mut place = door.place();
    let address = within(place.wait_for(Option::is_some)).await.unwrap().unwrap();
    (door, address)
}

/// What one gets who asks for the package.
async fn get(key: &CacheKey, address: SocketAddr) -> http::StatusCode {
    let mut line = within(dial::dial(&key.mutual, address)).await.unwrap();
    let (path, most) = (format!("/peer/v1/blobs/{}", package().digest), Duration::from_secs(30));
    let sent = line.connection.send(http::Method::GET, &path, Default::default(), Default::default(), most).await;
    sent.unwrap().status()
}

#[tokio::test]
async fn a_cache_keeps_what_the_agent_names_and_gives_it_to_the_next_one() {
    let (first, node, second, secret) = (Node::new(), Node::new(), Node::new(), tempfile::tempdir().unwrap());
    first.objects.put(PACKAGE).unwrap();
    let key = key_in(secret.path());
    let (door, address) = open(&key, &first).await;
    door.name([package()].into_iter());
    let place = Place { agents: address.to_string(), key: secret.path().to_owned(), ip: Some(HERE) };
    let cache = tokio::spawn(cache::run(place, node.content()));
    node.until(|node| node.objects.has(&package().digest)).await;
    drop(door);
    cache.abort();

    // Another agent works, on a node that has nothing.
    let (door, address) = open(&key, &second).await;
    door.name([package()].into_iter());
    let place = Place { agents: address.to_string(), key: secret.path().to_owned(), ip: Some(HERE) };
    let cache = tokio::spawn(cache::run(place, node.content()));
    let caches = door.caches();
    second.until(|_| !crate::swarm::Sources::holders(&caches, &package().digest).is_empty()).await;
    assert!(within(caches.fetch(&package(), &second.objects)).await.unwrap());
    assert_eq!(second.objects.read_small(&package().digest, 1000).unwrap(), PACKAGE);
    let ledgers =
        ["memory.a", "identity.a"].map(|name| node.folder.path().join("var/lib/kedge-agent").join(name).exists());
    assert_eq!(ledgers, [false, false], "a cache knows no identity");
    cache.abort();
}

#[tokio::test]
async fn who_has_another_key_is_turned_away_and_nothing_unnamed_is_given() {
    let (agent, secret, other) = (Node::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    agent.objects.put(PACKAGE).unwrap();
    let (key, stranger) = (key_in(secret.path()), key_in(other.path()));
    let (door, address) = open(&key, &agent).await;
    let asked = async {
        let mut line = dial::dial(&stranger.mutual, address).await?;
        line.sync(b"{}".as_slice().into()).await
    };
    assert!(within(asked).await.is_err());

    assert_eq!(get(&key, address).await, http::StatusCode::NOT_FOUND, "it isn't named");
    door.name([package()].into_iter());
    assert_eq!(get(&key, address).await, http::StatusCode::OK);
}

#[tokio::test]
async fn a_cache_that_lies_is_not_believed() {
    let (agent, node, secret) = (Node::new(), Node::new(), tempfile::tempdir().unwrap());
    let key = key_in(secret.path());
    node.objects.put(PACKAGE).unwrap();
    // As if somebody had the node's disk.
    let object = node.paths.objects().join(package().digest.to_string().replace(':', "-"));
    std::fs::remove_file(&object).unwrap();
    std::fs::write(&object, vec![b'x'; PACKAGE.len()]).unwrap();
    let (door, address) = open(&key, &agent).await;
    door.name([package()].into_iter());
    let place = Place { agents: address.to_string(), key: secret.path().to_owned(), ip: Some(HERE) };
    let cache = tokio::spawn(cache::run(place, node.content()));
    let caches = door.caches();
    agent.until(|_| !crate::swarm::Sources::holders(&caches, &package().digest).is_empty()).await;
    assert!(!within(caches.fetch(&package(), &agent.objects)).await.unwrap());
    assert!(!agent.objects.has(&package().digest));
    assert!(crate::swarm::Sources::holders(&caches, &package().digest).is_empty(), "it isn't asked again");
    cache.abort();
}
