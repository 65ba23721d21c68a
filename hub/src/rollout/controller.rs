//! The one place where rollouts move: the reconciler hands in heads, the leader's task calls when facts, words or the clock may
//! have changed something. One pass of an environment at a time; what it decides is saved under the term, then issued.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kedge_hub_types::pack::PackedType;
use kedge_hub_types::permits::RingLimit;
use kedge_hub_types::rollout::Known;
use kedge_hub_types::rollout::Pinned;
use kedge_hub_types::rollout::running::{Place, Running};
use kedge_model::kinds::EnvironmentPolicy;
use kedge_model::wire::{Generation, Stream, Timestamp};
use kedge_rollout::RolloutId;
use tokio::sync::Mutex;

use super::checks::Checks;
use super::head::{Head, Occasion};
use super::pass::ReconcilePass;
use super::policy::Policies;
use super::told;
use crate::git::Mirrors;
use crate::metrics::Metrics;
use crate::pack::Packed;
use crate::signal::Nudge;
use crate::state::{IssueError, Issuer, Wanted};
use crate::store::rollout::Waiting;
use crate::store::rollout::controller::{ComparedHead, Quarantine};
use crate::store::{Store, StoreError, Term};

/// First line and author, as `Name <mail>`, of commits of application repositories: for people, and for approvals.
pub trait Describe: Send + Sync {
    fn describe(&self, repo: &str, commit: &str) -> Option<(String, String)>;
}

/// What other modules share with this one. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    pub policies: Policies,
    pub checks: Checks,
    /// Counts changed, a check answered, or a person spoke.
    pub nudge: Nudge,
    /// Rung after rollouts moved.
    pub moved: Nudge,
}

/// What a controller is made of.
#[derive(Clone)]
pub struct Parts {
    pub store: Store,
    pub issuer: Arc<Issuer>,
    pub shared: Shared,
    pub describe: Arc<dyn Describe>,
    pub metrics: Arc<Metrics>,
    pub clock: fn() -> Timestamp,
}

pub struct RolloutController {
    pub(super) parts: Parts,
    environments: Mutex<BTreeMap<String, Arc<Mutex<EnvironmentState>>>>,
    numbers: Mutex<Option<(Term, RolloutId)>>,
}

/// One environment: what this term knows of it.
#[derive(Debug, Default)]
pub(super) struct EnvironmentState {
    pub term: Option<Term>,
    pub head: Option<Arc<Head>>,
    /// The head hasn't been compared with the rings yet.
    pub fresh: bool,
    pub rows: Option<Rows>,
}

/// As the database has it.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub running: BTreeMap<RolloutId, Running>,
    pub waiting: BTreeMap<String, Waiting>,
    pub known: BTreeMap<Place, Known>,
    pub quarantines: BTreeMap<String, Quarantine>,
    pub compared: Option<ComparedHead>,
    pub pinned: Pinned,
    pub limits: BTreeMap<String, RingLimit>,
}

/// What a pass came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    pub issued: Vec<(Stream, Generation)>,
    /// Rollouts that changed.
    pub moved: BTreeSet<RolloutId>,
    /// Time or facts may change something without a word.
    pub unfinished: bool,
}

/// More passes than a rollout has steps: the next call goes on.
const TURNS: usize = 16;

impl Describe for Mirrors {
    fn describe(&self, repo: &str, commit: &str) -> Option<(String, String)> {
        let told = Mirrors::describe(self, repo, commit)?;
        let who = told.who();
        Some((told.subject, who))
    }
}

impl RolloutController {
    pub fn new(parts: Parts) -> RolloutController {
        RolloutController { parts, environments: Mutex::default(), numbers: Mutex::default() }
    }

    pub fn policies(&self) -> &Policies {
        &self.parts.shared.policies
    }

    /// Takes a new head of an environment, and makes the rings follow as far as they may. Without a policy that is at once.
    pub async fn issue(&self, term: Term, packed: &Packed, occasion: &Occasion) -> Result<Passed, IssueError> {
        self.parts.shared.policies.known().await;
        self.parts.store.learn_owners(&packed.environment, occasion.owners());
        let state = self.environment_state(&packed.environment).await;
        let mut state = state.lock().await;
        state.begin(term);
        state.head = Some(Arc::new(Head::new(packed, occasion)));
        state.fresh = true;
        if self.parts.shared.policies.of(&packed.environment).is_none() {
            return self.follow(term, &packed.environment, &mut state).await;
        }
        let passed = self.pass_until_still(term, &packed.environment, &mut state).await?;
        if passed.unfinished {
            // What begins here goes on by the leader's task, also when only other hubs hear of it.
            self.parts.shared.nudge.nudge();
        }
        Ok(passed)
    }

    /// Looks again at an environment, with the head as it was handed in last.
    pub async fn pass(&self, term: Term, environment: &str) -> Result<Passed, IssueError> {
        let state = self.environment_state(environment).await;
        let mut state = state.lock().await;
        state.begin(term);
        if self.parts.shared.policies.of(environment).is_none() {
            return self.follow(term, environment, &mut state).await;
        }
        self.pass_until_still(term, environment, &mut state).await
    }

    async fn pass_until_still(
        &self,
        term: Term,
        environment: &str,
        state: &mut EnvironmentState,
    ) -> Result<Passed, IssueError> {
        let mut all = Passed::default();
        for _ in 0..TURNS {
            let Some(policy) = self.parts.shared.policies.of(environment) else { break };
            let passed = self.run_pass(term, environment, &policy, state).await;
            if passed.is_err() {
                // What was decided may be saved or not: read again.
                state.rows = None;
            }
            let passed = passed?;
            let still = passed.moved.is_empty();
            all.issued.extend(passed.issued);
            all.moved.extend(passed.moved);
            all.unfinished = passed.unfinished;
            if still {
                break;
            }
        }
        if !all.moved.is_empty() {
            self.parts.shared.moved.nudge();
        }
        Ok(all)
    }

    async fn run_pass(
        &self,
        term: Term,
        environment: &str,
        policy: &Arc<EnvironmentPolicy>,
        state: &mut EnvironmentState,
    ) -> Result<Passed, IssueError> {
        let mut rows = match state.rows.take() {
            Some(rows) => rows,
            None => self.load(environment).await?,
        };
        let head = state.head.clone();
        let pass =
            ReconcilePass { controller: self, term, environment, policy, head: head.as_deref(), fresh: state.fresh };
        let passed = pass.run(&mut rows).await?;
        state.rows = Some(rows);
        state.fresh = false;
        Ok(passed)
    }

    /// An environment that no policy names: everything follows the head, and restarts that people asked for are issued.
    async fn follow(&self, term: Term, environment: &str, state: &mut EnvironmentState) -> Result<Passed, IssueError> {
        self.release(term, environment, state).await?;
        let now = (self.parts.clock)();
        let held = self.parts.issuer.held(term, environment).await?;
        let streams = match &state.head {
            None => held,
            Some(head) => {
                let empty = Arc::new(PackedType::new());
                let all = head.types.keys().map(|name| Stream::new(environment, name, Stream::ALL));
                let streams: BTreeSet<Stream> = held.into_keys().chain(all).collect();
                let at_head = |stream: Stream| {
                    let entries = head.pinned_type(&stream.cluster_type, &stream.ring, now);
                    let entries = entries.unwrap_or_else(|| Arc::clone(&empty));
                    (stream, entries)
                };
                streams.into_iter().map(at_head).collect()
            }
        };
        let source = state.head.as_ref().map(|head| head.source.clone());
        let wanted = Wanted { environment: environment.to_owned(), source, streams };
        let issued = self.parts.issuer.issue_streams(term, wanted).await?;
        let unfinished = state.head.as_ref().is_some_and(|head| head.has_deadline(now));
        Ok(Passed { issued, unfinished, ..Passed::default() })
    }

    /// Ends what a policy that is gone had begun.
    async fn release(&self, term: Term, environment: &str, state: &mut EnvironmentState) -> Result<(), IssueError> {
        state.rows = None;
        let running = self.parts.store.running_rollouts(environment).await?;
        let limits = self.parts.store.ring_limits(environment).await?;
        let limited: Vec<&String> =
            limits.iter().filter(|(_, limit)| limit.permits.is_some() || limit.closed).map(|(ring, _)| ring).collect();
        if running.is_empty() && limited.is_empty() {
            return Ok(());
        }
        let at = (self.parts.clock)();
        let mut tx = self.parts.store.write_as(term).await?;
        let tick = tx.tick().await?;
        for mut running in running {
            if running.is_unfinished() {
                let by = "the policy that no longer names the environment".to_owned();
                running.rollout.phase = kedge_rollout::Phase::Aborted { by, at };
                tx.record(vec![told::phase(&running.rollout, at)]).await?;
            }
            (running.issued, running.watched) = (true, false);
            tx.put_rollout(&running, at, tick).await?;
        }
        for ring in limited {
            tx.put_limit(environment, ring, None, tick).await?;
        }
        tx.commit().await?;
        self.parts.shared.moved.nudge();
        Ok(())
    }

    async fn load(&self, environment: &str) -> Result<Rows, StoreError> {
        let store = &self.parts.store;
        let running = store.running_rollouts(environment).await?;
        Ok(Rows {
            running: running.into_iter().map(|running| (running.id(), running)).collect(),
            waiting: store.rollouts_waiting(environment).await?,
            known: store.known_sources(environment).await?,
            quarantines: store.quarantines(environment).await?,
            compared: store.compared_head(environment).await?,
            pinned: store.pinned_of(environment).await?,
            limits: store.ring_limits(environment).await?,
        })
    }

    /// The number of a new rollout. One that isn't used after all is skipped.
    pub(super) async fn next_number(&self, term: Term) -> Result<RolloutId, StoreError> {
        let mut numbers = self.numbers.lock().await;
        let newest = match *numbers {
            Some((of, newest)) if of == term => newest,
            _ => self.parts.store.newest_rollout().await?,
        };
        let next = RolloutId(newest.0 + 1);
        *numbers = Some((term, next));
        Ok(next)
    }

    async fn environment_state(&self, environment: &str) -> Arc<Mutex<EnvironmentState>> {
        let mut environments = self.environments.lock().await;
        Arc::clone(environments.entry(environment.to_owned()).or_default())
    }
}

impl EnvironmentState {
    /// Another term: another hub may have written meanwhile.
    fn begin(&mut self, term: Term) {
        if self.term != Some(term) {
            *self = EnvironmentState { term: Some(term), ..EnvironmentState::default() };
        }
    }
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for RolloutController {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RolloutController").finish_non_exhaustive()
    }
}
