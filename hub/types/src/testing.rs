//! Made-up packages for tests.

use std::sync::Arc;

use kedge_model::kinds::{Conflicts, Destination, Drift, Rollback, Scope};
use kedge_model::wire::{ApplyParameters, Digest, Observation, PackageRef, Packages, PlatformSource};

use crate::pack::{PackedEntry, PackedType};

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

pub fn source(commit: &str) -> PlatformSource {
    PlatformSource {
        repo: "https://h/gitops".to_owned(),
        branch: "dev".to_owned(),
        path: String::new(),
        commit: commit.to_owned(),
    }
}
