//! Bundles, good and bad, and what is told back.

use kedge_bundle::{BundleError, Parts, Reader};
use kedge_durable::{Disk as _, RealDisk};
use kedge_model::wire::{ClusterId, DesiredState, Digest, Generation, Presence, Sequence, Timestamp, Turn};
use kedge_status::Severity;

use super::world::{World, disk, stream};
use crate::airgap::import::ImportError;
use crate::airgap::inbox::Inbox;
use crate::airgap::{carried, export, looked};
use crate::clock::SystemClock;
use crate::desired::Memory;
use crate::desired::view::View;
use crate::objects::Objects;
use crate::report::Reporter;

const PLATFORM: &[u8] = b"the platform's package";
const WORKLOAD: &[u8] = b"the workload's package";

impl World {
    fn objects(&self) -> Objects {
        Objects::open(&self.paths.objects()).unwrap()
    }

    /// As the daemon does.
    fn take(&self) -> usize {
        let mut memory = Memory::open(disk(), &self.paths, &self.identity()).unwrap().memory;
        let mut refused = 0;
        let take = |answer: &_| {
            refused += memory.accept(answer).unwrap().refused.len();
            true
        };
        assert!(Inbox::of(&self.paths).take(take).unwrap());
        refused
    }

    fn generation(&self) -> Option<Generation> {
        let view = View::read(&RealDisk, &self.paths, &self.identity()).unwrap();
        view.state().map(|state| state.generation)
    }

    /// Everything below the host's folder.
    fn picture(&self) -> Vec<(std::path::PathBuf, u64)> {
        let mut all = Vec::new();
        let mut folders = vec![self.paths.state()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                match entry.metadata().unwrap() {
                    known if known.is_dir() => folders.push(entry.path()),
                    known => all.push((entry.path(), known.len())),
                }
            }
        }
        all.sort();
        all
    }
}

#[test]
fn a_bundle_brings_the_state_and_its_content_once() {
    let world = World::joined();
    let bytes = world.bundle(&world.state(3, PLATFORM, WORKLOAD), &[PLATFORM, WORKLOAD]);
    let brought = world.import(&bytes).unwrap();
    assert_eq!((brought.copied, brought.present, brought.missing.len()), (2, 0, 0));
    assert_eq!(brought.state, Some((stream(), Generation(3))));
    assert!(brought.refused.is_empty() && world.objects().is_whole(&Digest::of(WORKLOAD)));
    assert_eq!(world.generation(), None, "the daemon hasn't taken it");
    assert_eq!(world.take(), 0);
    assert_eq!(world.generation(), Some(Generation(3)));
    let again = world.import(&bytes).unwrap();
    assert!(!again.is_news() && again.ours && again.present == 2, "{again:?}");
    assert!(Inbox::of(&world.paths).is_empty());
}

#[test]
fn an_older_generation_is_refused_and_brings_nothing() {
    let world = World::joined();
    world.import(&world.bundle(&world.state(3, PLATFORM, WORKLOAD), &[PLATFORM, WORKLOAD])).unwrap();
    world.take();
    let before = world.picture();
    let brought = world.import(&world.bundle(&world.state(2, b"old", b"older"), &[b"old", b"older"])).unwrap();
    assert!(brought.refused[0].contains("its generation 2 of dev/drone/all is not above 3"), "{brought:?}");
    assert!(!brought.is_news());
    assert_eq!((world.picture(), world.generation()), (before, Some(Generation(3))));
}

#[test]
fn what_isnt_the_hubs_word_changes_nothing() {
    let (world, other) = (World::joined(), World::joined());
    world.objects();
    Inbox::of(&world.paths).put_site(&[]).unwrap();
    let before = world.picture();
    let good = world.bundle(&world.state(3, PLATFORM, WORKLOAD), &[PLATFORM, WORKLOAD]);
    let foreign = other.bundle(&other.state(3, PLATFORM, WORKLOAD), &[PLATFORM, WORKLOAD]);
    assert!(matches!(world.import(&foreign), Err(ImportError::Bundle(BundleError::OtherFleet(_)))));
    for at in [3, 12, 40, good.len() / 2, good.len() - 50] {
        let mut changed = good.clone();
        changed[at] ^= 4;
        assert!(world.import(&changed).is_err(), "byte {at}");
    }
    let cut = world.import(&good[..good.len() - 1]);
    assert!(matches!(cut, Err(ImportError::Bundle(BundleError::Truncated { .. }))));
    assert_eq!(world.picture(), before);

    // The last blob is wrong: nothing of it shows.
    let mut changed = good.clone();
    *changed.last_mut().unwrap() ^= 1;
    assert!(matches!(world.import(&changed), Err(ImportError::Bundle(BundleError::WrongBlob(_)))));
    assert!(Inbox::of(&world.paths).is_empty() && !world.objects().has(&Digest::of(WORKLOAD)));
    assert!(world.picture().iter().all(|(path, _)| path.extension().is_none_or(|extension| extension != "new")));
}

#[test]
fn a_part_that_isnt_there_is_named_and_a_full_disk_said_before() {
    let world = World::joined();
    let good = world.bundle(&world.state(3, PLATFORM, WORKLOAD), &[PLATFORM, WORKLOAD]);
    let path = world.write(&good, Some(good.len() as u64 - 5));
    let second = path.with_extension("kedge.002");
    std::fs::remove_file(&second).unwrap();
    let identity = world.identity();
    let importer =
        super::super::import::Importer { disk: disk(), paths: &world.paths, identity: &identity, reserve: 0 };
    let missing = importer.import(&path, |_| {});
    assert!(matches!(missing, Err(ImportError::Bundle(BundleError::MissingPart(part))) if part == second));
    assert!(matches!(world.import_with(&good, None, u64::MAX / 2), Err(ImportError::NoRoom { need: 44, .. })));
    assert!(Inbox::of(&world.paths).is_empty());
}

#[test]
fn what_since_left_out_and_isnt_here_is_missing() {
    let world = World::joined();
    let brought = world.import(&world.bundle(&world.state(3, PLATFORM, WORKLOAD), &[PLATFORM])).unwrap();
    assert_eq!(brought.missing.iter().map(|blob| blob.digest).collect::<Vec<_>>(), [Digest::of(WORKLOAD)]);
    world.take();
    let later = world.import(&world.bundle(&world.state(3, PLATFORM, WORKLOAD), &[WORKLOAD])).unwrap();
    assert!(later.missing.is_empty() && later.is_news() && later.state.is_none(), "{later:?}");
    assert_eq!(world.take(), 0);
}

#[test]
fn keys_and_a_move_are_followed_before_the_state() {
    let mut world = World::joined();
    world.hub.rotate();
    let me = world.identity().cluster();
    let mut index = world.index();
    index.memberships.push(world.hub.sign(&world.membership(me, 2, "plant")));
    index.memberships.push(world.hub.sign(&world.membership(ClusterId::of_public_key(&[9; 32]), 1, "plant")));
    index.memberships.push(world.hub.sign(&world.membership(ClusterId::of_public_key(&[8; 32]), 1, "elsewhere")));
    index.states.push(world.hub.sign(&DesiredState { turns: true, ..world.state(1, PLATFORM, WORKLOAD) }));
    for cluster in [me, ClusterId::of_public_key(&[9; 32]), ClusterId::of_public_key(&[8; 32])] {
        let (generation, issued_at) = (Generation(1), Timestamp(1));
        let turn = Turn { cluster, stream: stream(), generation, issued_at, asked: None };
        index.turns.push(world.hub.sign(&turn));
    }
    for blob in [PLATFORM, WORKLOAD] {
        index.add_blob(Digest::of(blob), blob.len() as u64);
    }
    let brought = world.import(&world.seal(&index, &[PLATFORM, WORKLOAD])).unwrap();
    assert_eq!((brought.keys, brought.membership), (Some(2), Some(Sequence(2))));
    // The neighbour's membership, the state that both follow, and the neighbour's turn: here a person imported it.
    assert_eq!((brought.site, brought.refused.len()), (3, 0));
    assert_eq!(Inbox::of(&world.paths).site().unwrap().len(), 3);
    assert_eq!(world.take(), 0);
    assert_eq!(world.generation(), Some(Generation(1)));
}

#[test]
fn a_host_tells_what_it_knows_and_that_it_lives_only_if_it_does() {
    let world = World::joined();
    let identity = world.identity();
    let (key, now) = (identity.signing_key(), Timestamp(1_794_819_600_000));
    let file = world.folder.path().join("up.kedge");
    let read = || {
        let reader = Reader::open(Parts::open(&file).unwrap()).unwrap();
        let (cluster, bundle) = reader.verify_writer().unwrap();
        assert_eq!(cluster, identity.cluster());
        bundle.into_index()
    };
    let told = export::export(&RealDisk, &world.paths, &identity, (now, true), &file).unwrap();
    assert!(!told.status && !told.presence && read().documents.is_empty());

    let clock = std::sync::Arc::new(SystemClock);
    let (mut reporter, _) = Reporter::open(&disk(), &world.paths, key.public(), clock);
    reporter.warn("DiskLow", Severity::Error, "soon full");
    reporter.flush().unwrap();
    looked::note(&world.paths, Timestamp(now.0 - 90_000));
    let told = export::export(&RealDisk, &world.paths, &identity, (now, false), &file).unwrap();
    assert!(told.status && !told.presence && read().presences.is_empty());

    let other = kedge_model::wire::SigningKey::from_seed(&[7; 32]).unwrap();
    let theirs = Presence { key: other.public(), at: now, poll: poll() };
    let theirs = kedge_model::wire::Envelope::sign(&theirs, &other).unwrap();
    carried::keep(&world.paths, &[theirs.clone(), world.hub.chain[0].clone()]).unwrap();
    let told = export::export(&RealDisk, &world.paths, &identity, (now, true), &file).unwrap();
    assert_eq!((told.presence, told.others), (true, 1));
    let index = read();
    assert_eq!((index.documents.len(), index.presences.len(), index.presences.last()), (1, 2, Some(&theirs)));
    let presence = Presence::open(&index.presences[0]).unwrap();
    assert_eq!((presence.at, presence.poll.look_age, presence.poll.status), (now, 90, reporter.heads()));
    let status = kedge_status::read(&index.documents[0], &kedge_status::Limits::default()).unwrap();
    assert!(status.warnings.contains_key("DiskLow"));
}

fn poll() -> kedge_model::wire::PollRequest {
    let world = World::joined();
    View::read(&RealDisk, &world.paths, &world.identity()).unwrap().request_base()
}

#[test]
fn the_inbox_is_bounded_and_survives_what_others_write_into_it() {
    let world = World::joined();
    world.import(&world.bundle(&world.state(3, PLATFORM, WORKLOAD), &[PLATFORM, WORKLOAD])).unwrap();
    let news = world.paths.inbox().join("news.json");
    RealDisk.write(&news, b"{\"answers\": 7").unwrap();
    assert_eq!(world.take(), 0);
    assert!(Inbox::of(&world.paths).is_empty());
    let full =
        (0..20).map(|_| world.import(&world.bundle(&world.state(3, PLATFORM, WORKLOAD), &[]))).find(Result::is_err);
    assert!(matches!(full, Some(Err(ImportError::Inbox(_)))), "{full:?}");
}
