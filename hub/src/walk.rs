//! The way of a change, step by step, for each environment: git, platform, schedule, publish, pack, state. The leader's
//! work: `lead` reads which environments there are and keeps one task for each, so that a failing one delays no other.
//! Ends when it is dropped, with all its tasks.

mod board;
mod diary;
mod environment;
mod notes;
mod rooms;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};

pub use board::{Board, EnvironmentStatus};
pub use rooms::Rooms;
pub use steps::{From, Steps, Stop};

use crate::platform::environments::Declared;
use crate::platform::{Environment, PlatformReader, ReadError};
use crate::store::Term;
use environment::EnvironmentWalk;

/// A burst of pushes becomes one walk.
const DEBOUNCE: Duration = Duration::from_millis(20);

/// Everything is looked at again so often, whatever was missed.
const RESYNC: Duration = Duration::from_secs(300);

/// Between two tries to read which environments there are.
const RETRY: Duration = Duration::from_secs(2);

/// A person's word and a webhook on another hub are found by asking so often.
const OTHER_HUBS: Duration = Duration::from_secs(1);

/// All walks of a hub. Cheap to clone; works while this hub leads.
#[derive(Debug)]
pub struct Walks<S> {
    reader: PlatformReader,
    steps: Arc<S>,
    board: Board,
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
enum Mail {
    Go(From),
    /// The Environment object says something else.
    Described(Environment),
}

#[derive(Debug)]
struct Running {
    mail: mpsc::Sender<Mail>,
    task: AbortHandle,
    described: Environment,
}

impl<S> Clone for Walks<S> {
    fn clone(&self) -> Walks<S> {
        Walks {
            reader: self.reader.clone(),
            steps: Arc::clone(&self.steps),
            board: self.board.clone(),
            signals: self.signals.clone(),
        }
    }
}

impl<S: Steps> Walks<S> {
    pub fn new(reader: PlatformReader, steps: Arc<S>, signals: Signals) -> Walks<S> {
        Walks { reader, steps, board: Board::default(), signals }
    }

    /// What each environment is doing, for people.
    pub fn status(&self) -> BTreeMap<String, EnvironmentStatus> {
        self.board.all()
    }

    /// Walks all environments until it is dropped.
    pub async fn lead(self, term: Term) {
        let mut supervisor = Supervisor { walks: self, term, running: BTreeMap::new(), tasks: JoinSet::new() };
        supervisor.run().await;
    }
}

struct Supervisor<S> {
    walks: Walks<S>,
    term: Term,
    running: BTreeMap<String, Running>,
    tasks: JoinSet<String>,
}

impl<S: Steps> Supervisor<S> {
    async fn run(&mut self) {
        let mut changes = self.walks.reader.mirrors().changed();
        let mut signals = self.walks.signals.clone();
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
                Ok(()) = signals.confirmations.changed() => self.tell_all(From::Publish).await,
                Ok(()) = signals.downloads.changed() => self.tell_all(From::Pack).await,
                Ok(()) = signals.promotions.changed() => self.tell_all(From::Read).await,
                _ = asked.tick() => {
                    self.walks.reader.mirrors().take_nudges().await;
                    self.ask_for_confirmations(&mut approved).await;
                }
                Some(ended) = self.tasks.join_next() => self.ended(ended).await,
            }
        }
    }

    /// Reads which environments there are, begins new ones and ends those that are gone.
    async fn declare(&mut self) -> Result<Declared, ReadError> {
        let declared = self.walks.reader.environments(self.term).await;
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
                    let _ = running.mail.send(Mail::Described(environment.clone())).await;
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
            self.walks.board.remove(&name);
            if let Err(stop) = self.walks.steps.forget(self.term, &name).await {
                tracing::warn!(environment = name, error = stop.message, "the environment is still listed");
            }
        }
    }

    fn begin(&mut self, environment: Environment) {
        let (mail, inbox) = mpsc::channel(64);
        let name = environment.name.clone();
        let walk = EnvironmentWalk::new(&self.walks, self.term, environment.clone());
        let shown = name.clone();
        let task = self.tasks.spawn(async move {
            walk.run(inbox).await;
            shown
        });
        self.running.insert(name, Running { mail, task, described: environment });
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

    async fn tell_all(&self, from: From) {
        for running in self.running.values() {
            let _ = running.mail.send(Mail::Go(from)).await;
        }
    }

    async fn ask_for_confirmations(&self, before: &mut BTreeSet<String>) {
        let Ok(approved) = self.walks.steps.approved().await else { return };
        for name in approved.difference(before) {
            if let Some(running) = self.running.get(name) {
                let _ = running.mail.send(Mail::Go(From::Publish)).await;
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
