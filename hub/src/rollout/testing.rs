//! A controller over a real database with clusters that are only counts, and a clock that stands still until it is moved. For the
//! tests of this module.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kedge_hub_types::pack::PackedEntry;
use kedge_hub_types::testing::ours;
use kedge_model::kinds::{EnvironmentPolicy, Members, Promoter, PromotionPolicy, Ring};
use kedge_model::wire::{
    DesiredState, Digest, Envelope, EnvelopeError, Generation, Mode, PackageRef, Packages, PackagesKey, Stream,
    Timestamp,
};
use kedge_rollout::{Lane, Person, RingState, RolloutId, Say, Word};

use super::controller::{Describe, Parts, Passed, RolloutController, Shared};
use super::head::Occasion;
use super::words;
use crate::metrics::Metrics;
use crate::pack::{Origin, Packed};
use crate::state::testing::{Unconfirmed, key, packed};
use crate::state::{DesiredStateCache, Issuer, Signer};
use crate::store::rollout::{RolloutFilter, StoredRollout};
use crate::store::{Store, Term, test_database};

pub const TERM: Term = Term(0);
pub const SOAK: Duration = Duration::from_secs(60);

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(1_800_000_000_000) };
}

fn clock() -> Timestamp {
    Timestamp(NOW.get())
}

/// One hub's part: dropped and made anew like a process.
pub struct Lab {
    _folder: tempfile::TempDir,
    pub store: Store,
    pub desired_states: Arc<DesiredStateCache>,
    pub shared: Shared,
    pub controller: Arc<RolloutController>,
    broken: Arc<AtomicBool>,
}

/// Signs, or breaks down.
struct Pen(Arc<AtomicBool>);

impl Signer for Pen {
    fn sign_state(&self, state: &DesiredState) -> Result<Envelope, EnvelopeError> {
        match self.0.load(Ordering::SeqCst) {
            true => Err(EnvelopeError::TooMany(0)),
            false => key().sign_state(state),
        }
    }
}

struct Nobody;

impl Describe for Nobody {
    fn describe(&self, _repo: &str, commit: &str) -> Option<(String, String)> {
        Some((format!("subject of {commit}"), "Ada <ada@example.org>".to_owned()))
    }
}

/// What a cluster says of an assignment.
#[derive(Clone, Copy, Debug)]
pub enum Says {
    Converged,
    Failed,
}

/// Rings in their order with a short soak.
pub fn policy(rings: &[&str]) -> EnvironmentPolicy {
    let mut policy = EnvironmentPolicy::new("dev", Vec::new());
    policy.rings = rings.iter().map(|name| Ring { soak: SOAK, ..Ring::new(name, Members::Rest) }).collect();
    policy
}

/// Content of both parts, at these commits.
pub fn content(platform: &str, workload: &str) -> PackedEntry {
    let PackedEntry::Apply(packages) = ours("") else { unreachable!() };
    let part = |repo: &str, content: &str| PackageRef {
        digest: Digest::of(format!("{repo} {content}").as_bytes()),
        repo: repo.to_owned(),
        commit: format!("commit-{content}"),
        ..packages.platform.clone()
    };
    let (platform, workload) = (part("https://h/gitops", platform), part("https://h/app", workload));
    PackedEntry::Apply(Arc::new(Packages { platform, workload, ..(*packages).clone() }))
}

pub fn key_of(entry: &PackedEntry) -> PackagesKey {
    match entry {
        PackedEntry::Apply(packages) => packages.key(),
        PackedEntry::Observe(observation) => observation.key(),
        PackedEntry::Quarantined => panic!("a quarantined assignment has no packages"),
    }
}

impl Lab {
    pub async fn new(policy: Option<EnvironmentPolicy>) -> Lab {
        let (folder, store) = test_database::sqlite().await;
        Lab::over(folder, store, policy)
    }

    /// On the PostgreSQL of the tests, where there is one.
    pub async fn on_postgres(policy: Option<EnvironmentPolicy>) -> Option<Lab> {
        let store = test_database::postgres().await?;
        Some(Lab::over(tempfile::tempdir().unwrap(), store, policy))
    }

    fn over(folder: tempfile::TempDir, store: Store, policy: Option<EnvironmentPolicy>) -> Lab {
        let shared = Shared::default();
        shared.policies.settle();
        let broken = Arc::new(AtomicBool::new(false));
        let desired_states = Arc::new(DesiredStateCache::default());
        let controller = Arc::new(controller(&store, &desired_states, &shared, &broken));
        let lab = Lab { _folder: folder, store, desired_states, shared, controller, broken };
        if let Some(policy) = policy {
            lab.govern(Some(policy));
        }
        lab
    }

    pub fn govern(&self, policy: Option<EnvironmentPolicy>) {
        let environments: Vec<EnvironmentPolicy> = policy.into_iter().collect();
        self.shared.policies.set(Some(&PromotionPolicy { promoter: Promoter::Kedge, environments }));
    }

    /// The hub dies and another process begins.
    pub fn restart(&mut self) {
        self.desired_states = Arc::new(DesiredStateCache::default());
        self.broken.store(false, Ordering::SeqCst);
        self.controller = Arc::new(controller(&self.store, &self.desired_states, &self.shared, &self.broken));
    }

    /// From now on nothing can be signed: what is decided is saved and not issued.
    pub fn break_pen(&self) {
        self.broken.store(true, Ordering::SeqCst);
    }

    pub fn now(&self) -> Timestamp {
        clock()
    }

    pub fn wait(&self, time: Duration) {
        NOW.set(NOW.get() + i64::try_from(time.as_millis()).unwrap());
    }

    /// A head of cluster type `drone`.
    pub async fn head(&self, commit: &str, entries: &[(&str, PackedEntry)]) -> Passed {
        self.head_of(commit, None, &[("drone", entries)]).await
    }

    pub async fn head_of(&self, commit: &str, main: Option<&str>, types: &[(&str, &[(&str, PackedEntry)])]) -> Passed {
        self.controller.issue(TERM, &at(commit, types), &occasion(main)).await.unwrap()
    }

    pub async fn pass(&self) -> Passed {
        self.controller.pass(TERM, "dev").await.unwrap()
    }

    /// The newest first.
    pub async fn rollouts(&self) -> Vec<StoredRollout> {
        let filter = RolloutFilter { environment: Some("dev"), limit: 100, ..RolloutFilter::default() };
        self.store.rollouts(&filter).await.unwrap()
    }

    pub async fn newest(&self) -> StoredRollout {
        self.rollouts().await.remove(0)
    }

    pub async fn ring(&self, rollout: u64, ring: &str) -> RingState {
        let stored = self.store.rollout(RolloutId(rollout)).await.unwrap().unwrap();
        stored.rollout.rings.iter().find(|progress| progress.ring == ring).unwrap().state
    }

    pub async fn state_of(&self, ring: &str) -> DesiredState {
        self.state(&Stream::new("dev", "drone", ring)).await
    }

    /// As the database has it, which is what any hub serves.
    pub async fn state(&self, stream: &Stream) -> DesiredState {
        let mut states: BTreeMap<Stream, DesiredState> =
            self.store.newest_states_of(&stream.environment).await.unwrap().into_iter().collect();
        states.remove(stream).unwrap_or_else(|| panic!("{stream} has no state"))
    }

    /// Generation and packages of an assignment in a ring of `drone`.
    pub async fn holds(&self, ring: &str, assignment: &str) -> (Generation, Option<Packages>) {
        let state = self.state_of(ring).await;
        let entry = state.entries.iter().find(|entry| entry.assignment == assignment);
        let packages = entry.and_then(|entry| match &entry.mode {
            Mode::Apply(packages) => Some((**packages).clone()),
            Mode::Observe(_) => None,
        });
        (state.generation, packages)
    }

    pub async fn has(&self, ring: &str, assignment: &str, entry: &PackedEntry) -> bool {
        let (_, packages) = self.holds(ring, assignment).await;
        packages.is_some_and(|packages| packages.key() == key_of(entry))
    }

    pub async fn members(&self, ring: &str, presence: &str, count: i64) {
        self.members_of("drone", ring, presence, count).await;
    }

    pub async fn members_of(&self, cluster_type: &str, ring: &str, presence: &str, count: i64) {
        sqlx::query(
            "INSERT INTO population (environment, cluster_type, ring, presence, count) VALUES ('dev', $1, $2, $3, $4) \
             ON CONFLICT (environment, cluster_type, ring, presence) DO UPDATE SET count = excluded.count",
        )
        .bind(cluster_type)
        .bind(ring)
        .bind(presence)
        .bind(count)
        .execute(self.store.pool())
        .await
        .unwrap();
    }

    /// So many clusters of a ring of `drone` report this entry, and run it.
    pub async fn report(&self, ring: &str, assignment: &str, entry: &PackedEntry, says: Says, count: i64) {
        self.report_running(ring, assignment, [entry, entry], says, count).await;
    }

    /// The same with what they should run and what they do.
    pub async fn report_running(
        &self,
        ring: &str,
        assignment: &str,
        [entry, running]: [&PackedEntry; 2],
        says: Says,
        count: i64,
    ) {
        let (packages, running) = (key_of(entry).to_string(), key_of(running).to_string());
        sqlx::query(
            "INSERT INTO counts (environment, cluster_type, ring, assignment, packages, running, condition, count) \
             VALUES ('dev', 'drone', $1, $2, $3, $6, $4, $5) \
             ON CONFLICT (environment, cluster_type, ring, assignment, packages, running, condition) \
             DO UPDATE SET count = excluded.count",
        )
        .bind(ring)
        .bind(assignment)
        .bind(packages)
        .bind(format!("{says:?}"))
        .bind(count)
        .bind(running)
        .execute(self.store.pool())
        .await
        .unwrap();
    }

    /// All members of a ring have it, and its gate is left behind.
    pub async fn through(&self, ring: &str, assignment: &str, entry: &PackedEntry, members: i64) {
        self.report(ring, assignment, entry, Says::Converged, members).await;
        self.pass().await;
        self.wait(SOAK);
        self.pass().await;
    }

    pub async fn say(&self, rollout: u64, say: Say) -> Result<i64, words::SayError> {
        let word = Word {
            who: "grace".to_owned(),
            person: Person::new("grace", &["grace@example.org"]),
            role: "platform".to_owned(),
            at: clock(),
            reason: "because".to_owned(),
            say,
            new_token: false,
        };
        let value = words::check(&self.store, RolloutId(rollout), &word).await?;
        let mut tx = self.store.write().await.unwrap();
        let id = words::say(&mut tx, &value, &word).await.unwrap();
        tx.commit().await.unwrap();
        Ok(id)
    }
}

pub fn at(commit: &str, types: &[(&str, &[(&str, PackedEntry)])]) -> Packed {
    let mut packed = packed(types);
    packed.source.commit = commit.to_owned();
    for (cluster_type, entries) in types {
        let origin = |entry: &PackedEntry| match entry {
            PackedEntry::Apply(packages) => packages.workload.repo.clone(),
            _ => "https://h/seen".to_owned(),
        };
        let place = |repo: String| Origin { repo, reference: "main".to_owned(), path: "./app".to_owned() };
        let origins = entries.iter().map(|(name, entry)| ((*name).to_owned(), place(origin(entry)))).collect();
        packed.origins.insert((*cluster_type).to_owned(), Arc::new(origins));
    }
    packed
}

pub fn occasion(main: Option<&str>) -> Occasion {
    let workloads = ["a", "b", "c"].map(|name| (name.to_owned(), format!("workload-{name}")));
    Occasion {
        main: main.map(str::to_owned),
        read: None,
        subject: "a change".to_owned(),
        author: "Ada <ada@example.org>".to_owned(),
        subject_of: None,
        workloads: workloads.into(),
        workspaces: BTreeMap::new(),
        quarantined: BTreeMap::new(),
    }
}

pub fn source_lane() -> Lane {
    Lane::Source { repo: "https://h/app".to_owned(), reference: "main".to_owned() }
}

fn controller(
    store: &Store,
    desired_states: &Arc<DesiredStateCache>,
    shared: &Shared,
    broken: &Arc<AtomicBool>,
) -> RolloutController {
    let signer = Arc::new(Pen(Arc::clone(broken)));
    let issuer = Issuer::new(store.clone(), Arc::clone(desired_states), signer, Arc::new(Unconfirmed));
    RolloutController::new(Parts {
        store: store.clone(),
        issuer: Arc::new(issuer),
        shared: shared.clone(),
        describe: Arc::new(Nobody),
        metrics: Arc::new(Metrics::new()),
        clock,
    })
}
