//! What is believed and what isn't, and that it is there again after a restart.

mod cuts;

use std::sync::Arc;

use kedge_durable::{Disk, RealDisk};
use kedge_model::wire::{
    ClusterId, DesiredState, Envelope, Generation, HoldDocument, HoldEntry, KeySet, Membership, Payload as _,
    PollAnswer, Sequence, Stream, Timestamp, Turn,
};
use proptest::prelude::*;

use super::*;
use crate::link::fake::Authority;

/// A hub's words and a host that listens.
struct Room {
    hub: Authority,
    identity: Identity,
    paths: Paths,
    _folder: tempfile::TempDir,
}

fn stream(ring: &str) -> Stream {
    Stream::new("dev", "drone", ring)
}

impl Room {
    fn new() -> Room {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        std::fs::create_dir_all(paths.state()).unwrap();
        let hub = Authority::new();
        let identity = hub.identity("https://hub:1", &stream("all"));
        Room { hub, identity, paths, _folder: folder }
    }

    fn open(&self) -> Memory {
        let opened = Memory::open(disk(), &self.paths, &self.identity).unwrap();
        assert_eq!(opened.healed, Vec::<String>::new());
        opened.memory
    }

    fn membership(&self, sequence: u64, ring: &str) -> Membership {
        self.hub.membership(self.identity.cluster(), sequence, &stream(ring))
    }

    fn state(&self, generation: u64, ring: &str) -> Envelope {
        self.hub.sign(&state(generation, ring))
    }
}

fn disk() -> Arc<dyn Disk> {
    Arc::new(RealDisk)
}

fn state(generation: u64, ring: &str) -> DesiredState {
    DesiredState {
        stream: stream(ring),
        generation: Generation(generation),
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

fn answer() -> PollAnswer {
    PollAnswer {
        time: crate::link::fake::authority::now(),
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

fn with_state(state: Envelope) -> PollAnswer {
    PollAnswer { state: Some(state), ..answer() }
}

fn with_membership(membership: Envelope) -> PollAnswer {
    PollAnswer { membership: Some(membership), ..answer() }
}

/// Nothing changes, in memory and on disk, and the refusal has this code and these words.
#[track_caller]
fn refuses(room: &Room, memory: &mut Memory, answer: &PollAnswer, code: &str, words: &str) {
    let before = (memory.remembered.clone(), memory.request_base());
    let on_disk = Ledger::<Remembered>::read(&RealDisk, &path(&room.paths)).unwrap();
    let accepted = memory.accept(answer).unwrap();
    assert!(!accepted.changed(), "{accepted:?}");
    assert_eq!(accepted.refused.len(), 1);
    assert_eq!(accepted.refused[0].code, code);
    assert!(accepted.refused[0].message.contains(words), "{}", accepted.refused[0].message);
    assert_eq!((memory.remembered.clone(), memory.request_base()), before);
    assert_eq!(Ledger::<Remembered>::read(&RealDisk, &path(&room.paths)).unwrap(), on_disk);
}

#[test]
fn a_newer_state_is_taken_and_there_after_a_restart() {
    let room = Room::new();
    let mut memory = room.open();
    assert_eq!(memory.request_base().generation, Generation(0));
    let accepted = memory.accept(&with_state(room.state(7, "all"))).unwrap();
    assert_eq!(accepted, Accepted { state_changed: true, ..Accepted::default() });
    let memory = room.open();
    assert_eq!(memory.state().map(|state| state.generation), Some(Generation(7)));
    assert_eq!(memory.request_base().generation, Generation(7));
    assert_eq!(memory.state_envelope(), Some(&room.state(7, "all")));
}

#[test]
fn an_older_or_equal_generation_is_refused() {
    let room = Room::new();
    let mut memory = room.open();
    memory.accept(&with_state(room.state(7, "all"))).unwrap();
    for generation in [0, 1, 6, 7] {
        refuses(&room, &mut memory, &with_state(room.state(generation, "all")), "StateRefused", "is not above 7");
    }
    assert!(memory.accept(&with_state(room.state(8, "all"))).unwrap().state_changed);
}

#[test]
fn a_state_that_asks_for_turns_waits_for_the_hubs_word_unless_the_hub_brought_it() {
    let room = Room::new();
    let mut memory = room.open();
    memory.accept(&with_state(room.state(7, "all"))).unwrap();
    let turns = |generation| with_state(room.hub.sign(&DesiredState { turns: true, ..state(generation, "all") }));
    let turn = |cluster, ring: &str, generation| Turn {
        cluster,
        stream: stream(ring),
        generation: Generation(generation),
        issued_at: Timestamp(1),
        asked: None,
    };
    let (me, other) = (room.identity.cluster(), ClusterId::of_public_key(&[7; 32]));
    let good = room.hub.sign(&turn(me, "all", 8));
    let stranger = Authority::new().sign(&turn(me, "all", 8));
    let own = Envelope::sign(&turn(me, "all", 8), room.identity.signing_key()).unwrap();
    let worthless = [
        None,
        Some(room.hub.sign(&turn(other, "all", 8))),
        Some(room.hub.sign(&turn(me, "canary", 8))),
        Some(room.hub.sign(&turn(me, "all", 7))),
        Some(stranger),
        Some(own),
    ];
    for turn in worthless {
        assert_eq!(memory.accept_from_peer(&turns(8), turn.as_ref()).unwrap(), Accepted::default(), "{turn:?}");
        assert_eq!(memory.offered().map(|state| state.generation), Some(Generation(8)));
        assert_eq!(memory.request_base().generation, Generation(7), "the hub hears what is followed");
    }
    assert_eq!(room.open().state().map(|state| state.generation), Some(Generation(7)));
    assert!(memory.accept_from_peer(&turns(8), Some(&good)).unwrap().state_changed);
    assert_eq!((memory.offered(), memory.request_base().generation), (None, Generation(8)));

    memory.accept_from_peer(&turns(9), Some(&good)).unwrap();
    assert!(memory.offered().is_some(), "a turn is for states up to one");
    assert!(memory.accept(&turns(9)).unwrap().state_changed, "what the hub itself gives is the turn");
    assert!(memory.offered().is_none());
    assert!(memory.accept_from_peer(&with_state(room.state(10, "all")), None).unwrap().state_changed);
}

#[test]
fn what_waits_is_forgotten_with_its_stream() {
    let room = Room::new();
    let mut memory = room.open();
    let waits = with_state(room.hub.sign(&DesiredState { turns: true, ..state(8, "all") }));
    memory.accept_from_peer(&waits, None).unwrap();
    assert!(memory.offered().is_some() && memory.state().is_none());
    memory.accept(&with_membership(room.hub.sign(&room.membership(2, "canary")))).unwrap();
    assert!(memory.offered().is_none());
}

#[test]
fn a_forged_state_is_refused() {
    let room = Room::new();
    let mut memory = room.open();
    let stranger = Authority::new();
    refuses(&room, &mut memory, &with_state(stranger.sign(&state(9, "all"))), "StateRefused", "trusted key");
    let mut forged = room.state(9, "all");
    forged.payload = serde_json::to_vec(&state(10, "all")).unwrap();
    refuses(&room, &mut memory, &with_state(forged), "StateRefused", "does not fit");
    let mut unsigned = room.state(9, "all");
    unsigned.signatures.clear();
    refuses(&room, &mut memory, &with_state(unsigned), "StateRefused", "no signature");
    let membership = room.hub.sign(&room.membership(9, "all"));
    refuses(&room, &mut memory, &with_state(membership), "StateRefused", "envelope holds");
    let own = Envelope::sign(&state(9, "all"), room.identity.signing_key()).unwrap();
    refuses(&room, &mut memory, &with_state(own), "StateRefused", "trusted key");
}

#[test]
fn another_streams_state_is_refused() {
    let room = Room::new();
    let mut memory = room.open();
    refuses(&room, &mut memory, &with_state(room.state(9, "canary")), "StateRefused", "follows dev/drone/all");
}

#[test]
fn a_state_with_an_unknown_word_is_unreadable_and_refused() {
    let room = Room::new();
    let mut memory = room.open();
    let mut json = serde_json::to_value(state(9, "all")).unwrap();
    json["entries"] = serde_json::json!([{"assignment": "a", "mode": "dance"}]);
    let envelope = room.hub.sign_bytes(DesiredState::TYPE, serde_json::to_vec(&json).unwrap());
    refuses(&room, &mut memory, &with_state(envelope), "StateRefused", "dance");
}

#[test]
fn a_membership_of_another_cluster_or_an_older_one_is_refused() {
    let room = Room::new();
    let mut memory = room.open();
    let other = room.hub.membership(ClusterId::of_public_key(&[7; 32]), 9, &stream("all"));
    refuses(&room, &mut memory, &with_membership(room.hub.sign(&other)), "MembershipRefused", "cluster");
    for sequence in [0, 1] {
        let old = room.hub.sign(&room.membership(sequence, "canary"));
        refuses(&room, &mut memory, &with_membership(old), "MembershipRefused", "is not above 1");
    }
    let new = Membership { requires: vec!["teleport".to_owned()], ..room.membership(2, "all") };
    refuses(&room, &mut memory, &with_membership(room.hub.sign(&new)), "MembershipRefused", "`teleport`");
}

#[test]
fn a_move_and_back_keeps_each_streams_generation() {
    let room = Room::new();
    let mut memory = room.open();
    memory.accept(&with_state(room.state(7, "all"))).unwrap();
    let moved = Membership { remove: vec!["a".to_owned()], ..room.membership(2, "canary") };
    let news = PollAnswer { membership: Some(room.hub.sign(&moved)), state: Some(room.state(1, "canary")), ..answer() };
    let accepted = memory.accept(&news).unwrap();
    assert!(accepted.membership_changed && accepted.state_changed && accepted.refused.is_empty());
    assert_eq!(memory.membership().remove, ["a"]);
    let back = memory.accept(&with_membership(room.hub.sign(&room.membership(3, "all")))).unwrap();
    assert!(back.state_changed && memory.state().is_none());
    assert_eq!(memory.request_base().generation, Generation(0), "its content isn't here any more");
    let mut memory = room.open();
    refuses(&room, &mut memory, &with_state(room.state(6, "all")), "StateRefused", "is not above 7");
    assert!(memory.accept(&with_state(room.state(7, "all"))).unwrap().state_changed, "the same one again");
    refuses(&room, &mut memory, &with_state(room.state(7, "all")), "StateRefused", "is not above 7");
}

#[test]
fn a_retired_cluster_knows_it_and_keeps_its_state() {
    let room = Room::new();
    let mut memory = room.open();
    memory.accept(&with_state(room.state(7, "all"))).unwrap();
    let retired = Membership { retired: true, ..room.membership(2, "all") };
    assert!(memory.accept(&with_membership(room.hub.sign(&retired))).unwrap().membership_changed);
    assert!(memory.membership().retired && memory.state().is_some());
}

#[test]
fn what_requires_an_unknown_word_is_remembered_and_said() {
    let room = Room::new();
    let mut memory = room.open();
    let state = DesiredState { requires: vec!["wasm".to_owned()], ..state(9, "all") };
    let accepted = memory.accept(&with_state(room.hub.sign(&state))).unwrap();
    assert!(accepted.state_changed);
    assert_eq!(accepted.refused[0].code, "Unsupported");
    assert_eq!(unsupported(&state.requires).as_deref(), Some("this agent doesn't know `wasm`: a newer one is needed"));
    assert_eq!(unsupported(&[]), None);
}

#[test]
fn key_sets_are_followed_step_by_step_and_a_gap_is_refused() {
    let mut room = Room::new();
    let mut memory = room.open();
    let (second, third) = (room.hub.rotate(), room.hub.rotate());
    let only_third = PollAnswer { key_sets: vec![third.clone()], ..answer() };
    refuses(&room, &mut memory, &only_third, "KeySetRefused", "key set");
    let stranger = Authority::new().rotate();
    refuses(&room, &mut memory, &PollAnswer { key_sets: vec![stranger], ..answer() }, "KeySetRefused", "key set");
    // The new key signs the state of the same answer.
    let news = PollAnswer { key_sets: vec![second.clone(), third], state: Some(room.state(3, "all")), ..answer() };
    let accepted = memory.accept(&news).unwrap();
    assert!(accepted.keys_changed && accepted.state_changed);
    assert_eq!((memory.keys().version, room.open().keys().version), (3, 3));
    refuses(&room, &mut memory, &PollAnswer { key_sets: vec![second], ..answer() }, "KeySetRefused", "key set");
}

#[test]
fn holds_of_the_hub_are_taken_by_their_sequence() {
    let room = Room::new();
    let mut memory = room.open();
    let entry =
        HoldEntry { assignment: "a".to_owned(), by: "ada".to_owned(), reason: String::new(), since: Timestamp(1) };
    let holds = |sequence| HoldDocument {
        cluster: room.identity.cluster(),
        sequence,
        written_at: Timestamp(1),
        holds: vec![entry.clone()],
    };
    let with = |holds: &HoldDocument| PollAnswer { holds: Some(room.hub.sign(holds)), ..answer() };
    assert!(memory.accept(&with(&holds(4))).unwrap().holds_changed);
    assert_eq!(room.open().request_base().holds, 4);
    refuses(&room, &mut memory, &with(&holds(4)), "HoldsRefused", "is not above 4");
    let other = HoldDocument { cluster: ClusterId::of_public_key(&[7; 32]), ..holds(5) };
    refuses(&room, &mut memory, &with(&other), "HoldsRefused", "cluster");
    assert_eq!(memory.holds().unwrap().0.holds, std::slice::from_ref(&entry));
}

#[test]
fn an_idle_answer_writes_nothing_for_a_day() {
    let room = Room::new();
    let mut memory = room.open();
    let (_, _, joined) = room.identity.origin();
    let at = |time: i64| PollAnswer { time: Timestamp(joined.0 + time), ..answer() };
    memory.accept(&at(1000)).unwrap();
    assert_eq!(Ledger::<Remembered>::read(&RealDisk, &path(&room.paths)).unwrap(), None);
    memory.accept(&at(TIME_EVERY)).unwrap();
    assert_eq!(room.open().hub_time(), Timestamp(joined.0 + TIME_EVERY));
}

#[test]
fn a_broken_memory_begins_again_with_the_join_and_says_so() {
    let room = Room::new();
    room.open().accept(&with_state(room.state(7, "all"))).unwrap();
    for which in ["a", "b"] {
        std::fs::write(room.paths.state().join(format!("memory.{which}")), b"rubbish").unwrap();
    }
    let opened = Memory::open(disk(), &room.paths, &room.identity).unwrap();
    assert!(opened.healed[0].contains("begins again"), "{:?}", opened.healed);
    let mut memory = opened.memory;
    assert!(memory.state().is_none());
    assert!(memory.accept(&with_state(room.state(7, "all"))).unwrap().state_changed);
    assert!(room.paths.state().join("memory.a.broken").exists());
}

#[test]
fn both_copies_of_the_memory_are_lost_and_an_old_state_is_refused_all_the_same() {
    let room = Room::new();
    let mut ledger = Ledger::open(disk(), &crate::identity::path(&room.paths)).unwrap().ledger;
    let joined = Some(room.identity.joined().clone());
    ledger.write(&crate::identity::Stored { joined, ..Default::default() }).unwrap();
    room.open().accept(&with_state(room.state(7, "all"))).unwrap();
    let lost: Vec<_> = std::fs::read_dir(room.paths.state())
        .unwrap()
        .map(|found| found.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("memory"))
        .collect();
    assert_eq!(lost.len(), 2, "{lost:?}");
    lost.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    let identity = Identity::read(&*disk(), &room.paths).unwrap().unwrap();
    assert_eq!(identity.cluster(), room.identity.cluster());
    let mut memory = Memory::open(disk(), &room.paths, &identity).unwrap().memory;
    assert!(memory.state().is_none());
    refuses(&room, &mut memory, &with_state(room.state(6, "all")), "StateRefused", "is not above 7");
    assert!(memory.accept(&with_state(room.state(7, "all"))).unwrap().state_changed, "the one it had is taken again");
    assert!(memory.accept(&with_state(room.state(8, "all"))).unwrap().state_changed);
    // A renewed certificate keeps them.
    let identity = Identity::read(&*disk(), &room.paths).unwrap().unwrap();
    assert_eq!(identity.floors()[0].generation, Generation(8));
}

#[test]
fn a_new_identity_begins_with_its_own_join() {
    let mut room = Room::new();
    room.open().accept(&with_state(room.state(7, "all"))).unwrap();
    room.identity = room.hub.identity("https://hub:1", &stream("all"));
    let memory = room.open();
    assert_eq!(memory.membership().cluster, room.identity.cluster());
    assert_eq!((memory.state(), memory.request_base().generation), (None, Generation(0)));
}

#[test]
fn a_state_too_large_to_remember_is_refused_and_the_rest_is_taken() {
    let room = Room::new();
    let mut memory = room.open();
    let source = kedge_model::wire::PlatformSource {
        repo: "x".repeat(4 * 1024 * 1024),
        branch: String::new(),
        path: String::new(),
        commit: String::new(),
    };
    let large = DesiredState { source: Some(source), ..state(9, "all") };
    let news =
        PollAnswer { membership: Some(room.hub.sign(&room.membership(2, "all"))), ..with_state(room.hub.sign(&large)) };
    let accepted = memory.accept(&news).unwrap();
    assert!(accepted.membership_changed && !accepted.state_changed);
    assert_eq!(accepted.refused[0].code, "StateRefused");
    assert_eq!((memory.membership().sequence, room.open().membership().sequence), (Sequence(2), Sequence(2)));
}

#[test]
fn the_vectors_of_the_wire_are_read() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/vectors");
    let vector = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap()
    };
    let sets = vector("key-sets.json");
    let chain: Vec<Envelope> = serde_json::from_value(sets["chain"].clone()).unwrap();
    let mut keys = KeySet::first(&chain[0]).unwrap();
    for next in &chain[1..] {
        keys = keys.follow(next).unwrap();
    }
    let second = KeySet::first(&chain[0]).unwrap().follow(&chain[1]).unwrap();
    for (name, refused) in sets["notAfterTheSecond"].as_object().unwrap() {
        let envelope: Envelope = serde_json::from_value(refused.clone()).unwrap();
        assert!(second.follow(&envelope).is_err(), "{name}");
    }
    let poll = vector("poll.json");
    assert!(serde_json::from_value::<PollAnswer>(poll["idle"].clone()).is_ok());
    assert!(serde_json::from_value::<PollAnswer>(poll["news"].clone()).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_changed_byte_is_never_accepted(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let room = Room::new();
        let mut memory = room.open();
        let original = room.state(9, "all");
        let mut bytes = original.to_json().unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(changed) = Envelope::from_json(&bytes) && changed != original {
            let accepted = memory.accept(&with_state(changed)).unwrap();
            prop_assert!(!accepted.changed());
            prop_assert_eq!(accepted.refused.len(), 1);
        }
    }

    #[test]
    fn random_signed_bytes_neither_harm_nor_count(payload in proptest::collection::vec(any::<u8>(), 0..500)) {
        let room = Room::new();
        let mut memory = room.open();
        let envelopes = [Membership::TYPE, DesiredState::TYPE, HoldDocument::TYPE, KeySet::TYPE]
            .map(|kind| room.hub.sign_bytes(kind, payload.clone()));
        let [membership, state, holds, keys] = envelopes;
        let news = PollAnswer {
            membership: Some(membership), state: Some(state), holds: Some(holds), key_sets: vec![keys], ..answer()
        };
        let accepted = memory.accept(&news).unwrap();
        prop_assert!(!accepted.changed());
        prop_assert_eq!(accepted.refused.len(), 4);
    }
}
