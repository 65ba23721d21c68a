//! One repository that is followed: its refs, what fails, and the task that asks its server again and again. Owned by
//! `Mirrors`; a slow or dead server keeps this task busy and no other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gix::ObjectId;
use kedge_hub_types::git::{FIRM_ATTEMPTS, Failure, RefName, SavedRepository, Tracked};
use kedge_model::wire::Timestamp;
use kedge_platform::{GitRepository, Mirror, RepoKey, Want};
use tokio::sync::{Notify, Semaphore, broadcast, watch};

use super::address::Refused;
use super::credential::Reader;
use super::followed_ref::FollowedRef;
use super::program::Program;
use super::transfer::{Ask, Fault, Found, Route, Rules, tags, transfer};
use super::{Head, RepoChange, What};
use crate::store::{Store, now};

/// The longest pause between two tries of a repository that fails.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// A mirror with more packs than this, or about as many loose objects, is packed into one.
const MANY_PACKS: usize = 50;
const MANY_LOOSE: usize = 10_000;
const PACKING_TIME: Duration = Duration::from_secs(600);

/// What all repositories share.
#[derive(Debug)]
pub(super) struct Surroundings {
    pub rules: Rules,
    pub store: Store,
    pub changes: broadcast::Sender<RepoChange>,
}

#[derive(Debug)]
pub(super) struct Repository {
    pub key: RepoKey,
    pub route: Route,
    /// As it was first written, for messages.
    pub name: String,
    /// Of the bare mirror.
    pub path: PathBuf,
    pub poll: Duration,
    state: Mutex<State>,
    /// One conversation or push at a time.
    pub turn: Arc<tokio::sync::Mutex<()>>,
    /// So many conversations with one server at a time.
    pub server: Arc<Semaphore>,
    nudge: Notify,
    /// Counts conversations that ended; whoever waits for one looks again.
    ended: watch::Sender<u64>,
    opened: Mutex<Option<gix::ThreadSafeRepository>>,
}

#[derive(Debug, Default)]
struct State {
    /// What the database knows was read.
    restored: bool,
    refs: BTreeMap<RefName, FollowedRef>,
    failing: Option<Failure>,
    last_good: Option<Timestamp>,
    next_try: Option<Timestamp>,
    /// Conversations that began.
    round: u64,
    /// Not yet in the database.
    unsaved: bool,
}

/// What is known of a ref without asking anybody.
#[derive(Clone, Debug)]
pub(super) enum Known {
    At(Head),
    Failing(Failure),
    NotYet,
}

impl Repository {
    pub fn new(route: Route, name: &str, path: PathBuf, poll: Duration, server: Arc<Semaphore>) -> Repository {
        Repository {
            key: RepoKey::new(&route.address.url()),
            route,
            name: name.to_owned(),
            path,
            poll,
            state: Mutex::default(),
            turn: Arc::default(),
            server,
            nudge: Notify::new(),
            ended: watch::Sender::new(0),
            opened: Mutex::new(None),
        }
    }

    /// Reads what the database knows, then asks the server again and again.
    pub async fn run(self: Arc<Repository>, around: Arc<Surroundings>) {
        self.restore(&around.store).await;
        loop {
            self.converse(&around).await;
            let pause = self.pause();
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.nudge.notified() => {}
            }
        }
    }

    /// Asks for a ref from now on.
    pub fn follow(&self, reference: &RefName) {
        let mut state = self.state();
        let is_new = !state.refs.contains_key(reference);
        let followed = state.refs.entry(reference.clone()).or_default();
        // Nobody looked after it meanwhile.
        let is_old = followed.is_forgotten();
        followed.wanted = Some(Instant::now());
        drop(state);
        if is_new || is_old {
            self.nudge.notify_one();
        }
    }

    /// Nobody asked about any of its refs for long.
    pub fn is_forgotten(&self) -> bool {
        let state = self.state();
        !state.refs.is_empty() && state.refs.values().all(FollowedRef::is_forgotten)
    }

    pub fn nudge(&self) {
        self.nudge.notify_one();
    }

    /// The number of a conversation that begins after now.
    pub fn next_round(&self) -> u64 {
        self.state().round + 1
    }

    /// Tells when a conversation ended.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.ended.subscribe()
    }

    pub fn known(&self, reference: &RefName) -> Known {
        let mut state = self.state();
        let (restored, repo_failing) = (state.restored, state.failing.clone());
        let Some(followed) = state.refs.get_mut(reference).filter(|_| restored) else { return Known::NotYet };
        followed.wanted = Some(Instant::now());
        if let Some(commit) = &followed.tracked.commit {
            return Known::At(self.head(reference.short(), commit));
        }
        match (&followed.tracked.failing, repo_failing) {
            (Some(failing), _) => Known::Failing(failing.clone()),
            (None, Some(failing)) if followed.tried => Known::Failing(failing),
            _ => Known::NotYet,
        }
    }

    /// After a deletion: nothing fails, it was meant.
    pub async fn deleted(&self, around: &Surroundings, branch: &str) {
        {
            let mut state = self.state();
            state.refs.remove(&RefName::Branch(branch.to_owned()));
            state.unsaved = true;
        }
        self.save(&around.store).await;
    }

    /// What fails of a ref though its last good commit is known.
    pub fn failing(&self, reference: &RefName) -> Option<Failure> {
        let state = self.state();
        let own = state.refs.get(reference).and_then(|followed| followed.tracked.failing.clone());
        own.or_else(|| state.failing.clone())
    }

    pub fn head(&self, branch: &str, commit: &str) -> Head {
        Head { repo: self.name.clone(), branch: branch.to_owned(), commit: commit.to_owned(), path: self.path.clone() }
    }

    /// The open mirror. Opened once; objects that are fetched later are found all the same.
    pub fn open(&self) -> Option<GitRepository> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.is_none() {
            *opened = gix::open::Options::isolated().open(&self.path).ok();
        }
        let mut repo = opened.as_ref()?.to_thread_local();
        repo.object_cache_size_if_unset(4 * 1024 * 1024);
        Some(GitRepository::from_repo(repo))
    }

    pub fn has_commit(&self, commit: &str) -> bool {
        self.open().is_some_and(|repo| repo.has_commit(commit))
    }

    /// One conversation outside of the rounds, for a commit or for where a ref is just now.
    pub async fn bring(&self, around: &Surroundings, want: Want) -> Result<Option<Found>, Fault> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let _place = self.server.acquire().await;
        let found = transfer(&around.rules, &self.route, vec![Ask { want, before: None }], turn).await?;
        self.reopen();
        Ok(found.into_iter().next().flatten())
    }

    /// The tags of the server and the commits they lead to.
    pub async fn tags(&self, around: &Surroundings) -> Result<Vec<(String, String)>, Fault> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let _place = self.server.acquire().await;
        let found = tags(&around.rules, &self.route, turn).await?;
        Ok(found.into_iter().map(|(name, commit)| (name, commit.to_string())).collect())
    }

    /// A repository that stays open finds no place for more than some tens of new packs.
    fn reopen(&self) {
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// After a push: the ref is known to be there. A branch that nobody follows stays so: when a forge deletes one that
    /// was merged, nothing fails.
    pub async fn pushed(&self, around: &Surroundings, branch: &str, commit: &str) {
        {
            let mut state = self.state();
            let Some(followed) = state.refs.get_mut(&RefName::Branch(branch.to_owned())) else { return };
            let commit = Some(commit.to_owned());
            let forced = followed.tracked.forced.take();
            let tracked = Tracked { commit, moved_at: Some(now()), failing: None, forced };
            *followed = FollowedRef { tracked, tried: true, wanted: Some(Instant::now()) };
            state.unsaved = true;
        }
        self.save(&around.store).await;
        self.ended.send_modify(|ended| *ended += 0);
    }

    pub fn saved(&self) -> (SavedRepository, Option<Timestamp>) {
        let state = self.state();
        let refs = state.refs.iter().map(|(name, followed)| (name.clone(), followed.tracked.clone())).collect();
        let saved = SavedRepository { refs, failing: state.failing.clone(), last_good: state.last_good };
        (saved, state.next_try)
    }

    fn change(&self, what: What) -> RepoChange {
        let of_platform = self.route.reader == Reader::Platform;
        RepoChange { key: self.key.clone(), repo: self.name.clone(), of_platform, what }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn restore(&self, store: &Store) {
        let saved = match store.repository(&self.route.row()).await {
            Ok(saved) => saved.unwrap_or_default(),
            Err(error) => {
                tracing::warn!(repo = self.name, %error, "what was known of the repository can't be read");
                SavedRepository::default()
            }
        };
        // A mirror that was lost has to be fetched again; the commit alone is of no use.
        let have = |tracked: &Tracked| tracked.commit.as_deref().is_some_and(|commit| self.has_commit(commit));
        let mut state = self.state();
        for (reference, tracked) in saved.refs {
            if have(&tracked) && state.refs.get(&reference).is_none_or(|known| known.tracked.commit.is_none()) {
                state.refs.insert(reference, FollowedRef::restored(tracked));
            }
        }
        state.failing = saved.failing;
        state.last_good = saved.last_good;
        state.restored = true;
        drop(state);
        self.ended.send_modify(|ended| *ended += 0);
    }

    async fn converse(&self, around: &Surroundings) {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let _place = self.server.acquire().await;
        // Whoever asked for a conversation until now is served by this one.
        tokio::select! {
            biased;
            () = self.nudge.notified() => {}
            () = std::future::ready(()) => {}
        }
        let (round, names) = {
            let mut state = self.state();
            state.round += 1;
            let names: Vec<(RefName, Option<String>)> = state
                .refs
                .iter()
                .filter(|(_, followed)| !followed.is_forgotten())
                .map(|(name, followed)| (name.clone(), followed.tracked.commit.clone()))
                .collect();
            (state.round, names)
        };
        let mut asks = Vec::new();
        let mut asked = Vec::new();
        for (name, commit) in names {
            // Names that can't be are refused before they are followed.
            let Ok(want) = name.want() else { continue };
            let before = commit.and_then(|commit| ObjectId::from_hex(commit.as_bytes()).ok());
            asks.push(Ask { want, before });
            asked.push(name);
        }
        if !asks.is_empty() {
            let outcome = transfer(&around.rules, &self.route, asks, turn).await;
            let changes = match outcome {
                Ok(found) => self.settle(asked, found),
                Err(fault) => self.fail(asked, fault),
            };
            if !changes.is_empty() {
                self.reopen();
                self.tidy().await;
            }
            self.save(&around.store).await;
            for what in changes {
                // Nobody listens: nothing to tell.
                let _ = around.changes.send(self.change(what));
            }
        }
        self.ended.send_replace(round);
    }

    /// The server answered.
    fn settle(&self, asked: Vec<RefName>, found: Vec<Option<Found>>) -> Vec<What> {
        let mut state = self.state();
        let mut changes = Vec::new();
        let recovered = state.failing.take().is_some();
        if recovered {
            tracing::info!(repo = self.name, "the repository answers again");
            changes.push(What::Recovered);
        }
        state.unsaved |= recovered || state.last_good.is_none();
        state.last_good = Some(now());
        for (name, found) in asked.into_iter().zip(found) {
            let Some(followed) = state.refs.get_mut(&name) else { continue };
            followed.tried = true;
            // A branch that we began ourselves is empty until the first merge; another begins as it likes.
            let known = |found: &Found| {
                let before = followed.tracked.commit.as_deref().map(|commit| ObjectId::from_hex(commit.as_bytes()));
                before.is_none_or(|before| before.is_ok_and(|commit| commit == found.commit))
            };
            let change = match found {
                Some(found) if !found.empty || known(&found) => followed.take(&self.name, &name, found),
                Some(_) => followed.refuse(&self.name, &name, "was emptied", "push the files again"),
                None if followed.tracked.commit.is_some() => {
                    followed.refuse(&self.name, &name, "was deleted", "push it again, or name another one")
                }
                None => followed.refuse(&self.name, &name, "does not exist", "push it, or name another one"),
            };
            if let Some(change) = change {
                changes.push(change);
                state.unsaved = true;
            }
        }
        changes
    }

    /// The server didn't answer, or not well.
    fn fail(&self, asked: Vec<RefName>, fault: Fault) -> Vec<What> {
        let mut state = self.state();
        for name in &asked {
            if let Some(followed) = state.refs.get_mut(name) {
                followed.tried = true;
            }
        }
        let attempts = state.failing.as_ref().map_or(0, |failing| failing.attempts).saturating_add(1);
        let since = state.failing.as_ref().map_or_else(now, |failing| failing.since);
        let was_firm = state.failing.as_ref().is_some_and(|failing| failing.firm);
        let firm = fault.firm || attempts >= FIRM_ATTEMPTS;
        tracing::warn!(repo = self.name, attempts, error = fault.error, "the repository can't be fetched");
        let failing = Failure { error: fault.error, hint: fault.hint, since, attempts, firm };
        let known = state.failing.as_ref().is_some_and(|before| before.error == failing.error);
        state.unsaved |= !known || was_firm != firm;
        state.failing = Some(failing);
        match attempts == 1 || was_firm != firm {
            true => vec![What::Failing],
            false => Vec::new(),
        }
    }

    /// Makes one pack of many, keeping what no ref names: a last good commit may be there.
    async fn tidy(&self) {
        let objects = self.path.join("objects");
        let packs = count(&objects.join("pack"), ".pack");
        // Loose objects spread evenly: one folder of 256 tells.
        let loose = count(&objects.join("17"), "") * 256;
        if packs <= MANY_PACKS && loose <= MANY_LOOSE {
            return;
        }
        let _turn = self.turn.lock().await;
        let program = Program::new(&self.path).args(["repack", "-a", "-d", "--keep-unreachable", "--quiet"]);
        match program.run(PACKING_TIME).await {
            Ok(said) if said.success => tracing::debug!(repo = self.name, packs, loose, "the mirror was packed"),
            Ok(said) => tracing::warn!(repo = self.name, error = said.reason(), "the mirror can't be packed"),
            Err(error) => tracing::warn!(repo = self.name, %error, "the mirror can't be packed"),
        }
        self.reopen();
    }

    fn pause(&self) -> Duration {
        let mut state = self.state();
        let attempts = state.failing.as_ref().map_or(0, |failing| failing.attempts);
        let pause = spread(backoff(self.poll, attempts), rand::random());
        state.next_try = Some(Timestamp(now().0.saturating_add(i64::try_from(pause.as_millis()).unwrap_or(i64::MAX))));
        pause
    }

    /// Writes what changed to the database. When that is away, the next conversation writes it.
    async fn save(&self, store: &Store) {
        if !std::mem::take(&mut self.state().unsaved) {
            return;
        }
        let (saved, _) = self.saved();
        if let Err(error) = store.save_repository(&self.route.row(), &self.name, &saved).await {
            tracing::warn!(repo = self.name, %error, "what is known of the repository can't be written");
            self.state().unsaved = true;
        }
    }
}

/// The files of a folder whose names end so.
fn count(folder: &Path, ending: &str) -> usize {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter(|file| file.file_name().to_string_lossy().ends_with(ending)).count()
}

/// Doubles with each failure.
fn backoff(poll: Duration, attempts: u32) -> Duration {
    let longest = LONGEST_PAUSE.max(poll);
    poll.saturating_mul(1 << attempts.min(10)).min(longest)
}

/// A fifth more or less, so that a thousand repositories aren't asked at once. `chance` is any number.
fn spread(pause: Duration, chance: u32) -> Duration {
    pause.mul_f64(0.8 + 0.4 * f64::from(chance) / f64::from(u32::MAX))
}

/// The place of a mirror below the folder.
pub(super) fn path_of(route: &Route) -> Result<PathBuf, Refused> {
    Mirror::path_of(&route.folder, &route.address.url())
        .map_err(|error| Refused::new(error.to_string(), error.hint().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_that_fails_is_asked_ever_more_rarely_but_every_ten_minutes() {
        let poll = Duration::from_secs(30);
        let pauses: Vec<u64> = (0..7).map(|attempts| backoff(poll, attempts).as_secs()).collect();
        assert_eq!(pauses, [30, 60, 120, 240, 480, 600, 600]);
        assert_eq!(backoff(Duration::from_secs(3600), 3), Duration::from_secs(3600));
        assert_eq!(spread(poll, 0), Duration::from_secs(24));
        assert_eq!(spread(poll, u32::MAX), Duration::from_secs(36));
    }
}
