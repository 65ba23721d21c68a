//! Files for hosts that no network reaches: made, looked at, signed, and brought back.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use kedge_bundle::{Author, Index, JoinAnswerFile, Sealed, Writer};
use kedge_model::wire::{
    ClusterId, DesiredState, Digest, Envelope, Generation, JoinAnswer, Key, KeySet, KeyState, Membership, Sequence,
    SigningKey, Stream, Timestamp,
};
use serde_json::json;

use crate::fake_hub::{self, Canned, FakeHub};
use crate::stage::{Run, Stage, run};

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

fn key_sets() -> Vec<Envelope> {
    let key = key(1);
    let one = Key { id: key.id(), public: key.public(), state: KeyState::Active };
    let set = KeySet { version: 1, created_at: Timestamp(1), keys: vec![one], authorities: vec![authority()] };
    vec![Envelope::sign(&set, &key).unwrap()]
}

fn authority() -> String {
    "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned()
}

fn presses() -> Stream {
    Stream::new("prod", "press", Stream::ALL)
}

fn cluster() -> ClusterId {
    ClusterId::of_public_key(key(7).public().as_bytes())
}

fn membership() -> Envelope {
    let membership = Membership {
        cluster: cluster(),
        name: "press-7".to_owned(),
        stream: presses(),
        labels: Default::default(),
        site: Some("north".to_owned()),
        sequence: Sequence(1),
        issued_at: Timestamp(1),
        remove: Vec::new(),
        unmanage: Vec::new(),
        relay: false,
        retired: false,
        requires: Vec::new(),
    };
    Envelope::sign(&membership, &key(1)).unwrap()
}

/// As a hub sends it, with one blob.
fn bundle(blob: &[u8]) -> Vec<u8> {
    let state = DesiredState {
        stream: presses(),
        generation: Generation(4),
        created_at: Timestamp(1_767_323_045_000),
        confirmed: 0,
        entries: Vec::new(),
        removed: Vec::new(),
        unmanaged: Vec::new(),
        source: None,
        turns: false,
        requires: Vec::new(),
    };
    let mut index = Index::new(Digest::of(b"authority"), Timestamp(1_767_323_045_000));
    index.environment = Some("prod".to_owned());
    index.clusters = vec![cluster()];
    index.key_sets = key_sets();
    index.memberships = vec![membership()];
    index.states = vec![Envelope::sign(&state, &key(1)).unwrap()];
    index.add_blob(Digest::of(blob), blob.len() as u64);
    let mut writer = Writer::new(Vec::new(), Sealed::seal(&index, &key(1)).unwrap()).unwrap();
    writer.write(blob).unwrap();
    writer.finish().unwrap()
}

/// A hub that answers everything with these bytes, of which it promises so many.
struct Bytes {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

fn serve(bytes: Vec<u8>, promised: usize) -> Bytes {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            seen.lock().unwrap().push(line.trim_end().to_owned());
            while line.trim_end() != "" {
                line.clear();
                reader.read_line(&mut line).unwrap();
            }
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {promised}\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&bytes));
        }
    });
    Bytes { url, asked }
}

impl Bytes {
    fn kedge(&self, stage: &Stage, args: &[&str]) -> Run {
        run(stage.command().args(args).env("KEDGE_HUB", &self.url).env("KEDGE_TOKEN", "kedge_id_secret"))
    }
}

const EXPORT: [&str; 8] = ["bundle", "export", "-e", "prod", "--cluster-type", "press", "-o", "press.kedge"];

#[test]
fn a_bundle_is_written_whole_checked_and_shown_without_a_hub() {
    let (stage, whole) = (Stage::empty(), bundle(&[5; 3000]));
    let hub = serve(whole.clone(), whole.len());
    hub.kedge(&stage, &EXPORT).exits(0).says(&["press.kedge: ", "for 1 cluster, 1 state, 1 blob"]);
    assert_eq!(std::fs::read(stage.file("press.kedge")).unwrap(), whole);
    let shown = stage.kedge(["bundle", "show", "press.kedge", "--check"]).exits(0);
    shown.shows(&[
        "from the hub to cluster",
        "of environment prod",
        "press-7",
        "prod/press/all",
        "GENERATION",
        "1, 3.0 kB",
    ]);
    let json = stage.kedge(["bundle", "show", "press.kedge", "-o", "json"]).exits(0);
    let document: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(document["states"][0]["generation"], 4);
    // An earlier bundle says by itself what is there already.
    let mut since = EXPORT.to_vec();
    since.extend(["--since", "press.kedge"]);
    hub.kedge(&stage, &since).exits(0);
    assert!(hub.asked.lock().unwrap()[1].contains("since=all%3A4"), "{:?}", hub.asked);
}

#[test]
fn parts_are_written_for_file_systems_that_need_them() {
    let (stage, whole) = (Stage::empty(), bundle(&[5; 3000]));
    let hub = serve(whole.clone(), whole.len());
    let mut split = EXPORT.to_vec();
    split.extend(["--split", "4096"]);
    hub.kedge(&stage, &split).exits(0).says(&[" parts: "]);
    assert!(stage.file("press.kedge.001").is_file() && stage.file("press.kedge.002").is_file());
    assert!(!stage.file("press.kedge").exists());
    stage.kedge(["bundle", "show", "press.kedge"]).exits(0);
    stage.kedge(["bundle", "show", "press.kedge.001"]).exits(0);
    stage.remove("press.kedge.002");
    stage.kedge(["bundle", "show", "press.kedge.001"]).exits(1).says(&["is missing", "Hint: bring all parts"]);
}

#[test]
fn a_cut_or_changed_answer_leaves_no_file() {
    let (stage, whole) = (Stage::empty(), bundle(&[5; 3000]));
    let cut = serve(whole[..whole.len() - 10].to_vec(), whole.len());
    cut.kedge(&stage, &EXPORT).exits(1);
    let mut changed = whole.clone();
    *changed.last_mut().unwrap() ^= 1;
    let changed = serve(changed, whole.len());
    changed.kedge(&stage, &EXPORT).exits(1).says(&["isn't what the hub sent"]);
    assert!(
        std::fs::read_dir(stage.path())
            .unwrap()
            .flatten()
            .all(|entry| { !entry.file_name().to_string_lossy().contains("press") })
    );
    let mut wrong = EXPORT.to_vec();
    wrong.extend(["--since", "nothing.kedge"]);
    changed.kedge(&stage, &wrong).exits(2).says(&["--since takes `reported`"]);
    stage.write("text.kedge", "hello, I am no bundle");
    stage.kedge(["bundle", "show", "text.kedge"]).exits(1).says(&["this isn't a Kedge bundle"]);
}

fn ok(document: serde_json::Value) -> Canned {
    (200, "", document)
}

#[test]
fn a_signed_request_becomes_a_file_for_the_host() {
    let answer =
        JoinAnswer { certificate: authority(), key_sets: key_sets(), membership: membership(), time: Timestamp(1) };
    let file = JoinAnswerFile { hub: "https://hub.example:7443".to_owned(), cluster: cluster(), answer };
    let good = Envelope::sign(&file, &key(1)).unwrap();
    let signed = |answer: &Envelope| {
        ok(json!({"cluster": cluster().to_string(), "name": "press-7", "again": false, "answer": answer}))
    };
    let stage = Stage::empty();
    stage.write("press.request", Envelope::sign_bytes("request", b"{}".to_vec(), &key(7)).to_json().unwrap());
    let args = [
        "token",
        "sign",
        "press.request",
        "-e",
        "prod",
        "-t",
        "press",
        "--label",
        "a=b",
        "--site",
        "north",
        "-o",
        "out.kedge",
    ];
    let hub = FakeHub::start(&[("POST /clusters/sign", signed(&good))]);
    let done = hub.kedge(&stage, &args).exits(0);
    done.says(&["press-7 (", "is a member; carry out.kedge back", "kedge-agent import out.kedge --authority sha256:"]);
    assert_eq!(Envelope::from_json(&std::fs::read(stage.file("out.kedge")).unwrap()).unwrap(), good);
    let asked = hub.asked().remove(0);
    assert!(asked.contains(r#""labels":{"a":"b"}"#) && asked.contains(r#""site":"north""#), "{asked}");

    stage.remove("out.kedge");
    let forged = Envelope::sign(&file, &key(9)).unwrap();
    let hub = FakeHub::start(&[("POST /clusters/sign", signed(&forged))]);
    hub.kedge(&stage, &args).exits(1);
    assert!(!stage.file("out.kedge").exists());
    stage.write("press.request", "no envelope");
    hub.kedge(&stage, &args).exits(2).says(&["this is no request of a host"]);
}

#[test]
fn what_a_host_sent_back_is_told_document_by_document() {
    let mut index = Index::new(Digest::of(b"authority"), Timestamp(1));
    index.writer = Some(Author { cluster: cluster(), key: key(7).public() });
    let stage = Stage::empty();
    stage.write("back.kedge", Sealed::seal(&index, &key(7)).unwrap().into_head());
    let item = |what: &str, outcome: &str| json!({"cluster": "c", "name": "press-7", "what": what, "outcome": outcome, "observedAt": "2026-01-02T03:04:05Z"});
    let mut answer = json!({"writer": "w", "writtenAt": "2026-01-02T03:05:00Z", "items": [item("status", "taken")]});
    let hub = FakeHub::start(&[("POST /status/import", ok(answer.clone()))]);
    hub.kedge(&stage, &["status", "import", "back.kedge"])
        .exits(0)
        .shows(&["press-7  status  2026-01-02 03:04:05Z  taken"])
        .says(&["1 taken, 0 known or older, 0 refused"]);
    answer["items"] =
        json!([item("presence", "older"), {"what": "status", "outcome": "refused", "message": "not its own"}]);
    let hub = FakeHub::start(&[("POST /status/import", ok(answer))]);
    hub.kedge(&stage, &["status", "import", "back.kedge"]).exits(3).shows(&["refused  not its own"]);
    hub.kedge(&stage, &["status", "import", "missing.kedge"]).exits(1);
    let refused = (422, "", json!({"code": "BadFile", "detail": "the bundle is cut", "hint": "copy it again"}));
    let hub = FakeHub::start(&[("POST /status/import", refused)]);
    hub.kedge(&stage, &["status", "import", "back.kedge"]).exits(1).says(&["the bundle is cut", "Hint: copy it again"]);
}

#[test]
fn a_relay_is_set_and_shown_and_so_is_who_carries() {
    let mut cluster = fake_hub::cluster("a1", "drone");
    (cluster["site"], cluster["relay"]) = (json!("harbour"), json!(true));
    cluster["via"] = json!({"cluster": "b2", "name": "drone-2"});
    let hub = FakeHub::start(&[
        ("PATCH /clusters/a1", ok(cluster.clone())),
        ("GET /clusters/a1", ok(cluster.clone())),
        ("GET /clusters", ok(json!({"items": [cluster]}))),
    ]);
    let stage = Stage::empty();
    let set = hub.kedge(&stage, &["cluster", "set", "a1", "--site", "harbour", "--relay", "on"]).exits(0);
    set.says(&["a1 is at site harbour, and relays to its other streams"]);
    assert_eq!(hub.asked()[0], r#"PATCH /clusters/a1 {"relay":true,"site":"harbour"}"#);
    hub.kedge(&stage, &["cluster", "set", "a1"]).exits(2).says(&["say what to set"]);
    hub.kedge(&stage, &["describe", "cluster", "a1"]).exits(0).shows(&["drone-2, observed at 2026-01-02 03:04:05Z"]);
    hub.kedge(&stage, &["get", "clusters"]).exits(0).shows(&["in contact via drone-2"]);
}
