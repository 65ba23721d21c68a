//! Makes packages: reads and compresses on a blocking thread, runs programs and waits for downloads beside it. Called by
//! `build`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gix::ObjectId;
use kedge_hub_types::causes::chain;
use kedge_model::Problem;
use kedge_model::kinds::Destination;
use kedge_model::wire::{BlobRef, Digest};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::blobs::{Batch, Blobs};
use super::branch::folder_origin;
use super::build::{FORMAT, Job};
use super::downloads::Downloads;
use super::fault::{Fault, PackError};
use super::objects::Objects;
use super::platform::{self, Note};
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

/// A workload package, wherever it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Workload {
    pub blob: BlobRef,
    pub artifacts: Vec<BlobRef>,
    pub version: Option<String>,
}

/// How far a job came on the blocking thread.
pub(super) struct Begun {
    pub platform: BlobRef,
    pub notes: Vec<Note>,
    pub workload: Half,
}

/// Both packages, and what is worth saying.
pub(super) type Halves = (Workload, BlobRef, Vec<Note>);

pub(super) enum Half {
    Done(Workload),
    More(Read),
}

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

impl Builder {
    /// All that needs neither a program nor a download, on one blocking thread. What it stored is synced at the end.
    pub fn begin(&self, head: &Head, jobs: &[Job]) -> Result<Vec<Result<Begun, Fault>>, PackError> {
        let failed = |source| PackError::Branch { repo: head.repo.clone(), branch: head.branch.clone(), source };
        let objects = Objects::open(&head.path).map_err(failed)?;
        let mut batch = self.blobs.batch();
        let mut mirrors: HashMap<PathBuf, Result<Objects, String>> = HashMap::new();
        let mut begun = Vec::with_capacity(jobs.len());
        for job in jobs {
            let mirror = mirrors
                .entry(job.head.mirror.clone())
                .or_insert_with(|| Objects::open(&job.head.mirror).map_err(|error| chain(&error)));
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
            Fault::of(Problem::error("SourceUnreadable", format!("{} can't be read: {why}", job.source.repo)))
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
    pub async fn finish(&self, store: &Store, job: &Job, read: Read) -> Result<Workload, Fault> {
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
