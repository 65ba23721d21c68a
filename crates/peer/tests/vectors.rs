//! `docs/vectors/peer.json`: an exchange between two agents with fixed keys and times, and the marks of a store's digest, as a file that
//! others check themselves against. KEDGE_UPDATE=1 writes it again.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

use std::path::PathBuf;

use kedge_model::wire::digest::hex;
use kedge_model::wire::*;
use kedge_peer::{Action, DocumentStore, Message, Node, Settings};
use serde_json::{Value, json};

const TIME: Timestamp = Timestamp(1_790_000_000_000);

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

fn id(seed: u8) -> ClusterId {
    ClusterId::of_public_key(key(seed).public().as_bytes())
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/vectors/peer.json")
}

fn keys() -> KeySet {
    let public = key(1).public();
    let keys = vec![Key { id: public.id(), public, state: KeyState::Active }];
    KeySet { version: 1, created_at: TIME, keys, authorities: Vec::new() }
}

fn membership(seed: u8, name: &str) -> Envelope {
    let membership = Membership {
        cluster: id(seed),
        name: name.to_owned(),
        stream: Stream::new("prod", "drone", Stream::ALL),
        labels: Default::default(),
        site: Some("berlin-2".to_owned()),
        sequence: Sequence(4),
        issued_at: TIME,
        remove: Vec::new(),
        unmanage: Vec::new(),
        relay: false,
        retired: false,
        requires: Vec::new(),
    };
    Envelope::sign(&membership, &key(1)).unwrap()
}

fn state() -> Envelope {
    let state = DesiredState {
        stream: Stream::new("prod", "drone", Stream::ALL),
        generation: Generation(17),
        created_at: TIME,
        confirmed: 0,
        entries: Vec::new(),
        removed: Vec::new(),
        unmanaged: Vec::new(),
        source: None,
        turns: false,
        requires: Vec::new(),
    };
    Envelope::sign(&state, &key(1)).unwrap()
}

fn presence(seed: u8) -> Envelope {
    let poll = PollRequest {
        key_set: 1,
        membership: Sequence(4),
        generation: Generation(16),
        status: Heads { epoch: 3, nonce: "07".repeat(16), heads: vec!["0123456789abcdef".to_owned()] },
        look_age: 42,
        profile: Profile::Normal,
        wait: None,
        holds: 0,
    };
    Envelope::sign(&Presence { key: key(seed).public(), at: TIME, poll }, &key(seed)).unwrap()
}

fn node(seed: u8) -> Node {
    let settings = Settings { me: id(seed), site: "berlin-2".to_owned(), seed: u64::from(seed), carries: true };
    let mut node = Node::new(settings, keys(), TIME);
    node.put(membership(3, "line-3-press")).unwrap();
    node.put(membership(4, "line-4-press")).unwrap();
    node
}

fn sent(actions: Vec<Action>) -> Message {
    let sent = actions.into_iter().find_map(|action| match action {
        Action::Send { message, .. } => Some(message),
        _ => None,
    });
    sent.unwrap()
}

/// The third asks the fourth, which reaches the hub and has a newer state.
fn vector() -> Value {
    let (mut asks, mut answers) = (node(3), node(4));
    answers.put(state()).unwrap();
    answers.reach(Some(Timestamp(TIME.0 - 12_000)));
    asks.found(id(4), TIME);
    asks.presence(presence(3));
    let later = Timestamp(TIME.0 + 1_000);
    answers.tick(later);
    let digest = sent(asks.tick(later));
    let (list, _) = answers.heard(id(3), digest.clone(), later);
    let wants = sent(asks.answered(id(4), list.clone().unwrap(), later));
    let (gives, _) = answers.heard(id(3), wants.clone(), later);
    asks.answered(id(4), gives.clone().unwrap(), later);
    assert_eq!(asks.store().digest(&id(4)), answers.store().digest_of(&id(3)));
    let store = answers.store().summary(&id(3));
    json!({
        "seeds": {"hub": hex(&[1; 32]), "asks": hex(&[3; 32]), "answers": hex(&[4; 32])},
        "site": "berlin-2",
        "memberships": [membership(3, "line-3-press"), membership(4, "line-4-press")],
        "exchange": [digest, list, wants, gives],
        "shelf": store,
        "digest": answers.store().digest(&id(3)),
        "presence": presence(3),
    })
}

#[test]
fn the_peer_vector_is_what_the_code_makes() {
    let text = format!("{}\n", serde_json::to_string_pretty(&vector()).unwrap());
    if std::env::var_os("KEDGE_UPDATE").is_some() {
        std::fs::write(path(), &text).unwrap();
    }
    let known = std::fs::read_to_string(path()).unwrap_or_default();
    assert!(known == text, "docs/vectors/peer.json is not what the code makes; KEDGE_UPDATE=1 writes it again");
}

/// As another program would: nothing but the file and the page's rules.
#[test]
fn the_peer_vector_verifies() {
    let vector: Value = serde_json::from_str(&std::fs::read_to_string(path()).unwrap()).unwrap();
    let messages = vector["exchange"].as_array().unwrap();
    let messages: Vec<Message> =
        messages.iter().map(|message| Message::from_json(message.to_string().as_bytes()).unwrap()).collect();
    let mut store = DocumentStore::new(id(3), "berlin-2", keys());
    for given in vector["memberships"].as_array().unwrap() {
        store.take(serde_json::from_value(given.clone()).unwrap()).unwrap();
    }
    assert_eq!(store.digest(&id(4)), messages[0].digest);
    for given in &messages[3].give {
        store.take(given.clone()).unwrap();
    }
    assert_eq!(store.digest_of(&id(4)), messages[3].digest);
    let mut sum = [0_u8; 16];
    for listed in vector["shelf"].as_array().unwrap() {
        let (name, version) = (listed[0].as_str().unwrap(), &listed[1]);
        let text = format!("kedge shelf 1\0{name}\0{}.{}", version[0], version[1]);
        let mark = Digest::of(text.as_bytes());
        sum.iter_mut().zip(mark.as_bytes()).for_each(|(sum, mark)| *sum ^= mark);
    }
    let digest = Digest::of(format!("kedge shelf 1\0{}\0{}", id(4), hex(&sum)).as_bytes());
    assert_eq!(vector["digest"], digest.hex()[..16]);
    Presence::open(&serde_json::from_value(vector["presence"].clone()).unwrap()).unwrap();
}
