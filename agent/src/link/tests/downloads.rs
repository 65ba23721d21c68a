//! Downloads: whole, cut at any byte, wrong, too large for the disk.

use std::sync::atomic::{AtomicUsize, Ordering};

use kedge_model::wire::{BlobRef, Digest};

use super::*;
use crate::objects::Objects;

struct Store {
    room: Room,
    objects: Objects,
}

impl Store {
    fn new() -> Store {
        let room = Room::new();
        let objects = Objects::open(&room.paths.objects()).unwrap();
        Store { room, objects }
    }

    fn partial(&self, digest: &Digest) -> std::path::PathBuf {
        self.room.paths.state().join("partial").join(digest.hex())
    }
}

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from(at * 31 % 251).unwrap()).collect()
}

fn blob(content: &[u8]) -> BlobRef {
    BlobRef { digest: Digest::of(content), size: content.len() as u64 }
}

/// The first byte that a request asks for.
fn asked(request: &Request) -> usize {
    let range = request.head.lines().find_map(|line| line.strip_prefix("range: bytes="));
    range.map_or(0, |range| range.trim_end_matches('-').parse().unwrap())
}

/// What a hub says, as raw bytes.
fn answer(content: &[u8], request: &Request) -> Vec<u8> {
    let (first, length) = (asked(request), content.len());
    match first {
        0 => fake::hub::whole(200, "", content),
        _ => {
            let range = format!("content-range: bytes {first}-{}/{length}\r\n", length - 1);
            fake::hub::whole(206, &range, &content[first..])
        }
    }
}

#[tokio::test]
async fn a_blob_is_an_object_and_nothing_is_left_over() {
    let (authority, store) = (Authority::new(), Store::new());
    let content = content(300_000);
    let wanted = blob(&content);
    let hub = FakeHub::start(&authority, move |request| {
        Reply::Bytes(200, format!("x-path: {}\r\n", request.path), content.clone())
    })
    .await;
    let link = store.room.link(authority.identity(&hub.address, &stream()));
    link.fetch(&wanted, &store.objects).await.unwrap();
    assert_eq!(crate::objects::digest_of(&store.objects.path(&wanted.digest)).unwrap(), wanted.digest);
    assert!(!store.partial(&wanted.digest).exists());
    link.fetch(&wanted, &store.objects).await.unwrap();
    link.poll(&request(), PATIENCE).await.unwrap_err();
    let seen = hub.requests();
    assert_eq!(seen.len(), 2, "what is there isn't fetched");
    assert_eq!(seen[0].path, format!("/agent/v1/blobs/{}", wanted.digest));
    assert_eq!(seen[1].connection, 0, "the connection is used again");
}

#[tokio::test(start_paused = true)]
async fn a_cut_at_any_byte_resumes_there() {
    let authority = Authority::new();
    let content = content(200);
    let wanted = blob(&content);
    let head = fake::hub::whole(200, "", &content).len() - content.len();
    for cut in [1, head - 1, head, head + 1, head + 100, head + 199] {
        let (store, content, turns) = (Store::new(), content.clone(), Arc::new(AtomicUsize::new(0)));
        let hub = FakeHub::start(&authority, move |request| {
            let whole = answer(&content, request);
            match turns.fetch_add(1, Ordering::Relaxed) {
                0 => Reply::Cut(whole[..cut].to_vec()),
                _ => Reply::Cut(whole),
            }
        })
        .await;
        let link = store.room.link(authority.identity(&hub.address, &stream()));
        link.fetch(&wanted, &store.objects).await.unwrap();
        let seen = hub.requests();
        assert_eq!(seen.len(), 2);
        assert_eq!(asked(&seen[1]), cut.saturating_sub(head), "cut at {cut}");
        if cut > head {
            assert!(seen[1].head.contains(&format!("if-range: \"{}\"", wanted.digest)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_byte_at_a_time_arrives_too() {
    let (authority, store) = (Authority::new(), Store::new());
    let content = content(40);
    let wanted = blob(&content);
    let hub = FakeHub::start(&authority, move |request| {
        let whole = answer(&content, request);
        let left = content.len() - asked(request);
        Reply::Cut(whole[..whole.len() - left + 1].to_vec())
    })
    .await;
    let link = store.room.link(authority.identity(&hub.address, &stream()));
    link.fetch(&wanted, &store.objects).await.unwrap();
    assert_eq!(hub.requests().len(), 40);
}

#[tokio::test]
async fn what_was_there_before_a_restart_is_used_and_checked() {
    let (authority, store) = (Authority::new(), Store::new());
    let content = content(1000);
    let wanted = blob(&content);
    let served = content.clone();
    let hub = FakeHub::start(&authority, move |request| Reply::Cut(answer(&served, request))).await;
    let link = store.room.link(authority.identity(&hub.address, &stream()));
    std::fs::create_dir_all(store.partial(&wanted.digest).parent().unwrap()).unwrap();
    std::fs::write(store.partial(&wanted.digest), &content[..600]).unwrap();
    link.fetch(&wanted, &store.objects).await.unwrap();
    assert_eq!(hub.requests().iter().map(asked).collect::<Vec<_>>(), [600]);

    // A power cut left zeros behind: found out at the end, and begun anew.
    store.objects.remove(&wanted.digest).unwrap();
    std::fs::write(store.partial(&wanted.digest), [0; 600]).unwrap();
    link.fetch(&wanted, &store.objects).await.unwrap();
    assert_eq!(hub.requests().iter().map(asked).collect::<Vec<_>>(), [600, 600, 0]);

    // All of it was there.
    store.objects.remove(&wanted.digest).unwrap();
    std::fs::write(store.partial(&wanted.digest), &content).unwrap();
    link.fetch(&wanted, &store.objects).await.unwrap();
    assert_eq!(hub.requests().len(), 3);
}

#[tokio::test]
async fn a_hub_without_ranges_sends_the_whole_again() {
    let (authority, store) = (Authority::new(), Store::new());
    let content = content(1000);
    let wanted = blob(&content);
    let served = content.clone();
    let hub = FakeHub::start(&authority, move |_| Reply::Bytes(200, String::new(), served.clone())).await;
    let link = store.room.link(authority.identity(&hub.address, &stream()));
    std::fs::create_dir_all(store.partial(&wanted.digest).parent().unwrap()).unwrap();
    std::fs::write(store.partial(&wanted.digest), &content[..600]).unwrap();
    link.fetch(&wanted, &store.objects).await.unwrap();
    assert!(store.objects.has(&wanted.digest));
}

#[tokio::test(start_paused = true)]
async fn wrong_bytes_never_become_an_object() {
    let authority = Authority::new();
    let content = content(1000);
    let wanted = blob(&content);
    let mut changed = content.clone();
    changed[500] ^= 1;
    for wrong in [changed, content[..999].to_vec(), [content.clone(), vec![0]].concat()] {
        let store = Store::new();
        let hub = FakeHub::start(&authority, move |_| Reply::Bytes(200, String::new(), wrong.clone())).await;
        let link = store.room.link(authority.identity(&hub.address, &stream()));
        let error = link.fetch(&wanted, &store.objects).await.unwrap_err();
        assert!(matches!(error, FetchError::Wrong { .. }), "{error:?}");
        assert!(!store.objects.has(&wanted.digest));
        assert!(hub.requests().len() <= 2, "tried again, not for ever");
    }
}

#[tokio::test(start_paused = true)]
async fn tries_without_progress_end() {
    let (authority, store) = (Authority::new(), Store::new());
    let hub = FakeHub::start(&authority, |_| Reply::Cut(Vec::new())).await;
    let link = store.room.link(authority.identity(&hub.address, &stream()));
    let error = link.fetch(&blob(b"abc"), &store.objects).await.unwrap_err();
    assert!(error.passes() && matches!(error, FetchError::Link(..)), "{error:?}");
    assert_eq!(hub.requests().len(), 5);
}

#[tokio::test]
async fn a_blob_that_the_hub_has_no_more_is_gone() {
    let (authority, store) = (Authority::new(), Store::new());
    let hub = FakeHub::start(&authority, |_| Reply::refusal(404, "Gone")).await;
    let link = store.room.link(authority.identity(&hub.address, &stream()));
    let error = link.fetch(&blob(b"abc"), &store.objects).await.unwrap_err();
    assert!(!error.passes() && matches!(error, FetchError::Gone { .. }), "{error:?}");
}

#[tokio::test]
async fn a_blob_larger_than_the_disk_is_not_begun() {
    let (authority, store) = (Authority::new(), Store::new());
    let hub = FakeHub::start(&authority, |_| Reply::Silence).await;
    let link = store.room.link(authority.identity(&hub.address, &stream()));
    let wanted = BlobRef { digest: Digest::of(b"huge"), size: 1 << 60 };
    std::fs::create_dir_all(store.partial(&wanted.digest).parent().unwrap()).unwrap();
    std::fs::write(store.partial(&wanted.digest), b"a beginning").unwrap();
    std::fs::write(store.partial(&Digest::of(b"old")), b"of a state that is gone").unwrap();
    match link.fetch(&wanted, &store.objects).await.unwrap_err() {
        FetchError::DiskFull { need, free } => assert!(need > (1 << 60) - 100 && free > 0 && free < need),
        other => panic!("{other:?}"),
    }
    assert!(hub.requests().is_empty());
    assert!(store.partial(&wanted.digest).exists(), "what came of it stays");
    assert!(!store.partial(&Digest::of(b"old")).exists(), "what nobody asks for makes room");
}
