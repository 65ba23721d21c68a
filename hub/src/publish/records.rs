//! What a publish of one environment has before it: the branch's listing, what is on record about it, and ids of texts.
//! Kept in memory from publish to publish, so that the cost follows the change; read anew when another hub may have led
//! meanwhile. Owned by the `Publisher`.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};

use gix::ObjectId;
use kedge_platform::RepoKey;

use super::guard::{Names, Removal};
use super::plan::{Base, Change, Guard, Memory, Plan, plan};
use super::remote::Seen;
use super::tree::{self, Listing};
use super::{PublishError, PublishJob};
use crate::store::publish::{Blobs, HandEdit, Publication, Settlement};
use crate::store::{Store, StoreError, Term, now};

/// Hand edits whose author is looked for; of more than these the head's author is told.
const LOOKED_UP: usize = 100;

#[derive(Debug, Default)]
pub(super) struct PublishRecords {
    /// The term in which the records were read; none: read them again.
    term: Option<Term>,
    target: Option<(RepoKey, String)>,
    pub listing: Listing,
    memory: Memory,
    published: HashMap<String, ObjectId>,
    pub confirmed: BTreeMap<String, Names>,
    hand_edits: Vec<HandEdit>,
    /// A commit that may or may not have reached the branch.
    pub intent: Option<Publication>,
    /// What waits according to the database, and what people agreed to.
    waiting: BTreeMap<String, (Names, usize)>,
    approved: BTreeMap<String, Names>,
}

impl PublishRecords {
    /// Brings the records up to date.
    pub async fn load(&mut self, store: &Store, term: Term, job: &PublishJob<'_>) -> Result<(), PublishError> {
        let environment = job.environment;
        let target = (RepoKey::new(&job.target.repo), job.target.branch.clone());
        if self.term != Some(term) || self.target.as_ref() != Some(&target) {
            self.term = None;
            self.memory.forget();
            let known = store.publish_target(environment).await?;
            if known.is_none_or(|(repo, branch)| (RepoKey::new(&repo), branch) != target) {
                store.set_publish_target(term, environment, &job.target.repo, &job.target.branch).await?;
            }
            let files = store.published_files(environment).await?;
            let ids = files.into_iter().map(|(path, id)| Ok((path, tree::commit_id(&id)?)));
            self.published = ids.collect::<Result<_, tree::TreeError>>()?;
            self.confirmed = store.confirmed_sets(environment).await?;
            self.hand_edits = store.hand_edits(environment).await?;
            self.intent = store.intended_publication(environment).await?;
            (self.term, self.target) = (Some(term), Some(target));
        }
        (self.waiting, self.approved) = Default::default();
        for row in store.waiting_removals(Some(environment)).await? {
            let of = usize::try_from(row.of).unwrap_or(usize::MAX);
            self.waiting.insert(row.cluster_type.clone(), (row.gone, of));
            self.approved.extend(row.approval.map(|approval| (row.cluster_type, approval.gone)));
        }
        Ok(())
    }

    /// The records are read again next time.
    pub fn doubt(&mut self) {
        self.term = None;
    }

    /// Lists the branch as it was seen. Reading objects blocks, so it is done elsewhere.
    pub async fn look(&mut self, seen: &Seen, job: &PublishJob<'_>) -> Result<(), PublishError> {
        let mut listing = std::mem::take(&mut self.listing);
        let (seen, wanted) = (seen.clone(), job.schedule.cluster_types.clone());
        let looked = tokio::task::spawn_blocking(move || {
            let repo = tree::open(&seen.mirror)?;
            let root = match &seen.head {
                Some(head) => Some(tree::tree_of(&repo, tree::commit_id(head)?)?),
                None => None,
            };
            listing.refresh(&repo, root, &wanted)?;
            Ok::<_, tree::TreeError>(listing)
        });
        self.listing = looked.await.map_err(|_| PublishError::Interrupted)??;
        Ok(())
    }

    /// The branch holds nothing of ours, and clusters run something.
    pub fn is_emptied(&self) -> bool {
        self.listing.files.is_empty() && self.confirmed.values().any(|set| !set.is_empty())
    }

    pub fn plan(&mut self, seen: &Seen, job: &PublishJob<'_>, guard: Guard) -> Result<Plan, PublishError> {
        if self.listing.files.is_empty() {
            // A branch that was deleted or emptied is no hand edit of every file: it is published anew.
            self.published.clear();
            self.memory.forget();
        }
        let base = Base {
            tree: self.listing.tree(),
            existing: &self.listing.existing,
            files: &self.listing.files,
            published: &self.published,
            confirmed: &self.confirmed,
            approved: &self.approved,
            guard,
        };
        // Opened only if a text has to be read, which is rare.
        let repo = OnceCell::new();
        let read = |path: &str| {
            let repo: &Option<gix::Repository> = repo.get_or_init(|| tree::open(&seen.mirror).ok());
            self.listing.read(repo.as_ref()?, path)
        };
        Ok(plan(base, job.schedule, &mut self.memory, &read)?)
    }

    /// Whether the branch holds all of these.
    pub fn holds(&self, changes: &Blobs) -> bool {
        changes.iter().all(|(path, id)| {
            let there = self.listing.files.get(path).filter(|there| there.plain).map(|there| there.id.to_string());
            there == *id
        })
    }

    /// The branch holds this plan's schedule, with that tree.
    pub fn hold(&mut self, plan: Plan, job: &PublishJob<'_>, tree: Option<ObjectId>) {
        self.memory.hold(plan, job.schedule, tree);
    }

    /// Objects and a commit on top of the head, in the mirror; no branch is moved. Gives the commit and its tree.
    pub async fn build(
        &self,
        seen: &Seen,
        changes: &BTreeMap<String, Change>,
        message: String,
        author: tree::Author,
    ) -> Result<(String, ObjectId), PublishError> {
        let (seen, changes) = (seen.clone(), changes.clone());
        let built = tokio::task::spawn_blocking(move || {
            let repo = tree::open(&seen.mirror)?;
            let parent = seen.head.as_deref().map(tree::commit_id).transpose()?;
            let root = parent.map(|parent| tree::tree_of(&repo, parent)).transpose()?;
            let tree = tree::build(&repo, root, &changes)?;
            Ok::<_, tree::TreeError>((tree::commit(&repo, tree, parent, &message, &author)?.to_string(), tree))
        });
        Ok(built.await.map_err(|_| PublishError::Interrupted)??)
    }

    /// Who edited what by hand.
    pub async fn who_edited(&self, seen: &Seen, plan: &Plan) -> Result<Vec<HandEdit>, PublishError> {
        let Some(head) = seen.head.clone().filter(|_| !plan.hand_edits.is_empty()) else { return Ok(Vec::new()) };
        let (mirror, paths) = (seen.mirror.clone(), plan.hand_edits.clone());
        let found = tokio::task::spawn_blocking(move || {
            let repo = tree::open(&mirror)?;
            let head = tree::commit_id(&head)?;
            let unknown = || tree::Authorship { commit: head.to_string(), author: String::new() };
            let at_head = tree::author(&repo, head).unwrap_or_else(unknown);
            let edits = paths.into_iter().enumerate().map(|(index, path)| {
                let looked_up = if index < LOOKED_UP { tree::authorship(&repo, head, &path) } else { None };
                (path, looked_up.unwrap_or_else(|| at_head.clone()))
            });
            Ok::<_, tree::TreeError>(edits.collect::<Vec<_>>())
        });
        let found = found.await.map_err(|_| PublishError::Interrupted)??;
        let since = |path: &str| self.hand_edits.iter().find(|edit| edit.path == path).map(|edit| edit.since);
        let edits = found.into_iter().map(|(path, by)| {
            let since = since(&path).unwrap_or_else(now);
            HandEdit { path, commit: by.commit, author: by.author, since }
        });
        Ok(edits.collect())
    }

    /// Adds what differs from the records: nothing when nothing does.
    pub fn settlement(
        &self,
        plan: &Plan,
        confirmed: BTreeMap<String, Names>,
        waiting: &BTreeMap<String, Removal>,
        hand_edits: &[HandEdit],
    ) -> Settlement {
        let waiting: BTreeMap<String, (Names, usize)> =
            waiting.iter().map(|(name, removal)| (name.clone(), (removal.gone.clone(), removal.of))).collect();
        Settlement {
            files: plan.settled.iter().map(|(path, id)| (path.clone(), id.map(|id| id.to_string()))).collect(),
            confirmed,
            waiting: (waiting != self.waiting).then_some(waiting),
            hand_edits: (hand_edits != self.hand_edits).then(|| hand_edits.to_vec()),
            intent: None,
            pull_request: None,
        }
    }

    /// Writes it down, and remembers it here.
    pub async fn settle(
        &mut self,
        store: &Store,
        term: Term,
        environment: &str,
        settlement: Settlement,
    ) -> Result<(), PublishError> {
        let written: Result<(), StoreError> = store.settle(term, environment, &settlement).await;
        written?;
        self.remember(&settlement.files)?;
        self.confirmed.extend(settlement.confirmed);
        if let Some(edits) = settlement.hand_edits {
            self.hand_edits = edits;
        }
        if let Some(waiting) = settlement.waiting {
            self.waiting = waiting;
        }
        if settlement.intent.is_some() {
            self.intent = None;
        }
        Ok(())
    }

    fn remember(&mut self, files: &Blobs) -> Result<(), PublishError> {
        for (path, id) in files {
            match id {
                Some(id) => drop(self.published.insert(path.clone(), tree::commit_id(id)?)),
                None => drop(self.published.remove(path)),
            }
        }
        Ok(())
    }
}

/// The changes as they are written down.
pub(super) fn blobs(changes: &BTreeMap<String, Change>) -> Blobs {
    let id = |change: &Change| match change {
        Change::Write { id, .. } => Some(id.to_string()),
        Change::Delete => None,
    };
    changes.iter().map(|(path, change)| (path.clone(), id(change))).collect()
}
