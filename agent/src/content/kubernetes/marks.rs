//! What Kedge writes into the objects that it applies: whose they are, and what makes pods begin anew. And what it takes out, because
//! only the server may say it. The applier and the watches know objects by these names.

use kedge_model::wire::Digest;
use serde_json::{Map, Value};

use super::document::Document;
use crate::goal::ObjectId;
use crate::record::Failure;

/// Label and annotation of every object that is applied: the assignment.
pub const ASSIGNMENT: &str = "kedge.dev/assignment";
/// Annotation of pods: how often their restart was asked for.
pub const RESTART: &str = "kedge.dev/restart";
/// Annotation of pods that ask for it: the platform's configuration.
pub const CONFIGURATION: &str = "kedge.dev/config";
/// Annotation: whether an object that is no longer wanted goes, `never` or `always`.
pub const PRUNE: &str = "kedge.dev/prune";

/// What is the same for all objects of an assignment.
pub(super) struct Marks {
    assignment: String,
    label: String,
    restart: u64,
    configuration: String,
}

/// A label's value has at most 63 characters: these, a dash, and 16 digits of the name's hash.
const LABEL_START: usize = 40;
const MAX_LABEL: usize = 63;
const HASH_DIGITS: usize = 16;
/// Written by the server, or true of another object that this one was copied from.
const SERVERS_OWN: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];
/// A change of their pods' template makes no new pods, or is refused.
const NOT_ROLLED: [&str; 4] = ["Job", "ReplicaSet", "ReplicationController", "PodTemplate"];

/// The assignment as a label's value.
pub fn label_of(assignment: &str) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric();
    let letters = |c: &char| plain(c) || matches!(c, '-' | '_' | '.');
    let fits = (1..=MAX_LABEL).contains(&assignment.len())
        && assignment.chars().all(|c| letters(&c))
        && assignment.starts_with(|c| plain(&c))
        && assignment.ends_with(|c| plain(&c));
    if fits {
        return assignment.to_owned();
    }
    let start: String = assignment.chars().filter(letters).skip_while(|c| !plain(c)).take(LABEL_START).collect();
    let hash = &Digest::of(assignment.as_bytes()).hex()[..HASH_DIGITS];
    if start.is_empty() { hash.to_owned() } else { format!("{start}-{hash}") }
}

impl Marks {
    pub fn of(assignment: &str, restart: u64, documents: &[Document]) -> Marks {
        let mut configuration = Vec::new();
        for document in documents.iter().filter(|document| document.is_configuration) {
            configuration.extend_from_slice(&document.json);
            configuration.push(b'\n');
        }
        let configuration = Digest::of(&configuration).hex()[..HASH_DIGITS].to_owned();
        Marks { assignment: assignment.to_owned(), label: label_of(assignment), restart, configuration }
    }

    /// Makes of an author's object what is sent.
    pub fn set(&self, object: &mut Value, id: &ObjectId, document: &Document) -> Result<(), Failure> {
        let refuse = |what: &str| document.wrong(&format!("`{what}` of the {} must be a map", id.kind));
        let whole = object.as_object_mut().ok_or_else(|| refuse("."))?;
        whole.remove("status");
        let metadata = map_of(whole, "metadata").ok_or_else(|| refuse("metadata"))?;
        for key in SERVERS_OWN {
            metadata.remove(key);
        }
        match &id.namespace {
            Some(namespace) => metadata.insert("namespace".to_owned(), Value::from(namespace.as_str())),
            None => metadata.remove("namespace"),
        };
        let labels = map_of(metadata, "labels").ok_or_else(|| refuse("metadata.labels"))?;
        labels.insert(ASSIGNMENT.to_owned(), Value::from(self.label.as_str()));
        let annotations = map_of(metadata, "annotations").ok_or_else(|| refuse("metadata.annotations"))?;
        annotations.insert(ASSIGNMENT.to_owned(), Value::from(self.assignment.as_str()));
        self.roll(whole, id, document).ok_or_else(|| refuse("spec.template.metadata.annotations"))
    }

    /// Pods begin anew when their template changes; none: it isn't a map where one must be.
    fn roll(&self, object: &mut Map<String, Value>, id: &ObjectId, document: &Document) -> Option<()> {
        let mut marks = Vec::new();
        let is_rolled = id.group == "apps" && matches!(id.kind.as_str(), "Deployment" | "StatefulSet" | "DaemonSet");
        if self.restart > 0 && is_rolled {
            marks.push((RESTART, self.restart.to_string()));
        }
        if document.notes.restart_on_config && !NOT_ROLLED.contains(&id.kind.as_str()) {
            marks.push((CONFIGURATION, self.configuration.clone()));
        }
        let template = object.get_mut("spec").and_then(|spec| spec.get_mut("template"));
        let Some(Value::Object(template)) = template.filter(|template| template["spec"]["containers"].is_array())
        else {
            return Some(());
        };
        if !marks.is_empty() {
            let annotations = map_of(map_of(template, "metadata")?, "annotations")?;
            annotations.extend(marks.into_iter().map(|(key, value)| (key.to_owned(), Value::from(value))));
        }
        Some(())
    }
}

/// The map under a key, made where there is nothing.
fn map_of<'a>(parent: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Map<String, Value>> {
    let value = parent.entry(key).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_that_can_be_a_label_is_its_own() {
        assert_eq!(label_of("hello-functional-test"), "hello-functional-test");
        let long = label_of(&"a".repeat(64));
        assert_eq!(long.len(), 57);
        assert!(long.starts_with(&format!("{}-", "a".repeat(40))));
        assert_ne!(label_of("a/b"), label_of("ab"));
        assert!(label_of("--ä").len() == 16);
    }

    proptest! {
        #[test]
        fn any_name_becomes_a_label(name in any::<String>()) {
            let label = label_of(&name);
            prop_assert!((1..=63).contains(&label.len()));
            prop_assert!(label.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)));
            prop_assert!(label.as_bytes()[0].is_ascii_alphanumeric() && label.as_bytes()[label.len() - 1].is_ascii_alphanumeric());
        }
    }
}
