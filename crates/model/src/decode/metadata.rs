//! `metadata`: the name and the labels, as strict as the Kubernetes API; its other fields are let pass.

use std::collections::BTreeMap;

use kedge_goyaml::Node;

use super::fields::{Fields, Value};
use super::node::{self, Shape};
use super::notes::Notes;
use crate::name::{
    check_cluster_type_name, check_kubernetes_name, check_label_key, check_label_value, check_path_name,
};
use crate::text::{TextError, check_key, check_tenant_name, check_text};
use crate::{Kind, Labels, Meta};

/// What the API server writes or other tools use.
const STANDARD: [&str; 13] = [
    "namespace",
    "annotations",
    "generateName",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "finalizers",
    "ownerReferences",
    "managedFields",
    "selfLink",
];

pub(super) fn read(top: &mut Fields<'_>, kind: Kind, notes: &mut Notes<'_>) -> Option<Meta> {
    let hint = "add `metadata:` with a `name:`";
    let mut fields = top.need("metadata", notes, hint)?.fields(notes)?;
    let name = fields.need("name", notes, "add `name:`").and_then(|value| name(&value, kind, notes));
    let labels = match fields.take("labels") {
        Some(value) if kind == Kind::Workload => tenant_labels(&value, notes),
        Some(value) => labels(&value, notes),
        None => Some(Labels::new()),
    };
    let annotations = match fields.take("annotations") {
        Some(value) => texts(&value, notes),
        None => Some(BTreeMap::new()),
    };
    for field in STANDARD {
        fields.written(field);
    }
    fields.finish(notes);
    Some(Meta { name: name?, labels: labels?, annotations: annotations? })
}

fn name(value: &Value<'_>, kind: Kind, notes: &mut Notes<'_>) -> Option<String> {
    let name = value.word(notes)?;
    if kind == Kind::Workload && !check_tenant(value, check_tenant_name(&name), notes) {
        return None;
    }
    check_name(value, &name, kind == Kind::ClusterType, notes).then_some(name)
}

/// A name that becomes part of a path; false when it can't.
pub(super) fn check_name(value: &Value<'_>, name: &str, is_cluster_type: bool, notes: &mut Notes<'_>) -> bool {
    let checked = if is_cluster_type { check_cluster_type_name(name) } else { check_path_name(name) };
    if let Err(error) = checked {
        value.refuse(notes, "BadName", &format!("can't be used: {error}"), Some("choose another name"));
        return false;
    }
    if let Err(warning) = check_kubernetes_name(name) {
        let message =
            format!("Kubernetes wouldn't take `{}` as `{}` of {}", node::short(name), value.path, notes.subject);
        notes.warning(value.spot(), "KubernetesName", message).hint = Some(warning.to_string());
    }
    true
}

pub(super) fn labels(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Labels> {
    let labels = texts(value, notes)?;
    for pair in value.pairs(notes).unwrap_or_default() {
        let Some(text) = labels.get(pair.key) else { continue };
        if let Err(warning) = check_label_key(pair.key).and_then(|()| check_label_value(text)) {
            let message =
                format!("Kubernetes wouldn't take the label `{}` of {}", node::short(pair.key), notes.subject);
            notes.warning(pair.key_spot, "KubernetesLabel", message).hint = Some(warning.to_string());
        }
    }
    Some(labels)
}

/// Labels that an application's repository gives.
pub(super) fn tenant_labels(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Labels> {
    let labels = labels(value, notes)?;
    tenant_pairs(value, &labels, |_, text| check_text(text), notes).then_some(labels)
}

/// Whether keys and values of an application's map may stand. Every one is looked at.
pub(super) fn tenant_pairs(
    value: &Value<'_>,
    texts: &BTreeMap<String, String>,
    check: impl Fn(&str, &str) -> Result<(), TextError>,
    notes: &mut Notes<'_>,
) -> bool {
    let mut fit = true;
    for pair in value.pairs(notes).unwrap_or_default() {
        if let Err(error) = check_key(pair.key) {
            let message =
                format!("the key `{}` in `{}` of {} {error}", node::short(pair.key), value.path, notes.subject);
            notes.error(pair.key_spot, "TextRefused", message).hint = Some(error.hint().to_owned());
            fit = false;
        } else if let Some(text) = texts.get(pair.key) {
            fit &= check_tenant(&pair, check(pair.key, text), notes);
        }
    }
    fit
}

/// Refuses a text of an application; false when it did.
pub(super) fn check_tenant(value: &Value<'_>, checked: Result<(), TextError>, notes: &mut Notes<'_>) -> bool {
    match checked {
        Ok(()) => true,
        Err(error) => {
            value.refuse(notes, "TextRefused", &error.to_string(), Some(error.hint()));
            false
        }
    }
}

/// A map of strings. Every value is looked at before it is refused.
pub(super) fn texts(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<BTreeMap<String, String>> {
    let pairs: Vec<Option<(String, String)>> =
        value.pairs(notes)?.iter().map(|pair| Some((pair.key.to_owned(), pair.text(notes)?))).collect();
    pairs.into_iter().collect()
}

/// The name of an object that can't be used, if it has something like one.
pub(super) fn name_of(document: &Node) -> Option<&str> {
    node::text_of(node::find(node::find(document, "metadata")?, "name")?).filter(|name| !name.is_empty())
}

/// The labels of an object that can't be used, as they were meant. None when they can't be made out.
pub(super) fn labels_of(document: &Node) -> Option<Labels> {
    let Some(labels) = node::find(node::find(document, "metadata")?, "labels") else { return Some(Labels::new()) };
    match node::shape(labels) {
        Shape::Null => Some(Labels::new()),
        Shape::Map(pairs) => pairs
            .iter()
            .map(|(key, value)| Some((node::text_of(key)?.to_owned(), node::text_of(value)?.to_owned())))
            .collect(),
        _ => None,
    }
}
