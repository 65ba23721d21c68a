//! The secret ledger against a cluster within a map, whose answers can be lost.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use kedge_durable::Ledger;
use proptest::prelude::*;

use super::*;

/// Secrets in memory.
#[derive(Debug, Default)]
pub(crate) struct FakeSecretStore {
    state: Mutex<FakeState>,
}

#[derive(Debug, Default)]
struct FakeState {
    secrets: BTreeMap<String, Kept>,
    counter: u64,
    /// What the next writes come to.
    faults: Vec<Fault>,
    writes: usize,
    reads: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// It isn't done, and nobody says so.
    Lost,
    /// It is done, and the answer is lost.
    Unheard,
}

impl FakeSecretStore {
    fn fault(&self, fault: Fault) {
        self.state.lock().unwrap().faults.push(fault);
    }

    fn names(&self) -> Vec<String> {
        self.state.lock().unwrap().secrets.keys().cloned().collect()
    }

    pub(crate) fn writes(&self) -> usize {
        self.state.lock().unwrap().writes
    }

    /// Of single Secrets.
    pub(crate) fn reads(&self) -> usize {
        self.state.lock().unwrap().reads
    }

    fn write<T>(
        &self,
        write: impl FnOnce(&mut FakeState) -> Result<T, SecretStoreError>,
    ) -> Result<T, SecretStoreError> {
        let mut state = self.state.lock().unwrap();
        state.writes += 1;
        let away = || Err(SecretStoreError::Away("no answer".to_owned()));
        match state.faults.pop() {
            Some(Fault::Lost) => away(),
            Some(Fault::Unheard) => {
                write(&mut state)?;
                away()
            }
            None => write(&mut state),
        }
    }
}

impl FakeState {
    fn check(&self, name: &str, version: &str) -> Result<(), SecretStoreError> {
        let current = self.secrets.get(name).map(|kept| kept.version.as_str()).unwrap_or_default();
        if current == version { Ok(()) } else { Err(SecretStoreError::Conflict(name.to_owned())) }
    }

    fn next(&mut self) -> String {
        self.counter += 1;
        self.counter.to_string()
    }
}

impl SecretStore for FakeSecretStore {
    fn list(&self) -> Result<Vec<Kept>, SecretStoreError> {
        Ok(self.state.lock().unwrap().secrets.values().cloned().collect())
    }

    fn get(&self, name: &str) -> Result<Option<Kept>, SecretStoreError> {
        let mut state = self.state.lock().unwrap();
        state.reads += 1;
        Ok(state.secrets.get(name).cloned())
    }

    fn put(&self, kept: &Kept) -> Result<String, SecretStoreError> {
        assert!(kept.value.len() <= names::MOST);
        self.write(|state| {
            state.check(&kept.name, &kept.version)?;
            let version = state.next();
            state.secrets.insert(kept.name.clone(), Kept { version: version.clone(), ..kept.clone() });
            Ok(version)
        })
    }

    fn mark(&self, name: &str, version: &str, annotation: (&str, &str)) -> Result<String, SecretStoreError> {
        self.write(|state| {
            state.check(name, version)?;
            let version = state.next();
            let kept = state.secrets.get_mut(name).unwrap();
            kept.version = version.clone();
            kept.annotations.insert(annotation.0.to_owned(), annotation.1.to_owned());
            Ok(version)
        })
    }

    fn remove(&self, name: &str, version: &str) -> Result<(), SecretStoreError> {
        self.write(|state| {
            if state.secrets.contains_key(name) {
                state.check(name, version)?;
                state.secrets.remove(name);
            }
            Ok(())
        })
    }
}

/// A node with its folder.
struct Node {
    folder: tempfile::TempDir,
    secret_store: Arc<FakeSecretStore>,
    held: Arc<AtomicBool>,
}

struct Term {
    disk: Arc<dyn Disk>,
    hydrated: Hydrated,
    fenced: watch::Receiver<bool>,
}

impl Node {
    fn of(secret_store: &Arc<FakeSecretStore>) -> Node {
        let held = Arc::new(AtomicBool::new(true));
        Node { folder: tempfile::tempdir().unwrap(), secret_store: Arc::clone(secret_store), held }
    }

    fn paths(&self) -> Paths {
        Paths::below(self.folder.path())
    }

    fn objects(&self) -> Objects {
        Objects::open(&self.paths().objects()).unwrap()
    }

    fn begin(&self, writer: &str) -> Result<Term, SecretLedgerError> {
        let (tell, fenced) = watch::channel(false);
        let held = Arc::clone(&self.held);
        let held = Arc::new(move || held.load(Ordering::SeqCst));
        let secret_store: Arc<dyn SecretStore> = Arc::<FakeSecretStore>::clone(&self.secret_store);
        let taken =
            SecretLedger::take_over(secret_store, &self.paths(), &self.objects(), writer.to_owned(), held, tell);
        taken.map(|(disk, hydrated)| Term { disk: Arc::new(disk), hydrated, fenced })
    }

    /// As a command reads it.
    fn read(&self, ledger: &str) -> Option<String> {
        Ledger::<String>::read(&RealDisk, &self.paths().state().join(ledger)).unwrap()
    }
}

impl Term {
    fn write(&self, node: &Node, ledger: &str, value: &str) -> Result<(), kedge_durable::LedgerError> {
        let path = node.paths().state().join(ledger);
        Ledger::<String>::open(Arc::clone(&self.disk), &path)?.ledger.write(&value.to_owned())
    }

    fn remove(&self, node: &Node, ledger: &str) {
        let path = node.paths().state().join(ledger);
        Ledger::<String>::open(Arc::clone(&self.disk), &path).unwrap().ledger.remove().unwrap();
    }
}

#[test]
fn who_only_looks_reads_a_ledger_of_several_parts_and_claims_nothing() {
    let secret_store = Arc::new(FakeSecretStore::default());
    let node = Node::of(&secret_store);
    assert_eq!(look(&*secret_store, "memory").unwrap(), None);
    let large: String = (0..2 * names::MOST).map(|_| char::from(rand::random_range(b' '..b'~'))).collect();
    let term = node.begin("a/1").unwrap();
    term.write(&node, "memory", &large).unwrap();
    let writes = secret_store.writes();
    assert!(writes > 1, "it has parts");
    assert_eq!(look(&*secret_store, "memory").unwrap(), Some(serde_json::to_vec(&large).unwrap()));
    assert_eq!(secret_store.writes(), writes);
    secret_store.state.lock().unwrap().secrets.retain(|name, _| name == "kedge-agent-memory");
    assert!(matches!(look(&*secret_store, "memory"), Err(SecretLedgerError::Broken { .. })));
}

#[test]
fn another_node_goes_on_from_what_the_cluster_has() {
    let secret_store = Arc::new(FakeSecretStore::default());
    let (one, other) = (Node::of(&secret_store), Node::of(&secret_store));
    let first = one.begin("one").unwrap();
    first.write(&one, "identity", "who").unwrap();
    first.write(&one, "records/web", "runs").unwrap();
    first.write(&one, "records/old", "gone").unwrap();
    first.remove(&one, "records/old");
    assert_eq!(secret_store.names().len(), 2);

    let second = other.begin("other").unwrap();
    assert_eq!(second.hydrated, Hydrated { ledgers: 2, changed: 2 });
    assert_eq!(other.read("identity").as_deref(), Some("who"));
    assert_eq!(other.read("records/web").as_deref(), Some("runs"));
    assert_eq!(other.read("records/old"), None);

    // The first one still believes to work, and is stopped by its next write, whichever ledger it is.
    assert!(first.write(&one, "records/web", "overwritten").is_err());
    assert!(*first.fenced.borrow());
    assert!(first.write(&one, "memory", "new").is_err());
    second.write(&other, "records/web", "runs on").unwrap();
    assert!(!*second.fenced.borrow());

    // Back on the first node: its folder is old.
    let third = one.begin("one again").unwrap();
    assert_eq!(one.read("records/web").as_deref(), Some("runs on"));
    assert_eq!(third.hydrated.changed, 1);
}

#[test]
fn both_copies_of_a_value_cost_one_write() {
    let secret_store = Arc::new(FakeSecretStore::default());
    let node = Node::of(&secret_store);
    let term = node.begin("one").unwrap();
    term.write(&node, "memory", "a").unwrap();
    assert_eq!(secret_store.writes(), 1);
    term.write(&node, "memory", "b").unwrap();
    assert_eq!(secret_store.writes(), 2);
}

#[test]
fn an_answer_that_was_lost_isnt_taken_for_another_agent() {
    for fault in [Fault::Lost, Fault::Unheard] {
        let secret_store = Arc::new(FakeSecretStore::default());
        let node = Node::of(&secret_store);
        let term = node.begin("one").unwrap();
        term.write(&node, "memory", "a").unwrap();
        secret_store.fault(fault);
        assert!(term.write(&node, "memory", "b").is_err());
        assert_eq!(node.read("memory").as_deref(), Some("a"), "the old value stays where the new one isn't sure");
        term.write(&node, "memory", "c").unwrap();
        assert!(!*term.fenced.borrow(), "{fault:?}");
        let other = Node::of(&secret_store);
        other.begin("other").unwrap();
        assert_eq!(other.read("memory").as_deref(), Some("c"));
    }
}

#[test]
fn nothing_is_written_without_the_lease() {
    let secret_store = Arc::new(FakeSecretStore::default());
    let node = Node::of(&secret_store);
    let term = node.begin("one").unwrap();
    node.held.store(false, Ordering::SeqCst);
    assert!(term.write(&node, "memory", "a").is_err());
    assert_eq!((secret_store.writes(), node.read("memory"), *term.fenced.borrow()), (0, None, false));
    node.held.store(true, Ordering::SeqCst);
    term.write(&node, "memory", "a").unwrap();
}

#[test]
fn a_value_that_is_too_large_for_one_secret_is_kept_in_several_and_leaves_none_behind() {
    let secret_store = Arc::new(FakeSecretStore::default());
    let (one, other) = (Node::of(&secret_store), Node::of(&secret_store));
    // Doesn't compress.
    let noise = |seed: u64| {
        let mut state = seed;
        let mut text = String::new();
        while text.len() < 2_500_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(&kedge_model::wire::Digest::of(&state.to_be_bytes()).hex());
        }
        text
    };
    let term = one.begin("one").unwrap();
    term.write(&one, "memory", &noise(1)).unwrap();
    assert_eq!(secret_store.names().len(), 2);
    term.write(&one, "memory", &noise(2)).unwrap();
    assert_eq!(secret_store.names().len(), 2);
    other.begin("other").unwrap();
    assert_eq!(other.read("memory"), Some(noise(2)));
}

#[test]
fn what_a_command_wrote_on_the_node_reaches_the_cluster_when_it_is_read() {
    let secret_store = Arc::new(FakeSecretStore::default());
    let (one, other) = (Node::of(&secret_store), Node::of(&secret_store));
    let term = one.begin("one").unwrap();
    term.write(&one, "holds", "none").unwrap();
    let path = one.paths().state().join("holds");
    Ledger::<String>::open(Arc::new(RealDisk), &path).unwrap().ledger.write(&"held".to_owned()).unwrap();
    assert_eq!(Ledger::<String>::read(&*term.disk, &path).unwrap().as_deref(), Some("held"));
    other.begin("other").unwrap();
    assert_eq!(other.read("holds").as_deref(), Some("held"));
}

#[test]
fn a_node_that_knows_more_than_an_empty_cluster_gives_it_back() {
    let secret_store = Arc::new(FakeSecretStore::default());
    let node = Node::of(&secret_store);
    let term = node.begin("one").unwrap();
    term.write(&node, "identity", "who").unwrap();
    secret_store.state.lock().unwrap().secrets.clear();
    node.begin("two").unwrap();
    assert_eq!(secret_store.names(), ["kedge-agent"]);
}

#[test]
fn a_secret_that_a_person_broke_leaves_the_nodes_own_value() {
    let secret_store = Arc::new(FakeSecretStore::default());
    let node = Node::of(&secret_store);
    let term = node.begin("one").unwrap();
    term.write(&node, "memory", "a").unwrap();
    secret_store.state.lock().unwrap().secrets.get_mut("kedge-agent-memory").unwrap().value = b"garbage".to_vec();
    let term = node.begin("two").unwrap();
    assert_eq!(node.read("memory").as_deref(), Some("a"));
    term.write(&node, "memory", "b").unwrap();
    let other = Node::of(&secret_store);
    other.begin("three").unwrap();
    assert_eq!(other.read("memory").as_deref(), Some("b"));
}

#[derive(Clone, Debug)]
enum Deed {
    Write(usize, u8),
    Remove(usize),
    /// The write that comes next is cut between the cluster and the node.
    Cut(usize, u8),
    Move,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        4 => (0_usize..4, any::<u8>()).prop_map(|(at, value)| Deed::Write(at, value)),
        1 => (0_usize..4).prop_map(Deed::Remove),
        1 => (0_usize..4, any::<u8>()).prop_map(|(at, value)| Deed::Cut(at, value)),
        1 => Just(Deed::Move),
    ];
    prop::collection::vec(deed, 1..25)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever was written, removed and cut: every node that takes over has what was written last.
    #[test]
    fn a_hydrated_node_has_the_same_ledgers(deeds in deeds()) {
        let ledgers = ["memory", "status", "records/a", "records/b"];
        let secret_store = Arc::new(FakeSecretStore::default());
        let nodes = [Node::of(&secret_store), Node::of(&secret_store)];
        let (mut at, mut terms) = (0, 0);
        let mut term = nodes[at].begin("0").unwrap();
        let mut expected: BTreeMap<&str, String> = BTreeMap::new();
        for deed in deeds {
            let node = &nodes[at];
            match deed {
                Deed::Write(which, value) => {
                    term.write(node, ledgers[which], &value.to_string()).unwrap();
                    expected.insert(ledgers[which], value.to_string());
                }
                Deed::Remove(which) => {
                    term.remove(node, ledgers[which]);
                    expected.remove(ledgers[which]);
                }
                Deed::Cut(which, value) => {
                    // The Secret has it; the process ends before the node does, and the next one begins here or there.
                    secret_store.fault(Fault::Unheard);
                    let written = term.write(node, ledgers[which], &format!("cut {value}"));
                    prop_assert!(written.is_err());
                    expected.insert(ledgers[which], format!("cut {value}"));
                    terms += 1;
                    term = node.begin(&terms.to_string()).unwrap();
                }
                Deed::Move => {
                    at = 1 - at;
                    terms += 1;
                    term = nodes[at].begin(&terms.to_string()).unwrap();
                }
            }
        }
        let fresh = Node::of(&secret_store);
        fresh.begin("last").unwrap();
        for ledger in ledgers {
            prop_assert_eq!(fresh.read(ledger), expected.get(ledger).cloned(), "{}", ledger);
        }
    }
}
