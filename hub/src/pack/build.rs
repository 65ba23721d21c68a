//! Brings every assignment of a branch to packages: from memory, from the database, or by making them (`builder`). Called
//! by the packer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gix::ObjectId;
use kedge_model::kinds::PinnedTo;
use kedge_model::wire::{ApplyParameters, BlobRef, Digest, Observation, PackageRef, Packages};
use kedge_model::{Origin, Problem, Spec};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::blobs::Blobs;
use super::branch::{Folder, Listed};
use super::builder::{Begun, Builder, Half, Halves, Workload};
use super::fault::{Fault, PackError};
use super::memory::{Again, Inputs, Known, Outcome, Remembered};
use super::pins::{self, Wish};
use super::platform::{self, Note};
use super::reconciler::{Purpose, SourceName};
use super::sources::{self, Heads, SourceHead};
use super::tenancy::Tenancy;
use super::versions::{self, plain};
use super::{Packed, Packer, Pinned};
use crate::git::Head;
use crate::store::versions::SeenVersion;
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
pub(super) const FORMAT: u32 = 2;

/// Brings all assignments up to date in `remembered`. How many were made anew.
pub(super) async fn bring(
    packer: &Packer,
    head: &Head,
    listed: &Listed,
    heads: &Heads,
    tenancy: &Tenancy,
    remembered: &mut Remembered,
) -> Result<usize, PackError> {
    let mut all: BTreeMap<String, BTreeMap<String, Arc<Known>>> = BTreeMap::new();
    let mut jobs = Vec::new();
    for (cluster_type, listed) in &listed.types {
        let known = all.entry(cluster_type.clone()).or_default();
        for (assignment, folder) in &*listed.folders {
            match settle(remembered, heads, tenancy, cluster_type, assignment, folder) {
                Settled::Known(outcome) => {
                    known.insert(assignment.clone(), outcome);
                }
                Settled::Job(job) => jobs.push(*job),
            }
        }
    }
    let (found, made) = obtain(packer, head, jobs).await?;
    let built = made.len();
    for (job, outcome) in found.into_iter().chain(made) {
        let inputs = Inputs { folder: job.folder, commit: Some(job.head.commit) };
        let known = Arc::new(Known { inputs, outcome });
        all.entry(job.cluster_type).or_default().insert(job.assignment, known);
    }
    versions::name_by_tags(&packer.tags, &packer.sources, tenancy, &mut all).await;
    remembered.replace(listed, all);
    Ok(built)
}

/// Brings what Pins ask for into `packed`, in the order of the Pins.
pub(super) async fn pin(
    packer: &Packer,
    head: &Head,
    wishes: Vec<Wish>,
    remembered: &mut Remembered,
    packed: &mut Packed,
) -> Result<(), PackError> {
    let mut known = std::mem::take(&mut remembered.pinned);
    known.retain(|_, packages| is_whole(packages, packer.blobs()));
    let jobs = wishes.iter().map(|wish| (wish.job.key(), &wish.job)).filter(|(key, _)| !known.contains_key(key));
    let jobs: BTreeMap<String, &Job> = jobs.collect();
    let (found, made) = obtain(packer, head, jobs.into_values().cloned().collect()).await?;
    let fresh = found.into_iter().chain(made).map(|(job, outcome)| (job.key(), outcome));
    let mut outcomes: BTreeMap<String, Outcome> = fresh.collect();
    outcomes.extend(known.into_iter().map(|(key, packages)| {
        let outcome = Outcome::Apply { packages, notes: Vec::new(), key: key.clone() };
        (key, outcome)
    }));
    for Wish { pin: object, job } in wishes {
        let (Spec::Pin(pin), Some(outcome)) = (&object.spec, outcomes.get(&job.key())) else { continue };
        match outcome {
            Outcome::Apply { packages, key, .. } => {
                let packages = match (&packages.version, &pin.to) {
                    (None, PinnedTo::Version(version)) => {
                        Arc::new(Packages { version: Some(plain(version).to_owned()), ..(**packages).clone() })
                    }
                    _ => Arc::clone(packages),
                };
                remembered.pinned.insert(key.clone(), Arc::clone(&packages));
                let pinned = Pinned {
                    name: object.meta.name.clone(),
                    reason: pin.reason.clone(),
                    rings: pin.rings.clone(),
                    packages,
                    until: pins::until(pin),
                };
                packed.pinned.entry((job.cluster_type, job.assignment)).or_default().push(pinned);
            }
            Outcome::Quarantined { problems, .. } => {
                let why: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
                let place = format!("{}/{} at {}", job.cluster_type, job.assignment, job.head.commit);
                let message = format!("{} can't be resolved for {place}: {}", object.id(), why.join("; "));
                let problem = Problem::error("PinUnresolved", message).at(object.origin.clone());
                packed
                    .problems
                    .push(problem.hint(pins::or_delete("pin a commit whose content can be delivered", &object)));
            }
            Outcome::Observe(_) => {}
        }
    }
    Ok(())
}

type Outcomes = Vec<(Job, Outcome)>;

/// What was remembered, and what had to be made. The versions of the latter are written down for Pins.
async fn obtain(packer: &Packer, head: &Head, jobs: Vec<Job>) -> Result<(Outcomes, Outcomes), PackError> {
    let (builder, store) = (&packer.builder, &packer.store);
    let (found, missing) = recall(builder, store, jobs).await?;
    let made = make(builder, store, head, missing).await?;
    let seen: BTreeSet<SeenVersion> = made.iter().filter_map(|(job, outcome)| job.seen(outcome)).collect();
    store.remember_versions(&seen.into_iter().collect::<Vec<_>>(), now()).await?;
    Ok((found, made))
}

enum Settled {
    Known(Arc<Known>),
    Job(Box<Job>),
}

/// What needs no package to be made.
fn settle(
    remembered: &Remembered,
    heads: &Heads,
    tenancy: &Tenancy,
    cluster_type: &str,
    assignment: &str,
    folder: &Folder,
) -> Settled {
    let source = folder.purpose.as_deref().ok().and_then(Purpose::source);
    let trust = tenancy.trust(assignment);
    let resolved = source.and_then(|source| sources::head(heads, source, trust?));
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
            (Purpose::Deliver { source, .. }, None) if trust.is_none() => {
                quarantined(vec![Tenancy::nobody().problem(source)])
            }
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
        match record.filter(|record| is_whole(&record.packages, builder.blobs())) {
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

/// Whether all of it is still in the packages folder.
fn is_whole(packages: &Packages, blobs: &Blobs) -> bool {
    [&packages.platform, &packages.workload].into_iter().all(|package| {
        let blob = BlobRef { digest: package.digest, size: package.size };
        std::iter::once(&blob).chain(&package.artifacts).all(|blob| blobs.claim(blob))
    })
}

impl Job {
    /// The same inputs give the same packages.
    fn key(&self) -> String {
        let Job { cluster_type, assignment, folder, head, .. } = self;
        let text = format!("packages\0{FORMAT}\0{cluster_type}/{assignment}\0{folder}\0{}", head.commit);
        Digest::of(text.as_bytes()).to_string()
    }

    fn seen(&self, outcome: &Outcome) -> Option<SeenVersion> {
        let Outcome::Apply { packages, .. } = outcome else { return None };
        let (repo, path) = (self.source.repo.clone(), pins::clean(&self.source.path));
        let commit = self.head.commit.clone();
        Some(SeenVersion { repo, path, version: packages.version.clone()?, commit })
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
