//! Publishing by a push: one commit on the environment's branch, built again on its new head when that moved.

use std::collections::BTreeMap;

use super::message::{self, Summary};
use super::plan::Guard;
use super::records::{PublishRecords, blobs};
use super::remote::{PushError, Seen};
use super::{ATTEMPTS, Outcome, PublishError, PublishJob, Published, Publisher};
use crate::git::Head;
use crate::store::publish::{Publication, PublicationState, Settlement};
use crate::store::{Term, now};

pub(super) async fn publish(
    publisher: &Publisher,
    term: Term,
    job: &PublishJob<'_>,
    records: &mut PublishRecords,
) -> Result<Published, PublishError> {
    let (environment, target) = (job.environment, job.target);
    let (remote, store) = (&publisher.remote, &publisher.store);
    // A commit may have been pushed just before a crash: only the server knows.
    let mut seen = match records.intent {
        Some(_) => remote.fetch(&target.repo, &target.branch).await?,
        None => remote.head(&target.repo, &target.branch).await?,
    };
    for _ in 0..ATTEMPTS {
        records.look(&seen, job).await?;
        recognise(publisher, term, environment, records, &seen).await?;
        let plan = records.plan(&seen, job, Guard::Wait)?;
        let foreign = records.who_edited(&seen, &plan).await?;
        let mut settlement = records.settlement(&plan, plan.confirmed.clone(), &plan.removals, &foreign);
        for (cluster_type, removal) in plan.removals.iter().filter(|_| settlement.waiting.is_some()) {
            let gone = removal.gone.len();
            tracing::warn!(
                environment,
                cluster_type,
                gone,
                of = removal.of,
                "removal waits for a person's confirmation"
            );
        }
        if plan.changes.is_empty() {
            records.settle(store, term, environment, settlement).await?;
            let (outcome, waiting) = (Outcome::Unchanged, plan.removals.clone());
            records.hold(plan, job, records.listing.tree());
            return Ok(Published { head: target.head(&seen, records), outcome, waiting, foreign });
        }
        let summary = Summary::of(&plan, &records.listing);
        // What waits isn't in the commit, so its message doesn't speak of it.
        let text = message::commit(environment, &summary, &BTreeMap::new(), plan.content, job.causes);
        let (commit, tree) = records.build(&seen, &plan.changes, text, publisher.author()).await?;
        let intent = Publication {
            repo: target.repo.clone(),
            branch: target.branch.clone(),
            base: seen.head.clone(),
            commit: commit.clone(),
            content: plan.content.to_string(),
            subject: summary.subject(environment),
            changes: blobs(&plan.changes),
            state: PublicationState::Intended,
            created_at: now(),
        };
        store.intend(term, environment, &intent).await?;
        let subject = intent.subject.clone();
        records.intent = Some(intent);
        match remote.push(&target.repo, &commit, &target.branch, seen.head.as_deref()).await {
            Ok(()) => {}
            Err(PushError::Moved) => {
                tracing::warn!(
                    environment,
                    branch = target.branch,
                    "the branch moved meanwhile: building on its new head"
                );
                seen = remote.fetch(&target.repo, &target.branch).await?;
                continue;
            }
            Err(source) => return Err(target.push_failed(&target.branch, source)),
        }
        settlement.intent = Some(PublicationState::Published);
        records.settle(store, term, environment, settlement).await?;
        tracing::info!(environment, branch = target.branch, commit, subject, "published");
        let (repo, branch, path) = (target.repo.clone(), target.branch.clone(), seen.mirror);
        let head = Some(Head { repo, branch, commit: commit.clone(), path });
        let (outcome, waiting) = (Outcome::Committed(commit), plan.removals.clone());
        records.hold(plan, job, Some(tree));
        return Ok(Published { head, outcome, waiting, foreign });
    }
    Err(target.restless(&target.branch))
}

/// Whether the commit that was about to be pushed is on the branch: by its id, or by what it changed when more came on top.
async fn recognise(
    publisher: &Publisher,
    term: Term,
    environment: &str,
    records: &mut PublishRecords,
    seen: &Seen,
) -> Result<(), PublishError> {
    let Some(intent) = &records.intent else { return Ok(()) };
    let done =
        seen.head.as_ref() == Some(&intent.commit) || (seen.head != intent.base && records.holds(&intent.changes));
    let settlement = match done {
        true => {
            tracing::info!(
                environment,
                commit = intent.commit,
                "a commit from before an interruption is on the branch"
            );
            let files = intent.changes.clone();
            Settlement { files, intent: Some(PublicationState::Published), ..Settlement::default() }
        }
        false => Settlement { intent: Some(PublicationState::Superseded), ..Settlement::default() },
    };
    records.settle(&publisher.store, term, environment, settlement).await
}
