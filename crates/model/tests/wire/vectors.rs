//! `docs/vectors`: messages with fixed keys and times, as files that hub, agent and others check themselves against.
//! KEDGE_UPDATE=1 writes them again.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kedge_model::kinds::{Conflicts, Destination, Drift, Rollback, Scope};
use kedge_model::wire::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const HUB: [u8; 32] = [1; 32];
const NEXT: [u8; 32] = [2; 32];
const CLUSTER: [u8; 32] = [3; 32];
const TIME: Timestamp = Timestamp(1_790_000_000_000);

fn key(seed: [u8; 32]) -> SigningKey {
    SigningKey::from_seed(&seed).unwrap()
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/vectors").join(name)
}

/// Compares with the file, or writes it.
fn check(name: &str, made: &Value) {
    let text = format!("{}\n", serde_json::to_string_pretty(made).unwrap());
    if std::env::var_os("KEDGE_UPDATE").is_some() {
        std::fs::write(path(name), &text).unwrap();
    }
    let known = std::fs::read_to_string(path(name)).unwrap_or_default();
    assert!(known == text, "docs/vectors/{name} is not what the code makes; KEDGE_UPDATE=1 writes it again");
}

fn read<T: DeserializeOwned>(name: &str) -> T {
    serde_json::from_str(&std::fs::read_to_string(path(name)).unwrap()).unwrap()
}

fn hexadecimal(bytes: &[u8]) -> String {
    digest::hex(bytes)
}

fn key_set(version: u64, keys: &[([u8; 32], KeyState)]) -> KeySet {
    let keys = keys.iter().map(|(seed, state)| {
        let public = key(*seed).public();
        Key { id: public.id(), public, state: *state }
    });
    let authority = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n".to_owned();
    KeySet { version, created_at: TIME, keys: keys.collect(), authorities: vec![authority] }
}

fn membership() -> Membership {
    Membership {
        cluster: ClusterId::of_public_key(key(CLUSTER).public().as_bytes()),
        name: "line-3-press".to_owned(),
        stream: Stream::new("prod", "drone", Stream::ALL),
        labels: [("site-kind".to_owned(), "factory".to_owned())].into_iter().collect(),
        site: Some("berlin-2".to_owned()),
        sequence: Sequence(4),
        issued_at: TIME,
        remove: vec!["old-shop-prod".to_owned()],
        unmanage: Vec::new(),
        relay: false,
        retired: false,
        requires: Vec::new(),
    }
}

fn desired_state() -> DesiredState {
    let package = |name: &str, artifacts: Vec<BlobRef>| PackageRef {
        digest: Digest::of(name.as_bytes()),
        size: 4096,
        repo: format!("https://git.example.com/{name}.git"),
        commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
        artifacts,
    };
    let parameters = ApplyParameters {
        to: Destination::Host,
        namespace: Some("kedge-shop".to_owned()),
        scope: Scope::Namespace,
        conflicts: Conflicts::Fail,
        service_account: None,
        timeout_seconds: 300,
        soak_seconds: 30,
        rollback: Rollback::Auto,
        drift: Drift::Repair,
    };
    let model = BlobRef { digest: Digest::of(b"model"), size: 400_000_000 };
    let packages = Packages {
        parameters,
        platform: package("platform", Vec::new()),
        workload: package("shop", vec![model]),
        version: Some("1.4.2".to_owned()),
    };
    let object = ObjectRef {
        api_version: "kustomize.toolkit.fluxcd.io/v1".to_owned(),
        kind: "Kustomization".to_owned(),
        namespace: Some("flux-system".to_owned()),
        name: "cart".to_owned(),
    };
    let observation = Observation {
        objects: vec![object],
        expected_commit: Some("fedcba9876543210fedcba9876543210fedcba98".to_owned()),
        content: Digest::of(b"cart"),
    };
    let entry =
        |assignment: &str, mode| Entry { assignment: assignment.to_owned(), mode, restart: 0, requires: Vec::new() };
    DesiredState {
        stream: Stream::new("prod", "drone", Stream::ALL),
        generation: Generation(17),
        created_at: TIME,
        confirmed: 2,
        entries: vec![
            entry("shop-prod", Mode::Apply(Box::new(packages))),
            entry("cart-prod", Mode::Observe(observation)),
        ],
        removed: vec![Tombstone { assignment: "till-prod".to_owned(), since: Generation(16) }],
        unmanaged: Vec::new(),
        source: Some(PlatformSource {
            repo: "https://git.example.com/gitops.git".to_owned(),
            branch: "prod".to_owned(),
            path: "drone".to_owned(),
            commit: "00112233445566778899aabbccddeeff00112233".to_owned(),
        }),
        turns: false,
        requires: Vec::new(),
    }
}

fn signed<T: Payload + serde::Serialize>(message: &T, seed: [u8; 32], more: Value) -> Value {
    let mut vector = json!({
        "seed": hexadecimal(&seed),
        "public": BASE64.encode(key(seed).public().as_bytes()),
        "keyId": key(seed).id(),
        "message": message,
        "envelope": Envelope::sign(message, &key(seed)).unwrap(),
    });
    for (name, value) in more.as_object().unwrap() {
        vector[name] = value.clone();
    }
    vector
}

#[test]
fn the_envelope_vector_is_what_the_code_makes() {
    let payload = br#"{"hello":"edge"}"#.to_vec();
    let signed = format!("DSSEv1 28 application/vnd.example+json {} ", payload.len()).into_bytes();
    let envelope = Envelope::sign_bytes("application/vnd.example+json", payload.clone(), &key(HUB));
    let vector = json!({
        "seed": hexadecimal(&HUB),
        "public": BASE64.encode(key(HUB).public().as_bytes()),
        "keyId": key(HUB).id(),
        "payload": String::from_utf8(payload.clone()).unwrap(),
        "signedBytes": hexadecimal(&[signed, payload].concat()),
        "signature": hexadecimal(&envelope.signatures[0].sig),
        "envelope": envelope,
    });
    check("envelope.json", &vector);
}

#[test]
fn the_key_set_vector_is_what_the_code_makes() {
    let sets = [
        (key_set(1, &[(HUB, KeyState::Active)]), HUB),
        (key_set(2, &[(HUB, KeyState::Active), (NEXT, KeyState::Announced)]), HUB),
        (key_set(3, &[(HUB, KeyState::Retired), (NEXT, KeyState::Active)]), HUB),
        (key_set(4, &[(NEXT, KeyState::Active)]), NEXT),
    ];
    let chain: Vec<_> = sets.iter().map(|(set, by)| Envelope::sign(set, &key(*by)).unwrap()).collect();
    let vector = json!({
        "seeds": [hexadecimal(&HUB), hexadecimal(&NEXT)],
        "sets": sets.iter().map(|(set, _)| set).collect::<Vec<_>>(),
        "chain": chain,
        "notAfterTheSecond": {
            "signed by an announced key": Envelope::sign(&key_set(3, &[(NEXT, KeyState::Active)]), &key(NEXT)).unwrap(),
            "leaves one out": Envelope::sign(&key_set(4, &[(NEXT, KeyState::Active)]), &key(HUB)).unwrap(),
            "has no active key": Envelope::sign(&key_set(3, &[(HUB, KeyState::Retired)]), &key(HUB)).unwrap(),
        },
    });
    check("key-sets.json", &vector);
}

#[test]
fn the_hold_vector_is_what_the_code_makes() {
    let entry = HoldEntry {
        assignment: "camera-line".to_owned(),
        by: "anna".to_owned(),
        reason: "the sensor is being replaced".to_owned(),
        since: TIME,
    };
    let cluster = ClusterId::of_public_key(key(CLUSTER).public().as_bytes());
    let document = HoldDocument { cluster, sequence: 2, written_at: TIME, holds: vec![entry] };
    let lift = Lift {
        writer: ClusterId::of_public_key(key(NEXT).public().as_bytes()),
        assignment: Some("press-line".to_owned()),
        through: 4,
        since: Some(TIME),
        by: "ben".to_owned(),
        reason: "the gate was stolen".to_owned(),
        at: TIME,
    };
    let lifting = HubHolds { document: document.clone(), lifted: vec![lift] };
    let lasts = [("camera-line".to_owned(), 86_400)].into();
    let site = SiteHolds { document: document.clone(), key: key(NEXT).public(), lasts };
    let more = json!({"lifting": signed(&lifting, HUB, json!({})), "fromTheSite": signed(&site, NEXT, json!({}))});
    check("hold.json", &signed(&document, HUB, more));
}

#[test]
fn the_membership_vector_is_what_the_code_makes() {
    let public = BASE64.encode(key(CLUSTER).public().as_bytes());
    check("membership.json", &signed(&membership(), HUB, json!({"clusterPublic": public})));
}

#[test]
fn the_desired_state_vector_is_what_the_code_makes() {
    let state = desired_state();
    let keys: serde_json::Map<_, _> =
        state.entries.iter().map(|entry| (entry.assignment.clone(), json!(entry.packages_key()))).collect();
    check("desired-state.json", &signed(&state, HUB, json!({"packagesKeys": keys})));
}

#[test]
fn the_turn_vector_is_what_the_code_makes() {
    let cluster = ClusterId::of_public_key(key(CLUSTER).public().as_bytes());
    let turn = Turn {
        cluster,
        stream: Stream::new("prod", "drone", Stream::ALL),
        generation: Generation(17),
        issued_at: TIME,
        asked: Some(Timestamp(TIME.0 - 4_000)),
    };
    check("turn.json", &signed(&turn, HUB, json!({})));
}

#[test]
fn the_join_token_vector_is_what_the_code_makes() {
    let token = JoinToken {
        hub: "https://hub.example.com:7443".to_owned(),
        authority: Digest::of(b"authority"),
        id: "dev-drones".to_owned(),
        secret: "not-a-secret-in-a-vector".to_owned(),
    };
    check("join-token.json", &json!({"token": token.to_string(), "means": token}));
}

#[test]
fn the_poll_vector_is_what_the_code_makes() {
    let request = PollRequest {
        key_set: 4,
        membership: Sequence(4),
        generation: Generation(17),
        status: Heads { epoch: 3, nonce: "07".repeat(16), heads: vec!["0123456789abcdef".to_owned()] },
        look_age: 42,
        profile: Profile::Low,
        wait: Some(55),
        holds: 0,
    };
    let idle = PollAnswer {
        time: TIME,
        next: 900,
        promise: 1900,
        key_sets: Vec::new(),
        membership: None,
        state: None,
        want_status: false,
        want_proof: false,
        holds: None,
    };
    let news = PollAnswer {
        next: 0,
        promise: 120,
        membership: Some(Envelope::sign(&membership(), &key(HUB)).unwrap()),
        want_status: true,
        ..idle.clone()
    };
    let refused = WireProblem {
        reason: "Revoked".to_owned(),
        message: "this cluster's key is revoked".to_owned(),
        hint: Some("join again with a new key".to_owned()),
    };
    check("poll.json", &json!({"request": request, "idle": idle, "news": news, "refused": refused}));
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SignedVector<T> {
    public: VerifyingKey,
    key_id: KeyId,
    message: T,
    envelope: Envelope,
}

/// As another program would: nothing but the files and the key.
#[test]
fn the_vectors_verify() {
    let state: SignedVector<DesiredState> = read("desired-state.json");
    assert_eq!(state.public.id(), state.key_id);
    assert_eq!(state.envelope.open::<DesiredState>(&[state.public]).unwrap(), state.message);
    let member: SignedVector<Membership> = read("membership.json");
    assert_eq!(member.envelope.open::<Membership>(&[member.public]).unwrap(), member.message);
    let turn: SignedVector<Turn> = read("turn.json");
    assert_eq!(turn.envelope.open::<Turn>(&[turn.public]).unwrap(), turn.message);

    let sets: Value = read("key-sets.json");
    let chain: Vec<Envelope> = serde_json::from_value(sets["chain"].clone()).unwrap();
    let mut set = KeySet::first(&chain[0]).unwrap();
    let mut second = None;
    for next in &chain[1..] {
        set = set.follow(next).unwrap();
        second.get_or_insert_with(|| set.clone());
    }
    assert_eq!(serde_json::to_value(&set).unwrap(), sets["sets"][3]);
    for (why, envelope) in sets["notAfterTheSecond"].as_object().unwrap() {
        let envelope: Envelope = serde_json::from_value(envelope.clone()).unwrap();
        assert!(second.as_ref().unwrap().follow(&envelope).is_err(), "{why}");
    }
    let token: Value = read("join-token.json");
    let parsed: JoinToken = token["token"].as_str().unwrap().parse().unwrap();
    assert_eq!(serde_json::to_value(parsed).unwrap(), token["means"]);
}

#[test]
fn the_page_names_every_message_and_vector() {
    let page = std::fs::read_to_string(path("../wire.md")).unwrap();
    for named in [KeySet::TYPE, Membership::TYPE, DesiredState::TYPE, Turn::TYPE, "kedge-join-1.", "DSSEv1"] {
        assert!(page.contains(named), "{named}");
    }
    for vector in std::fs::read_dir(path("")).unwrap() {
        let name = vector.unwrap().file_name().into_string().unwrap();
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}
