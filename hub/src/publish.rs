//! From a `Schedule` to a commit or a pull request on the environment's branch of the platform GitOps repository. Called by
//! the leader's reconciler of an environment; owns the branches `kedge/<environment>` there and no task.
//!
//! A publish looks at the branch (`tree`), decides what to do (`plan`, pure, with the removal `guard`) and does it:
//! `direct` pushes a commit, `request` keeps one pull request up to date. An intent is written down before each push, so
//! that a crash at any point leaves either nothing or a commit that is recognised as done.
//!
//! `GitOpsRepo.path` has no effect, as in Kalypso: files are at the branch's root, where `kedge render` writes them. A branch
//! that doesn't exist begins with a commit without parents, so that nothing of another environment comes with it.

mod direct;
mod error;
pub(crate) mod forge;
mod guard;
mod message;
mod plan;
mod records;
mod remote;
mod request;
pub(crate) mod tree;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use kedge_scheduler::{Delta, Schedule};
use tokio::sync::watch;

pub use error::{Next, PublishError};
pub use forge::{ForgeError, PullState};
pub use guard::{Names, Removal, Verdict, judge};
pub use message::shown_repo;
pub(crate) use plan::Change;
pub use plan::assignment_of;
pub use remote::{PushError, Remote, RemoteError, Seen};
pub use tree::TreeError;

pub use crate::git::Head;

use crate::config::{Config, Forge, PublishMode};
use crate::git::Mirrors;
use crate::store::api::audit::AuditEntry;
use crate::store::publish::{HandEdit, WaitingRemoval};
use crate::store::{Store, Term, now};
use records::PublishRecords;
use tree::Author;

/// Publishes environments. One at a time each; different ones don't wait for each other.
#[derive(Debug)]
pub struct Publisher {
    remote: Arc<dyn Remote>,
    store: Store,
    author: (String, String),
    modes: BTreeMap<String, PublishMode>,
    forges: Vec<Forge>,
    /// What is kept in memory from publish to publish, by environment.
    records: Mutex<HashMap<String, Arc<tokio::sync::Mutex<PublishRecords>>>>,
    /// Counts confirmations on this hub.
    confirmations: watch::Sender<u64>,
}

/// What to publish, where and why.
#[derive(Clone, Copy, Debug)]
pub struct PublishJob<'a> {
    pub environment: &'a str,
    pub target: &'a GitOpsTarget,
    pub schedule: &'a Schedule,
    /// Not needed: what changed is found by comparing ids. It is here for what is logged.
    pub delta: Option<&'a Delta>,
    /// The commits that led to this, the newest first.
    pub causes: &'a [Cause],
}

/// The environment's `GitOpsRepo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitOpsTarget {
    pub repo: String,
    pub branch: String,
    /// Has no effect.
    pub path: String,
}

/// A commit of the control plane or of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub repo: String,
    pub commit: String,
    pub subject: String,
    pub author: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// The environment's branch as it is now: what packing reads. None: there is none, or it was emptied; then packing
    /// keeps what it has.
    pub head: Option<Head>,
    pub outcome: Outcome,
    /// Cluster types whose files stay as they are until a person confirms.
    pub waiting: BTreeMap<String, Removal>,
    /// Files of ours that people changed on the branch.
    pub foreign: Vec<HandEdit>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The branch holds what it should, or all that it lacks waits.
    Unchanged,
    Committed(String),
    PullRequest {
        number: i64,
        url: String,
        state: PullState,
    },
    /// For a server without pull requests that we know of: a person merges the branch of this name.
    BranchPushed(String),
    /// A person closed the pull request; it is asked again when its content changes.
    Declined {
        number: i64,
        url: String,
    },
    /// Somebody pushed to our branch; it is left alone until it is merged, deleted or as we left it.
    ForeignCommits {
        branch: String,
        commit: String,
        author: String,
    },
}

/// How often a branch may move under us in one publish.
const ATTEMPTS: usize = 5;

impl Published {
    /// Whether the branch holds all that was scheduled.
    pub fn is_whole(&self) -> bool {
        self.waiting.is_empty() && matches!(self.outcome, Outcome::Unchanged | Outcome::Committed(_))
    }
}

impl Publisher {
    pub fn new(mirrors: Mirrors, store: Store, config: &Config) -> Publisher {
        Publisher::over(Arc::new(mirrors), store, config)
    }

    /// Over any servers: tests publish between folders.
    pub fn over(remote: Arc<dyn Remote>, store: Store, config: &Config) -> Publisher {
        Publisher {
            remote,
            store,
            author: (config.git.author_name.clone(), config.git.author_email.clone()),
            modes: config.environments.iter().map(|(name, environment)| (name.clone(), environment.publish)).collect(),
            forges: config.git.forges.clone(),
            records: Mutex::default(),
            confirmations: watch::Sender::new(0),
        }
    }

    /// Makes the environment's branch what the schedule says, or asks for it.
    pub async fn publish(&self, term: Term, job: PublishJob<'_>) -> Result<Published, PublishError> {
        let records = {
            let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(records.entry(job.environment.to_owned()).or_default())
        };
        let mut records = records.lock().await;
        records.load(&self.store, term, &job).await?;
        let published = match self.mode(job.environment) {
            PublishMode::Direct => direct::publish(self, term, &job, &mut records).await,
            PublishMode::PullRequest => request::publish(self, term, &job, &mut records).await,
        };
        if published.is_err() {
            // What is in memory may be ahead of the database or behind it.
            records.doubt();
        }
        published
    }

    pub fn mode(&self, environment: &str) -> PublishMode {
        self.modes.get(environment).copied().unwrap_or_default()
    }

    /// A person agrees to what waits now, on any hub. The leader's next publish acts on it.
    pub async fn confirm(
        &self,
        environment: &str,
        cluster_type: &str,
        who: &str,
        audit: Option<&AuditEntry>,
    ) -> Result<WaitingRemoval, PublishError> {
        let approved = self.store.approve_removal(environment, cluster_type, who, audit).await?;
        let Some(approved) = approved else {
            let (environment, cluster_type) = (environment.to_owned(), cluster_type.to_owned());
            return Err(PublishError::NothingWaits { environment, cluster_type });
        };
        tracing::info!(environment, cluster_type, who, gone = approved.gone.len(), "removal confirmed");
        self.confirmations.send_modify(|count| *count += 1);
        Ok(approved)
    }

    /// Changes with each confirmation on this hub; other hubs' are found by `Store::approved_environments`.
    pub fn confirmations(&self) -> watch::Receiver<u64> {
        self.confirmations.subscribe()
    }

    fn author(&self) -> Author {
        let (name, email) = self.author.clone();
        Author { name, email, seconds: now().0.div_euclid(1000) }
    }
}

impl GitOpsTarget {
    fn push_failed(&self, branch: &str, source: PushError) -> PublishError {
        PublishError::Push { repo: shown_repo(&self.repo), branch: branch.to_owned(), source }
    }

    fn restless(&self, branch: &str) -> PublishError {
        PublishError::Restless { repo: shown_repo(&self.repo), branch: branch.to_owned() }
    }

    fn head(&self, seen: &Seen, records: &PublishRecords) -> Option<Head> {
        let commit = seen.head.clone().filter(|_| !records.is_emptied())?;
        let (repo, branch, path) = (self.repo.clone(), self.branch.clone(), seen.mirror.clone());
        Some(Head { repo, branch, commit, path })
    }
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
