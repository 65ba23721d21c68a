//! Brings every assignment of a branch to packages: from memory, from the database, or by making them. Reading and
//! compressing happens on a blocking thread, programs and downloads beside it.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gix::ObjectId;
use kedge_model::Origin;
use kedge_model::kinds::Destination;
use kedge_model::wire::{ApplyParameters, BlobRef, Digest, Observation, PackageRef, Packages};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::blobs::{Batch, Blobs};
use super::branch::{Folder, Listed, folder_origin};
use super::downloads::Downloads;
use super::fault::{Fault, PackError};
use super::memory::{Again, Inputs, Known, Outcome, Remembered};
use super::objects::Objects;
use super::platform::{self, Note};
use super::reconciler::{Purpose, SourceName};
use super::sources::{self, Heads, SourceHead};
use super::workload::program::Programs;
use super::workload::{self, Made, Place, Read, kubernetes};
use crate::git::Head;
use crate::store::{Store, now};

/// What making packages needs.
#[derive(Debug)]
pub(super) struct Builder {
    blobs: Blobs,
    downloads: Downloads,
    programs: Programs,
    /// kustomize and helm take a core each.
    renders: Semaphore,
    /// Workloads by their folder's tree and whether they are for hosts: several cluster types run the same folder.
    workloads: Mutex<HashMap<(ObjectId, bool), Workload>>,
}

/// An assignment to make.
#[derive(Clone, Debug)]
struct Job {
    cluster_type: String,
    assignment: String,
    folder: ObjectId,
    source: SourceName,
    head: SourceHead,
    parameters: ApplyParameters,
}

/// A workload package, wherever it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Workload {
    blob: BlobRef,
    artifacts: Vec<BlobRef>,
    version: Option<String>,
}

/// As the database remembers it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    packages: Packages,
    notes: Vec<Note>,
}

/// How far a job came on the blocking thread.
struct Begun {
    platform: BlobRef,
    notes: Vec<Note>,
    workload: Half,
}

/// Both packages, and what is worth saying.
type Halves = (Workload, BlobRef, Vec<Note>);

enum Half {
    Done(Workload),
    More(Read),
}

/// Raised when the same inputs are packed differently, so that what was remembered doesn't count any more.
const FORMAT: u32 = 1;
/// So long the first downloads may take before their assignments wait apart.
const DOWNLOAD_PATIENCE: Duration = Duration::from_secs(2);
const RENDERS_AT_ONCE: usize = 2;
/// Memory for the trees of one hub's workloads; then it starts over.
const MAX_WORKLOADS: usize = 50_000;

impl Builder {
    pub fn new(blobs: Blobs, downloads: Downloads, programs: Programs) -> Builder {
        let renders = Semaphore::new(RENDERS_AT_ONCE);
        Builder { blobs, downloads, programs, renders, workloads: Mutex::default() }
    }

    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    pub fn downloads(&self) -> &Downloads {
        &self.downloads
    }
}

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
        match record.filter(|record| record.is_whole(&builder.blobs)) {
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

impl Builder {
    /// All that needs neither a program nor a download, on one blocking thread. What it stored is synced at the end.
    fn begin(&self, head: &Head, jobs: &[Job]) -> Result<Vec<Result<Begun, Fault>>, PackError> {
        let failed = |source| PackError::Branch { repo: head.repo.clone(), branch: head.branch.clone(), source };
        let objects = Objects::open(&head.path).map_err(failed)?;
        let mut batch = self.blobs.batch();
        let mut mirrors: HashMap<PathBuf, Result<Objects, String>> = HashMap::new();
        let mut begun = Vec::with_capacity(jobs.len());
        for job in jobs {
            let mirror = mirrors
                .entry(job.head.mirror.clone())
                .or_insert_with(|| Objects::open(&job.head.mirror).map_err(|error| super::fault::chain(&error)));
            let one = self.begin_one(&objects, head, mirror, job, &mut batch);
            match one {
                Err(Fault::Failed(error)) => return Err(error),
                other => begun.push(other),
            }
        }
        batch.commit()?;
        Ok(begun)
    }

    fn begin_one(
        &self,
        branch: &Objects,
        head: &Head,
        mirror: &Result<Objects, String>,
        job: &Job,
        batch: &mut Batch,
    ) -> Result<Begun, Fault> {
        let origin = folder_origin(head, &job.cluster_type, &job.assignment);
        let items = branch.list(job.folder, &origin.file)?;
        let (contents, notes) = platform::contents(branch, &items, job.parameters.to, &origin)?;
        let platform = batch.add(&contents.archive()?)?;
        let mirror = mirror.as_ref().map_err(|why| {
            Fault::of(kedge_model::Problem::error(
                "SourceUnreadable",
                format!("{} can't be read: {why}", job.source.repo),
            ))
        })?;
        let origin = job.origin();
        let root = mirror.root(&job.head.commit)?;
        let folder = mirror.folder(root, &origin.file)?;
        if let Some(known) = self.known_workload(folder, job.parameters.to) {
            return Ok(Begun { platform, notes, workload: Half::Done(known) });
        }
        let place = Place { objects: mirror, root, folder, path: &origin.file, origin: &origin };
        let workload = match workload::read(&place, job.parameters.to, &self.blobs)? {
            Read::Ready(made) if made.downloads.is_empty() => {
                let blob = batch.add(&made.contents.archive()?)?;
                let done = Workload { blob, artifacts: made.blobs, version: made.version };
                self.remember_workload(folder, job.parameters.to, &done);
                Half::Done(done)
            }
            more => Half::More(more),
        };
        Ok(Begun { platform, notes, workload })
    }

    /// Programs and downloads.
    async fn finish(&self, store: &Store, job: &Job, read: Read) -> Result<Workload, Fault> {
        let (mut made, key) = match read {
            Read::Ready(made) => (made, None),
            Read::Render(rendering) => {
                let namespace = job.parameters.namespace.as_deref().unwrap_or("default");
                let program = rendering.program;
                let key = kubernetes::rendering_key(rendering.root, &rendering.path, &job.assignment, namespace);
                let key = Digest::of(format!("rendered\0{FORMAT}\0{program:?}\0{key}").as_bytes()).to_string();
                let mut rows = store.packings(std::slice::from_ref(&key)).await?;
                let known = rows.remove(&key).and_then(|json| serde_json::from_str::<Workload>(&json).ok());
                if let Some(known) = known.filter(|known| self.blobs.claim(&known.blob)) {
                    return Ok(known);
                }
                let slot = self.renders.acquire().await.map_err(|_| Fault::Failed(PackError::Interrupted))?;
                let origin = rendering.origin.clone();
                let output = self.programs.render(rendering, &job.assignment, namespace).await?;
                drop(slot);
                (kubernetes::rendered(output, &origin)?, Some(key))
            }
        };
        let fetched = self.fetch(&made).await?;
        made.blobs.extend(fetched);
        made.blobs.sort_by_key(|blob| blob.digest);
        made.blobs.dedup();
        let blobs = self.blobs.clone();
        let stored = tokio::task::spawn_blocking(move || store_made(&blobs, made)).await;
        let workload = stored.map_err(|_| Fault::Failed(PackError::Interrupted))??;
        if let (Some(key), Ok(json)) = (key, serde_json::to_string(&workload)) {
            store.remember_packings(&[(key, json)], now()).await?;
        }
        Ok(workload)
    }

    async fn fetch(&self, made: &Made) -> Result<Vec<BlobRef>, Fault> {
        let pending: Vec<Digest> = made
            .downloads
            .iter()
            .filter(|download| self.downloads.want(download).is_err())
            .map(|download| download.digest)
            .collect();
        self.downloads.settle(&pending, DOWNLOAD_PATIENCE).await;
        let (mut blobs, mut problems) = (Vec::new(), Vec::new());
        for download in &made.downloads {
            match self.downloads.want(download) {
                Ok(blob) => blobs.push(blob),
                Err(problem) => problems.push(*problem),
            }
        }
        match problems.is_empty() {
            true => Ok(blobs),
            false => Err(Fault::Quarantine(problems)),
        }
    }

    fn known_workload(&self, folder: ObjectId, to: Destination) -> Option<Workload> {
        let workloads = self.workloads.lock().unwrap_or_else(PoisonError::into_inner);
        let known = workloads.get(&(folder, to == Destination::Host))?;
        known.is_whole(&self.blobs).then(|| known.clone())
    }

    fn remember_workload(&self, folder: ObjectId, to: Destination, workload: &Workload) {
        let mut workloads = self.workloads.lock().unwrap_or_else(PoisonError::into_inner);
        if workloads.len() >= MAX_WORKLOADS {
            workloads.clear();
        }
        workloads.insert((folder, to == Destination::Host), workload.clone());
    }
}

fn store_made(blobs: &Blobs, made: Made) -> Result<Workload, Fault> {
    let blob = blobs.put(&made.contents.archive()?)?;
    Ok(Workload { blob, artifacts: made.blobs, version: made.version })
}

impl Workload {
    fn is_whole(&self, blobs: &Blobs) -> bool {
        std::iter::once(&self.blob).chain(&self.artifacts).all(|blob| blobs.claim(blob))
    }
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
    fn origin(&self) -> Origin {
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
