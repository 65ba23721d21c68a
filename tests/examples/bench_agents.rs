//! How many agents a listener holds, in what memory, and how fast a state reaches them all: `bench_agents [COUNT]`. The hub is
//! this process; the crowd is this program again. Ends with one line of JSON.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark")]

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use kedge_hub::agents::services::{Intake, Packages, ProofRefusal, Proofs};
use kedge_hub::agents::{self, AgentService, Parts, TokenOrder};
use kedge_hub::config;
use kedge_hub::keys::Keys;
use kedge_hub::metrics::Metrics;
use kedge_hub::permits::UpdatePermits;
use kedge_hub::rollout::policy::Policies;
use kedge_hub::state::DesiredStateCache;
use kedge_hub::status::{Contact, Taken};
use kedge_hub::store::{Store, now};
use kedge_hub_types::state::Issued;
use kedge_hub_types::status::TakeError;
use kedge_model::Labels;
use kedge_model::wire::{ClusterId, DesiredState, Digest, Envelope, Generation, Heads, Stream, Timestamp, Tombstone};

/// Services that do nothing: the listener alone is measured.
struct Empty;

#[async_trait]
impl Intake for Empty {
    async fn take(&self, _: &ClusterId, _: Envelope) -> Result<Taken, TakeError> {
        Ok(Taken::Stored)
    }
    async fn contact(&self, _: &ClusterId, _: Contact) {}
    fn wants(&self, _: &ClusterId, _: &Heads) -> bool {
        false
    }
}

#[async_trait]
impl Proofs for Empty {
    async fn prove(&self, _: &Stream, _: Envelope) -> Result<(), ProofRefusal> {
        Ok(())
    }
}

impl Packages for Empty {
    fn path(&self, _: &Digest) -> std::path::PathBuf {
        std::path::PathBuf::new()
    }
}

/// The size of the state that changes.
const STATE_BYTES: usize = 8 * 1024;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match arguments.get(1).map(String::as_str) {
        Some("crowd") => runtime
            .block_on(kedge_tests::agent::crowd::run(&arguments[2].parse().unwrap(), arguments[3].parse().unwrap()))
            .unwrap(),
        count => runtime.block_on(measure(count.map_or(10_000, |text| text.parse().unwrap()))),
    }
}

async fn measure(count: usize) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&format!("sqlite:{}", folder.path().join("hub.db").display())).await.unwrap();
    let keys = Keys::open(&folder.path().join("keys"), &store).await.unwrap();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = config::Agents {
        listen: ([127, 0, 0, 1], port).into(),
        address: format!("https://127.0.0.1:{port}"),
        names: Vec::new(),
        wait: Duration::from_secs(50),
        low_interval: Duration::from_secs(900),
        certificate_lifetime: Duration::from_secs(86_400),
        longest_silence: None,
        unlimited_silence: Vec::new(),
        max_connections: 20_000,
    };
    let (desired_states, metrics, empty) =
        (Arc::new(DesiredStateCache::default()), Arc::new(Metrics::new()), Arc::new(Empty));
    let service = Arc::new(AgentService::new(Parts {
        store: store.clone(),
        keys: keys.clone(),
        desired_states: Arc::clone(&desired_states),
        packages: empty.clone(),
        intake: empty.clone(),
        proofs: empty,
        permits: UpdatePermits::new(store.clone()),
        policies: Policies::new(),
        config,
        metrics: Arc::clone(&metrics),
    }));
    let fleet = service.fleet().clone();
    let (_stop, shutdown) = tokio::sync::watch::channel(false);
    tokio::spawn(async move { agents::serve(listener, service, shutdown).await.unwrap() });
    let mut tx = store.write().await.unwrap();
    let order = TokenOrder {
        environment: "dev".to_owned(),
        cluster_type: "drone".to_owned(),
        labels: Labels::new(),
        site: None,
        replaces: None,
        uses: count as u64,
        expires_at: Timestamp(now().0 + 3_600_000),
        created_by: "bench".to_owned(),
    };
    let token = fleet.create_join_token(&mut tx, order).await.unwrap();
    tx.commit().await.unwrap();
    let before = resident();
    let begun = Instant::now();
    let mut crowd = Command::new(std::env::current_exe().unwrap())
        .args(["crowd", &token.to_string(), &count.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(crowd.stdout.take().unwrap()).lines();
    let (told, mut heard) = tokio::sync::mpsc::channel(10);
    std::thread::spawn(move || lines.by_ref().map_while(Result::ok).try_for_each(|line| told.blocking_send(line)));
    eprintln!("{} after {:.1} s", heard.recv().await.unwrap(), begun.elapsed().as_secs_f64());
    let held = async |count: usize| {
        while metrics.polls_held.get() < i64::try_from(count).unwrap() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    held(count).await;
    let holding = resident();
    eprintln!("all hold after {:.1} s, {holding} kB, {before} kB before", begun.elapsed().as_secs_f64());
    let stream = Stream::new("dev", "drone", Stream::ALL);
    let mut fanout: f64 = 0.0;
    for generation in 1..=3 {
        let issued =
            Issued { generation: Generation(generation), turns: false, envelope: state(&keys, &stream, generation) };
        let changed = Instant::now();
        desired_states.show(&stream, issued);
        let line = heard.recv().await.unwrap();
        fanout = fanout.max(changed.elapsed().as_secs_f64());
        eprintln!("{line}, {:.3} s after the change", changed.elapsed().as_secs_f64());
        held(count).await;
    }
    let after = resident();
    drop(crowd.stdin.take());
    crowd.wait().unwrap();
    let slope = (holding.saturating_sub(before)) as f64 / count as f64;
    println!(
        "{}",
        serde_json::json!({
            "agents": count, "fanout_s": (fanout * 1000.0).round() / 1000.0, "rss_mb": after.max(holding) / 1024,
            "kb_per_connection": (slope * 10.0).round() / 10.0,
        })
    );
}

fn state(keys: &Keys, stream: &Stream, generation: u64) -> Bytes {
    let mut state = DesiredState {
        stream: stream.clone(),
        generation: Generation(generation),
        created_at: now(),
        confirmed: 0,
        entries: Vec::new(),
        removed: Vec::new(),
        unmanaged: Vec::new(),
        source: None,
        turns: false,
        requires: Vec::new(),
    };
    while serde_json::to_vec(&state).unwrap().len() < STATE_BYTES {
        let assignment = format!("workload-{:04}-functional-test", state.removed.len());
        state.removed.push(Tombstone { assignment, since: Generation(generation) });
    }
    Bytes::from(keys.sign(&state).unwrap().to_json().unwrap())
}

/// kB of memory that this process has now.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
