//! From the branch's head to packages: deterministic archives, stored by digest. Called by the reconciler of an environment
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
pub mod configurations;
pub mod downloads;
pub(crate) mod environment_file;
mod fault;
mod memory;
mod objects;
pub mod pins;
mod platform;
mod reconciler;
mod sources;
mod tenancy;
#[cfg(test)]
mod tests;
mod versions;
mod workload;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use kedge_hub_types::pack::PackedType;
use kedge_model::Problem;
use kedge_model::wire::{Packages, PlatformSource, Timestamp};

use crate::config;
use crate::git::Head;
use crate::store::{Store, StoreError, now};
pub use blobs::{BlobError, Blobs, Collected};
pub use configurations::{Configurations, Delivered};
pub use downloads::{Downloads, Progress};
pub use fault::PackError;
pub use pins::Pins;
pub use sources::{SourceFault, SourceHead, Sources};
pub use tenancy::Tenancy;
pub use workload::sandbox::{NoSandbox, Sandbox};
pub use workload::{installed, loads, local, renderer, request};

use builder::Builder;
use memory::{EnvironmentMemory, Remembered};
use versions::TagCache;
use workload::program::{Programs, RENDERER_AWAY};

/// Packs environments. One per hub; works while the hub leads.
#[derive(Debug)]
pub struct Packer {
    store: Store,
    sources: Arc<dyn Sources>,
    builder: Arc<Builder>,
    tags: Arc<TagCache>,
    /// What each environment came to last time. One at a time is packed in an environment.
    environments: Mutex<BTreeMap<String, EnvironmentMemory>>,
    keep: Duration,
}

/// What a branch's head asks for.
#[derive(Clone, Debug)]
pub struct Packed {
    pub environment: String,
    pub source: PlatformSource,
    /// By cluster type. A type that didn't change is the same `Arc` as last time.
    pub types: BTreeMap<String, Arc<PackedType>>,
    /// By cluster type and assignment, of all whose source is known.
    pub origins: BTreeMap<String, Arc<BTreeMap<String, Origin>>>,
    /// By cluster type and assignment: what Pins put there, the first of them counts.
    pub pinned: BTreeMap<(String, String), Vec<Pinned>>,
    /// Of quarantined assignments and what is only worth saying. One that names no assignment is about the environment.
    pub problems: Vec<Problem>,
    /// How much was made anew.
    pub built: usize,
}

/// Where an assignment's workload is, as its `reconciler.yaml` says: what its lane is named after.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    pub repo: String,
    /// A branch, `refs/tags/` and a tag, or a commit.
    pub reference: String,
    pub path: String,
}

/// Content that a Pin puts on the rings it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// The Pin's.
    pub name: String,
    pub reason: String,
    /// Empty: every ring.
    pub rings: Vec<String>,
    /// The platform package is that of the head: only the workload's is pinned.
    pub packages: Arc<Packages>,
    /// It has no effect from then on; none: until it is deleted.
    pub until: Option<Timestamp>,
}

impl Packed {
    /// Whether something of it is only a matter of a renderer that comes back.
    pub fn awaits_renderer(&self) -> bool {
        self.problems.iter().any(|problem| problem.code == RENDERER_AWAY)
    }
}

impl Packer {
    /// `scratch` is for copies that kustomize and helm of this machine read.
    pub fn new(
        store: Store,
        blobs: Blobs,
        sources: Arc<dyn Sources>,
        config: &config::Packages,
        scratch: PathBuf,
    ) -> Packer {
        let downloads = Downloads::new(blobs.clone(), config.hosts.clone());
        let programs = Programs::new(config, scratch);
        let builder = Arc::new(Builder::new(blobs, downloads, programs));
        Packer { store, sources, builder, tags: Arc::default(), environments: Mutex::default(), keep: config.keep }
    }

    pub fn blobs(&self) -> &Blobs {
        self.builder.blobs()
    }

    /// Artifacts on their way. When one ends, environments that waited for it should be packed again.
    pub fn downloads(&self) -> &Downloads {
        self.builder.downloads()
    }

    /// As `pack_with`, where nobody pinned anything and all is the platform's own.
    #[cfg(test)]
    pub async fn pack(&self, environment: &str, head: &Head) -> Result<Packed, PackError> {
        self.pack_with(environment, head, &Tenancy::platform(), &Pins::default(), now()).await
    }

    /// Packs what the branch's head asks for, and what Pins put in its place, each for its tenant. What is wrong with one
    /// assignment stops that one only.
    pub async fn pack_with(
        &self,
        environment: &str,
        head: &Head,
        tenancy: &Tenancy,
        pins: &Pins,
        now: Timestamp,
    ) -> Result<Packed, PackError> {
        let memory = {
            let mut environments = self.environments.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(environments.entry(environment.to_owned()).or_default())
        };
        let mut remembered = memory.lock().await;
        let listed = branch::read(head, &remembered).await?;
        let heads = sources::resolve(&self.sources, &listed, tenancy).await;
        let built = build::bring(self, head, &listed, &heads, tenancy, &mut remembered).await?;
        let mut packed = assemble(environment, head, &remembered, built);
        if !pins.is_empty() || remembered.has_pinned() {
            let (wishes, problems) = pins::wishes(self, pins, tenancy, &listed, now).await?;
            packed.problems.extend(problems);
            build::pin(self, head, wishes, &mut remembered, &mut packed).await?;
        }
        Ok(packed)
    }

    /// Deletes packages that no current or previous pick names any more and didn't for the time they are kept. Platform packages
    /// that a cluster was last known to run stay: their configuration is shown as what runs.
    pub async fn collect(&self) -> Result<Collected, PackError> {
        let keys: Vec<String> = {
            let memories: Vec<EnvironmentMemory> = {
                let environments = self.environments.lock().unwrap_or_else(PoisonError::into_inner);
                environments.values().cloned().collect()
            };
            let mut keys = Vec::new();
            for memory in memories {
                keys.extend(memory.lock().await.keys());
            }
            keys
        };
        let keep = i64::try_from(self.keep.as_millis()).unwrap_or(i64::MAX);
        self.store.keep_packings(&keys, now(), now().0.saturating_sub(keep)).await?;
        self.store.name_platforms().await?;
        let mut needed = self.store.picked_blobs().await?;
        needed.extend(self.store.running_platforms().await?);
        needed.extend(self.store.rolling_blobs().await?);
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
    let (origins, pinned) = (remembered.origins(), BTreeMap::new());
    Packed { environment: environment.to_owned(), source, types, origins, pinned, problems, built }
}

impl From<StoreError> for fault::Fault {
    fn from(error: StoreError) -> fault::Fault {
        fault::Fault::Failed(PackError::Store(error))
    }
}
