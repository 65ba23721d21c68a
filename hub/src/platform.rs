//! From commits to a `Platform` per environment, with the last good version of what broke. Called by the reconciler; owns the
//! memory of last good objects, in the database, and a cache of decoded files.

pub mod base;
pub mod difference;
mod emptied;
mod enforced;
pub mod environments;
pub mod good;
mod inputs;
pub mod preview;
#[cfg(test)]
pub(crate) mod testing;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kedge_hub_types::platform::Environment;
use kedge_model::kinds::RepoRef;
use kedge_model::wire::Timestamp;
use kedge_model::{Failing, Kind, Object, ObjectId, Platform, Problem, Spec, Tenant};
use kedge_platform::repositories::Repositories as _;
use kedge_platform::{Cache, LoadError, RepoKey, Request, check_pin_rings};
use kedge_scheduler::Change;

pub use difference::changes;

use crate::git::{Head, MirrorError, Mirrors, Trust};
use crate::store::{Store, StoreError, Term, now};
use enforced::Enforced;
use good::Memory;
use inputs::Inputs;
use preview::Overlay;

/// Repositories behind repositories: an environment, its bases, their bases, applications.
const ROUNDS: usize = 12;

/// Reads the environments of one control plane. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PlatformReader {
    mirrors: Mirrors,
    store: Store,
    control_plane: Option<String>,
    branch: String,
    cache: Arc<Cache>,
}

/// Reads one environment again and again. Made anew when this hub becomes the leader: another one wrote meanwhile.
#[derive(Debug)]
pub struct EnvironmentReader {
    shared: PlatformReader,
    environment: Environment,
    memory: Memory,
    /// Names on the environment's branch, and whose they are.
    published: BTreeMap<String, Tenant>,
    /// What was read last, to find out what caused the next change.
    commits: BTreeMap<Input, String>,
}

/// A branch of a repository, or a commit of it, that is part of an environment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Input {
    pub repo: RepoKey,
    pub branch: Option<String>,
}

/// An environment as it is now.
#[derive(Debug)]
pub struct PlatformUpdate {
    pub platform: Platform,
    /// From what the scheduler holds to this; empty when it was asked for everything.
    pub changes: Vec<Change>,
    /// Where the rendered files go.
    pub gitops: Option<RepoRef>,
    /// Everything that was read, or should have been.
    pub commits: BTreeMap<Input, String>,
    pub inputs: BTreeSet<Input>,
    /// The commit that is new since the last time.
    pub cause: Option<Cause>,
}

/// Who changed what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub repo: String,
    pub commit: String,
    pub subject: String,
    pub author: String,
    /// The author as `Name <mail>`.
    pub who: String,
    /// When it was made.
    pub made_at: Timestamp,
}

/// Typed by what happens next.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Nothing until somebody pushes: there is no platform and never was one.
    #[error("environment {environment} can't be read: {problem}")]
    Unusable { environment: String, problem: String, hint: Option<String>, inputs: BTreeSet<Input> },
    /// Try again.
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("reading was interrupted")]
    Interrupted,
}

impl PlatformReader {
    pub fn new(config: &crate::config::Git, mirrors: Mirrors, store: Store) -> PlatformReader {
        PlatformReader {
            mirrors,
            store,
            control_plane: config.control_plane.clone(),
            branch: config.branch.clone(),
            cache: Arc::default(),
        }
    }

    pub fn mirrors(&self) -> &Mirrors {
        &self.mirrors
    }

    /// The control plane's own branch, as environments read it through a BaseRepo.
    pub fn main(&self) -> Option<Input> {
        let repo = self.control_plane.as_ref()?;
        Some(Input { repo: self.mirrors.key(repo), branch: Some(self.branch.clone()) })
    }

    /// First line and author of a commit of the control plane.
    pub fn describe_main(&self, commit: &str) -> Option<Cause> {
        let repo = self.control_plane.clone()?;
        let told = self.mirrors.open(&repo, Trust::Platform)?.describe(commit)?;
        let who = told.who();
        let made_at = made_at(told.time);
        Some(Cause { repo, commit: commit.to_owned(), subject: told.subject, author: told.author, who, made_at })
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// A reader with what the database remembers of an environment.
    pub async fn environment(&self, environment: Environment) -> Result<EnvironmentReader, StoreError> {
        let saved = self.store.good_objects(&environment.name).await?;
        let memory = Memory::restore(saved);
        let published = self.store.published_names(&environment.name).await?;
        let shared = self.clone();
        Ok(EnvironmentReader { shared, environment, memory, published, commits: BTreeMap::new() })
    }
}

impl EnvironmentReader {
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The Environment object says something else now.
    pub fn set_environment(&mut self, environment: Environment) {
        self.environment = environment;
    }

    /// What the environment's branch holds now: the names, each with its tenant where the schedule knows it.
    pub async fn set_published(
        &mut self,
        term: Term,
        on_branch: &BTreeSet<String>,
        tenants: &BTreeMap<String, Tenant>,
    ) -> Result<(), StoreError> {
        let of = |name: &String| tenants.get(name).or_else(|| self.published.get(name)).cloned();
        let published: BTreeMap<String, Tenant> =
            on_branch.iter().filter_map(|name| Some((name.clone(), of(name)?))).collect();
        if published != self.published {
            self.shared.store.save_published_names(term, &self.environment.name, &self.published, &published).await?;
            self.published = published;
        }
        Ok(())
    }

    /// Reads the environment at the newest good commits. `current` is what the scheduler holds.
    pub async fn read(&mut self, term: Term, current: Option<&Platform>) -> Result<PlatformUpdate, ReadError> {
        let enforced = self.shared.enforced(&self.environment).await?.map(Arc::new);
        let (mut platform, inputs) = self.load(enforced.as_ref(), None).await?;
        if let Some(enforced) = &enforced {
            enforced.apply(&self.shared.mirrors, &mut platform);
        }
        platform.problems.extend(self.pins_beside_rings(&platform).await?);
        platform.published.clone_from(&self.published);
        self.memory.remember(term, &self.shared, &platform).await?;
        let changes = current.map(|current| changes(current, &platform)).unwrap_or_default();
        let cause = self.cause(&inputs);
        self.commits.clone_from(&inputs.commits);
        let gitops = gitops_of(&mut platform);
        Ok(PlatformUpdate { platform, changes, gitops, commits: inputs.commits, inputs: inputs.asked, cause })
    }

    /// Pins that name rings which the policy in force doesn't give this environment. A new policy reads it again.
    async fn pins_beside_rings(&self, platform: &Platform) -> Result<Vec<Problem>, StoreError> {
        if platform.pins().next().is_none() {
            return Ok(Vec::new());
        }
        let policies = self.shared.store.policies().await?;
        let rules = policies.in_force().and_then(|policy| policy.environment(&self.environment.name));
        Ok(check_pin_rings(platform, rules))
    }

    async fn load(
        &self,
        enforced: Option<&Arc<Enforced>>,
        overlay: Option<&Overlay>,
    ) -> Result<(Platform, Seen), ReadError> {
        let at = self.environment.control_plane.clone();
        let request = Request::new(&at.repo, &at.branch, None);
        let mirrors = &self.shared.mirrors;
        let own = mirrors.head(&at.repo, at.branch.trim(), Trust::Platform).await;
        let mut tried = BTreeSet::new();
        let mut overlay = overlay.cloned();
        for _ in 0..ROUNDS {
            let inputs = Inputs::new(mirrors.clone(), Arc::clone(&self.shared.cache)).enforcing(enforced.cloned());
            let inputs = inputs.trying(overlay.clone().map(Arc::new));
            let (environment, path, head) =
                (self.environment.name.clone(), at.path.clone(), own.as_ref().ok().cloned());
            let (request, refused) = (request.clone(), own.as_ref().err().map(|error| Box::new(describe(error))));
            let last_good = self.memory.objects();
            let work = move || {
                let loaded = match refused {
                    None => load(&inputs, &request, &path, &environment),
                    Some(problem) => Err(problem),
                };
                (settle(loaded, &environment, &inputs, &last_good), inputs.into_seen(head))
            };
            let (platform, seen) = tokio::task::spawn_blocking(work).await.map_err(|_| ReadError::Interrupted)?;
            let missing: Vec<Request> = seen.missing.iter().filter(|one| !tried.contains(*one)).cloned().collect();
            if missing.is_empty() {
                let environment = self.environment.name.clone();
                return match platform {
                    Ok(platform) => Ok((platform, seen)),
                    Err(problem) => {
                        let (hint, inputs) = (problem.hint, seen.asked);
                        Err(ReadError::Unusable { environment, problem: problem.message, hint, inputs })
                    }
                };
            }
            match &mut overlay {
                Some(overlay) => overlay.look_up(mirrors, &missing).await,
                None => fetch_all(mirrors, &missing).await,
            }
            tried.extend(missing);
        }
        Err(ReadError::Interrupted)
    }

    /// The newest of the commits that weren't read before.
    fn cause(&self, seen: &Seen) -> Option<Cause> {
        let new = seen.commits.iter().filter(|(input, commit)| self.commits.get(input) != Some(*commit));
        let described = new.filter_map(|(_, commit)| {
            let head = seen.heads.iter().find(|head| head.commit == *commit)?;
            describe_commit(&self.shared.mirrors, head)
        });
        described.max_by_key(|(time, _)| *time).map(|(_, cause)| cause)
    }
}

/// What a load met on its way.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    commits: BTreeMap<Input, String>,
    asked: BTreeSet<Input>,
    heads: Vec<Head>,
    missing: BTreeSet<Request>,
}

fn load(inputs: &Inputs, request: &Request, path: &str, environment: &str) -> Result<Platform, Box<Problem>> {
    let problem = |text: String, hint: Option<String>| {
        let problem = Problem::error("EnvironmentFailed", text);
        Box::new(match hint {
            Some(hint) => problem.hint(hint),
            None => problem,
        })
    };
    let tree = inputs.open(request).map_err(|error| problem(error.to_string(), error.hint()))?;
    kedge_platform::load_tree(tree, path, environment, inputs).map_err(|error: LoadError| {
        let hint = error.hint();
        problem(error.to_string(), hint)
    })
}

/// The platform with what was good before in place of what is broken now.
fn settle(
    loaded: Result<Platform, Box<Problem>>,
    environment: &str,
    inputs: &Inputs,
    last_good: &BTreeMap<ObjectId, Arc<Object>>,
) -> Result<Platform, Box<Problem>> {
    let mut platform = match loaded.and_then(|fresh| emptied::environment(fresh, last_good)) {
        Ok(platform) => platform,
        Err(problem) if last_good.is_empty() => return Err(problem),
        // All of it is missing: all of it stays.
        Err(problem) => Platform {
            environment: environment.to_owned(),
            failing: vec![Failing { registration: None, problem: (*problem).clone() }],
            problems: vec![*problem],
            ..Platform::default()
        },
    };
    let now = rfc3339();
    emptied::bases(&mut platform, last_good);
    let kept = good::keep_platform(&mut platform, last_good, &now);
    let registrations: Vec<Arc<Object>> =
        kept.into_iter().filter(|object| matches!(object.spec, Spec::WorkloadRegistration(_))).collect();
    // A registration that can't be read now is in force all the same, and so is what its application says today.
    if !registrations.is_empty() {
        kedge_platform::load_applications(&mut platform, &registrations, inputs);
    }
    emptied::applications(&mut platform, last_good);
    good::keep_applications(&mut platform, last_good, &now);
    for failing in inputs.failing() {
        good::mark_failing(&mut platform, &failing);
    }
    Ok(platform)
}

/// All at once: a slow server costs its own time only.
async fn fetch_all(mirrors: &Mirrors, requests: &[Request]) {
    let mut fetches = tokio::task::JoinSet::new();
    for request in requests.iter().cloned() {
        let mirrors = mirrors.clone();
        fetches.spawn(async move {
            let branch = request.branch.as_deref();
            // The next look says what came of it.
            match (&request.commit, branch) {
                (Some(commit), branch) => mirrors.commit(&request.repo, branch, commit, Trust::Platform).await.ok(),
                (None, Some(branch)) => mirrors.head(&request.repo, branch, Trust::Platform).await.ok(),
                (None, None) => None,
            }
        });
    }
    while fetches.join_next().await.is_some() {}
}

/// The one GitOpsRepo. Of several the first by name is used, which is said.
fn gitops_of(platform: &mut Platform) -> Option<RepoRef> {
    let found: Vec<Arc<Object>> = platform.of_kind(Kind::GitOpsRepo).cloned().collect();
    let first = found.first()?;
    if let [_, second, ..] = found.as_slice() {
        let message = format!("{} isn't used: {} comes first by name", second.id(), first.id());
        let problem = Problem::warning("SeveralGitOpsRepos", message).at(second.origin.clone());
        platform.problems.push(problem.hint("an environment has one; delete the others"));
    }
    match &first.spec {
        Spec::GitOpsRepo(gitops) => Some(gitops.repo.clone()),
        _ => None,
    }
}

fn describe(error: &MirrorError) -> Problem {
    let problem = Problem::error("RepositoryFailed", error.to_string());
    match error.hint() {
        Some(hint) => problem.hint(hint),
        None => problem,
    }
}

/// A commit's time, first line and author.
fn describe_commit(mirrors: &Mirrors, head: &Head) -> Option<(i64, Cause)> {
    let told = mirrors.open(&head.repo, Trust::Platform)?.describe(&head.commit)?;
    let who = told.who();
    let (repo, commit) = (head.repo.clone(), head.commit.clone());
    let (time, made_at) = (told.time, made_at(told.time));
    let cause = Cause { repo, commit, subject: told.subject, author: told.author, who, made_at };
    Some((time, cause))
}

/// Git counts seconds.
fn made_at(seconds: i64) -> Timestamp {
    Timestamp(seconds.saturating_mul(1000))
}

pub(crate) fn rfc3339() -> String {
    jiff::Timestamp::from_millisecond(now().0).map(|time| time.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
