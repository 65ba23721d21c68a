//! Documents of both packages: each object of a YAML file with its place, as JSON, names bound where they are the platform's. Lists are
//! unfolded. Only one document is a tree at a time; the rest is bytes.

use kedge_goyaml::{Limits, Node, node, split};
use serde_json::Value;

use super::super::package::Package;
use super::confinement::is_label;
use super::json;
use super::notes::Notes;
use crate::bind::yaml::bind_node;
use crate::goal::{HostFacts, Part};
use crate::record::Failure;

/// An object as its author wrote it.
#[derive(Debug)]
pub(super) struct Document {
    /// As the repository calls it, and the line, from 1.
    pub file: String,
    pub line: u32,
    pub part: Part,
    /// Of `platform-config.yaml`.
    pub is_configuration: bool,
    /// `apiVersion`.
    pub version: String,
    pub kind: String,
    pub name: String,
    pub namespace: Option<String>,
    pub notes: Notes,
    pub json: Vec<u8>,
}

/// A file of a package.
struct File<'a> {
    name: &'a str,
    part: Part,
    is_configuration: bool,
    /// Names are bound: the platform's files only.
    facts: Option<&'a HostFacts>,
}

/// What a list says of its items.
struct Frame<'a> {
    file: &'a File<'a>,
    /// Lines of the file before the text that is read.
    before: u32,
    /// `apiVersion` and `kind` of an item that has none itself.
    implied: Option<(String, String)>,
    depth: usize,
}

const NAMESPACE: &str = "namespace.yaml";
const CONFIGURATION: &str = "platform-config.yaml";
/// As the hub packs them.
const MANIFESTS: &str = "manifests";
/// What kustomize or helm wrote is one file (hub/src/pack/workload/program.rs).
const MAX_FILE: u64 = 16 << 20;
/// Of one document. The API server reads no larger request than 3 MiB.
const LIMITS: Limits = Limits { bytes: 4 << 20, nodes: 200_000, depth: 100 };
const MAX_KIND: usize = 63;
/// A list of lists is as far as anybody goes.
const MAX_LISTS: usize = 4;
/// Before more are unfolded than any goal may have.
const MAX_DOCUMENTS: usize = 20_000;

pub(super) fn of_platform(package: &Package<'_>, facts: &HostFacts) -> Result<Vec<Document>, Failure> {
    let mut documents = Vec::new();
    for name in [NAMESPACE, CONFIGURATION] {
        let Some(text) = package.text_within(name, MAX_FILE)? else { continue };
        let file = File { name, part: Part::Platform, is_configuration: name == CONFIGURATION, facts: Some(facts) };
        read(&text, &file, &mut documents)?;
    }
    Ok(documents)
}

pub(super) fn of_workload(package: &Package<'_>, into: &mut Vec<Document>) -> Result<(), Failure> {
    for path in package.below(MANIFESTS) {
        let Some(text) = package.text_within(path, MAX_FILE)? else { continue };
        let name = path.get(MANIFESTS.len() + 1..).unwrap_or(path);
        read(&text, &File { name, part: Part::Workload, is_configuration: false, facts: None }, into)?;
    }
    Ok(())
}

fn read(text: &str, file: &File<'_>, into: &mut Vec<Document>) -> Result<(), Failure> {
    for (chunk, before) in split(text) {
        let parsed = node::parse(chunk, &LIMITS)
            .map_err(|error| wrong(file.name, before + error.line, &format!("this isn't YAML: {}", error.message)))?;
        for mut tree in parsed {
            if let Some(facts) = file.facts {
                bind_node(&mut tree, file.name, before, facts)?;
            }
            unfold(&tree, &Frame { file, before, implied: None, depth: 0 }, into)?;
        }
    }
    Ok(())
}

/// The object, or those of a list.
fn unfold(tree: &Node, frame: &Frame<'_>, into: &mut Vec<Document>) -> Result<(), Failure> {
    let refuse = |why: &str| Err(wrong(frame.file.name, frame.before + tree.line, why));
    if tree.is_null() {
        return Ok(());
    }
    if into.len() >= MAX_DOCUMENTS {
        return refuse(&format!("there are more than {MAX_DOCUMENTS} objects"));
    }
    if tree.entries().is_none() {
        return refuse("this isn't an object of Kubernetes but a single value or a list");
    }
    let of = |key: &str| tree.get(key).and_then(Node::text).filter(|text| !text.is_empty()).map(str::to_owned);
    let implied = frame.implied.clone().unzip();
    let (Some(version), Some(kind)) = (of("apiVersion").or(implied.0), of("kind").or(implied.1)) else {
        return refuse("this isn't an object of Kubernetes: it has no `apiVersion` and `kind`");
    };
    if !is_version(&version) || !is_kind(&kind) {
        return refuse(&format!("`{}` of `{}` can't be a kind", kind.escape_debug(), version.escape_debug()));
    }
    if kind == "DeploymentDescriptor" && version.starts_with("hub.kalypso.io/") {
        return Ok(());
    }
    let items = tree.get("items").filter(|items| items.items().is_some() || items.is_null());
    if let (Some(item), Some(items)) = (kind.strip_suffix("List"), items) {
        if frame.depth >= MAX_LISTS {
            return refuse("lists are in lists in lists");
        }
        let implied = (!item.is_empty()).then(|| (version.clone(), item.to_owned()));
        let inside = Frame { implied, depth: frame.depth + 1, ..*frame };
        return items.items().unwrap_or_default().iter().try_for_each(|item| unfold(item, &inside, into));
    }
    into.push(document(tree, frame, version, kind)?);
    Ok(())
}

fn document(tree: &Node, frame: &Frame<'_>, version: String, kind: String) -> Result<Document, Failure> {
    let (file, line) = (frame.file, frame.before + tree.line);
    let refuse = |why: String| wrong(file.name, line, &why);
    let mut value = json::of(tree, file.name, frame.before)?;
    value["apiVersion"] = Value::from(version.as_str());
    value["kind"] = Value::from(kind.as_str());
    let metadata = match &value["metadata"] {
        Value::Object(metadata) => metadata,
        _ => return Err(refuse(format!("the {kind} has no `metadata`"))),
    };
    let named = |key: &str| match metadata.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        Some(_) => Err(refuse(format!("`metadata.{key}` of the {kind} must be a text; write it in quotes"))),
    };
    let name = named("name")?.ok_or_else(|| {
        refuse(match metadata.contains_key("generateName") {
            true => format!("the {kind} has a `generateName`: every delivery would make another one; give it a `name`"),
            false => format!("the {kind} has no `metadata.name`"),
        })
    })?;
    if !is_name(&name) {
        return Err(refuse(format!("`{}` can't be the name of a {kind}", name.escape_debug())));
    }
    Ok(Document {
        namespace: named("namespace")?,
        notes: Notes::of(tree, file.name, frame.before)?,
        json: serde_json::to_vec(&value).map_err(|error| refuse(format!("the {kind} can't be written: {error}")))?,
        file: file.name.to_owned(),
        line,
        part: file.part,
        is_configuration: file.is_configuration,
        version,
        kind,
        name,
    })
}

/// `v1`, or `GROUP/v1`.
fn is_version(version: &str) -> bool {
    let (group, version) = version.split_once('/').unwrap_or(("none", version));
    is_label(version) && group.len() <= 253 && group.split('.').all(is_label)
}

pub(super) fn is_kind(kind: &str) -> bool {
    (1..=MAX_KIND).contains(&kind.len()) && kind.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// What can be one part of an address. The server has stricter rules for most kinds and looser ones for none.
fn is_name(name: &str) -> bool {
    let letters = |b: u8| {
        b.is_ascii_alphanumeric()
            || matches!(b, b'-' | b'.' | b'_' | b':' | b'@' | b'~' | b'+' | b'=' | b',' | b'$' | b'*')
    };
    (1..=253).contains(&name.len()) && name.bytes().all(letters) && !matches!(name, "." | "..")
}

impl Document {
    pub fn place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    pub fn wrong(&self, why: &str) -> Failure {
        wrong(&self.file, self.line, why)
    }
}

pub(super) fn wrong(file: &str, line: u32, why: &str) -> Failure {
    Failure::new("BadPackage", format!("{file}:{line}: {why}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use proptest::prelude::*;

    use super::*;
    use crate::bind::tests::facts;

    fn all(text: &str) -> Result<Vec<Document>, String> {
        let mut documents = Vec::new();
        let file = File { name: "x.yaml", part: Part::Workload, is_configuration: false, facts: None };
        read(text, &file, &mut documents).map_err(|failure| failure.message)?;
        Ok(documents)
    }

    #[test]
    fn documents_and_lists_become_objects_with_their_lines() {
        let text = "# c\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n# nothing\n---\napiVersion: v1\nkind: List\nitems:\n  - apiVersion: v1\n    kind: Secret\n    metadata: {name: b, namespace: ns}\n  - {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod, metadata: {name: c}}]}\n---\napiVersion: v1\nkind: ConfigMapList\nitems: [{metadata: {name: d}}]\n---\napiVersion: hub.kalypso.io/v1alpha1\nkind: DeploymentDescriptor\nspec: {}\n---\napiVersion: v1\nkind: List\nitems:\n";
        let found = all(text).unwrap();
        let told: Vec<_> = found
            .iter()
            .map(|one| (one.kind.as_str(), one.name.as_str(), one.line, one.namespace.as_deref()))
            .collect();
        assert_eq!(
            told,
            [
                ("ConfigMap", "a", 3, None),
                ("Secret", "b", 12, Some("ns")),
                ("Pod", "c", 15, None),
                ("ConfigMap", "d", 19, None)
            ]
        );
        let last = String::from_utf8(found[3].json.clone()).unwrap();
        assert_eq!(last, r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"d"}}"#);
    }

    #[test]
    fn what_is_no_object_is_named_with_its_line() {
        for (text, expected) in [
            ("a: 1\n---\nb: 2\n", "x.yaml:1: this isn't an object"),
            ("apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\n\nb: [\n", "x.yaml:7: this isn't YAML"),
            ("apiVersion: v1\nkind: Pod\n", "x.yaml:1: the Pod has no `metadata`"),
            ("apiVersion: v1\nkind: Pod\nmetadata: {}\n", "the Pod has no `metadata.name`"),
            ("apiVersion: v1\nkind: Job\nmetadata: {generateName: a-}\n", "every delivery would make another one"),
            ("apiVersion: v1\nkind: Pod\nmetadata: {name: 7}\n", "must be a text; write it in quotes"),
            ("apiVersion: v1\nkind: Pod\nmetadata: {name: ../../x}\n", "`../../x` can't be the name of a Pod"),
            ("apiVersion: v1\nkind: Pod\nmetadata: {name: ..}\n", "can't be the name"),
            ("apiVersion: a/../b\nkind: Pod\nmetadata: {name: a}\n", "`Pod` of `a/../b` can't be a kind"),
            ("apiVersion: v1\nkind: Pod/x\nmetadata: {name: a}\n", "can't be a kind"),
            ("- a\n", "isn't an object"),
            ("just text\n", "isn't an object"),
        ] {
            let message = all(text).unwrap_err();
            assert!(message.contains(expected), "{text}: {message}");
        }
        let nested = (0..6).fold("{apiVersion: v1, kind: Pod, metadata: {name: a}}".to_owned(), |inside, _| {
            format!("{{apiVersion: v1, kind: List, items: [{inside}]}}")
        });
        assert!(all(&nested).unwrap_err().contains("lists are in lists"));
    }

    #[test]
    fn names_are_bound_in_the_platforms_files_only() {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  at: ${cluster.name}\n---\nkind: A\napiVersion: v1\nmetadata: {name: b}\nx: ${nope}\n";
        assert_eq!(all(text).unwrap().len(), 2);
        let facts = facts();
        let file = File { name: "namespace.yaml", part: Part::Platform, is_configuration: false, facts: Some(&facts) };
        let mut found = Vec::new();
        let failure = read(text, &file, &mut found).unwrap_err();
        assert!(failure.message.starts_with("namespace.yaml:10: `nope` isn't bound"), "{}", failure.message);
        assert!(String::from_utf8_lossy(&found[0].json).contains(r#""at":"line-7""#));
    }

    proptest! {
        #[test]
        fn no_text_panics_or_grows(text in any::<String>(), more in "[-{}\\[\\]:,&*a \n]{0,80}") {
            for text in [text.clone(), more.clone(), format!("apiVersion: v1\nkind: List\nitems: {more}\n"), format!("apiVersion: v1\nkind: A\nmetadata: {more}\n")] {
                if let Ok(found) = all(&text) {
                    let bytes: usize = found.iter().map(|one| one.json.len()).sum();
                    prop_assert!(bytes <= 64 * (text.len() + 64));
                }
            }
        }
    }
}
