//! A promotion as a pull request, for environments whose branch takes no push: our branch holds the change of
//! `base-repo.yaml`, and a person merges it. One per environment, found again by its branches. Called by the promotion controller.
//!
//! Merged is seen on the environment's branch. Closed without a merge is declined until another commit is promoted. Our
//! branch is moved only from a commit that we pushed.

use super::branches::{At, BranchError, Branches, Edit};
use crate::publish::forge::{Forge, ForgeError, PullState};
use crate::publish::{PushError, shown_repo};
use crate::store::promotion::PromotionRequest;
use crate::store::{Store, StoreError, Term};

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub environment: &'a str,
    pub at: At<'a>,
    pub edit: &'a Edit,
    /// The commit of main.
    pub commit: &'a str,
    /// First line: the title; the rest: the body.
    pub message: &'a str,
}

/// How it stands; for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The branch names the commit.
    Done,
    Open {
        url: String,
    },
    /// A server without pull requests that we know of: a person merges this branch.
    BranchPushed {
        branch: String,
    },
    Declined {
        url: String,
    },
    /// Somebody pushed to our branch; it is left alone.
    Foreign {
        branch: String,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error(transparent)]
    Branch(#[from] BranchError),
    #[error("the pull request can't be kept up to date")]
    Forge(#[from] ForgeError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How often a branch may move under us.
const ATTEMPTS: usize = 5;

/// Our branch for an environment.
pub fn ours(environment: &str) -> String {
    format!("kedge-promote/{environment}")
}

impl Branches {
    /// Keeps the pull request up to date.
    pub async fn ask(&self, store: &Store, term: Term, ask: Ask<'_>) -> Result<Asked, AskError> {
        let branch = ours(ask.environment);
        let forge = Forge::of(ask.at.repo, &self.forges, &*self.remote)?;
        let mut known = store.promotion_request(ask.environment).await?;
        if let (Some(row), Some(forge)) = (&mut known, &forge)
            && row.main_commit == ask.commit
            && let Some(number) = row.number
        {
            let declined = match forge.get(number).await {
                Ok(pull) => pull.state == PullState::Closed,
                Err(error) if error.is_missing() => true,
                Err(error) => return Err(error.into()),
            };
            if declined != row.declined {
                row.declined = declined;
                store.save_promotion_request(term, ask.environment, Some(row)).await?;
            }
            if declined {
                return Ok(Asked::Declined { url: row.url.clone().unwrap_or_default() });
            }
        }
        let Some(row) = self.push_ours(store, term, ask, &branch, known).await? else { return Ok(Asked::Done) };
        let Ok(mut row) = row else { return Ok(Asked::Foreign { branch }) };
        let Some(forge) = forge else { return Ok(Asked::BranchPushed { branch }) };
        let (title, body) = ask.message.split_once('\n').unwrap_or((ask.message, ""));
        let (title, body) = (title.trim(), body.trim());
        let pull = match forge.find(&branch, ask.at.branch).await? {
            Some(pull) if pull.title == title && pull.body == body => pull,
            Some(pull) => forge.tell(pull.number, title, body).await?,
            None => match forge.open(&branch, ask.at.branch, title, body).await {
                Ok(pull) => pull,
                // It may have been made and the answer lost.
                Err(error) if error.is_conflict() => forge.find(&branch, ask.at.branch).await?.ok_or(error)?,
                Err(error) => return Err(error.into()),
            },
        };
        if row.number != Some(pull.number) {
            (row.number, row.url) = (Some(pull.number), Some(pull.url.clone()));
            store.save_promotion_request(term, ask.environment, Some(&row)).await?;
            let (environment, url) = (ask.environment, &pull.url);
            tracing::info!(environment, commit = ask.commit, url, "a pull request asks for the promotion");
        }
        Ok(Asked::Open { url: pull.url })
    }

    /// Brings our branch to the change on top of the environment's. None: there is nothing to ask for. An error inside:
    /// somebody else's commit is on our branch.
    async fn push_ours(
        &self,
        store: &Store,
        term: Term,
        ask: Ask<'_>,
        branch: &str,
        known: Option<PromotionRequest>,
    ) -> Result<Option<Result<PromotionRequest, Foreign>>, AskError> {
        let same = known.as_ref().filter(|row| row.main_commit == ask.commit);
        for _ in 0..ATTEMPTS {
            let seen = self.remote.fetch(ask.at.repo, ask.at.branch).await.map_err(BranchError::from)?;
            let Some(head) = seen.head.clone() else { return Err(ask.at.missing().into()) };
            let there = self.remote.fetch(ask.at.repo, branch).await.map_err(BranchError::from)?.head;
            if let (Some(row), Some(there)) = (same, &there)
                && row.base == head
                && row.asked == *there
            {
                return Ok(Some(Ok(row.clone())));
            }
            if let Some(there) = &there
                && known.as_ref().is_none_or(|row| row.asked != *there && row.previous.as_ref() != Some(there))
            {
                tracing::warn!(
                    environment = ask.environment,
                    branch,
                    commit = there,
                    "somebody pushed to our branch: it is left alone"
                );
                return Ok(Some(Err(Foreign)));
            }
            let Some(commit) = self.build(&seen, &head, ask.edit, ask.message).await? else { return Ok(None) };
            let row = PromotionRequest {
                branch: branch.to_owned(),
                main_commit: ask.commit.to_owned(),
                asked: commit.clone(),
                previous: there.clone(),
                base: head,
                number: same.and_then(|row| row.number),
                url: same.and_then(|row| row.url.clone()),
                declined: false,
            };
            // Before the push, so that a crash after it leaves a commit that is known as ours.
            store.save_promotion_request(term, ask.environment, Some(&row)).await?;
            match self.remote.push(ask.at.repo, &commit, branch, there.as_deref()).await {
                Ok(()) => return Ok(Some(Ok(row))),
                Err(PushError::Moved) => {}
                Err(source) => return Err(ask.at.unpushed(source).into()),
            }
        }
        Err(BranchError::Restless { repo: shown_repo(ask.at.repo), branch: branch.to_owned() }.into())
    }

    /// The environment's branch names the commit: our branch goes, if it is as we left it.
    pub async fn forget_request(
        &self,
        store: &Store,
        term: Term,
        environment: &str,
        repo: &str,
    ) -> Result<(), StoreError> {
        let Some(row) = store.promotion_request(environment).await? else { return Ok(()) };
        if let Err(error) = self.remote.delete(repo, &row.branch, &row.asked).await {
            // A branch that stays harms nobody.
            tracing::debug!(branch = row.branch, %error, "our branch stays");
        }
        store.save_promotion_request(term, environment, None).await
    }
}

/// Somebody else's commit is on our branch.
#[derive(Debug)]
struct Foreign;
