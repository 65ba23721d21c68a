//! The way of commits of main from environment to environment: which policy counts, which commit is in force where, the
//! record of it in Git (`base-repo.yaml`), evidence, external checks and commit statuses. The leader's: `PromotionController::lead` keeps
//! one task. `crates/rollout` decides; this module gathers facts, saves, and makes Git follow, again and again.
//!
//! The order makes a crash harmless: a decision is saved first, with its evidence; then the environment's branch is made to
//! name the commit; and only what the branch has named is read (`in_force`).

pub mod branches;
pub mod checks;
pub mod evidence;
mod facts;
mod follow;
mod gather;
mod message;
pub mod outcomes;
mod pass;
pub mod policy;
mod request;
pub mod rollouts;
pub mod statuses;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod told;
mod witness;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kedge_platform::{Cache, RepoKey};
use kedge_rollout::chain::MainCommit;
use tokio::sync::{broadcast, watch};

pub use branches::{At, BranchError, Branches, Edit, Wrote};
pub use checks::Asker;
pub use evidence::{Statement, Witness, verify};
pub use outcomes::Outcomes;
pub use rollouts::Rollouts;
pub use statuses::Statuses;

use crate::config::Config;
use crate::git::{MirrorError, Mirrors};
use crate::rollout::{Policies, Shared};
use crate::signal::Nudge;
use crate::store::{Store, StoreError, Term};
use evidence::EvidenceError;
use facts::Branch;
use policy::{Found, Source};

/// Decides about promotions and makes Git follow. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PromotionController {
    store: Store,
    mirrors: Mirrors,
    control_plane: String,
    /// Main's name.
    main: String,
    branches: Branches,
    statuses: Statuses,
    witness: Arc<dyn Witness>,
    outcomes: Arc<dyn Outcomes>,
    /// What rollouts share: the policy in force is filled in, and their bell is listened to.
    rollouts: Shared,
    asker: Asker,
    /// A person spoke.
    nudge: Nudge,
    /// Counts changes of what environments are read at.
    moved: Arc<watch::Sender<u64>>,
    cache: Arc<Cache>,
    memory: Arc<Mutex<Memory>>,
}

/// What others give.
#[derive(Debug)]
pub struct Parts {
    pub store: Store,
    pub mirrors: Mirrors,
    pub witness: Arc<dyn Witness>,
    pub outcomes: Arc<dyn Outcomes>,
    pub rollouts: Shared,
}

/// What Git said last, by the commits that it was read from.
#[derive(Debug, Default)]
struct Memory {
    main: Option<(String, Arc<[MainCommit]>)>,
    policy: Option<(String, Found, Source)>,
    /// By environment.
    branches: BTreeMap<String, Branch>,
}

/// Typed by what happens next: all of them are tried again.
#[derive(Debug, thiserror::Error)]
enum PassError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("main can't be read")]
    Main(#[source] Box<MirrorError>),
    #[error("evidence can't be made")]
    Evidence(#[from] EvidenceError),
    #[error("a task of the hub ended early")]
    Interrupted,
}

/// Whether there is something to look at soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Waiting,
    Idle,
}

/// A burst of pushes becomes one pass.
const DEBOUNCE: Duration = Duration::from_millis(20);

/// While something waits (a window, a gate, a pull request) it is looked at so often.
const WAITING: Duration = Duration::from_secs(5);

/// Everything is looked at again so often, whatever was missed.
const IDLE: Duration = Duration::from_secs(60);

/// People's words on other hubs are found by asking so often.
const WORDS: Duration = Duration::from_secs(1);

/// Between two tries after a failure.
const RETRY: Duration = Duration::from_secs(2);

impl PromotionController {
    /// None: there is no control plane.
    pub fn new(config: &Config, parts: Parts) -> Option<PromotionController> {
        let control_plane = config.git.control_plane.clone()?;
        let Parts { store, mirrors, witness, outcomes, rollouts } = parts;
        let branches = Branches::new(Arc::new(mirrors.clone()), config);
        let asker = Asker {
            store: store.clone(),
            branches: branches.clone(),
            control_plane: control_plane.clone(),
            outcomes: Arc::clone(&outcomes),
            said: rollouts.checks.clone(),
            nudge: rollouts.nudge.clone(),
        };
        Some(PromotionController {
            statuses: Statuses::new(store.clone(), branches.clone()),
            store,
            mirrors,
            control_plane,
            main: config.git.branch.clone(),
            branches,
            witness,
            outcomes,
            rollouts,
            asker,
            nudge: Nudge::new(),
            moved: Arc::new(watch::Sender::new(0)),
            cache: Arc::default(),
            memory: Arc::default(),
        })
    }

    /// Rung when a person spoke on this hub.
    pub fn nudge(&self) -> Nudge {
        self.nudge.clone()
    }

    /// Changes when an environment is to be read at another commit of main.
    pub fn moved(&self) -> watch::Receiver<u64> {
        self.moved.subscribe()
    }

    /// Decides until it is dropped.
    pub async fn lead(self, term: Term) {
        let checks = self.asker.clone().lead(term);
        let statuses = self.statuses.clone().lead(term);
        tokio::select! {
            () = self.decide(term) => {}
            () = checks => {}
            () = statuses => {}
        }
    }

    async fn decide(&self, term: Term) {
        let mut changes = self.mirrors.changed();
        let mut rung = self.nudge.listen();
        let mut rolled = self.rollouts.moved.listen();
        let mut words = tokio::time::interval(WORDS);
        words.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let pause = match self.pass(term).await {
                Ok(After::Waiting) => WAITING,
                Ok(After::Idle) => IDLE,
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "promotions can't be looked at and are tried again");
                    RETRY
                }
            };
            self.rollouts.policies.settle();
            let until = tokio::time::Instant::now() + pause;
            loop {
                tokio::select! {
                    change = changes.recv() => match change {
                        Ok(change) if change.key != self.key() => continue,
                        Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => break,
                        Err(broadcast::error::RecvError::Closed) => return,
                    },
                    Ok(()) = rung.changed() => break,
                    Ok(()) = rolled.changed() => break,
                    _ = words.tick() => match self.store.has_promotion_words().await {
                        Ok(false) | Err(_) => {}
                        Ok(true) => break,
                    },
                    () = tokio::time::sleep_until(until) => break,
                }
            }
            tokio::time::sleep(DEBOUNCE).await;
            while changes.try_recv().is_ok() {}
        }
    }

    /// The control plane's repository, in the form that all its spellings share.
    fn key(&self) -> RepoKey {
        self.mirrors.key(&self.control_plane)
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, Memory> {
        // Nothing under this lock can be left half done.
        self.memory.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Shows the policy in force to this hub's modules.
pub async fn show_policy(store: &Store, policies: &Policies) -> Result<(), StoreError> {
    let known = store.policies().await?;
    policies.set(known.in_force().map(|policy| &**policy));
    Ok(())
}

/// Shows what another hub's controller put in force, until told to stop: every hub signs memberships by it.
pub async fn follow_policy(store: Store, policies: Policies, mut shutdown: watch::Receiver<bool>) {
    let mut timer = tokio::time::interval(WORDS);
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut shown = None;
    loop {
        tokio::select! {
            _ = timer.tick() => {}
            _ = shutdown.wait_for(|stop| *stop) => return,
        }
        // While the database is away, what is shown stays.
        let Ok(digest) = store.policy_digest().await else { continue };
        if shown.as_ref() != Some(&digest) && show_policy(&store, &policies).await.is_ok() {
            shown = Some(digest);
        }
    }
}
