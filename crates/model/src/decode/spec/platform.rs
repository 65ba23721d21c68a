//! Environments, repositories, cluster types, templates, policies.

use super::{Branch, each, optional, repo_ref};
use crate::Selector;
use crate::decode::fields::{Fields, Value};
use crate::decode::notes::Notes;
use crate::decode::selector::{self, Unknown};
use crate::kinds::{
    BaseRepo, ClusterType, Environment, GitOpsRepo, Manifest, SchedulingPolicy, TargetSelector, Template, TemplateType,
};

pub(super) fn environment(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<Environment> {
    let hint = "add `controlPlane:` with `repo`, `branch` and `path`";
    let mut inner = fields.need("controlPlane", notes, hint)?.fields(notes)?;
    let control_plane = repo_ref(&mut inner, Branch::Required, notes);
    inner.finish(notes);
    Some(Environment { control_plane: control_plane? })
}

pub(super) fn base_repo(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<BaseRepo> {
    let repo = repo_ref(fields, Branch::Main, notes);
    let commit = optional(fields.take("commit"), notes);
    Some(BaseRepo { repo: repo?, commit: commit? })
}

pub(super) fn gitops_repo(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<GitOpsRepo> {
    Some(GitOpsRepo { repo: repo_ref(fields, Branch::Required, notes)? })
}

pub(super) fn cluster_type(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<ClusterType> {
    let reconciler = fields
        .need("reconciler", notes, "add `reconciler:`, the name of a Template")
        .and_then(|value| value.word(notes));
    let namespace_service = fields
        .need("namespaceService", notes, "add `namespaceService:`, the name of a Template")
        .and_then(|value| value.word(notes));
    let config_type = optional(fields.take("configType"), notes);
    Some(ClusterType { reconciler: reconciler?, namespace_service: namespace_service?, config_type: config_type? })
}

pub(super) fn template(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<Template> {
    let types = [
        ("reconciler", TemplateType::Reconciler),
        ("namespace", TemplateType::Namespace),
        ("config", TemplateType::Config),
    ];
    let template_type = match fields.take("type") {
        Some(value) => value.choice(notes, &types).map(Some),
        None => Some(None),
    };
    let content_type = optional(fields.take("contentType"), notes);
    let hint = "add `manifests:`, a list of texts (`- |`)";
    let manifests = fields.need("manifests", notes, hint).and_then(|value| each(Some(value), notes, manifest));
    Some(Template { template_type: template_type?, content_type: content_type?, manifests: manifests? })
}

fn manifest(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Manifest> {
    Some(Manifest { text: value.text(notes)?, line: value.node.content_line })
}

pub(super) fn scheduling_policy(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<SchedulingPolicy> {
    let targets = match fields.written("deploymentTargetSelector") {
        Some(value) => target_selector(&value, notes),
        None => {
            absent(fields, "deploymentTargetSelector", "every deployment target", notes);
            Some(TargetSelector::default())
        }
    };
    let cluster_types = match fields.written("clusterTypeSelector") {
        Some(value) => cluster_type_selector(&value, notes),
        None => {
            absent(fields, "clusterTypeSelector", "every cluster type", notes);
            Some(Selector::default())
        }
    };
    Some(SchedulingPolicy { targets: targets?, cluster_types: cluster_types? })
}

fn target_selector(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<TargetSelector> {
    let mut fields = value.fields(notes)?;
    let workspace = optional(fields.take("workspace"), notes);
    let labels = label_selector(&mut fields, notes);
    fields.finish(notes);
    Some(TargetSelector { workspace: workspace?, labels: labels? })
}

fn cluster_type_selector(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Selector> {
    let mut fields = value.fields(notes)?;
    let labels = label_selector(&mut fields, notes);
    fields.finish(notes);
    labels
}

fn label_selector(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<Selector> {
    match fields.take("labelSelector") {
        Some(value) => selector::read(&value, Unknown::Warn, notes),
        None => Some(Selector::default()),
    }
}

fn absent(fields: &Fields<'_>, field: &str, what: &str, notes: &mut Notes<'_>) {
    let message = format!("{} has no `spec.{field}`, so it selects {what}", notes.subject);
    notes.warning(fields.spot(), "SelectsEverything", message).hint =
        Some(format!("if you intend that, write `{field}: {{}}`"));
}
