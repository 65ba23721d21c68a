//! A hub of this test's own: the real listener, keys and database; what other modules would do is noted.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use kedge_hub::agents::services::{Intake, Packages, ProofRefusal, Proofs};
use kedge_hub::agents::{self, AgentService, Fleet, Parts, TokenOrder};
use kedge_hub::config;
use kedge_hub::keys::Keys;
use kedge_hub::metrics::Metrics;
use kedge_hub::permits::UpdatePermits;
use kedge_hub::rollout::policy::Policies;
use kedge_hub::state::DesiredStateCache;
use kedge_hub::status::{Contact, Taken};
use kedge_hub::store::{Store, Tx, now};
use kedge_hub_types::state::Issued;
use kedge_hub_types::status::TakeError;
use kedge_model::Labels;
use kedge_model::wire::{
    ApplyParameters, BlobRef, ClusterId, DesiredState, Digest, Entry, Envelope, Generation, Heads, JoinToken, Mode,
    PackageRef, Packages as PackageRefs, Stream, Timestamp,
};
use kedge_tests::agent::Agent;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub struct Hub {
    pub store: Store,
    pub keys: Keys,
    pub desired_states: Arc<DesiredStateCache>,
    pub fleet: Fleet,
    pub services: Arc<Services>,
    pub metrics: Arc<Metrics>,
    pub port: u16,
    stop: watch::Sender<bool>,
    served: JoinHandle<()>,
    folder: TempDir,
}

/// What the listener told the other modules.
#[derive(Default)]
pub struct Services {
    pub contacts: Mutex<Vec<(ClusterId, Contact)>>,
    pub documents: Mutex<Vec<(ClusterId, Envelope)>>,
    pub proofs: Mutex<Vec<(Stream, Envelope)>>,
    pub wanted: Mutex<HashSet<ClusterId>>,
    /// What the next document is answered with.
    pub refusal: Mutex<Option<TakeError>>,
    folder: PathBuf,
}

#[async_trait]
impl Intake for Services {
    async fn take(&self, carrier: &ClusterId, envelope: Envelope) -> Result<Taken, TakeError> {
        if let Some(refusal) = self.refusal.lock().unwrap().take() {
            return Err(refusal);
        }
        self.documents.lock().unwrap().push((*carrier, envelope));
        Ok(Taken::Stored)
    }

    async fn contact(&self, cluster: &ClusterId, contact: Contact) {
        self.contacts.lock().unwrap().push((*cluster, contact));
    }

    fn wants(&self, cluster: &ClusterId, _heads: &Heads) -> bool {
        self.wanted.lock().unwrap().contains(cluster)
    }
}

#[async_trait]
impl Proofs for Services {
    async fn prove(&self, stream: &Stream, envelope: Envelope) -> Result<(), ProofRefusal> {
        self.proofs.lock().unwrap().push((stream.clone(), envelope));
        Ok(())
    }
}

impl Packages for Services {
    fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(digest.hex())
    }
}

pub const WAIT: Duration = Duration::from_secs(5);

impl Hub {
    pub async fn start() -> Hub {
        Hub::with(|_| {}).await
    }

    /// None: there is no PostgreSQL.
    pub async fn on_postgres() -> Option<Hub> {
        let url = tokio::task::spawn_blocking(kedge_tests::lab::postgres::shared_database).await.unwrap()?;
        Some(Hub::on(&url, tempfile::tempdir().unwrap(), |_| {}).await)
    }

    pub async fn with(settings: impl FnOnce(&mut config::Agents)) -> Hub {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("hub.db").display());
        Hub::on(&url, folder, settings).await
    }

    async fn on(url: &str, folder: TempDir, settings: impl FnOnce(&mut config::Agents)) -> Hub {
        let store = Store::open(url).await.unwrap();
        let keys = Keys::open(&folder.path().join("keys"), &store).await.unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut config = config::Agents {
            listen: ([127, 0, 0, 1], port).into(),
            address: format!("https://127.0.0.1:{port}"),
            names: vec!["localhost".to_owned()],
            wait: WAIT,
            low_interval: Duration::from_secs(900),
            certificate_lifetime: Duration::from_secs(86_400),
            longest_silence: None,
            unlimited_silence: Vec::new(),
            max_connections: 1000,
        };
        settings(&mut config);
        let packages = folder.path().join("packages");
        std::fs::create_dir(&packages).unwrap();
        let services = Arc::new(Services { folder: packages, ..Services::default() });
        let (desired_states, metrics) = (Arc::new(DesiredStateCache::default()), Arc::new(Metrics::new()));
        let service = Arc::new(AgentService::new(Parts {
            store: store.clone(),
            keys: keys.clone(),
            desired_states: Arc::clone(&desired_states),
            packages: Arc::clone(&services) as Arc<dyn Packages>,
            intake: Arc::clone(&services) as Arc<dyn Intake>,
            proofs: Arc::clone(&services) as Arc<dyn Proofs>,
            permits: UpdatePermits::new(store.clone()),
            policies: Policies::new(),
            config,
            metrics: Arc::clone(&metrics),
        }));
        let (stop, shutdown) = watch::channel(false);
        let fleet = service.fleet().clone();
        let served = tokio::spawn(async move { agents::serve(listener, service, shutdown).await.unwrap() });
        Hub { store, keys, desired_states, fleet, services, metrics, port, stop, served, folder }
    }

    /// A token for dev/drone.
    pub async fn token(&self, uses: u64) -> JoinToken {
        self.token_for("drone", uses, Duration::from_secs(3600)).await
    }

    pub async fn token_for(&self, cluster_type: &str, uses: u64, lasts: Duration) -> JoinToken {
        let order = TokenOrder {
            environment: "dev".to_owned(),
            cluster_type: cluster_type.to_owned(),
            labels: Labels::from([("region".to_owned(), "north".to_owned())]),
            site: Some("harbour".to_owned()),
            replaces: None,
            uses,
            expires_at: Timestamp(now().0 + i64::try_from(lasts.as_millis()).unwrap()),
            created_by: "ada".to_owned(),
        };
        let mut tx = self.store.write().await.unwrap();
        let token = self.fleet.create_join_token(&mut tx, order).await.unwrap();
        tx.commit().await.unwrap();
        token
    }

    /// Joins and gets the address right: tokens carry the configured one.
    pub async fn agent(&self) -> Agent {
        Agent::join(&self.token(1).await, "drone-1").await.unwrap()
    }

    /// Changes clusters in a transaction, as the API does.
    pub async fn change(&self, change: impl AsyncFnOnce(&Fleet, &mut Tx)) {
        let mut tx = self.store.write().await.unwrap();
        change(&self.fleet, &mut tx).await;
        tx.commit().await.unwrap();
        self.fleet.refresh().await;
    }

    pub fn put(&self, content: &[u8]) -> BlobRef {
        let digest = Digest::of(content);
        std::fs::write(self.folder.path().join("packages").join(digest.hex()), content).unwrap();
        BlobRef { digest, size: content.len() as u64 }
    }

    /// Issues a state as `state` does: signed, stored, shown.
    pub async fn issue(&self, stream: &Stream, generation: u64, entries: Vec<Entry>) -> Envelope {
        let envelope = self.sign(stream, generation, entries);
        self.store_state(stream, generation, &envelope).await;
        self.show(stream, generation, &envelope);
        envelope
    }

    pub fn sign(&self, stream: &Stream, generation: u64, entries: Vec<Entry>) -> Envelope {
        let state = DesiredState {
            stream: stream.clone(),
            generation: Generation(generation),
            created_at: now(),
            confirmed: entries.len() as u64,
            entries,
            removed: Vec::new(),
            unmanaged: Vec::new(),
            source: None,
            turns: false,
            requires: Vec::new(),
        };
        self.keys.sign(&state).unwrap()
    }

    pub async fn store_state(&self, stream: &Stream, generation: u64, envelope: &Envelope) {
        let mut tx = self.store.write().await.unwrap();
        let tick = tx.tick().await.unwrap();
        let query = sqlx::query(
            "INSERT INTO states (environment, cluster_type, ring, generation, content, envelope, created_at, tick) \
             VALUES ($1, $2, $3, $4, '', $5, 0, $6)",
        );
        let bound = query.bind(&stream.environment).bind(&stream.cluster_type).bind(&stream.ring);
        let bound = bound.bind(i64::try_from(generation).unwrap()).bind(envelope.to_json().unwrap()).bind(tick);
        bound.execute(tx.connection()).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub fn show(&self, stream: &Stream, generation: u64, envelope: &Envelope) {
        let envelope = Bytes::from(envelope.to_json().unwrap());
        self.desired_states.show(stream, Issued::of(Generation(generation), envelope));
    }

    /// Waits until so many polls are held.
    pub async fn held(&self, count: i64) {
        while self.metrics.polls_held.get() != count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Tells it to stop, and waits until it has.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        self.served.await.unwrap();
    }

    pub fn tell_to_stop(&self) {
        self.stop.send_replace(true);
    }
}

pub fn drones() -> Stream {
    Stream::new("dev", "drone", Stream::ALL)
}

/// An assignment with these packages.
pub fn entry(assignment: &str, platform: &BlobRef, workload: &BlobRef, artifacts: Vec<BlobRef>) -> Entry {
    let package = |blob: &BlobRef, artifacts| PackageRef {
        digest: blob.digest,
        size: blob.size,
        repo: "https://git.example/app".to_owned(),
        commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
        artifacts,
    };
    let parameters = ApplyParameters {
        to: kedge_model::kinds::Destination::Host,
        namespace: None,
        scope: kedge_model::kinds::Scope::Namespace,
        conflicts: kedge_model::kinds::Conflicts::Fail,
        service_account: None,
        timeout_seconds: 300,
        soak_seconds: 0,
        rollback: kedge_model::kinds::Rollback::Auto,
        drift: kedge_model::kinds::Drift::Repair,
    };
    Entry {
        assignment: assignment.to_owned(),
        mode: Mode::Apply(Box::new(PackageRefs {
            parameters,
            platform: package(platform, Vec::new()),
            workload: package(workload, artifacts),
            version: None,
        })),
        restart: 0,
        requires: Vec::new(),
    }
}
