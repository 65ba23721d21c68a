//! The spec of each kind. One file a family, as in `kinds`.

mod calendar;
mod config;
mod delivery;
mod gate;
mod host;
mod pin;
mod platform;
mod promotion;
mod workload;

use super::fields::{Fields, Value};
use super::notes::Notes;
use crate::kinds::RepoRef;
use crate::{Kind, Spec};

/// Reads what follows `metadata`. None after an error.
pub(super) fn read(kind: Kind, top: &mut Fields<'_>, notes: &mut Notes<'_>, name: Option<&str>) -> Option<Spec> {
    if kind == Kind::ConfigMap {
        return config::config_map(top, notes).map(Spec::ConfigMap);
    }
    let mut spec = top.need("spec", notes, needs(kind))?.fields(notes)?;
    let fields = &mut spec;
    let read = match kind {
        Kind::Environment => platform::environment(fields, notes).map(Spec::Environment),
        Kind::BaseRepo => platform::base_repo(fields, notes).map(Spec::BaseRepo),
        Kind::GitOpsRepo => platform::gitops_repo(fields, notes).map(Spec::GitOpsRepo),
        Kind::ClusterType => platform::cluster_type(fields, notes).map(Spec::ClusterType),
        Kind::Template => platform::template(fields, notes).map(Spec::Template),
        Kind::SchedulingPolicy => platform::scheduling_policy(fields, notes).map(Spec::SchedulingPolicy),
        Kind::WorkloadRegistration => workload::registration(fields, notes).map(Spec::WorkloadRegistration),
        Kind::Workload => workload::workload(fields, notes, name).map(Spec::Workload),
        Kind::ConfigSchema => config::config_schema(fields, notes).map(Spec::ConfigSchema),
        Kind::CapabilityMap => config::capability_map(fields, notes).map(Spec::CapabilityMap),
        Kind::Delivery => delivery::delivery(fields, notes).map(Spec::Delivery),
        Kind::HostWorkload => host::host_workload(fields, notes).map(Spec::HostWorkload),
        Kind::HostNamespace => host::host_namespace(fields, notes).map(Spec::HostNamespace),
        Kind::PromotionPolicy => promotion::policy(fields, notes).map(Spec::PromotionPolicy),
        Kind::Pin => pin::pin(fields, notes).map(Spec::Pin),
        Kind::ConfigMap => None,
    };
    match kind {
        // A rule that isn't read doesn't hold.
        Kind::PromotionPolicy | Kind::Pin => spec.finish_strictly(notes),
        _ => spec.finish(notes),
    }
    read
}

/// What to write when there is no spec at all.
fn needs(kind: Kind) -> &'static str {
    match kind {
        Kind::Environment => "add `spec:` with `controlPlane:` (`repo`, `branch`, `path`)",
        Kind::BaseRepo | Kind::GitOpsRepo => "add `spec:` with `repo`, `branch` and `path`",
        Kind::ClusterType => {
            "add `spec:` with `reconciler` and `namespaceService`, and `configType` if it has one; each is a Template's name"
        }
        Kind::Template => "add `spec:` with `type` and `manifests`",
        Kind::SchedulingPolicy => "add `spec:` with `deploymentTargetSelector` and `clusterTypeSelector`",
        Kind::WorkloadRegistration => "add `spec:` with `workload:` (`repo`, `branch`, `path`) and `workspace`",
        Kind::Workload => "add `spec:` with `deploymentTargets`",
        Kind::ConfigSchema => "add `spec:` with `schema`, a JSON Schema as text",
        Kind::CapabilityMap => "add `spec:` with `rules`, each with `when` and `add`",
        Kind::Delivery => "add `spec:` with `source` and `to`",
        Kind::HostWorkload => "add `spec:` with what the host runs: `debs`, `files`, `artifacts`, `units`, `health`",
        Kind::HostNamespace => "add `spec:`; `spec: {}` is a namespace without limits and without further rights",
        Kind::PromotionPolicy => "add `spec:` with `environments:`, the chain in order",
        Kind::Pin => "add `spec:` with `workload` and `version` or `commit`",
        Kind::ConfigMap => "",
    }
}

/// What a reference takes when no branch is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Branch {
    Main,
    /// We write there, or read the environment from there: nobody should guess it.
    Required,
}

/// `repo`, `branch` and `path` among other fields.
fn repo_ref(fields: &mut Fields<'_>, branch: Branch, notes: &mut Notes<'_>) -> Option<RepoRef> {
    let repo = fields.need("repo", notes, "add `repo:`, the URL of the repository").and_then(|value| value.word(notes));
    let branch = match branch {
        Branch::Required => fields.need("branch", notes, "add `branch:`").and_then(|value| value.word(notes)),
        Branch::Main => or_default(fields.take("branch"), "main", notes),
    };
    let path = or_default(fields.take("path"), ".", notes);
    Some(RepoRef { repo: repo?, branch: branch?, path: path? })
}

/// The text, or what it is when nothing is written. None after an error.
fn or_default(value: Option<Value<'_>>, default: &str, notes: &mut Notes<'_>) -> Option<String> {
    let text = optional(value, notes)?;
    Some(text.unwrap_or_else(|| default.to_owned()))
}

/// A text that may be absent or empty. The outer None is an error.
fn optional(value: Option<Value<'_>>, notes: &mut Notes<'_>) -> Option<Option<String>> {
    match value {
        None => Some(None),
        Some(value) => value.text(notes).map(|text| Some(text).filter(|text| !text.is_empty())),
    }
}

/// Reads every item of a list that may be absent; None when one of them has an error.
fn each<'n, T>(
    value: Option<Value<'n>>,
    notes: &mut Notes<'_>,
    mut read: impl FnMut(&Value<'n>, &mut Notes<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let Some(value) = value else { return Some(Vec::new()) };
    let items: Vec<Option<T>> = value.items(notes)?.iter().map(|item| read(item, notes)).collect();
    items.into_iter().collect()
}
