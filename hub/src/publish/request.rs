//! Publishing by a pull request: our branch `kedge/<environment>` holds what we ask for, and a person merges it. One pull
//! request per environment, kept up to date.
//!
//! - Merged is recognised by content: the environment's branch holds the files that we asked for, whatever its commits
//!   are called; or the forge says that it merged the commit that we pushed. What was asked for and isn't there then
//!   was edited by the person who merged.
//! - Closed without a merge is declined: nothing is asked until the content changes or it is opened again.
//! - Our branch is moved only from a commit that we pushed. Anybody else's commit there is left alone.
//! - A merge, like any other change that people make to a branch that only they change, confirms what it removes.

use std::time::Duration;

use super::error::{Next, PublishError};
use super::forge::{Forge, ForgeError, PullRequest, PullState};
use super::message::{self, Summary};
use super::plan::{Guard, Plan, merged_sets};
use super::records::{PublishRecords, blobs};
use super::remote::{PushError, Seen};
use super::{ATTEMPTS, Outcome, PublishJob, Published, Publisher, tree};
use crate::store::publish::{Ask, HandEdit, PullRequestRow, RequestState, Settlement};
use crate::store::{Term, now};

/// The label of a pull request that moves the promoted commit of main.
const PROMOTED: &str = "promoted";

/// A forge marks a pull request as merged a moment after its commits are there; then we close it ourselves.
const MARKING: Duration = Duration::from_secs(60);

/// One run: what all steps need.
struct Run<'a> {
    publisher: &'a Publisher,
    term: Term,
    job: &'a PublishJob<'a>,
    /// None: a server whose pull requests we don't know.
    forge: Option<Forge>,
    /// `kedge/<environment>`
    ours: String,
}

pub(super) async fn publish(
    publisher: &Publisher,
    term: Term,
    job: &PublishJob<'_>,
    records: &mut PublishRecords,
) -> Result<Published, PublishError> {
    let ours = format!("kedge/{}", job.environment);
    let run = Run { publisher, term, job, forge: forge(publisher, job)?, ours };
    let mut seen = run.begin().await?;
    for attempt in 0..ATTEMPTS {
        records.look(&seen, job).await?;
        // Whether our branch may be elsewhere than we left it.
        let mut doubtful = attempt > 0;
        let mut row = publisher.store.pull_request(job.environment).await?;
        if let Some(known) = &mut row {
            run.recognise(known).await?;
            match run.follow(known, records, &mut seen).await? {
                Followed::Fetched => continue,
                Followed::Done { theirs } => doubtful |= theirs,
            }
        }
        match run.ask(row, records, &seen, doubtful).await? {
            Asked::Done(published) => return Ok(*published),
            Asked::Moved => seen = publisher.remote.fetch(&job.target.repo, &job.target.branch).await?,
        }
    }
    Err(job.target.restless(&run.ours))
}

fn forge(publisher: &Publisher, job: &PublishJob<'_>) -> Result<Option<Forge>, PublishError> {
    let failed = |source| PublishError::Forge { environment: job.environment.to_owned(), source };
    Forge::of(&job.target.repo, &publisher.forges, &*publisher.remote).map_err(failed)
}

enum Followed {
    /// The environment's branch was asked for again.
    Fetched,
    /// `theirs`: the forge shows another commit on our branch than ours.
    Done { theirs: bool },
}

enum Asked {
    Done(Box<Published>),
    /// A branch isn't where we saw it.
    Moved,
}

impl Run<'_> {
    /// The environment's branch, which a pull request needs: an empty one is made where there is none.
    async fn begin(&self) -> Result<Seen, PublishError> {
        let (remote, target) = (&self.publisher.remote, self.job.target);
        let mut seen = remote.head(&target.repo, &target.branch).await?;
        if seen.head.is_none() {
            seen = remote.fetch(&target.repo, &target.branch).await?;
        }
        if seen.head.is_some() {
            return Ok(seen);
        }
        let text =
            format!("Begin the branch of {}\n\nKedge-Environment: {}\n", self.job.environment, self.job.environment);
        let (commit, _) =
            PublishRecords::default().build(&seen, &Default::default(), text, self.publisher.author()).await?;
        match remote.push(&target.repo, &commit, &target.branch, None).await {
            Ok(()) => Ok(Seen { head: Some(commit), ..seen }),
            Err(PushError::Moved) => Ok(remote.fetch(&target.repo, &target.branch).await?),
            Err(source) => Err(target.push_failed(&target.branch, source)),
        }
    }

    /// Whether the commit that was about to be pushed to our branch is there.
    async fn recognise(&self, row: &mut PullRequestRow) -> Result<(), PublishError> {
        let Some(intended) = row.intended.take() else { return Ok(()) };
        let branch = self.publisher.remote.fetch(&self.job.target.repo, &self.ours).await?;
        if branch.head.as_ref() == Some(&intended.commit) {
            row.asked = Some(intended);
        }
        Ok(self.publisher.store.save_pull_request(self.term, self.job.environment, row).await?)
    }

    /// How the last pull request goes on: merged, declined, opened again.
    async fn follow(
        &self,
        row: &mut PullRequestRow,
        records: &mut PublishRecords,
        seen: &mut Seen,
    ) -> Result<Followed, PublishError> {
        if matches!(row.state, RequestState::Merged | RequestState::Withdrawn) {
            return Ok(Followed::Done { theirs: false });
        }
        let head = seen.head.clone().unwrap_or_default();
        let landed = row.asked.as_ref().is_some_and(|ask| ask.base != head && records.holds(&ask.changes));
        let (mut merged_ours, mut theirs) = (landed, false);
        let state = match (&self.forge, row.number) {
            (Some(forge), Some(number)) => match forge.get(number).await {
                Ok(pull) => {
                    theirs = row.asked.as_ref().is_some_and(|ask| ask.commit != pull.head);
                    merged_ours = landed || self.holds_ours(forge, &pull, row).await?;
                    Some(pull.state)
                }
                Err(error) if error.is_missing() => Some(PullState::Closed),
                // What is on the branch needs no forge to be seen.
                Err(_) if landed => None,
                Err(error) => return Err(self.failed(error)),
            },
            _ => None,
        };
        let before = row.state;
        match (landed, state) {
            (false, Some(PullState::Merged)) if self.fetched(seen).await? => return Ok(Followed::Fetched),
            (_, Some(PullState::Merged)) | (true, Some(PullState::Closed) | None) => row.state = RequestState::Merged,
            (true, Some(PullState::Open)) => row.state = RequestState::Landed,
            (false, Some(PullState::Closed)) => row.state = RequestState::Declined,
            (false, Some(PullState::Open)) => row.state = RequestState::Open,
            (false, None) => {}
        }
        if row.state == before && before != RequestState::Landed {
            return Ok(Followed::Done { theirs });
        }
        let environment = self.job.environment;
        let mut settlement = Settlement::default();
        match row.state {
            RequestState::Merged | RequestState::Landed if merged_ours => {
                settlement.files = row.asked.as_ref().map(|ask| ask.changes.clone()).unwrap_or_default();
            }
            _ => {}
        }
        let patience = i64::try_from(MARKING.as_millis()).unwrap_or(i64::MAX);
        if before == RequestState::Landed && row.state == before && now().0 - row.updated_at.0 > patience {
            self.close(row).await?;
            row.state = RequestState::Merged;
        }
        if row.state == before {
            return Ok(Followed::Done { theirs });
        }
        tracing::info!(environment, number = row.number, state = row.state.word(), "the pull request has moved on");
        settlement.pull_request = Some(row.clone());
        records.settle(&self.publisher.store, self.term, environment, settlement).await?;
        if row.state == RequestState::Merged {
            self.tidy(row).await;
        }
        Ok(Followed::Done { theirs })
    }

    /// Whether a merged pull request had the commit that we pushed last, and not only an older one.
    async fn holds_ours(&self, forge: &Forge, pull: &PullRequest, row: &PullRequestRow) -> Result<bool, PublishError> {
        let Some(ask) = row.asked.as_ref().filter(|_| pull.state == PullState::Merged) else { return Ok(false) };
        if pull.head == ask.commit {
            return Ok(true);
        }
        // Somebody may have added to it before the merge.
        forge.has_commit(pull.number, &ask.commit).await.map_err(|error| self.failed(error))
    }

    /// Whether the environment's branch is elsewhere than we saw it.
    async fn fetched(&self, seen: &mut Seen) -> Result<bool, PublishError> {
        let now = self.publisher.remote.fetch(&self.job.target.repo, &self.job.target.branch).await?;
        let moved = now.head != seen.head;
        *seen = now;
        Ok(moved)
    }

    /// Plans, and brings our branch and the pull request to it.
    async fn ask(
        &self,
        row: Option<PullRequestRow>,
        records: &mut PublishRecords,
        seen: &Seen,
        doubtful: bool,
    ) -> Result<Asked, PublishError> {
        let (environment, target, store) = (self.job.environment, self.job.target, &self.publisher.store);
        let plan = records.plan(seen, self.job, Guard::Warn)?;
        let foreign = records.who_edited(seen, &plan).await?;
        self.record(records, &plan, &foreign).await?;
        let head = target.head(seen, records);
        let done = |outcome| {
            let waiting = Default::default();
            let head = head.clone();
            Ok(Asked::Done(Box::new(Published { head, outcome, waiting, foreign: foreign.clone() })))
        };
        if plan.changes.is_empty() {
            if let Some(mut row) = row.filter(|row| row.state == RequestState::Open) {
                self.withdraw(&mut row).await?;
            }
            records.hold(plan, self.job, records.listing.tree());
            return done(Outcome::Unchanged);
        }
        if let Some(row) = &row
            && row.state == RequestState::Declined
            && row.asked.as_ref().is_some_and(|ask| ask.content == plan.content.to_string())
        {
            let (number, url) = (row.number.unwrap_or_default(), row.url.clone().unwrap_or_default());
            return done(Outcome::Declined { number, url });
        }
        let asked = row.as_ref().and_then(|row| row.asked.as_ref());
        let branch = match (&row, asked) {
            // Where we left it; a push notices if it isn't.
            (Some(row), Some(ask)) if row.state == RequestState::Open && !doubtful => {
                Seen { mirror: seen.mirror.clone(), head: Some(ask.commit.clone()) }
            }
            _ => self.publisher.remote.fetch(&target.repo, &self.ours).await?,
        };
        if let Some(head) = branch.head.as_ref().filter(|head| asked.is_none_or(|ask| ask.commit != **head)) {
            let author = author_of(&branch).await.unwrap_or_default();
            let (branch, commit) = (self.ours.clone(), head.clone());
            tracing::warn!(environment, branch, commit, author, "somebody pushed to our branch: it is left alone");
            return done(Outcome::ForeignCommits { branch, commit, author });
        }
        let summary = Summary::of(&plan, &records.listing);
        let mut ask = Ask {
            commit: String::new(),
            base: seen.head.clone().unwrap_or_default(),
            content: plan.content.to_string(),
            changes: blobs(&plan.changes),
        };
        let open = row.as_ref().filter(|row| row.state == RequestState::Open);
        let pushed =
            branch.head.is_some() && asked.is_some_and(|asked| asked.changes == ask.changes && asked.base == ask.base);
        match (&self.forge, open.filter(|_| pushed).map(|row| row.number.zip(row.url.clone()))) {
            (Some(_), Some(Some((number, url)))) => {
                return done(Outcome::PullRequest { number, url, state: PullState::Open });
            }
            (None, Some(_)) => return done(Outcome::BranchPushed(self.ours.clone())),
            _ => {}
        }
        let mut wanted = PullRequestRow {
            branch: self.ours.clone(),
            asked: asked.cloned(),
            intended: None,
            // A closed one isn't opened again: what became of it says nothing about this content.
            number: open.and_then(|row| row.number),
            url: open.and_then(|row| row.url.clone()),
            state: RequestState::Open,
            updated_at: now(),
        };
        if !pushed {
            let text = message::commit(environment, &summary, &plan.removals, plan.content, self.job.causes);
            (ask.commit, _) = records.build(seen, &plan.changes, text, self.publisher.author()).await?;
            wanted.intended = Some(ask.clone());
            store.save_pull_request(self.term, environment, &wanted).await?;
            match self.publisher.remote.push(&target.repo, &ask.commit, &self.ours, branch.head.as_deref()).await {
                Ok(()) => {}
                Err(PushError::Moved) => return Ok(Asked::Moved),
                Err(source) => return Err(target.push_failed(&self.ours, source)),
            }
            (wanted.asked, wanted.intended) = (Some(ask), None);
            store.save_pull_request(self.term, environment, &wanted).await?;
        }
        let Some(forge) = &self.forge else {
            tracing::info!(environment, branch = self.ours, "pushed for a person to merge");
            return done(Outcome::BranchPushed(self.ours.clone()));
        };
        let pull = self.tell(forge, &plan, &summary).await.map_err(|error| self.failed(error))?;
        (wanted.number, wanted.url) = (Some(pull.number), Some(pull.url.clone()));
        store.save_pull_request(self.term, environment, &wanted).await?;
        tracing::info!(environment, number = pull.number, url = pull.url, "the pull request is up to date");
        done(Outcome::PullRequest { number: pull.number, url: pull.url, state: PullState::Open })
    }

    /// What the branch shows, whatever becomes of the pull request.
    async fn record(
        &self,
        records: &mut PublishRecords,
        plan: &Plan,
        foreign: &[HandEdit],
    ) -> Result<(), PublishError> {
        let held = merged_sets(&records.listing.existing, &records.confirmed);
        let mut settlement = records.settlement(plan, held, &Default::default(), foreign);
        // What is only asked for isn't published yet.
        settlement.files.retain(|path, _| !plan.changes.contains_key(path));
        records.settle(&self.publisher.store, self.term, self.job.environment, settlement).await
    }

    /// Opens the pull request or brings the open one up to date.
    async fn tell(&self, forge: &Forge, plan: &Plan, summary: &Summary) -> Result<PullRequest, ForgeError> {
        let (environment, base) = (self.job.environment, &self.job.target.branch);
        let title = summary.subject(environment);
        let body = message::body(environment, summary, plan, self.job.causes);
        let mut found = forge.find(&self.ours, base).await?;
        if found.is_none() {
            match forge.open(&self.ours, base, &title, &body).await {
                Ok(pull) => {
                    self.label(forge, &pull, plan).await?;
                    return Ok(pull);
                }
                // It may have been made and the answer lost.
                Err(error) if error.is_conflict() => match forge.find(&self.ours, base).await? {
                    Some(pull) => found = Some(pull),
                    None => return Err(error),
                },
                Err(error) => return Err(error),
            }
        }
        let Some(mut pull) = found else { return Err(ForgeError::NoAddress("the pull request vanished".to_owned())) };
        if pull.title != title || pull.body != body {
            pull = forge.tell(pull.number, &title, &body).await?;
        }
        self.label(forge, &pull, plan).await?;
        Ok(pull)
    }

    /// A token without the right to label leaves the pull request without one, which is no reason to stop.
    async fn label(&self, forge: &Forge, pull: &PullRequest, plan: &Plan) -> Result<(), ForgeError> {
        match forge.label(pull, PROMOTED, plan.promotes()).await {
            Err(error) if !matches!(error.next(), Next::Retry(_)) => {
                tracing::warn!(environment = self.job.environment, number = pull.number, %error, "the label can't be set");
                Ok(())
            }
            other => other,
        }
    }

    /// There is nothing left to ask for.
    async fn withdraw(&self, row: &mut PullRequestRow) -> Result<(), PublishError> {
        self.close(row).await?;
        row.state = RequestState::Withdrawn;
        self.publisher.store.save_pull_request(self.term, self.job.environment, row).await?;
        tracing::info!(environment = self.job.environment, number = row.number, "the pull request is withdrawn");
        self.tidy(row).await;
        Ok(())
    }

    async fn close(&self, row: &PullRequestRow) -> Result<(), PublishError> {
        let (Some(forge), Some(number)) = (&self.forge, row.number) else { return Ok(()) };
        match forge.close(number).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_missing() => Ok(()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Deletes our branch, if it is as we left it. A branch that stays harms nobody.
    async fn tidy(&self, row: &PullRequestRow) {
        let Some(ask) = &row.asked else { return };
        if let Err(error) = self.publisher.remote.delete(&self.job.target.repo, &self.ours, &ask.commit).await {
            tracing::debug!(branch = self.ours, %error, "our branch stays");
        }
    }

    fn failed(&self, source: ForgeError) -> PublishError {
        PublishError::Forge { environment: self.job.environment.to_owned(), source }
    }
}

async fn author_of(seen: &Seen) -> Option<String> {
    let seen = seen.clone();
    let looked = tokio::task::spawn_blocking(move || {
        let repo = tree::open(&seen.mirror).ok()?;
        Some(tree::author(&repo, tree::commit_id(&seen.head?).ok()?)?.author)
    });
    looked.await.ok()?
}

#[cfg(test)]
mod tests;
