//! Packed environments for tests of this module.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use kedge_model::kinds::{Conflicts, Destination, Drift, Rollback, Scope};
use kedge_model::wire::{
    ApplyParameters, Digest, Observation, PackageRef, Packages, PlatformSource, SigningKey, Stream,
};

use crate::pack::{Packed, PackedEntry, PackedType};
use crate::state::issuer::{Confirmations, Tomb};
use crate::store::{Store, StoreError};

/// Nobody confirms anything: tombstones stay, and each set is its own confirmed one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unconfirmed;

#[async_trait]
impl Confirmations for Unconfirmed {
    async fn confirmed_sizes(&self, _environment: &str) -> Result<BTreeMap<String, u64>, StoreError> {
        Ok(BTreeMap::new())
    }

    async fn settled(&self, _stream: &Stream, _tombstones: &[Tomb]) -> Result<BTreeSet<String>, StoreError> {
        Ok(BTreeSet::new())
    }
}

pub fn key() -> SigningKey {
    SigningKey::from_seed(&[7; 32]).unwrap()
}

/// Ours, with the content that the text stands for.
pub fn ours(content: &str) -> PackedEntry {
    ours_at(content, "c1")
}

pub fn ours_at(content: &str, commit: &str) -> PackedEntry {
    let package = |name: &str| PackageRef {
        digest: Digest::of(format!("{name} {content}").as_bytes()),
        size: 10,
        repo: "https://h/r".to_owned(),
        commit: commit.to_owned(),
        artifacts: Vec::new(),
    };
    let parameters = ApplyParameters {
        to: Destination::Kubernetes,
        namespace: None,
        scope: Scope::Namespace,
        conflicts: Conflicts::Fail,
        service_account: None,
        timeout_seconds: 300,
        soak_seconds: 30,
        rollback: Rollback::Auto,
        drift: Drift::Repair,
    };
    let (platform, workload) = (package("platform"), package("workload"));
    PackedEntry::Apply(Arc::new(Packages { parameters, platform, workload, version: None }))
}

/// Another reconciler's.
pub fn observed(content: &str) -> PackedEntry {
    PackedEntry::Observe(Arc::new(Observation {
        objects: Vec::new(),
        expected_commit: None,
        content: Digest::of(content.as_bytes()),
    }))
}

pub fn packed_type(entries: &[(&str, PackedEntry)]) -> PackedType {
    entries.iter().map(|(name, entry)| ((*name).to_owned(), entry.clone())).collect()
}

pub fn packed(types: &[(&str, &[(&str, PackedEntry)])]) -> Packed {
    let types: BTreeMap<String, Arc<PackedType>> =
        types.iter().map(|(name, entries)| ((*name).to_owned(), Arc::new(packed_type(entries)))).collect();
    let (origins, pinned) = (BTreeMap::new(), BTreeMap::new());
    Packed {
        environment: "dev".to_owned(),
        source: source("c1"),
        types,
        origins,
        pinned,
        problems: Vec::new(),
        built: 0,
    }
}

pub fn source(commit: &str) -> PlatformSource {
    PlatformSource {
        repo: "https://h/gitops".to_owned(),
        branch: "dev".to_owned(),
        path: String::new(),
        commit: commit.to_owned(),
    }
}

pub async fn store(folder: &tempfile::TempDir) -> Store {
    Store::open(&format!("sqlite:{}", folder.path().join("hub.db").display())).await.unwrap()
}
