//! Commit statuses on Git servers: how a commit stands in an environment, under the context `kedge/<environment>`. A task of
//! the leader tells what changed; a server that is away is tried again and holds up nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kedge_hub_types::causes::chain;
use kedge_rollout::rollout::stop_words;
use kedge_rollout::{Phase, Promotion, PromotionPhase, Rollout};
use tokio::sync::watch;
use tokio::time::Instant;

use super::branches::Branches;
use crate::publish::forge::{CommitState, Forge};
use crate::publish::{Next, shown_repo};
use crate::store::promotion::checks::ToldStatus;
use crate::store::{Store, Term};

/// What a Git server shall show of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub repo: String,
    pub commit: String,
    pub context: String,
    pub state: CommitState,
    pub description: String,
}

/// The newest wishes; older ones that weren't told are forgotten. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Statuses {
    store: Store,
    branches: Branches,
    wishes: Arc<watch::Sender<Arc<Vec<Wanted>>>>,
}

/// The first pause after a failure; doubled with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// Remembered as told; more are asked of the database.
const REMEMBERED: usize = 10_000;

type Place = (String, String, String);

impl Statuses {
    pub fn new(store: Store, branches: Branches) -> Statuses {
        Statuses { store, branches, wishes: Arc::new(watch::Sender::new(Arc::default())) }
    }

    /// From now on this is what servers shall show.
    pub fn wish(&self, wanted: Vec<Wanted>) {
        self.wishes.send_if_modified(|before| {
            let is_new = **before != wanted;
            if is_new {
                *before = Arc::new(wanted);
            }
            is_new
        });
    }

    /// Tells until it is dropped.
    pub async fn lead(self, term: Term) {
        let mut wishes = self.wishes.subscribe();
        let mut told: BTreeMap<Place, ToldStatus> = BTreeMap::new();
        let mut pauses: BTreeMap<Place, (Instant, u32)> = BTreeMap::new();
        let mut silent: BTreeSet<String> = BTreeSet::new();
        loop {
            let wanted = Arc::clone(&wishes.borrow_and_update());
            pauses.retain(|place, _| wanted.iter().any(|one| one.place() == *place));
            if told.len() > REMEMBERED {
                told.clear();
            }
            for one in wanted.iter() {
                let place = one.place();
                let early = pauses.get(&place).is_some_and(|(next, _)| *next > Instant::now());
                if early || silent.contains(&one.repo) {
                    continue;
                }
                match self.tell(term, one, &mut told).await {
                    Ok(true) => {
                        pauses.remove(&place);
                    }
                    Ok(false) => {
                        let repo = shown_repo(&one.repo);
                        tracing::info!(
                            repo,
                            "its server is no forge of the configuration: commit statuses aren't set there"
                        );
                        silent.insert(one.repo.clone());
                    }
                    Err(failed) => {
                        let attempts = pauses.get(&place).map_or(0, |(_, attempts)| *attempts).saturating_add(1);
                        let pause =
                            FIRST_PAUSE.saturating_mul(1 << attempts.saturating_sub(1).min(10)).min(LONGEST_PAUSE);
                        let pause = pause.max(failed.least);
                        let (repo, commit, context) = (shown_repo(&one.repo), &one.commit, &one.context);
                        tracing::warn!(
                            repo,
                            commit,
                            context,
                            error = failed.message,
                            "the commit status can't be set and is tried again"
                        );
                        pauses.insert(place, (Instant::now() + pause, attempts));
                    }
                }
                // What is wanted now may be something else already.
                if wishes.has_changed().unwrap_or(false) {
                    break;
                }
            }
            let again = pauses.values().map(|(next, _)| *next).min();
            tokio::select! {
                changed = wishes.changed() => if changed.is_err() { return },
                () = async {
                    match again {
                        Some(at) => tokio::time::sleep_until(at).await,
                        None => std::future::pending().await,
                    }
                } => {}
            }
        }
    }

    /// False: the repository is on no forge.
    async fn tell(&self, term: Term, one: &Wanted, told: &mut BTreeMap<Place, ToldStatus>) -> Result<bool, Failed> {
        let place = one.place();
        let wanted = ToldStatus { state: one.state.word().to_owned(), description: one.description.clone() };
        if !told.contains_key(&place) {
            let known = self.store.told_status(&one.repo, &one.commit, &one.context).await;
            if let Some(known) = known.map_err(|error| Failed::now(&error))? {
                told.insert(place.clone(), known);
            }
        }
        if told.get(&place) == Some(&wanted) {
            return Ok(true);
        }
        let forge = Forge::of(&one.repo, &self.branches.forges, &*self.branches.remote);
        let Some(forge) = forge.map_err(|error| Failed::now(&error))? else { return Ok(false) };
        let set = forge.set_status(&one.commit, &one.context, one.state, &one.description).await;
        set.map_err(|error| Failed {
            message: chain(&error),
            least: match error.next() {
                Next::Retry(least) => least.unwrap_or_default(),
                // A person has to mend it: rights, an address.
                Next::Wait | Next::Stalled => LONGEST_PAUSE / 4,
            },
        })?;
        tracing::debug!(commit = one.commit, context = one.context, state = wanted.state, "commit status set");
        let saved = self.store.save_told_status(term, &one.repo, &one.commit, &one.context, &wanted).await;
        saved.map_err(|error| Failed::now(&error))?;
        told.insert(place, wanted);
        Ok(true)
    }
}

struct Failed {
    message: String,
    least: Duration,
}

impl Failed {
    fn now(error: &dyn std::error::Error) -> Failed {
        Failed { message: chain(error), least: Duration::ZERO }
    }
}

impl Wanted {
    fn place(&self) -> Place {
        (self.repo.clone(), self.commit.clone(), self.context.clone())
    }

    /// How a promotion is shown on its commit of main. `headline` is how far its rollout is.
    pub fn of_promotion(
        repo: &str,
        environment: &str,
        promotion: &Promotion,
        headline: Option<&str>,
    ) -> Option<Wanted> {
        let first = |fallback: &str| promotion.waits_for.first().cloned().unwrap_or_else(|| fallback.to_owned());
        let (state, description) = match &promotion.phase {
            PromotionPhase::Waiting => (CommitState::Pending, first("waits for earlier environments")),
            PromotionPhase::Entered => {
                (CommitState::Pending, headline.map(str::to_owned).unwrap_or_else(|| first("is being delivered")))
            }
            PromotionPhase::Passed => match promotion.late_failed {
                0 => (CommitState::Success, "passed".to_owned()),
                late => (CommitState::Success, format!("passed; {late} failed later")),
            },
            PromotionPhase::Failed { why } => (CommitState::Failure, why.clone()),
            PromotionPhase::Reopened { why } => (CommitState::Failure, format!("open again: {why}")),
            PromotionPhase::Superseded { by } => (CommitState::Failure, format!("superseded by {}", short(by))),
            // Nothing was tested of what was there before.
            PromotionPhase::Adopted => return None,
        };
        Some(Wanted::new(repo, &promotion.commit, environment, state, description))
    }

    /// How a rollout of an application is shown on the commit of its source.
    pub fn of_rollout(repo: &str, rollout: &Rollout, headline: &str) -> Wanted {
        let (state, description) = match &rollout.phase {
            Phase::Active => (CommitState::Pending, headline.to_owned()),
            Phase::Paused { by, .. } => (CommitState::Pending, format!("{headline}; paused by {by}")),
            Phase::Stopped { ring, why, .. } => (CommitState::Failure, format!("stopped: {}", stop_words(ring, why))),
            Phase::Complete { .. } => match rollout.late_failed {
                0 => (CommitState::Success, headline.to_owned()),
                late => (CommitState::Success, format!("complete; {late} failed later")),
            },
            Phase::RolledBack { why, .. } => (CommitState::Failure, format!("rolled back: {why}")),
            Phase::Aborted { by, .. } => (CommitState::Failure, format!("aborted by {by}")),
            Phase::Superseded { by, .. } => (CommitState::Failure, format!("superseded by rollout {by}")),
        };
        Wanted::new(repo, &rollout.cause.commit, &rollout.environment, state, description)
    }

    fn new(repo: &str, commit: &str, environment: &str, state: CommitState, description: String) -> Wanted {
        let description = description.chars().filter(|c| !c.is_control()).take(140).collect();
        let (repo, commit, context) = (repo.to_owned(), commit.to_owned(), format!("kedge/{environment}"));
        Wanted { repo, commit, context, state, description }
    }
}

/// As Git abbreviates.
pub fn short(commit: &str) -> &str {
    commit.get(..7).unwrap_or(commit)
}
