//! Downloads from peers that are honest, lie, drip, die or never end.

mod fake;
mod faults;
mod interleavings;

use std::fs;
use std::time::Duration;

use tokio::time::Instant;

use super::chunks::CHUNK;
use super::*;
use fake::{Behaviour, Site, blob, content};

const MIB: usize = CHUNK as usize;

struct Room {
    _folder: tempfile::TempDir,
    paths: Paths,
    objects: Objects,
    swarm: Swarm,
}

impl Room {
    fn new() -> Room {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        let objects = Objects::open(&paths.objects()).unwrap();
        Room { swarm: Swarm::new(&paths), _folder: folder, paths, objects }
    }

    fn partial(&self, blob: &BlobRef, suffix: &str) -> PathBuf {
        let whole = self.paths.state().join("partial").join(blob.digest.hex());
        if suffix.is_empty() { whole } else { whole.with_extension(suffix) }
    }

    /// It is an object as it should be, and nothing is left over.
    fn check(&self, content: &[u8]) {
        let blob = blob(content);
        assert!(fs::read(self.objects.path(&blob.digest)).unwrap() == content);
        let left: Vec<_> =
            fs::read_dir(self.paths.state().join("partial")).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_blob_comes_from_all_who_have_it_and_each_byte_once() {
    let (room, content) = (Room::new(), content(7 * MIB + 77));
    let site = Site::of(&content, &[Behaviour::Honest; 4]);
    room.swarm.fetch(&blob(&content), &site, &room.objects).await.unwrap();
    room.check(&content);
    let given: Vec<u64> = site.fakes.iter().map(|fake| fake.given()).collect();
    assert!(given.iter().all(|given| *given > 0), "{given:?}");
    assert_eq!(given.iter().sum::<u64>(), content.len() as u64);
    assert_eq!(site.misbehaviors(), []);
    let asked = site.requests();
    room.swarm.fetch(&blob(&content), &site, &room.objects).await.unwrap();
    assert_eq!(site.requests(), asked, "what is there isn't fetched");
}

#[tokio::test(start_paused = true)]
async fn no_more_than_four_are_asked_at_once_and_one_thing_each() {
    let (room, content) = (Room::new(), content(12 * MIB));
    let site = Site::of(&content, &[Behaviour::Honest; 9]);
    room.swarm.fetch(&blob(&content), &site, &room.objects).await.unwrap();
    room.check(&content);
    assert!(site.most_at_once() <= 4, "{}", site.most_at_once());
    assert!(site.fakes.iter().all(|fake| fake.most_at_once() <= 1));
}

#[tokio::test(start_paused = true)]
async fn a_small_blob_is_one_request() {
    for size in [0, 1, MIB] {
        let (room, content) = (Room::new(), content(size));
        let site = Site::of(&content, &[Behaviour::Honest]);
        room.swarm.fetch(&blob(&content), &site, &room.objects).await.unwrap();
        room.check(&content);
        assert_eq!(site.requests(), usize::from(size > 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_goes_on_with_the_chunks_that_are_there() {
    let (room, content) = (Room::new(), content(5 * MIB + 9));
    let wanted = blob(&content);
    let site = Site::of(&content, &[Behaviour::DiesAfter(3 * MIB as u64 + 50)]);
    let stopped = room.swarm.fetch(&wanted, &site, &room.objects).await.unwrap_err();
    assert!(matches!(stopped, SwarmError::Nobody(digest) if digest == wanted.digest));
    assert!(room.partial(&wanted, "swarm").exists());
    let site = Site::of(&content, &[Behaviour::Honest]);
    Swarm::new(&room.paths).fetch(&wanted, &site, &room.objects).await.unwrap();
    room.check(&content);
    assert_eq!(site.fakes[0].given(), 2 * MIB as u64 + 9);
}

#[tokio::test(start_paused = true)]
async fn what_a_power_cut_took_is_fetched_again_and_nobody_is_blamed() {
    let (room, content) = (Room::new(), content(4 * MIB));
    let wanted = blob(&content);
    let site = Site::of(&content, &[Behaviour::DiesAfter(3 * MIB as u64)]);
    room.swarm.fetch(&wanted, &site, &room.objects).await.unwrap_err();
    // The second chunk wasn't synced, and the hints were.
    let data = room.partial(&wanted, "swarm");
    let mut bytes = fs::read(&data).unwrap();
    bytes[MIB..2 * MIB].fill(0);
    fs::write(&data, bytes).unwrap();
    let site = Site::of(&content, &[Behaviour::Honest]);
    room.swarm.fetch(&wanted, &site, &room.objects).await.unwrap();
    room.check(&content);
    assert_eq!((site.fakes[0].given(), site.misbehaviors()), (2 * MIB as u64, vec![]));
}

#[tokio::test(start_paused = true)]
async fn hints_that_are_nonsense_cost_time_only() {
    let (room, content) = (Room::new(), content(3 * MIB));
    let wanted = blob(&content);
    for (suffix, nonsense) in [("list", b"nonsense".as_slice()), ("have", &[255; 40]), ("swarm", &[1; 100])] {
        let site = Site::of(&content, &[Behaviour::DiesAfter(2 * MIB as u64)]);
        room.swarm.fetch(&wanted, &site, &room.objects).await.unwrap_err();
        fs::write(room.partial(&wanted, suffix), nonsense).unwrap();
        let site = Site::of(&content, &[Behaviour::Honest]);
        room.swarm.fetch(&wanted, &site, &room.objects).await.unwrap();
        room.check(&content);
        room.objects.remove(&wanted.digest).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_beginning_from_the_hub_is_used_and_given_back() {
    let (room, content) = (Room::new(), content(4 * MIB + 1));
    let wanted = blob(&content);
    fs::create_dir_all(room.paths.state().join("partial")).unwrap();
    fs::write(room.partial(&wanted, ""), &content[..MIB + 500]).unwrap();
    let site = Site::of(&content, &[Behaviour::DiesAfter(2 * MIB as u64 + 5)]);
    room.swarm.fetch(&wanted, &site, &room.objects).await.unwrap_err();
    assert_eq!(site.fakes[0].given(), 2 * MIB as u64 + 5, "the first chunk was there");
    assert_eq!(room.swarm.hand_over(&wanted).unwrap(), 3 * MIB as u64);
    assert!(fs::read(room.partial(&wanted, "")).unwrap() == content[..3 * MIB]);
    assert!(["swarm", "list", "have"].iter().all(|suffix| !room.partial(&wanted, suffix).exists()));
    assert_eq!(room.swarm.hand_over(&wanted).unwrap(), 0, "there is nothing more");
    assert!(fs::read(room.partial(&wanted, "")).unwrap() == content[..3 * MIB]);
}

#[tokio::test(start_paused = true)]
async fn a_proved_list_is_served_without_reading_the_blob() {
    let (room, content) = (Room::new(), content(3 * MIB));
    let site = Site::of(&content, &[Behaviour::Honest]);
    room.swarm.fetch(&blob(&content), &site, &room.objects).await.unwrap();
    let (list, _) = Lists::of(&room.paths).read(&blob(&content)).unwrap();
    assert_eq!(list, ChunkList::compute(content.as_slice(), content.len() as u64).unwrap().0);
}

#[tokio::test(start_paused = true)]
async fn without_holders_the_hub_is_asked_after_a_minute_and_later_if_it_is_coming() {
    let (room, content) = (Room::new(), content(10));
    let site = Site::of(&content, &[]);
    let began = Instant::now();
    room.swarm.fetch(&blob(&content), &site, &room.objects).await.unwrap_err();
    assert!((60..62).contains(&began.elapsed().as_secs()));
    let site = Site::of(&content, &[]).coming_for(Duration::from_secs(600));
    let began = Instant::now();
    room.swarm.fetch(&blob(&content), &site, &room.objects).await.unwrap_err();
    assert!((659..663).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_download_that_is_dropped_at_any_time_goes_on() {
    let (room, content) = (Room::new(), content(6 * MIB));
    let wanted = blob(&content);
    let site = Site::of(&content, &[Behaviour::Paced(MIB as u64); 2]);
    let mut rounds = 0;
    while tokio::time::timeout(Duration::from_millis(1300), room.swarm.fetch(&wanted, &site, &room.objects))
        .await
        .is_err()
    {
        rounds += 1;
        assert!(rounds < 20);
    }
    assert!(rounds > 1);
    room.check(&content);
}
