//! Brings every assignment of a branch to packages: from memory, from the database, or by making them (`builder`). Called
//! by the packer.

use std::collections::BTreeMap;
use std::sync::Arc;

use gix::ObjectId;
use kedge_model::Origin;
use kedge_model::wire::{ApplyParameters, BlobRef, Digest, Observation, PackageRef, Packages};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::blobs::Blobs;
use super::branch::{Folder, Listed};
use super::builder::{Begun, Builder, Half, Halves, Workload};
use super::fault::{Fault, PackError};
use super::memory::{Again, Inputs, Known, Outcome, Remembered};
use super::platform::{self, Note};
use super::reconciler::{Purpose, SourceName};
use super::sources::{self, Heads, SourceHead};
use crate::git::Head;
use crate::store::{Store, now};

/// An assignment to make.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub cluster_type: String,
    pub assignment: String,
    pub folder: ObjectId,
    pub source: SourceName,
    pub head: SourceHead,
    pub parameters: ApplyParameters,
}

/// As the database remembers it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    packages: Packages,
    notes: Vec<Note>,
}

/// Raised when the same inputs are packed differently, so that what was remembered doesn't count any more.
pub(super) const FORMAT: u32 = 1;
/// Brings all assignments up to date in `remembered`. How many were made anew.
pub(super) async fn bring(
    builder: &Arc<Builder>,
    store: &Store,
    head: &Head,
    listed: &Listed,
    heads: &Heads,
    remembered: &mut Remembered,
) -> Result<usize, PackError> {
    let mut all: BTreeMap<String, BTreeMap<String, Arc<Known>>> = BTreeMap::new();
    let mut jobs = Vec::new();
    for (cluster_type, listed) in &listed.types {
        let known = all.entry(cluster_type.clone()).or_default();
        for (assignment, folder) in &*listed.folders {
            match settle(remembered, heads, cluster_type, assignment, folder) {
                Settled::Known(outcome) => {
                    known.insert(assignment.clone(), outcome);
                }
                Settled::Job(job) => jobs.push(*job),
            }
        }
    }
    let (found, missing) = recall(builder, store, jobs).await?;
    let built = missing.len();
    let made = make(builder, store, head, missing).await?;
    for (job, outcome) in found.into_iter().chain(made) {
        let inputs = Inputs { folder: job.folder, commit: Some(job.head.commit) };
        let known = Arc::new(Known { inputs, outcome });
        all.entry(job.cluster_type).or_default().insert(job.assignment, known);
    }
    remembered.replace(listed, all);
    Ok(built)
}

enum Settled {
    Known(Arc<Known>),
    Job(Box<Job>),
}

/// What needs no package to be made.
fn settle(remembered: &Remembered, heads: &Heads, cluster_type: &str, assignment: &str, folder: &Folder) -> Settled {
    let source = folder.purpose.as_deref().ok().and_then(Purpose::source);
    let resolved = source.and_then(|source| sources::head(heads, source));
    let commit = resolved.and_then(|head| Some(head.as_ref().ok()?.commit.clone()));
    let inputs = Inputs { folder: folder.tree, commit };
    if let Some(known) = remembered.get(cluster_type, assignment, &inputs) {
        return Settled::Known(known);
    }
    let quarantined = |problems: Vec<_>| {
        let again = Again::of(&problems);
        Outcome::Quarantined { problems, again }
    };
    let outcome = match (&folder.purpose, resolved) {
        (Err(problems), _) => quarantined(problems.to_vec()),
        (Ok(purpose), resolved) => match (&**purpose, resolved) {
            (Purpose::Observe { objects, .. }, _) => Outcome::Observe(Arc::new(Observation {
                objects: objects.clone(),
                expected_commit: inputs.commit.clone(),
                content: observed_content(folder.tree, inputs.commit.as_deref()),
            })),
            (Purpose::Deliver { source, parameters }, Some(Ok(head))) => {
                return Settled::Job(Box::new(Job {
                    cluster_type: cluster_type.to_owned(),
                    assignment: assignment.to_owned(),
                    folder: folder.tree,
                    source: source.clone(),
                    head: head.clone(),
                    parameters: parameters.clone(),
                }));
            }
            (Purpose::Deliver { source, .. }, Some(Err(fault))) => quarantined(vec![fault.problem(source)]),
            (Purpose::Deliver { source, .. }, None) => {
                quarantined(vec![sources::SourceFault::interrupted().problem(source)])
            }
        },
    };
    Settled::Known(Arc::new(Known { inputs, outcome }))
}

/// Names what an observed assignment should have come to: its published files and its source's commit.
fn observed_content(folder: ObjectId, commit: Option<&str>) -> Digest {
    Digest::of(format!("observe\0{folder}\0{}", commit.unwrap_or_default()).as_bytes())
}

/// What the database remembers and the packages folder still holds.
async fn recall(
    builder: &Builder,
    store: &Store,
    jobs: Vec<Job>,
) -> Result<(Vec<(Job, Outcome)>, Vec<Job>), PackError> {
    let keys: Vec<String> = jobs.iter().map(Job::key).collect();
    let mut rows = store.packings(&keys).await?;
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for (job, key) in jobs.into_iter().zip(keys) {
        let record = rows.remove(&key).and_then(|json| serde_json::from_str::<Record>(&json).ok());
        match record.filter(|record| record.is_whole(builder.blobs())) {
            Some(Record { packages, notes }) => {
                found.push((job, Outcome::Apply { packages: Arc::new(packages), notes, key }));
            }
            None => missing.push(job),
        }
    }
    Ok((found, missing))
}

async fn make(
    builder: &Arc<Builder>,
    store: &Store,
    head: &Head,
    jobs: Vec<Job>,
) -> Result<Vec<(Job, Outcome)>, PackError> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let (here, branch, mine) = (Arc::clone(builder), head.clone(), jobs.clone());
    let begun = tokio::task::spawn_blocking(move || here.begin(&branch, &mine)).await;
    let begun = begun.map_err(|_| PackError::Interrupted)??;
    let mut tasks = JoinSet::new();
    let mut outcomes: Vec<Option<Result<Halves, Fault>>> = Vec::new();
    for (index, (job, begun)) in jobs.iter().zip(begun).enumerate() {
        outcomes.push(match begun {
            Err(fault) => Some(Err(fault)),
            Ok(Begun { platform, notes, workload: Half::Done(workload) }) => Some(Ok((workload, platform, notes))),
            Ok(Begun { platform, notes, workload: Half::More(read) }) => {
                let (builder, store, job) = (Arc::clone(builder), store.clone(), job.clone());
                tasks.spawn(async move {
                    let workload = builder.finish(&store, &job, read).await;
                    (index, workload.map(|workload| (workload, platform, notes)))
                });
                None
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        let (index, outcome) = done.map_err(|_| PackError::Interrupted)?;
        if let Some(slot) = outcomes.get_mut(index) {
            *slot = Some(outcome);
        }
    }
    let (mut rows, mut made) = (Vec::new(), Vec::new());
    for (job, outcome) in jobs.into_iter().zip(outcomes) {
        let outcome = match outcome.ok_or(PackError::Interrupted)? {
            Ok((workload, platform, notes)) => {
                let record = Record { packages: job.packages(head, platform, workload), notes };
                let key = job.key();
                if let Ok(json) = serde_json::to_string(&record) {
                    rows.push((key.clone(), json));
                }
                Outcome::Apply { packages: Arc::new(record.packages), notes: record.notes, key }
            }
            Err(Fault::Failed(error)) => return Err(error),
            Err(Fault::Quarantine(problems)) => {
                let again = Again::of(&problems);
                Outcome::Quarantined { problems, again }
            }
        };
        made.push((job, outcome));
    }
    store.remember_packings(&rows, now()).await?;
    Ok(made)
}

impl Record {
    fn is_whole(&self, blobs: &Blobs) -> bool {
        [&self.packages.platform, &self.packages.workload].into_iter().all(|package| {
            let blob = BlobRef { digest: package.digest, size: package.size };
            std::iter::once(&blob).chain(&package.artifacts).all(|blob| blobs.claim(blob))
        })
    }
}

impl Job {
    /// The same inputs give the same packages.
    fn key(&self) -> String {
        let Job { cluster_type, assignment, folder, head, .. } = self;
        let text = format!("packages\0{FORMAT}\0{cluster_type}/{assignment}\0{folder}\0{}", head.commit);
        Digest::of(text.as_bytes()).to_string()
    }

    /// The source's folder.
    pub fn origin(&self) -> Origin {
        let parts = self.source.path.split('/').filter(|part| !matches!(*part, "" | "."));
        let name = match &self.source.reference {
            super::reconciler::Reference::Branch(name) | super::reconciler::Reference::Tag(name) => name.as_str(),
            super::reconciler::Reference::Commit(_) => "commit",
        };
        platform::origin(&self.source.repo, name, &self.head.commit, &parts.collect::<Vec<_>>().join("/"))
    }

    fn packages(&self, head: &Head, platform: BlobRef, workload: Workload) -> Packages {
        let package = |blob: BlobRef, repo: &str, commit: &str, artifacts| PackageRef {
            digest: blob.digest,
            size: blob.size,
            repo: repo.to_owned(),
            commit: commit.to_owned(),
            artifacts,
        };
        Packages {
            parameters: self.parameters.clone(),
            platform: package(platform, &head.repo, &head.commit, Vec::new()),
            workload: package(workload.blob, &self.source.repo, &self.head.commit, workload.artifacts),
            version: workload.version,
        }
    }
}
