//! What an application team writes: its workload and the targets it wants, and the registration that brings it in.

use std::collections::BTreeMap;

use super::RepoRef;
use crate::Labels;
use crate::address::Prefix;

/// Brings an application's repository into the platform.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadRegistration {
    pub workload: RepoRef,
    pub workspace: Option<String>,
    /// The beginnings of addresses from which the hub may fetch for the workspace. Empty: the owner of `workload.repo`.
    pub sources: Vec<Prefix>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    pub targets: Vec<DeploymentTarget>,
    /// JSON Schema texts that hold for every target.
    pub config_schemas: Vec<String>,
}

/// A named flavour of a workload in an environment.
#[derive(Clone, Debug, PartialEq)]
pub struct DeploymentTarget {
    pub name: String,
    pub labels: Labels,
    pub environment: String,
    /// Free keys: whatever the reconciler's template asks for.
    pub manifests: BTreeMap<String, String>,
    pub config_schemas: Vec<String>,
    /// The line of the file that the target begins on.
    pub line: u32,
}
