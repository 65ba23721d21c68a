//! The way of a change, step by step, for each environment: git, platform, schedule, publish, pack, state. The leader's
//! work: `lead` reads which environments there are and keeps one task for each, so that a failing one delays no other.
//! Ends when it is dropped, with all its tasks.

mod decide;
mod environment;
mod log;
mod notes;
mod occasion;
mod services;
mod status;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kedge_hub_types::platform::Environment;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};

pub use services::Services;
pub use status::{EnvironmentStatus, ReconcileStatus};
pub use steps::{Stage, Steps, Stop};

use crate::platform::environments::Declared;
use crate::platform::{PlatformReader, ReadError};
use crate::store::Term;
use environment::EnvironmentReconciler;

/// A burst of pushes becomes one reconciliation.
const DEBOUNCE: Duration = Duration::from_millis(20);

/// Everything is looked at again so often, whatever was missed.
const RESYNC: Duration = Duration::from_secs(300);

/// Between two tries to read which environments there are.
const RETRY: Duration = Duration::from_secs(2);

/// A person's word and a webhook on another hub are found by asking so often.
const OTHER_HUBS: Duration = Duration::from_secs(1);

/// All reconcilers of a hub. Cheap to clone; works while this hub leads.
#[derive(Debug)]
pub struct Reconcilers<S> {
    reader: PlatformReader,
    steps: Arc<S>,
    status: ReconcileStatus,
    signals: Signals,
}

/// What makes an environment go on besides repositories.
#[derive(Clone, Debug)]
pub struct Signals {
    /// Changes when a person confirmed a removal on this hub.
    pub confirmations: watch::Receiver<u64>,
    /// Changes when an artifact was fetched.
    pub downloads: watch::Receiver<u64>,
    /// Changes when an environment is to be read at another commit of main.
    pub promotions: watch::Receiver<u64>,
}

/// What an environment's task is told.
#[derive(Clone, Debug)]
enum Trigger {
    Go(Stage),
    /// The Environment object says something else.
    Described(Environment),
}

#[derive(Debug)]
struct Running {
    trigger: mpsc::Sender<Trigger>,
    task: AbortHandle,
    described: Environment,
}

impl<S> Clone for Reconcilers<S> {
    fn clone(&self) -> Reconcilers<S> {
        Reconcilers {
            reader: self.reader.clone(),
            steps: Arc::clone(&self.steps),
            status: self.status.clone(),
            signals: self.signals.clone(),
        }
    }
}

impl<S: Steps> Reconcilers<S> {
    pub fn new(reader: PlatformReader, steps: Arc<S>, signals: Signals) -> Reconcilers<S> {
        Reconcilers { reader, steps, status: ReconcileStatus::default(), signals }
    }

    /// What each environment is doing, for people.
    pub fn status(&self) -> BTreeMap<String, EnvironmentStatus> {
        self.status.all()
    }

    /// Reconciles all environments until it is dropped.
    pub async fn lead(self, term: Term) {
        let mut supervisor = Supervisor { reconcilers: self, term, running: BTreeMap::new(), tasks: JoinSet::new() };
        supervisor.run().await;
    }
}

struct Supervisor<S> {
    reconcilers: Reconcilers<S>,
    term: Term,
    running: BTreeMap<String, Running>,
    tasks: JoinSet<String>,
}

impl<S: Steps> Supervisor<S> {
    async fn run(&mut self) {
        let mut changes = self.reconcilers.reader.mirrors().changed();
        let mut signals = self.reconcilers.signals.clone();
        signals.confirmations.mark_unchanged();
        signals.downloads.mark_unchanged();
        signals.promotions.mark_unchanged();
        let mut asked = tokio::time::interval(OTHER_HUBS);
        let mut approved = BTreeSet::new();
        let mut declared = self.declare().await;
        let mut again = pause(&declared);
        loop {
            tokio::select! {
                change = changes.recv() => match change {
                    Ok(change) if declared.as_ref().is_ok_and(|known| known.input.repo != change.key) => {}
                    // Fallen behind counts as changed.
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {
                        tokio::time::sleep(DEBOUNCE).await;
                        declared = self.declare().await;
                        again = pause(&declared);
                    }
                    Err(broadcast::error::RecvError::Closed) => return,
                },
                () = tokio::time::sleep_until(again) => {
                    declared = self.declare().await;
                    again = pause(&declared);
                }
                Ok(()) = signals.confirmations.changed() => self.tell_all(Stage::Publish).await,
                Ok(()) = signals.downloads.changed() => self.tell_all(Stage::Pack).await,
                Ok(()) = signals.promotions.changed() => self.tell_all(Stage::Read).await,
                _ = asked.tick() => {
                    self.reconcilers.reader.mirrors().take_nudges().await;
                    self.ask_for_confirmations(&mut approved).await;
                }
                Some(ended) = self.tasks.join_next() => self.ended(ended).await,
            }
        }
    }

    /// Reads which environments there are, begins new ones and ends those that are gone.
    async fn declare(&mut self) -> Result<Declared, ReadError> {
        let declared = self.reconcilers.reader.environments(self.term).await;
        match &declared {
            Ok(known) => self.settle(known).await,
            Err(error) => {
                let error = error as &dyn std::error::Error;
                tracing::warn!(error, "the environments can't be read; those that run go on");
            }
        }
        declared
    }

    async fn settle(&mut self, declared: &Declared) {
        for problem in declared.problems.iter().filter(|problem| problem.is_error()) {
            tracing::warn!(problem = problem.message, "a file of `.environments/` can't be used");
        }
        for environment in declared.environments.values() {
            match self.running.get_mut(&environment.name) {
                Some(running) if running.described == *environment => {}
                Some(running) => {
                    running.described = environment.clone();
                    // A task that ended is begun again by whoever noticed.
                    let _ = running.trigger.send(Trigger::Described(environment.clone())).await;
                }
                None => self.begin(environment.clone()),
            }
        }
        let gone: Vec<String> =
            self.running.keys().filter(|name| !declared.environments.contains_key(*name)).cloned().collect();
        for name in gone {
            if let Some(running) = self.running.remove(&name) {
                running.task.abort();
            }
            self.reconcilers.status.remove(&name);
            if let Err(stop) = self.reconcilers.steps.forget(self.term, &name).await {
                tracing::warn!(environment = name, error = stop.message, "the environment is still listed");
            }
        }
    }

    fn begin(&mut self, environment: Environment) {
        let (trigger, inbox) = mpsc::channel(64);
        let name = environment.name.clone();
        let reconciler = EnvironmentReconciler::new(&self.reconcilers, self.term, environment.clone());
        let shown = name.clone();
        let task = self.tasks.spawn(async move {
            reconciler.run(inbox).await;
            shown
        });
        self.running.insert(name, Running { trigger, task, described: environment });
    }

    /// A task ends only when it breaks down; it begins again.
    async fn ended(&mut self, ended: Result<String, tokio::task::JoinError>) {
        if matches!(&ended, Err(error) if error.is_cancelled()) {
            return;
        }
        tracing::error!(?ended, "the walk of an environment broke down and begins again");
        tokio::time::sleep(RETRY).await;
        let over: Vec<Environment> = self
            .running
            .values()
            .filter(|running| running.task.is_finished())
            .map(|running| running.described.clone())
            .collect();
        for environment in over {
            self.running.remove(&environment.name);
            self.begin(environment);
        }
    }

    async fn tell_all(&self, from: Stage) {
        for running in self.running.values() {
            let _ = running.trigger.send(Trigger::Go(from)).await;
        }
    }

    async fn ask_for_confirmations(&self, before: &mut BTreeSet<String>) {
        let Ok(approved) = self.reconcilers.steps.approved().await else { return };
        for name in approved.difference(before) {
            if let Some(running) = self.running.get(name) {
                let _ = running.trigger.send(Trigger::Go(Stage::Publish)).await;
            }
        }
        *before = approved;
    }
}

fn pause<T, E>(declared: &Result<T, E>) -> tokio::time::Instant {
    tokio::time::Instant::now() + if declared.is_ok() { RESYNC } else { RETRY }
}

#[cfg(test)]
mod tests;
