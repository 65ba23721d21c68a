//! What application teams write: workloads with their targets, and the registrations that bring them in.

use std::collections::{BTreeMap, BTreeSet};

use super::config::json_text;
use super::{Branch, each, optional, repo_ref};
use crate::Labels;
use crate::address::Prefix;
use crate::decode::fields::{Fields, Value};
use crate::decode::metadata::{check_name, check_tenant, tenant_labels, tenant_pairs, texts};
use crate::decode::node;
use crate::decode::notes::Notes;
use crate::kinds::{DeploymentTarget, Workload, WorkloadRegistration};
use crate::name::MAX_NAME_BYTES;
use crate::text::{TextError, check_address, check_reference, check_relative_path, check_tenant_name, check_text};

pub(super) fn registration(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<WorkloadRegistration> {
    let hint = "add `workload:` with `repo`, `branch` and `path`";
    let workload = fields.need("workload", notes, hint).and_then(|value| {
        let mut inner = value.fields(notes)?;
        let repo = repo_ref(&mut inner, Branch::Main, notes);
        inner.finish(notes);
        repo
    });
    let workspace = optional(fields.take("workspace"), notes);
    let sources = each(fields.take("sources"), notes, source);
    Some(WorkloadRegistration { workload: workload?, workspace: workspace?, sources: sources? })
}

/// The beginning of addresses.
fn source(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Prefix> {
    let text = value.word(notes)?;
    match Prefix::parse(&text) {
        Ok(prefix) => Some(prefix),
        Err(refused) => {
            let why = format!("isn't the beginning of addresses: {}", refused.reason);
            value.refuse(notes, "BadSource", &why, Some(&refused.hint));
            None
        }
    }
}

pub(super) fn workload(fields: &mut Fields<'_>, notes: &mut Notes<'_>, name: Option<&str>) -> Option<Workload> {
    let written = fields.take("deploymentTargets");
    let mut seen = BTreeSet::new();
    let targets = each(written, notes, |item, notes| target(item, name, &mut seen, notes));
    let config_schemas = each(fields.take("configSchemas"), notes, json_text);
    if targets.as_ref().is_some_and(Vec::is_empty) {
        let message = format!("{} has no `spec.deploymentTargets`, so nothing of it runs", notes.subject);
        notes.warning(fields.spot(), "NoTargets", message);
    }
    Some(Workload { targets: targets?, config_schemas: config_schemas? })
}

fn target(
    value: &Value<'_>,
    workload: Option<&str>,
    seen: &mut BTreeSet<(String, String)>,
    notes: &mut Notes<'_>,
) -> Option<DeploymentTarget> {
    let mut fields = value.fields(notes)?;
    let written = fields.need("name", notes, "add `name:`");
    let name = written.as_ref().and_then(|value| target_name(value, workload, notes));
    let hint = "add `environment:`, the name of the environment that the target is for";
    let environment = fields.need("environment", notes, hint).and_then(|value| {
        let environment = value.word(notes)?;
        check_tenant(&value, check_text(&environment), notes).then_some(environment)
    });
    let labels = match fields.take("labels") {
        Some(value) => tenant_labels(&value, notes),
        None => Some(Labels::new()),
    };
    let manifests = match fields.take("manifests") {
        Some(value) => {
            texts(&value, notes).and_then(|texts| tenant_pairs(&value, &texts, check_manifest, notes).then_some(texts))
        }
        None => Some(BTreeMap::new()),
    };
    let config_schemas = each(fields.take("configSchemas"), notes, json_text);
    fields.finish(notes);
    let (name, environment) = (name?, environment?);
    if !seen.insert((environment.clone(), name.clone())) {
        let why = format!(
            "is there twice: another target for `{}` has the name `{}`",
            node::short(&environment),
            node::short(&name)
        );
        value.refuse(notes, "DuplicateTarget", &why, Some("give each target of an environment a name of its own"));
    }
    Some(DeploymentTarget {
        name,
        labels: labels?,
        environment,
        manifests: manifests?,
        config_schemas: config_schemas?,
        line: value.line(),
    })
}

/// Fields that every template means the same by; the others are free.
fn check_manifest(key: &str, text: &str) -> Result<(), TextError> {
    match key {
        "repo" => check_address(text),
        "branch" => check_reference(text),
        "path" => check_relative_path(text),
        _ => check_text(text),
    }
}

/// The target's folder is `<workload>-<target>`, so both together must be a name.
fn target_name(value: &Value<'_>, workload: Option<&str>, notes: &mut Notes<'_>) -> Option<String> {
    let name = value.word(notes)?;
    if !check_tenant(value, check_tenant_name(&name), notes) || !check_name(value, &name, false, notes) {
        return None;
    }
    let bytes = workload.map_or(0, |workload| workload.len() + 1) + name.len();
    if bytes > MAX_NAME_BYTES {
        let why = format!(
            "can't be used: its full name `<workload>-<target>` has {bytes} bytes and at most {MAX_NAME_BYTES} are allowed"
        );
        value.refuse(notes, "BadName", &why, Some("shorten the workload's name or the target's"));
        return None;
    }
    Some(name)
}
