//! The spec of each kind, as people write it. One file a family; what is shared by all is here.

mod config;
mod delivery;
mod host;
mod platform;
mod promotion;
mod workload;

pub use config::{CapabilityMap, CapabilityRule, ConfigMap, ConfigSchema, ConfigValue};
pub use delivery::{Conflicts, Delivery, DeliverySource, Destination, Drift, Rollback, Scope, SourceRef};
pub use host::{
    Allow, Artifact, ArtifactSource, Deb, FileEntry, Folder, HealthCheck, HealthProbe, HostNamespace, HostWorkload,
    Limits, Unit,
};
pub use platform::{
    BaseRepo, ClusterType, Environment, GitOpsRepo, Manifest, RepoRef, SchedulingPolicy, TargetSelector, Template,
    TemplateType,
};
pub use promotion::{
    Amount, Approval, ApproverRole, Check, Counted, Empty, EnvironmentPolicy, Failure, Freeze, Gate, Late, Members,
    Offline, Pin, PinnedTo, Probe, Promoter, PromotionPolicy, Ring, Then, WHOLE, Window,
};
pub use workload::{DeploymentTarget, Workload, WorkloadRegistration};

use crate::Kind;

/// The spec of an object of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Spec {
    Environment(Environment),
    BaseRepo(BaseRepo),
    GitOpsRepo(GitOpsRepo),
    ClusterType(ClusterType),
    Template(Template),
    WorkloadRegistration(WorkloadRegistration),
    Workload(Workload),
    SchedulingPolicy(SchedulingPolicy),
    ConfigSchema(ConfigSchema),
    ConfigMap(ConfigMap),
    CapabilityMap(CapabilityMap),
    Delivery(Delivery),
    HostWorkload(HostWorkload),
    HostNamespace(HostNamespace),
    PromotionPolicy(PromotionPolicy),
    Pin(Pin),
}

impl Spec {
    pub fn kind(&self) -> Kind {
        match self {
            Spec::Environment(_) => Kind::Environment,
            Spec::BaseRepo(_) => Kind::BaseRepo,
            Spec::GitOpsRepo(_) => Kind::GitOpsRepo,
            Spec::ClusterType(_) => Kind::ClusterType,
            Spec::Template(_) => Kind::Template,
            Spec::WorkloadRegistration(_) => Kind::WorkloadRegistration,
            Spec::Workload(_) => Kind::Workload,
            Spec::SchedulingPolicy(_) => Kind::SchedulingPolicy,
            Spec::ConfigSchema(_) => Kind::ConfigSchema,
            Spec::ConfigMap(_) => Kind::ConfigMap,
            Spec::CapabilityMap(_) => Kind::CapabilityMap,
            Spec::Delivery(_) => Kind::Delivery,
            Spec::HostWorkload(_) => Kind::HostWorkload,
            Spec::HostNamespace(_) => Kind::HostNamespace,
            Spec::PromotionPolicy(_) => Kind::PromotionPolicy,
            Spec::Pin(_) => Kind::Pin,
        }
    }
}
