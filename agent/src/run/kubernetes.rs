//! The agent of a Kubernetes cluster: of its pods the one that holds the Lease works as the agent of a host does, and the others stand
//! by and get its content. What it remembers is in Secrets. Every node may have a cache, which has no rights and shares content. Called
//! by the command `run`; it owns the thread that talks to the API server.

mod candidate;
mod facts;
mod surroundings;
mod target;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use kedge_durable::{Disk, RealDisk};
use kedge_model::kinds::Destination;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::watch;

use super::mode::ClusterSettings;
use super::runtime::{Outside, Signals, stopped};
use super::service::Service;
use super::target::Target;
use super::{AgentContext, Lock, RunError, work};
use crate::alive::{self, Standby};
use crate::causes::chain;
use crate::clock::SystemClock;
use crate::cluster::kinds::Discovered;
use crate::cluster::lease::Standing;
use crate::cluster::secret_ledger::SecretLedger;
use crate::cluster::watches::{KindKey, Watches};
use crate::config::Config;
use crate::identity::{self, machine};
use crate::objects::Objects;
use crate::paths::Paths;
use crate::peers::caches::cache;
use crate::peers::pods::{Mirror, NodeContent, Pod};
use crate::record::Record;
use candidate::LeaseCandidate;
use surroundings::ClusterSurroundings;
use target::ClusterTarget;

/// How a term went.
enum Term {
    /// The agent is told to stop.
    Stopped,
    /// Another agent works now, or may.
    Lost,
}

/// The agent's own namespace where nobody says another.
const NAMESPACE: &str = "kedge-system";
/// What can't be taken over now may be a moment later.
const AGAIN: Duration = Duration::from_secs(2);

/// Runs until the signals say stop. Must be called in a runtime of one thread.
pub async fn run(config: Config, paths: Paths, signals: Signals, settings: ClusterSettings) -> Result<(), RunError> {
    if paths.is_host() {
        return Err(RunError::Usage(
            "an agent of a cluster keeps its cache below a folder of its own: give --root with it",
        ));
    }
    let _lock = Lock::take(&paths)?;
    let folder = paths.objects();
    let objects = Objects::open(&folder).map_err(|source| RunError::Folder { path: folder, source })?;
    let mut candidate = LeaseCandidate::start(&settings)?;
    let home = Home { config, paths, objects };
    let (mut service, mut shutdown) = (Service::of_pod(&home.paths), signals.shutdown.clone());
    let mut ended = Ok(());
    while let Some(term) = home.stand_by(&mut candidate, &mut shutdown, &mut service).await {
        match home.lead(&candidate, term, &signals).await {
            Ok(Term::Stopped) => break,
            Ok(Term::Lost) => tracing::warn!("this agent no longer works for the cluster; it stands by"),
            Err(error @ RunError::Deserted) => {
                ended = Err(error);
                break;
            }
            Err(error) => {
                tracing::warn!(error = chain(&error), "the cluster can't be taken over yet; trying again");
                if rest(&mut shutdown).await {
                    break;
                }
            }
        }
    }
    // Nothing is written any more: another one may take the Lease.
    candidate.close();
    Standby::end(&home.paths);
    ended
}

/// Keeps the cluster's content on a node until the signals say stop, without any right at the API server.
pub async fn run_cache(config: Config, paths: Paths, signals: Signals, agents: String) -> Result<(), RunError> {
    if paths.is_host() {
        return Err(RunError::Usage("a cache keeps its content below a folder of its own: give --root with it"));
    }
    let _lock = Lock::take(&paths)?;
    let folder = paths.objects();
    let objects = Objects::open(&folder).map_err(|source| RunError::Folder { path: folder, source })?;
    let place = cache::Place { agents, key: paths.settings().join("cache"), ip: candidate::pod_ip() };
    let content = NodeContent { paths: paths.clone(), objects, reserve: config.disk_reserve };
    let caching = tokio::spawn(cache::run(place, content));
    let (mut service, mut shutdown) = (Service::of_pod(&paths), signals.shutdown.clone());
    loop {
        service.beat(!caching.is_finished());
        tokio::select! {
            () = stopped(&mut shutdown) => break,
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
    caching.abort();
    Ok(())
}

/// What stays the same from term to term.
struct Home {
    config: Config,
    paths: Paths,
    objects: Objects,
}

impl Home {
    /// Waits for the Lease. The term; none: the agent is told to stop.
    async fn stand_by(
        &self,
        candidate: &mut LeaseCandidate,
        shutdown: &mut watch::Receiver<bool>,
        service: &mut Service,
    ) -> Option<u64> {
        let content = || NodeContent {
            paths: self.paths.clone(),
            objects: self.objects.clone(),
            reserve: self.config.disk_reserve,
        };
        // What the cluster runs comes to this node too, until it is this one's turn.
        let _mirror =
            self.shares().then(|| Mirror::start(content(), candidate.secret_store(), candidate.standing.clone()));
        let mut told = None;
        loop {
            service.beat(true);
            let standing = candidate.standing.borrow_and_update().clone();
            match standing {
                Standing::Holds { term } if candidate.gate.is_held() => {
                    Standby::end(&self.paths);
                    return Some(term);
                }
                Standing::Holds { .. } => {}
                Standing::By { holder, .. } => {
                    let standby = Standby { holder, namespace: candidate.place.namespace.clone() };
                    if told.as_ref() != Some(&standby) {
                        if let Some(holder) = &standby.holder {
                            tracing::info!(holder, "another agent works for this cluster; this one stands by");
                        }
                        if let Err(error) = standby.write(&self.paths) {
                            tracing::debug!(%error, "that this agent stands by can't be noted");
                        }
                        told = Some(standby);
                    }
                }
            }
            tokio::select! {
                () = stopped(shutdown) => return None,
                changed = candidate.standing.changed() => {
                    // The thread of the API server has ended: nobody will ever hold anything.
                    changed.ok()?;
                }
                () = tokio::time::sleep(alive::EVERY.min(AGAIN)) => {}
            }
        }
    }

    /// Whether the pods share content.
    fn shares(&self) -> bool {
        self.config.peers.enabled != Some(false)
    }

    /// Works for the cluster until the term ends.
    async fn lead(&self, candidate: &LeaseCandidate, term: u64, signals: &Signals) -> Result<Term, RunError> {
        let (fenced, mut is_fenced) = watch::channel(false);
        let surroundings = facts::gather(candidate).await?;
        let failed = |source| RunError::Folder { path: self.paths.state(), source };
        self.become_cluster(&surroundings.id).map_err(failed)?;
        let gate = Arc::clone(&candidate.gate);
        let writer = format!("{}/{term}/{:08x}", candidate.place.holder, rand::random::<u32>());
        let held = Arc::new(move || gate.is_held());
        let (disk, hydrated) =
            SecretLedger::take_over(candidate.secret_store(), &self.paths, &self.objects, writer, held, fenced)
                .map_err(|error| {
                    RunError::cluster("what the cluster keeps for the agent can't be taken over", error)
                })?;
        tracing::info!(
            term,
            holder = candidate.place.holder,
            ledgers = hydrated.ledgers,
            changed = hydrated.changed,
            "this agent works for the cluster"
        );
        let mut config = self.config.clone();
        config.name = config.name.or_else(|| Some(surroundings.name()));
        let context = AgentContext {
            paths: self.paths.clone(),
            disk: Arc::new(disk),
            clock: Arc::new(SystemClock),
            objects: self.objects.clone(),
            config,
            place: Destination::Kubernetes,
            cluster: Some(Arc::new(ClusterSurroundings {
                facts: surroundings.facts,
                cluster: candidate.cluster.clone(),
                runtime: candidate.handle.clone(),
                namespace: candidate.place.namespace.clone(),
                pod: candidate::pod_ip().filter(|_| self.shares()).map(|ip| Pod { ip, offer: candidate.offer.clone() }),
            })),
        };
        let (target, outside) = self.target(candidate);
        // The loop hears one word: stop. Why is asked afterwards.
        let (stop, told) = watch::channel(false);
        let inner = Signals { shutdown: told, look: Arc::clone(&signals.look) };
        let (mut standing, mut shutdown) = (candidate.standing.clone(), signals.shutdown.clone());
        let overseer = tokio::spawn(async move {
            let lost = |standing: &Standing| *standing != Standing::Holds { term };
            tokio::select! {
                () = stopped(&mut shutdown) => {}
                _ = standing.wait_for(lost) => {}
                _ = is_fenced.wait_for(|fenced| *fenced) => {}
            }
            stop.send_replace(true);
        });
        let worked = work(&context, target, inner, Service::of_pod(&self.paths), Some(outside)).await;
        overseer.abort();
        worked?;
        Ok(if *signals.shutdown.borrow() { Term::Stopped } else { Term::Lost })
    }

    /// From now on this folder is the cluster's. What joined by hand in it before is taken along.
    fn become_cluster(&self, id: &str) -> io::Result<()> {
        let node = machine::digest(&self.paths);
        let first = !machine::is_of_cluster(&self.paths);
        machine::remember_cluster(&self.paths, id)?;
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let cluster = machine::digest(&self.paths);
        if first && let Err(error) = identity::hand_over(&disk, &self.paths, node, cluster) {
            tracing::warn!(error = chain(&error), "what joined here before can't be taken along");
        }
        Ok(())
    }

    fn target(&self, candidate: &LeaseCandidate) -> (Arc<dyn Target>, Outside) {
        let (tell, noticed) = unbounded_channel();
        // Whatever is spawned belongs to the thread of the API server.
        let _entered = candidate.handle.enter();
        let watches = Watches::start(candidate.cluster.clone(), tell);
        let kinds = Arc::new(Discovered::new(candidate.cluster.clone(), candidate.handle.clone()));
        let target = ClusterTarget {
            kinds,
            cluster: candidate.cluster.clone(),
            watches: watches.clone(),
            runtime: candidate.handle.clone(),
            gate: Arc::clone(&candidate.gate),
        };
        let follow = Box::new(move |records: &BTreeMap<String, Record>| watches.follow(&kinds_of(records)));
        (Arc::new(target), Outside { noticed, follow })
    }
}

/// Of everything that runs or is being brought to run.
fn kinds_of(records: &BTreeMap<String, Record>) -> BTreeSet<KindKey> {
    let goals = records.values().flat_map(|record| {
        let wanted = record.transaction.as_ref().and_then(|transaction| transaction.wanted.as_deref());
        record.running.iter().chain(wanted)
    });
    goals.flat_map(|running| &running.goal.objects).map(|object| KindKey::of(&object.id)).collect()
}

/// True: the agent is told to stop.
async fn rest(shutdown: &mut watch::Receiver<bool>) -> bool {
    tokio::time::timeout(AGAIN, stopped(shutdown)).await.is_ok()
}
