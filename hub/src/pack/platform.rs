//! The platform package of an assignment: namespace and configuration as they are published, and for a host the
//! configuration once more as systemd reads it. Called by the packer for each folder of a Delivery.

use kedge_model::kinds::Destination;
use kedge_model::{Options, Origin, Problem, Source, Spec, decode};
use serde::{Deserialize, Serialize};

use super::archive::Contents;
use super::environment_file::{self, Made};
use super::fault::Fault;
use super::objects::{Item, Objects};
use super::reconciler::{MAX_NAMESPACE, namespace_too_long, text};
use super::workload::descriptor::documents;
use super::workload::kubernetes::check_object;

/// What is worth saying about a package and stops nothing. Kept with it, so that a restart says it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Note {
    /// A file in the assignment's folder that isn't one of ours.
    NotDelivered { file: String },
    /// The configuration is neither a ConfigMap nor export lines.
    NoEnvironmentFile { file: String },
    /// Keys that can't be names of variables.
    LeftOut { keys: Vec<String> },
    /// Lines for a shell, and Kubernetes has none.
    NotForKubernetes { file: String },
}

pub const RECONCILER: &str = "reconciler.yaml";
const NAMESPACE: &str = "namespace.yaml";
const CONFIG_YAML: &str = "platform-config.yaml";
const CONFIG_SHELL: &str = "platform-config.sh";

/// What the scheduler writes is far below.
const MAX_FILE: u64 = decode::MAX_FILE_BYTES as u64;

pub(super) fn contents(
    objects: &Objects,
    items: &[Item],
    to: Destination,
    folder: &Origin,
) -> Result<(Contents, Vec<Note>), Fault> {
    let (mut contents, mut notes) = (Contents::default(), Vec::new());
    for item in items {
        let origin = in_folder(folder, &item.name);
        if !item.kind.is_file() {
            if [RECONCILER, NAMESPACE, CONFIG_YAML, CONFIG_SHELL].contains(&item.name.as_str()) {
                let message = format!("`{}` is {}, not a file", item.name, item.kind.describe());
                return Err(Fault::of(Problem::error("NotAFile", message).at(origin)));
            }
            notes.push(Note::NotDelivered { file: item.name.clone() });
            continue;
        }
        match item.name.as_str() {
            RECONCILER => {}
            NAMESPACE | CONFIG_YAML | CONFIG_SHELL => {
                let bytes = objects.read(item.id, &item.name, MAX_FILE)?;
                match to {
                    Destination::Host => add_for_host(&item.name, &bytes, &origin, &mut contents, &mut notes)?,
                    Destination::Kubernetes if item.name == CONFIG_SHELL => {
                        notes.push(Note::NotForKubernetes { file: item.name.clone() });
                    }
                    Destination::Kubernetes => check_objects(&bytes, &origin)?,
                }
                contents.add(&item.name, bytes, false)?;
            }
            _ => notes.push(Note::NotDelivered { file: item.name.clone() }),
        }
    }
    Ok((contents, notes))
}

fn add_for_host(
    name: &str,
    bytes: &[u8],
    origin: &Origin,
    contents: &mut Contents,
    notes: &mut Vec<Note>,
) -> Result<(), Fault> {
    let text = String::from_utf8_lossy(bytes);
    let made = match name {
        CONFIG_YAML => environment_file::from_config_map(&text),
        CONFIG_SHELL => environment_file::from_exports(&text),
        _ => return check_namespace(bytes, origin),
    };
    match made {
        Made::File { text, left_out } => {
            if !left_out.is_empty() {
                notes.push(Note::LeftOut { keys: left_out });
            }
            if !contents.files().contains_key(environment_file::NAME) {
                contents.add(environment_file::NAME, text.into_bytes(), false)?;
            }
        }
        Made::OtherShape => notes.push(Note::NoEnvironmentFile { file: name.to_owned() }),
    }
    Ok(())
}

/// A host's namespace is one HostNamespace: what the agent couldn't read would stop it there.
fn check_namespace(bytes: &[u8], origin: &Origin) -> Result<(), Fault> {
    let decoded = decode::objects(bytes, origin, &Options { rendered: true, ..Options::default() });
    let errors: Vec<Problem> = decoded.problems.into_iter().filter(Problem::is_error).collect();
    if !errors.is_empty() {
        return Err(Fault::Quarantine(errors));
    }
    let namespaces = decoded.objects.iter().filter(|object| matches!(object.spec, Spec::HostNamespace(_))).count();
    match namespaces {
        1 => Ok(()),
        found => {
            let message = format!("namespace.yaml of a host must hold one HostNamespace and holds {found}");
            Err(Fault::of(
                Problem::error("NotAHostNamespace", message)
                    .at(origin.clone())
                    .hint("use a namespace template such as `kedge-host-namespace` for this cluster type"),
            ))
        }
    }
}

/// On Kubernetes both files hold objects: what the agent couldn't apply would stop it on every cluster.
fn check_objects(bytes: &[u8], origin: &Origin) -> Result<(), Fault> {
    for document in documents(bytes, origin)? {
        check_object(&document, origin)?;
        let name = text(&document.node, &["metadata", "name"]).unwrap_or_default();
        let is_namespace =
            (text(&document.node, &["apiVersion"]), text(&document.node, &["kind"])) == (Some("v1"), Some("Namespace"));
        // A name that is bound on the cluster is judged there.
        if is_namespace && name.chars().count() > MAX_NAMESPACE && !name.contains("${") {
            let at = origin.at(document.first_line + document.node.line, document.node.column);
            return Err(Fault::of(namespace_too_long(name).at(at)));
        }
    }
    Ok(())
}

pub(super) fn in_folder(folder: &Origin, name: &str) -> Origin {
    let file = match folder.file.is_empty() {
        true => name.into(),
        false => format!("{}/{name}", folder.file).into(),
    };
    Origin { source: std::sync::Arc::clone(&folder.source), file, line: 0, column: 0 }
}

pub(super) fn origin(repo: &str, branch: &str, commit: &str, file: &str) -> Origin {
    let source = Source { repo: repo.to_owned(), revision: Some(format!("{branch}@sha1:{commit}")) };
    Origin { source: std::sync::Arc::new(source), file: file.into(), line: 0, column: 0 }
}

impl Note {
    pub fn problem(&self) -> Problem {
        match self {
            Note::NotDelivered { file } => Problem::warning(
                "NotDelivered",
                format!("`{file}` isn't a file that Kedge writes there and isn't delivered"),
            )
            .hint("put it into the namespace template, or into the workload's own manifests"),
            Note::NoEnvironmentFile { file } => Problem::warning(
                "NoEnvironmentFile",
                format!(
                    "`{file}` is neither a ConfigMap nor lines of `export K=\"v\"`, so there is no platform-config.env"
                ),
            )
            .hint("use a config template such as `env` for this cluster type, if units should read it"),
            Note::LeftOut { keys } => Problem::warning(
                "NotAVariable",
                format!("platform-config.env leaves out {}, which can't be names of variables", keys.join(", ")),
            ),
            Note::NotForKubernetes { file } => Problem::warning(
                "NotForKubernetes",
                format!("`{file}` holds no objects, so nothing of it reaches a cluster"),
            )
            .hint("use a config template such as `configmap` for this cluster type"),
        }
    }
}
