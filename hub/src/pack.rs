//! From the branch's head to packages: deterministic archives, stored by digest. Called by the walk of an environment
//! after each publish, merge or push to a source; owns the packages folder and the table of what was packed before.
//!
//! What is in a package:
//! - platform: `namespace.yaml` and `platform-config.yaml` or `.sh` as they are published; for a host also
//!   `platform-config.env`, which is never in Git.
//! - workload for Kubernetes: `manifests/…`, objects only (`manifests/rendered.yaml` is a program's output).
//! - workload for a host: `host-workload.yaml`, its files below `files/`, and `blobs.json` (path below `files/` → digest
//!   and size) for those over 1 MiB, which are blobs of their own as artifacts are.

pub mod archive;
pub mod blobs;
mod branch;
mod build;
mod builder;
pub mod downloads;
mod environment_file;
mod fault;
mod memory;
mod objects;
mod platform;
mod reconciler;
mod sources;
#[cfg(test)]
mod tests;
mod workload;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use kedge_model::Problem;
use kedge_model::wire::{Observation, Packages, PlatformSource};

use crate::config;
use crate::git::Head;
use crate::state::proof;
use crate::store::{Store, StoreError, now};
pub use blobs::{BlobError, Blobs, Collected};
pub use downloads::{Downloads, Progress};
pub use fault::PackError;
pub use sources::{SourceFault, SourceHead, Sources};

use builder::Builder;
use memory::{Remembered, Shelf};
use workload::program::Programs;

/// Packs environments. One per hub; works while the hub leads.
#[derive(Debug)]
pub struct Packer {
    store: Store,
    sources: Arc<dyn Sources>,
    builder: Arc<Builder>,
    /// What each environment came to last time. One at a time is packed in an environment.
    environments: Mutex<BTreeMap<String, Shelf>>,
    keep: Duration,
}

/// What a branch's head asks for.
#[derive(Clone, Debug)]
pub struct Packed {
    pub environment: String,
    pub source: PlatformSource,
    /// By cluster type. A type that didn't change is the same `Arc` as last time.
    pub types: BTreeMap<String, Arc<PackedType>>,
    /// Of quarantined assignments and what is only worth saying. One that names no assignment is about the environment.
    pub problems: Vec<Problem>,
    /// How much was made anew.
    pub built: usize,
}

/// The assignments of a cluster type by name.
pub type PackedType = BTreeMap<String, PackedEntry>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackedEntry {
    Apply(Arc<Packages>),
    Observe(Arc<Observation>),
    /// Keeps what it had. The reasons are among the problems.
    Quarantined,
}

impl Packer {
    /// `scratch` is for copies that kustomize and helm read.
    pub fn new(
        store: Store,
        blobs: Blobs,
        sources: Arc<dyn Sources>,
        config: &config::Packages,
        scratch: PathBuf,
    ) -> Packer {
        let downloads = Downloads::new(blobs.clone(), config.hosts.clone());
        let programs = Programs::new(&config.kustomize, &config.helm, scratch);
        let builder = Arc::new(Builder::new(blobs, downloads, programs));
        Packer { store, sources, builder, environments: Mutex::default(), keep: config.keep }
    }

    pub fn blobs(&self) -> &Blobs {
        self.builder.blobs()
    }

    /// Artifacts on their way. When one ends, environments that waited for it should be packed again.
    pub fn downloads(&self) -> &Downloads {
        self.builder.downloads()
    }

    /// Packs what the branch's head asks for. What is wrong with one assignment stops that one only.
    pub async fn pack(&self, environment: &str, head: &Head) -> Result<Packed, PackError> {
        let shelf = {
            let mut environments = self.environments.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(environments.entry(environment.to_owned()).or_default())
        };
        let mut remembered = shelf.lock().await;
        let listed = branch::read(head, &remembered).await?;
        let heads = sources::resolve(&self.sources, &listed).await;
        let built = build::bring(&self.builder, &self.store, head, &listed, &heads, &mut remembered).await?;
        let mut packed = assemble(environment, head, &remembered, built);
        packed.problems.extend(proof::problems(&self.store, environment).await?);
        Ok(packed)
    }

    /// Deletes packages that no current or previous pick names any more and didn't for the time they are kept.
    pub async fn collect(&self) -> Result<Collected, PackError> {
        let keys: Vec<String> = {
            let shelves: Vec<Shelf> = {
                let environments = self.environments.lock().unwrap_or_else(PoisonError::into_inner);
                environments.values().cloned().collect()
            };
            let mut keys = Vec::new();
            for shelf in shelves {
                keys.extend(shelf.lock().await.keys());
            }
            keys
        };
        let keep = i64::try_from(self.keep.as_millis()).unwrap_or(i64::MAX);
        self.store.keep_packings(&keys, now(), now().0.saturating_sub(keep)).await?;
        let needed = self.store.picked_blobs().await?;
        let (blobs, keep) = (self.blobs().clone(), self.keep);
        let swept = tokio::task::spawn_blocking(move || blobs.collect(&needed, keep, SystemTime::now())).await;
        let collected = swept.map_err(|_| PackError::Interrupted)??;
        if collected.deleted > 0 {
            tracing::info!(?collected, "packages that nobody needs are deleted");
        }
        Ok(collected)
    }
}

fn assemble(environment: &str, head: &Head, remembered: &Remembered, built: usize) -> Packed {
    let source = PlatformSource {
        repo: head.repo.clone(),
        branch: head.branch.clone(),
        path: ".".to_owned(),
        commit: head.commit.clone(),
    };
    let (types, problems) = remembered.packed();
    Packed { environment: environment.to_owned(), source, types, problems, built }
}

impl From<StoreError> for fault::Fault {
    fn from(error: StoreError) -> fault::Fault {
        fault::Fault::Failed(PackError::Store(error))
    }
}
