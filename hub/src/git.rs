//! Bare mirrors of every repository the platform names, kept fresh by polling and webhooks; credentials; pushing.
//! Owns the folder of mirrors and one task for each repository. Asked by `platform`, `publish`, `pack` and the API.

pub mod access;
pub mod credential;
mod find;
mod program;
pub mod push;
mod remote;
pub mod repository;
#[cfg(test)]
pub(crate) mod testing;
mod transfer;
pub mod webhook;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kedge_model::kinds::SourceRef;
use kedge_model::wire::Timestamp;
use kedge_platform::{CommitNote, GitRepository, RepoKey, Want};
use tokio::sync::{Semaphore, broadcast};
use tokio::task::AbortHandle;

pub use access::Trust;
pub use address::Refused;
pub use credential::Secret;
pub use kedge_model::address;
pub use push::PushError;
pub use repository::{Failure, Forced, RefName, Tracked};

use crate::config;
use crate::store::Store;
use access::Access;
use address::{Address, Server};
use credential::{Credentials, Reader};
use repository::{Known, Repository, Surroundings, path_of};
use transfer::Rules;

/// So many conversations with one server at a time: a forge limits clients that ask for more.
const PER_SERVER: usize = 8;

/// A repository that was never fetched is waited for so long; a large one goes on behind.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whoever falls behind by so many changes reads everything anew.
const CHANGES: usize = 1024;

/// A commit that the server didn't give isn't asked for again before this.
const COMMIT_PAUSE: Duration = Duration::from_secs(30);

/// Everything about Git that the hub holds. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Mirrors {
    inner: Arc<Inner>,
}

/// A commit, whose it is, and who asked for it.
type WantedCommit = (RepoKey, Reader, String);

#[derive(Debug)]
struct Inner {
    around: Arc<Surroundings>,
    poll: Duration,
    poll_of: BTreeMap<RepoKey, Duration>,
    /// What came with one credential is read with that one only, so an address may have several mirrors.
    repositories: Mutex<BTreeMap<(RepoKey, Reader), Followed>>,
    servers: Mutex<BTreeMap<String, Arc<Semaphore>>>,
    /// Commits that couldn't be had, and when they were asked for.
    missing: Mutex<BTreeMap<WantedCommit, (std::time::Instant, Failure)>>,
}

#[derive(Debug)]
struct Followed {
    repository: Arc<Repository>,
    task: AbortHandle,
}

/// A commit in a mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub repo: String,
    /// Or tag; empty for a commit that was named by its id.
    pub branch: String,
    pub commit: String,
    /// The bare mirror that holds it.
    pub path: PathBuf,
}

/// Something about a repository is different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoChange {
    pub key: RepoKey,
    pub repo: String,
    /// The platform's own mirror; otherwise that of workspaces, which sources of applications are read from.
    pub of_platform: bool,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Moved {
        reference: RefName,
        commit: String,
        forced: bool,
    },
    Failing,
    Recovered,
    /// Its server told of something that moves nothing, such as a closed pull request.
    Told,
}

/// A repository for people to see.
#[derive(Clone, Debug, PartialEq)]
pub struct RepoStatus {
    pub key: RepoKey,
    pub url: String,
    pub refs: BTreeMap<RefName, Tracked>,
    /// The last time that the server answered.
    pub last_good: Option<Timestamp>,
    pub failing: Option<Failure>,
    pub next_try: Option<Timestamp>,
}

/// Typed by what happens next.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// The address has to be changed, or the hub's list.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It is tried again; a change is told when it works.
    #[error("{repo} can't be fetched: {}", failure.error)]
    Failing { repo: String, failure: Failure },
    /// The first fetch goes on; a change is told when it ends.
    #[error("{repo} is being fetched for the first time")]
    Pending { repo: String },
}

#[derive(Debug, thiserror::Error)]
pub enum GitConfigError {
    #[error("the hub's configuration of Git can't be used")]
    Address(#[from] Refused),
    #[error("the folder of mirrors can't be made")]
    Folder(#[source] std::io::Error),
}

/// What is known without asking anybody.
#[derive(Debug)]
pub enum Look {
    Known { head: Head, failing: Option<Failure> },
    Failing(MirrorError),
    NotYet,
}

impl RepoStatus {
    pub fn is_failing(&self) -> bool {
        self.failing.is_some() || self.refs.values().any(|tracked| tracked.failing.is_some())
    }
}

impl MirrorError {
    pub fn hint(&self) -> Option<String> {
        match self {
            MirrorError::Refused(refused) => Some(refused.hint.clone()),
            MirrorError::Failing { failure, .. } => Some(failure.hint.clone()).filter(|hint| !hint.is_empty()),
            MirrorError::Pending { .. } => Some("it goes on by itself".to_owned()),
        }
    }
}

impl Mirrors {
    /// Follows nothing yet. Tasks begin with the first question about a repository, and end with the last clone.
    pub fn new(config: &config::Git, folder: PathBuf, store: Store) -> Result<Mirrors, GitConfigError> {
        let access = Access::new(config.control_plane.as_deref(), &config.hosts)?;
        let credentials = Credentials::new(&config.credentials)?;
        std::fs::create_dir_all(&folder).map_err(GitConfigError::Folder)?;
        let folder = std::path::absolute(&folder).map_err(GitConfigError::Folder)?;
        let rules = Rules { access, credentials, folder };
        let poll_of = config.poll_of.iter().map(|(url, pause)| (RepoKey::new(url), *pause)).collect();
        let around = Surroundings { rules, store, changes: broadcast::Sender::new(CHANGES) };
        Ok(Mirrors {
            inner: Arc::new(Inner {
                around: Arc::new(around),
                poll: config.poll,
                poll_of,
                repositories: Mutex::default(),
                servers: Mutex::default(),
                missing: Mutex::default(),
            }),
        })
    }

    /// Whether an address may be contacted, by who wrote it.
    pub fn allow(&self, url: &str, trust: Trust) -> Result<(), Refused> {
        self.locate(url, &trust).map(|_| ())
    }

    /// The last good head of a branch. Waits for the first fetch; from then on the branch is followed.
    pub async fn head(&self, url: &str, branch: &str, trust: Trust) -> Result<Head, MirrorError> {
        self.followed(url, RefName::Branch(branch.to_owned()), trust).await
    }

    /// What a reference stands for. Branches and tags are followed from now on; a commit is fetched once.
    pub async fn resolve(&self, url: &str, reference: &SourceRef, trust: Trust) -> Result<Head, MirrorError> {
        match reference {
            SourceRef::Branch(name) => self.followed(url, RefName::Branch(name.clone()), trust).await,
            SourceRef::Tag(name) => self.followed(url, RefName::Tag(name.clone()), trust).await,
            SourceRef::Commit(commit) => self.commit(url, None, commit, trust).await,
        }
    }

    /// A commit by its id; where the server doesn't give single commits, behind that branch.
    pub async fn commit(
        &self,
        url: &str,
        branch: Option<&str>,
        commit: &str,
        trust: Trust,
    ) -> Result<Head, MirrorError> {
        let repository = self.repository(url, &trust)?;
        let commit = commit.trim().to_ascii_lowercase();
        let want =
            Want::commit(&commit).map_err(|error| Refused::new(error.to_string(), error.hint().unwrap_or_default()))?;
        let head = repository.head(branch.unwrap_or_default(), &commit);
        if repository.has_commit(&commit) {
            return Ok(head);
        }
        let Err(fault) = repository.bring(&self.inner.around, want).await else { return Ok(head) };
        if let Some(branch) = branch
            && self.head(url, branch, trust.clone()).await.is_ok()
            && repository.has_commit(&commit)
        {
            return Ok(head);
        }
        let failure = Failure {
            error: format!("commit {commit}: {}", fault.error),
            hint: fault.hint,
            since: crate::store::now(),
            attempts: 1,
            firm: true,
        };
        let asked = (std::time::Instant::now(), failure.clone());
        let asked_of = (repository.key.clone(), repository.route.reader.clone(), commit);
        lock(&self.inner.missing).insert(asked_of, asked);
        Err(MirrorError::Failing { repo: url.to_owned(), failure })
    }

    /// The tags that the server has now, and the commits they lead to. Nothing is fetched.
    pub async fn tags(&self, url: &str, trust: Trust) -> Result<Vec<(String, String)>, MirrorError> {
        let repository = self.repository(url, &trust)?;
        repository.tags(&self.inner.around).await.map_err(|fault| {
            let since = crate::store::now();
            let failure = Failure { error: fault.error, hint: fault.hint, since, attempts: 1, firm: false };
            MirrorError::Failing { repo: url.to_owned(), failure }
        })
    }

    /// What is known of a branch, or of a commit when one is named, without asking anybody.
    pub fn look(&self, url: &str, branch: Option<&str>, commit: Option<&str>, trust: Trust) -> Look {
        let repository = match self.repository(url, &trust) {
            Ok(repository) => repository,
            Err(refused) => return Look::Failing(refused.into()),
        };
        let failing = |failure| Look::Failing(MirrorError::Failing { repo: url.to_owned(), failure });
        if let Some(commit) = commit {
            let commit = commit.trim().to_ascii_lowercase();
            if repository.has_commit(&commit) {
                return Look::Known { head: repository.head(branch.unwrap_or_default(), &commit), failing: None };
            }
            let asked_of = (repository.key.clone(), repository.route.reader.clone(), commit);
            return match lock(&self.inner.missing).get(&asked_of) {
                Some((asked, failure)) if asked.elapsed() < COMMIT_PAUSE => failing(failure.clone()),
                _ => Look::NotYet,
            };
        }
        let name = RefName::Branch(branch.unwrap_or_default().to_owned());
        if let Err(refused) = name.want() {
            return Look::Failing(refused.into());
        }
        match repository.known(&name) {
            Known::At(head) => Look::Known { head, failing: repository.failing(&name) },
            Known::Failing(failure) => failing(failure),
            Known::NotYet => Look::NotYet,
        }
    }

    /// The mirror of an address, open for reading.
    pub fn open(&self, url: &str, trust: Trust) -> Option<GitRepository> {
        self.repository(url, &trust).ok()?.open()
    }

    /// Asks the server now and waits for its answer.
    pub async fn fetch_now(&self, url: &str) -> Result<(), MirrorError> {
        let repository = self.repository(url, &Trust::Platform)?;
        let goal = repository.next_round();
        let mut ended = repository.watch();
        repository.nudge();
        let answered = tokio::time::timeout(PATIENCE, ended.wait_for(|ended| *ended >= goal)).await;
        if !matches!(answered, Ok(Ok(_))) {
            return Err(MirrorError::Pending { repo: url.to_owned() });
        }
        match repository.saved().0.failing {
            Some(failure) => Err(MirrorError::Failing { repo: url.to_owned(), failure }),
            None => Ok(()),
        }
    }

    /// What moves, fails and recovers from now on.
    pub fn changed(&self) -> broadcast::Receiver<RepoChange> {
        self.inner.around.changes.subscribe()
    }

    /// A webhook said that something was pushed. Says whether this hub follows that repository; when it doesn't, the
    /// leader is told through the database.
    pub fn nudge(&self, url: &str) -> bool {
        let Ok(address) = self.inner.around.rules.access.locate(url) else { return false };
        let key = RepoKey::new(&address.url());
        if self.nudge_key(&key) {
            return true;
        }
        let store = self.inner.around.store.clone();
        tokio::spawn(async move {
            if let Err(error) = store.add_nudge(&key).await {
                tracing::warn!(repo = %key, %error, "the leader can't be told of a push; it finds it by polling");
            }
        });
        false
    }

    /// What webhooks told other hubs. Asked by the leader.
    pub async fn take_nudges(&self) {
        match self.inner.around.store.take_nudges().await {
            Ok(repos) => {
                for repo in repos {
                    self.nudge_key(&RepoKey::new(&repo));
                }
            }
            Err(error) => tracing::debug!(%error, "webhooks of other hubs can't be asked for"),
        }
    }

    fn nudge_key(&self, key: &RepoKey) -> bool {
        let known = self.repositories();
        let mut followed = known.iter().filter(|((of, _), _)| of == key).map(|(_, followed)| followed).peekable();
        let is_known = followed.peek().is_some();
        followed.for_each(|followed| followed.repository.nudge());
        is_known
    }

    /// The name that all spellings of an address share, also a relative one.
    pub fn key(&self, url: &str) -> RepoKey {
        match self.inner.around.rules.access.locate(url) {
            Ok(address) => RepoKey::new(&address.url()),
            Err(_) => RepoKey::new(url),
        }
    }

    /// A webhook told of something else than a push: whoever works with the repository looks again.
    pub fn tell(&self, url: &str) {
        let Ok(address) = self.inner.around.rules.access.locate(url) else { return };
        let key = RepoKey::new(&address.url());
        if self.repositories().contains_key(&(key.clone(), Reader::Platform)) {
            let change = RepoChange { key, repo: url.to_owned(), of_platform: true, what: What::Told };
            // Nobody may be listening: this hub doesn't lead.
            let _ = self.inner.around.changes.send(change);
        }
    }

    /// This hub pushed the commit itself, outside of a reconciliation: whoever leads hears of it as of anybody's.
    pub async fn announce(&self, url: &str, branch: &str, commit: &str) {
        let key = self.key(url);
        let reference = RefName::Branch(branch.to_owned());
        let what = What::Moved { reference, commit: commit.to_owned(), forced: false };
        // Nobody may be listening: this hub doesn't lead.
        let change = RepoChange { key: key.clone(), repo: url.to_owned(), of_platform: true, what };
        let _ = self.inner.around.changes.send(change);
        if let Err(error) = self.inner.around.store.add_nudge(&key).await {
            tracing::warn!(repo = %key, %error, "a leader elsewhere can't be told of a push; it finds it by polling");
        }
    }

    /// The platform's secret for an address, for a forge's API.
    pub fn credential(&self, url: &str) -> Option<Secret> {
        let Ok(Address::Server(server)) = Address::parse_prefix(url) else { return None };
        match self.inner.around.rules.credentials.secret(&server, &Reader::Platform) {
            Ok(secret) => secret,
            Err(error) => {
                tracing::warn!(error = crate::causes::chain(&error), "a credential can't be used");
                None
            }
        }
    }

    /// Every repository that is followed.
    pub fn status(&self) -> Vec<RepoStatus> {
        let repositories: Vec<Arc<Repository>> = {
            let all = self.repositories();
            let current = all.values().filter(|followed| !followed.repository.is_forgotten());
            current.map(|followed| Arc::clone(&followed.repository)).collect()
        };
        let status = repositories.into_iter().map(|repository| {
            let (saved, next_try) = repository.saved();
            let url = repository.name.clone();
            let key = repository.key.clone();
            RepoStatus { key, url, refs: saved.refs, last_good: saved.last_good, failing: saved.failing, next_try }
        });
        status.collect()
    }

    fn around(&self) -> &Arc<Surroundings> {
        &self.inner.around
    }

    /// First line and author of a commit, wherever a mirror of the address has it.
    pub fn describe(&self, url: &str, commit: &str) -> Option<CommitNote> {
        let key = self.key(url);
        let mirrors: Vec<Arc<Repository>> = {
            let all = self.repositories();
            let same = all.iter().filter(|((of, _), _)| *of == key);
            same.map(|(_, followed)| Arc::clone(&followed.repository)).collect()
        };
        mirrors.iter().find_map(|mirror| mirror.open()?.describe(commit))
    }

    /// An address as somebody wrote it, also a relative one; whether it may be contacted is another question.
    pub fn address(&self, url: &str) -> Option<Address> {
        self.inner.around.rules.access.locate(url).ok()
    }

    fn locate(&self, url: &str, trust: &Trust) -> Result<Address, Refused> {
        let access = &self.inner.around.rules.access;
        let address = access.locate(url)?;
        // What the configuration itself names needs nobody's leave.
        if *trust != Trust::Platform || access.control_plane() != Some(&address) {
            access.allow(&address, trust)?;
        }
        if *trust != Trust::Platform {
            self.not_ours(&address)?;
        }
        Ok(address)
    }

    /// Where paths are allowed, the mirrors themselves aren't: they hold what others fetched.
    fn not_ours(&self, address: &Address) -> Result<(), Refused> {
        let Address::Local(path) = address else { return Ok(()) };
        let folder = &self.inner.around.rules.folder;
        let real = |path: &std::path::Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match path.starts_with(folder) || real(path).starts_with(real(folder)) {
            true => Err(Refused::new(
                format!("`{}` is a folder of the hub's own", path.display()),
                "write the repository's own address",
            )),
            false => Ok(()),
        }
    }

    async fn followed(&self, url: &str, name: RefName, trust: Trust) -> Result<Head, MirrorError> {
        name.want()?;
        let repository = self.repository(url, &trust)?;
        let mut ended = repository.watch();
        repository.follow(&name);
        let answered = async {
            loop {
                match repository.known(&name) {
                    Known::At(head) => return Ok(head),
                    Known::Failing(failure) => return Err(MirrorError::Failing { repo: url.to_owned(), failure }),
                    Known::NotYet => {}
                }
                if ended.changed().await.is_err() {
                    return Err(MirrorError::Pending { repo: url.to_owned() });
                }
            }
        };
        let late = Err(MirrorError::Pending { repo: url.to_owned() });
        tokio::time::timeout(PATIENCE, answered).await.unwrap_or(late)
    }

    /// The repository of an address, with its task.
    fn repository(&self, url: &str, trust: &Trust) -> Result<Arc<Repository>, Refused> {
        let address = self.locate(url, trust)?;
        let rules = &self.inner.around.rules;
        let reader = rules.credentials.reader(&address, trust);
        let key = (RepoKey::new(&address.url()), reader.clone());
        let mut repositories = self.repositories();
        if let Some(followed) = repositories.get(&key) {
            return Ok(Arc::clone(&followed.repository));
        }
        let poll = self.inner.poll_of.get(&key.0).copied().unwrap_or(self.inner.poll);
        let server = self.server(&address);
        let route = rules.route(address, reader);
        let path = path_of(&route)?;
        let repository = Arc::new(Repository::new(route, url, path, poll, server));
        let task = tokio::spawn(Arc::clone(&repository).run(Arc::clone(&self.inner.around))).abort_handle();
        repositories.insert(key, Followed { repository: Arc::clone(&repository), task });
        Ok(repository)
    }

    fn server(&self, address: &Address) -> Arc<Semaphore> {
        let name = match address {
            Address::Local(_) => String::new(),
            Address::Server(Server { host, port, .. }) => format!("{host}:{port}"),
        };
        let mut servers = lock(&self.inner.servers);
        Arc::clone(servers.entry(name).or_insert_with(|| Arc::new(Semaphore::new(PER_SERVER))))
    }

    fn repositories(&self) -> MutexGuard<'_, BTreeMap<(RepoKey, Reader), Followed>> {
        lock(&self.inner.repositories)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for followed in lock(&self.repositories).values() {
            followed.task.abort();
        }
    }
}

/// Nothing under these locks can be left half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
