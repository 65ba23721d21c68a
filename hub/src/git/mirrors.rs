//! The mirrors of every repository that somebody asked about: found by address and reader, each with its task. Whoever asks for a
//! head waits for the first fetch; from then on the repository is followed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kedge_hub_types::causes::chain;
use kedge_hub_types::git::{Failure, RefName};
use kedge_model::kinds::SourceRef;
use kedge_platform::{CommitNote, GitRepository, RepoKey, Want};
use tokio::sync::{Semaphore, broadcast};
use tokio::task::AbortHandle;

use super::access::{Access, Trust};
use super::address::{Address, Refused, Server};
use super::credential::{Credentials, Reader, Secret};
use super::repository::{Known, Repository, Surroundings, path_of};
use super::transfer::Rules;
use super::{GitConfigError, Head, Look, MirrorError, RepoStatus};
use crate::config;
use crate::store::{Store, now};

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
    pub(super) inner: Arc<Inner>,
}

/// A commit, whose it is, and who asked for it.
type WantedCommit = (RepoKey, Reader, String);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) around: Arc<Surroundings>,
    poll: Duration,
    poll_of: BTreeMap<RepoKey, Duration>,
    /// What came with one credential is read with that one only, so an address may have several mirrors.
    repositories: Mutex<BTreeMap<(RepoKey, Reader), Followed>>,
    servers: Mutex<BTreeMap<String, Arc<Semaphore>>>,
    /// Commits that couldn't be had, and when they were asked for.
    missing: Mutex<BTreeMap<WantedCommit, (std::time::Instant, Failure)>>,
}

#[derive(Debug)]
pub(super) struct Followed {
    pub(super) repository: Arc<Repository>,
    task: AbortHandle,
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
            since: now(),
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
            let since = now();
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

    /// The name that all spellings of an address share, also a relative one.
    pub fn key(&self, url: &str) -> RepoKey {
        match self.inner.around.rules.access.locate(url) {
            Ok(address) => RepoKey::new(&address.url()),
            Err(_) => RepoKey::new(url),
        }
    }

    /// The platform's secret for an address, for a forge's API.
    pub fn credential(&self, url: &str) -> Option<Secret> {
        let Ok(Address::Server(server)) = Address::parse_prefix(url) else { return None };
        match self.inner.around.rules.credentials.secret(&server, &Reader::Platform) {
            Ok(secret) => secret,
            Err(error) => {
                tracing::warn!(error = chain(&error), "a credential can't be used");
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

    pub(super) fn around(&self) -> &Arc<Surroundings> {
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
    pub(super) fn repository(&self, url: &str, trust: &Trust) -> Result<Arc<Repository>, Refused> {
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

    pub(super) fn repositories(&self) -> MutexGuard<'_, BTreeMap<(RepoKey, Reader), Followed>> {
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
