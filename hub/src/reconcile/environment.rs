//! The task of one environment: waits for news that concern it, reconciles from where they begin, and tries again what
//! failed, later and later, as `decide` says. Owned by the leader's work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kedge_api::repositories::RepositorySummary;
use kedge_hub_types::platform::Environment;
use kedge_model::{Platform, Problem};
use kedge_platform::RepoKey;
use kedge_scheduler::{Delta, Scheduler};
use tokio::sync::{broadcast, mpsc};

use super::decide::{Environs, look_again, next};
use super::log::ReconcileLog;
use super::notes;
use super::occasion::{Newest, occasion, tenants};
use super::status::ReconcileStatus;
use super::steps::{Stage, Steps, Stop};
use super::{DEBOUNCE, RESYNC, Reconcilers, Trigger};
use crate::catalog::CatalogNotes;
use crate::git::{Head, RepoChange, Trust};
use crate::metrics::{ReconcileOutcome, StepName};
use crate::pack::{Packed, Pins, Tenancy};
use crate::platform;
use crate::platform::{EnvironmentReader, Input, PlatformReader, ReadError};
use crate::publish::{Cause, GitOpsTarget, Next, PublishJob, Published};
use crate::rollout::Occasion;
use crate::store::Term;

/// As many causes as a commit's message has room for.
const CAUSES: usize = 10;

pub(super) struct EnvironmentReconciler<S> {
    steps: Arc<S>,
    shared: PlatformReader,
    status: ReconcileStatus,
    term: Term,
    environment: Environment,
    reader: Option<EnvironmentReader>,
    scheduler: Option<Scheduler>,
    target: Option<GitOpsTarget>,
    inputs: BTreeSet<Input>,
    commits: BTreeMap<Input, String>,
    /// Commits that aren't published yet, the newest first.
    causes: Vec<Cause>,
    log: ReconcileLog,
    head: Option<Head>,
    /// The newest commit that was read, with its first line and author.
    newest: Option<Newest>,
    /// The main commit that the branch's head was made from.
    published_main: Option<String>,
    /// The catalog missed something: everything is compared.
    catalog_behind: bool,
    failures: u32,
}

/// What became of publishing and what follows it.
#[derive(Default)]
struct Delivered {
    published: Option<Published>,
    packed: Option<Packed>,
    /// The first thing that failed, and where to begin again.
    stop: Option<(Stage, Stop)>,
    /// The stop was in publishing.
    publish_failed: Option<Stop>,
}

/// How a reconciliation ended.
struct Ended {
    stop: Option<(Stage, Stop)>,
    /// Until the next look without news, and where it begins.
    again: (Duration, Stage),
}

impl<S: Steps> EnvironmentReconciler<S> {
    pub fn new(reconcilers: &Reconcilers<S>, term: Term, environment: Environment) -> EnvironmentReconciler<S> {
        EnvironmentReconciler {
            steps: Arc::clone(&reconcilers.steps),
            shared: reconcilers.reader.clone(),
            status: reconcilers.status.clone(),
            term,
            environment,
            reader: None,
            scheduler: None,
            target: None,
            inputs: BTreeSet::new(),
            commits: BTreeMap::new(),
            causes: Vec::new(),
            log: ReconcileLog::default(),
            head: None,
            newest: None,
            published_main: None,
            catalog_behind: true,
            failures: 0,
        }
    }

    /// Until it is dropped.
    pub async fn run(mut self, mut inbox: mpsc::Receiver<Trigger>) {
        let mut changes = self.shared.mirrors().changed();
        let mut from = Stage::Read;
        loop {
            let ended = self.reconcile(from).await;
            let (pause, again) = self.settle(ended);
            from = match self.wait(&mut inbox, &mut changes, pause, again).await {
                Some(from) => from,
                None => return,
            };
        }
    }

    /// Waits for news or for the time to look again. None: nobody sends any more.
    async fn wait(
        &mut self,
        inbox: &mut mpsc::Receiver<Trigger>,
        changes: &mut broadcast::Receiver<RepoChange>,
        pause: Duration,
        again: Stage,
    ) -> Option<Stage> {
        let until = tokio::time::Instant::now() + pause;
        // What failed is tried with whatever else begins.
        let failed = (self.failures > 0).then_some(again);
        let first = loop {
            tokio::select! {
                trigger = inbox.recv() => break self.open(trigger?),
                change = changes.recv() => match change {
                    Ok(change) => match self.concerns(&change) {
                        Some(from) => break from,
                        None => continue,
                    },
                    Err(broadcast::error::RecvError::Lagged(_)) => break Stage::Read,
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
                () = tokio::time::sleep_until(until) => return Some(again),
            }
        };
        tokio::time::sleep(DEBOUNCE).await;
        let mut from = failed.map_or(first, |failed| first.min(failed));
        while let Ok(trigger) = inbox.try_recv() {
            from = from.min(self.open(trigger));
        }
        loop {
            match changes.try_recv() {
                Ok(change) => from = self.concerns(&change).map_or(from, |found| from.min(found)),
                Err(broadcast::error::TryRecvError::Lagged(_)) => from = Stage::Read,
                Err(_) => return Some(from),
            }
        }
    }

    fn open(&mut self, trigger: Trigger) -> Stage {
        match trigger {
            Trigger::Go(from) => from,
            Trigger::Described(environment) => {
                self.environment = environment.clone();
                if let Some(reader) = &mut self.reader {
                    reader.set_environment(environment);
                }
                Stage::Read
            }
        }
    }

    /// Where a reconciliation begins after a repository changed.
    fn concerns(&self, change: &RepoChange) -> Option<Stage> {
        let of = Environs {
            control_plane: (
                self.key(&self.environment.control_plane.repo),
                self.environment.control_plane.branch.as_str(),
            ),
            inputs: &self.inputs,
            commits: &self.commits,
            target: self.target.as_ref().map(|target| (self.key(&target.repo), target.branch.as_str())),
            head: self.head.as_ref().map(|head| (self.key(&head.repo), head)),
        };
        of.begin(change)
    }

    fn key(&self, repo: &str) -> RepoKey {
        self.shared.mirrors().key(repo)
    }

    async fn reconcile(&mut self, from: Stage) -> Ended {
        let begun = Instant::now();
        self.log.begin();
        let mut delta = None;
        if from == Stage::Read || self.scheduler.is_none() {
            match self.read().await {
                Ok(update) => delta = update,
                Err(stop) => return Ended { stop: Some((Stage::Read, stop)), again: (RESYNC, Stage::Read) },
            }
        }
        let Some(scheduler) = self.scheduler.take() else {
            return Ended { stop: None, again: (RESYNC, Stage::Read) };
        };
        let mut early = CatalogNotes::default();
        if from == Stage::Read {
            early.inputs = Some(notes::inputs(&self.commits));
        }
        let whole = self.catalog_behind || (from == Stage::Read && delta.is_none());
        let nothing = Delta::default();
        let told = if whole { None } else { Some(delta.as_ref().unwrap_or(&nothing)) };
        // What people read is written beside what agents get: neither waits for the other.
        let (catalog, delivered) = tokio::join!(
            self.catalog(&scheduler, told, &early, from == Stage::Read || whole),
            self.deliver(&scheduler, delta.as_ref(), from),
        );
        self.catalog_behind = catalog.is_err();
        let mut stop = delivered.stop.clone().or_else(|| catalog.err().map(|stop| (Stage::Publish, stop)));
        self.learn(&delivered);
        self.tell(&delivered).await;
        if let Err(failed) = self.conclude(&scheduler, &delivered).await {
            self.catalog_behind = true;
            stop = stop.or(Some((Stage::Publish, failed)));
        }
        let outcome = delivered.published.as_ref().map(|published| &published.outcome);
        let awaits_renderer = delivered.packed.as_ref().is_some_and(Packed::awaits_renderer);
        let again = look_again(outcome, !scheduler.platform().failing.is_empty(), awaits_renderer);
        self.scheduler = Some(scheduler);
        tracing::info!(
            environment = self.environment.name,
            ?from,
            rendered = delta.map_or(0, |delta| delta.rendered),
            took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            "walked"
        );
        Ended { stop, again }
    }

    /// Reads the environment and schedules what changed. None: from scratch.
    async fn read(&mut self) -> Result<Option<Delta>, Stop> {
        let begun = Instant::now();
        let name = self.environment.name.clone();
        let mut reader = match self.reader.take() {
            Some(reader) => reader,
            None => self.shared.environment(self.environment.clone()).await.map_err(|error| Stop::from(&error))?,
        };
        let update = reader.read(self.term, self.scheduler.as_ref().map(Scheduler::platform)).await;
        self.reader = Some(reader);
        let update = match update {
            Ok(update) => update,
            Err(ReadError::Unusable { problem, hint, inputs, .. }) => {
                self.inputs = inputs;
                return Err(self.unusable(problem, hint).await);
            }
            Err(ReadError::Store(error)) => return Err(Stop::from(&error)),
            Err(error @ ReadError::Interrupted) => return Err(Stop::of(&error, Next::Retry(None), None)),
        };
        self.measured(StepName::Read, begun);
        self.inputs = update.inputs;
        let promoted = self.promoted(&update.commits);
        self.log.read(promoted.iter().chain(&update.cause));
        self.commits = update.commits;
        self.target = update.gitops.map(|at| GitOpsTarget { repo: at.repo, branch: at.branch, path: at.path });
        let newest = promoted.or_else(|| update.cause.clone());
        let newest = newest.map(|told| Newest { commit: told.commit, subject: told.subject, author: told.who });
        self.newest = newest.or(self.newest.take());
        let cause = update.cause.map(|cause| Cause {
            repo: cause.repo,
            commit: cause.commit,
            subject: cause.subject,
            author: cause.author,
        });
        self.causes.splice(0..0, cause);
        self.causes.truncate(CAUSES);
        let begun = Instant::now();
        let (platform, changes) = (update.platform, update.changes);
        let before = self.scheduler.take();
        let schedule = move || match before {
            Some(mut scheduler) => {
                let delta = scheduler.update(changes);
                (scheduler, Some(delta))
            }
            None => (Scheduler::new(platform), None),
        };
        let scheduled = tokio::task::spawn_blocking(schedule).await;
        // A scheduler that broke down is lost; the next reconciliation begins with a new one.
        let (scheduler, delta) = scheduled.map_err(|_| Stop::retry(format!("scheduling {name} was interrupted")))?;
        self.scheduler = Some(scheduler);
        self.measured(StepName::Schedule, begun);
        Ok(delta)
    }

    /// First line and author of a main commit that is new here: who wrote it counts, not who let it in.
    fn promoted(&self, commits: &BTreeMap<Input, String>) -> Option<platform::Cause> {
        let main = self.shared.main()?;
        let commit = commits.get(&main).filter(|commit| self.commits.get(&main) != Some(*commit))?;
        self.shared.describe_main(commit)
    }

    /// There is no platform and never was one: people see why.
    async fn unusable(&mut self, problem: String, hint: Option<String>) -> Stop {
        let stop = Stop { message: problem.clone(), hint: hint.clone(), next: Next::Wait };
        let mut shown = Problem::error("EnvironmentFailed", problem);
        shown.hint = hint;
        let environment = self.environment.name.clone();
        let platform = Platform { environment: environment.clone(), problems: vec![shown], ..Platform::default() };
        let empty = Scheduler::new(platform);
        let shown = self.steps.catalog(self.term, &environment, &empty, None, &CatalogNotes::default()).await;
        self.catalog_behind = true;
        shown.err().unwrap_or(stop)
    }

    async fn catalog(
        &self,
        scheduler: &Scheduler,
        delta: Option<&Delta>,
        notes: &CatalogNotes,
        needed: bool,
    ) -> Result<(), Stop> {
        if !needed {
            return Ok(());
        }
        let begun = Instant::now();
        self.steps.catalog(self.term, &self.environment.name, scheduler, delta, notes).await?;
        self.measured(StepName::Catalog, begun);
        Ok(())
    }

    async fn deliver(&self, scheduler: &Scheduler, delta: Option<&Delta>, from: Stage) -> Delivered {
        let mut delivered = Delivered::default();
        let Some(target) = &self.target else {
            let stop = Stop {
                message: format!("environment {} has no GitOpsRepo, so nothing is published", self.environment.name),
                hint: Some("add a GitOpsRepo to the environment's branch".to_owned()),
                next: Next::Wait,
            };
            delivered.publish_failed = Some(stop.clone());
            delivered.stop = Some((Stage::Read, stop));
            return delivered;
        };
        let mut head = self.head.clone();
        if from != Stage::Pack || head.is_none() {
            let begun = Instant::now();
            let job = PublishJob {
                environment: &self.environment.name,
                target,
                schedule: scheduler.schedule(),
                delta,
                causes: &self.causes,
            };
            match self.steps.publish(self.term, job).await {
                Ok(published) => {
                    self.measured(StepName::Publish, begun);
                    head.clone_from(&published.head);
                    delivered.published = Some(published);
                }
                Err(stop) => {
                    // What is on the branch goes on: an application's new commit doesn't wait for this.
                    head = self.last_head(target).await;
                    delivered.publish_failed = Some(stop.clone());
                    delivered.stop = Some((Stage::Publish, stop));
                }
            }
        }
        let Some(head) = head else { return delivered };
        let occasion = self.occasion(scheduler, &delivered);
        let pins = Pins::of(scheduler.platform());
        let mirrors = self.shared.mirrors();
        let tenancy = Tenancy::of(scheduler.platform(), scheduler.schedule(), &|repo| mirrors.address(repo));
        if let Err(stop) = self.pack(&head, (&tenancy, &pins), &occasion, &mut delivered).await {
            delivered.stop.get_or_insert((Stage::Pack, stop));
        }
        delivered
    }

    /// What rollouts should know of the head that is packed next.
    fn occasion(&self, scheduler: &Scheduler, delivered: &Delivered) -> Occasion {
        let read = self.shared.main().and_then(|main| self.commits.get(&main).cloned());
        occasion(scheduler, self.newest.clone().unwrap_or_default(), self.main_of(delivered), read)
    }

    /// The main commit whose files are all on the branch; none while some wait for a person or a merge.
    fn main_of(&self, delivered: &Delivered) -> Option<String> {
        match &delivered.published {
            Some(published) if published.is_whole() => self.commits.get(&self.shared.main()?).cloned(),
            Some(_) => None,
            None => self.published_main.clone(),
        }
    }

    async fn pack(
        &self,
        head: &Head,
        (tenancy, pins): (&Tenancy, &Pins),
        occasion: &Occasion,
        delivered: &mut Delivered,
    ) -> Result<(), Stop> {
        let begun = Instant::now();
        let packed = self.steps.pack(&self.environment.name, head, tenancy, pins).await?;
        self.measured(StepName::Pack, begun);
        let begun = Instant::now();
        let issued = self.steps.issue(self.term, &packed, occasion).await;
        self.measured(StepName::Issue, begun);
        delivered.packed = Some(packed);
        if issued? > 0 {
            tracing::info!(environment = self.environment.name, commit = head.commit, "new desired states");
        }
        Ok(())
    }

    /// The branch as the mirror knows it.
    async fn last_head(&self, target: &GitOpsTarget) -> Option<Head> {
        self.shared.mirrors().head(&target.repo, &target.branch, Trust::Platform).await.ok()
    }

    /// Tells history which commits came this far, and how long that took.
    async fn tell(&mut self, delivered: &Delivered) {
        let whole = delivered.published.as_ref().filter(|published| published.is_whole());
        let head = whole.and_then(|published| published.head.as_ref());
        let news = self.log.told(&self.environment.name, head);
        if let Err(stop) = self.steps.tell(news).await {
            tracing::warn!(environment = self.environment.name, error = stop.message, "a walk isn't in the history");
        }
    }

    fn learn(&mut self, delivered: &Delivered) {
        let Some(published) = &delivered.published else { return };
        self.published_main = self.main_of(delivered);
        self.causes.clear();
        self.head.clone_from(&published.head);
    }

    /// Writes down what came of it: names on the branch, and what people should know.
    async fn conclude(&mut self, scheduler: &Scheduler, delivered: &Delivered) -> Result<(), Stop> {
        if let (Some(packed), Some(reader)) = (&delivered.packed, &mut self.reader) {
            let names: BTreeSet<String> = packed.types.values().flat_map(|entries| entries.keys().cloned()).collect();
            let known = tenants(scheduler.schedule());
            reader.set_published(self.term, &names, &known).await.map_err(|error| Stop::from(&error))?;
        }
        let mut late = CatalogNotes { repositories: Some(self.repositories(scheduler)), ..CatalogNotes::default() };
        match (&delivered.published, &delivered.publish_failed) {
            (Some(published), _) => {
                late.published = Some(notes::published(published));
                late.waiting = Some(notes::waiting(published));
                let mut notices = notes::notices(published, delivered.packed.as_ref());
                let read: BTreeSet<Input> = self.inputs.iter().cloned().chain(self.shared.main()).collect();
                notices.extend(notes::rewritten(&self.shared.mirrors().status(), &read));
                late.notices = Some(notices);
            }
            (None, Some(stop)) => late.published = Some(notes::failed(stop)),
            (None, None) => {}
        }
        late.pack_quarantines = delivered.packed.as_ref().map(notes::quarantines);
        let nothing = Delta::default();
        self.steps.catalog(self.term, &self.environment.name, scheduler, Some(&nothing), &late).await
    }

    fn repositories(&self, scheduler: &Scheduler) -> Vec<RepositorySummary> {
        let own = &self.environment.control_plane;
        let branch = |repo: &str, branch: &str| Input { repo: self.key(repo), branch: Some(branch.trim().to_owned()) };
        let mut branches = self.inputs.clone();
        branches.insert(branch(&own.repo, &own.branch));
        branches.extend(self.target.iter().map(|target| branch(&target.repo, &target.branch)));
        let sources: BTreeSet<&String> = scheduler
            .schedule()
            .assignments
            .values()
            .filter_map(|assignment| assignment.target.manifests.get("repo"))
            .collect();
        let asked = notes::Asked { branches, sources: sources.into_iter().map(|repo| self.key(repo)).collect() };
        notes::repositories(&self.shared.mirrors().status(), scheduler.platform(), &asked)
    }

    /// Goes on as it is decided, and says so.
    fn settle(&mut self, ended: Ended) -> (Duration, Stage) {
        let Ended { stop, again } = ended;
        let name = &self.environment.name;
        self.failures = if stop.is_some() { self.failures.saturating_add(1) } else { 0 };
        let stopped = stop.as_ref().map(|(from, stop)| (*from, stop.next));
        let verdict = next(stopped, again, self.failures);
        if let Some((from, stop)) = &stop {
            let (error, hint) = (&stop.message, stop.hint.as_deref());
            match verdict.outcome {
                ReconcileOutcome::Retry => {
                    tracing::warn!(environment = name, error, hint, ?from, "the walk stopped and is tried again");
                }
                ReconcileOutcome::Failed => {
                    tracing::error!(environment = name, error, hint, ?from, "the walk needs a person");
                }
                ReconcileOutcome::Waiting | ReconcileOutcome::Done => {
                    tracing::warn!(environment = name, error, hint, ?from, "the walk waits for new input");
                }
            }
        }
        self.steps.ended(verdict.outcome);
        self.status.ended(name, stop.as_ref().map(|(_, stop)| stop), verdict.pause);
        (verdict.pause, verdict.from)
    }

    fn measured(&self, step: StepName, begun: Instant) {
        let took = begun.elapsed();
        self.steps.measured(step, took);
        self.log.measured(step, took);
        self.status.measured(&self.environment.name, step, took);
        tracing::debug!(environment = self.environment.name, ?step, took_us = took.as_micros(), "step");
    }
}
