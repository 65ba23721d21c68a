//! One object that somebody wrote: its identity, its metadata, its spec and its place.

use std::collections::BTreeMap;
use std::fmt;

use crate::{Labels, Origin, Spec};

/// Every kind that Kedge knows. The order is the order of help texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Environment,
    BaseRepo,
    GitOpsRepo,
    ClusterType,
    Template,
    WorkloadRegistration,
    Workload,
    SchedulingPolicy,
    ConfigSchema,
    ConfigMap,
    CapabilityMap,
    Delivery,
    HostWorkload,
    HostNamespace,
    PromotionPolicy,
    Pin,
}

/// What makes an object the same one: its kind, its name, and for a Workload the registration that brought it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    pub kind: Kind,
    pub owner: Option<String>,
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    pub name: String,
    pub labels: Labels,
    pub annotations: BTreeMap<String, String>,
}

/// An object in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    pub meta: Meta,
    pub spec: Spec,
    pub origin: Origin,
    /// The registration, for an object of an application's repository.
    pub owner: Option<String>,
    /// Set when the source broke and this is the last good version: RFC 3339.
    pub stale_since: Option<String>,
}

impl Kind {
    pub const ALL: [Kind; 16] = [
        Kind::Environment,
        Kind::BaseRepo,
        Kind::GitOpsRepo,
        Kind::ClusterType,
        Kind::Template,
        Kind::WorkloadRegistration,
        Kind::Workload,
        Kind::SchedulingPolicy,
        Kind::ConfigSchema,
        Kind::ConfigMap,
        Kind::CapabilityMap,
        Kind::Delivery,
        Kind::HostWorkload,
        Kind::HostNamespace,
        Kind::PromotionPolicy,
        Kind::Pin,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Environment => "Environment",
            Kind::BaseRepo => "BaseRepo",
            Kind::GitOpsRepo => "GitOpsRepo",
            Kind::ClusterType => "ClusterType",
            Kind::Template => "Template",
            Kind::WorkloadRegistration => "WorkloadRegistration",
            Kind::Workload => "Workload",
            Kind::SchedulingPolicy => "SchedulingPolicy",
            Kind::ConfigSchema => "ConfigSchema",
            Kind::ConfigMap => "ConfigMap",
            Kind::CapabilityMap => "CapabilityMap",
            Kind::Delivery => "Delivery",
            Kind::HostWorkload => "HostWorkload",
            Kind::HostNamespace => "HostNamespace",
            Kind::PromotionPolicy => "PromotionPolicy",
            Kind::Pin => "Pin",
        }
    }

    /// The `apiVersion` that goes with the kind.
    pub fn api_version(self) -> &'static str {
        match self {
            Kind::ConfigMap => "v1",
            Kind::CapabilityMap
            | Kind::Delivery
            | Kind::HostWorkload
            | Kind::HostNamespace
            | Kind::PromotionPolicy
            | Kind::Pin => "kedge.dev/v1alpha1",
            _ => "scheduler.kalypso.io/v1alpha1",
        }
    }

    pub fn parse(word: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

impl Object {
    pub fn id(&self) -> ObjectId {
        ObjectId { kind: self.spec.kind(), owner: self.owner.clone(), name: self.meta.name.clone() }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}
