//! Documents of a manifest file: which are objects to deliver, and the `DeploymentDescriptor` of Kalypso's pipelines,
//! which is read for the version and left out.

use kedge_goyaml::{Limits, Node, NodeValue, node, split};
use kedge_model::{Origin, Problem};

use crate::pack::fault::Fault;
use crate::pack::reconciler::text;

/// A document and the text it was read from.
#[derive(Debug)]
pub struct Document<'a> {
    pub node: Node,
    pub text: &'a str,
    /// The line of the file that the text begins on, from 0.
    pub first_line: u32,
}

/// Every document of a file, empty ones left out.
pub(in crate::pack) fn documents<'a>(bytes: &'a [u8], file: &Origin) -> Result<Vec<Document<'a>>, Fault> {
    let unreadable = |line, column, message: &str, hint: Option<String>| {
        let problem = Problem::error("NotYaml", format!("the file can't be read as YAML: {message}"));
        let problem = problem.at(file.at(line, column));
        Fault::of(match hint {
            Some(hint) => problem.hint(hint),
            None => problem,
        })
    };
    let text = std::str::from_utf8(bytes).map_err(|_| unreadable(0, 0, "it isn't UTF-8", None))?;
    let mut found = Vec::new();
    for (chunk, first_line) in split(text) {
        let parsed = node::parse(chunk, &Limits::default());
        let parsed =
            parsed.map_err(|error| unreadable(first_line + error.line, error.column, &error.message, error.hint))?;
        match <[Node; 1]>::try_from(parsed) {
            Ok([node]) => found.push(Document { node, text: chunk, first_line }),
            Err(none) if none.is_empty() => {}
            Err(_) => return Err(unreadable(first_line + 1, 1, "its documents can't be told apart", None)),
        }
    }
    Ok(found)
}

/// The version that a DeploymentDescriptor names; none for other documents.
fn version(document: &Node) -> Option<Option<String>> {
    let is_descriptor = text(document, &["kind"]) == Some("DeploymentDescriptor")
        && text(document, &["apiVersion"]).is_some_and(|version| version.starts_with("hub.kalypso.io/"));
    is_descriptor.then(|| document.get("spec").and_then(|spec| find_version(spec, 0)))
}

/// What people label objects with.
const LABEL: &str = "app.kubernetes.io/version";
/// What a HostWorkload may say it with.
const HOST_KEYS: [&str; 3] = [LABEL, "kedge.dev/version", "version"];

/// The version of a workload as its content tells it, the surest word first.
#[derive(Debug, Default)]
pub struct Versions {
    /// Of a DeploymentDescriptor.
    descriptor: Option<String>,
    /// A label of what runs: Deployments and the like.
    running: Option<String>,
    /// A label of anything else.
    other: Option<String>,
}

impl Versions {
    /// Whether the document was a descriptor, which isn't delivered.
    pub fn read(&mut self, document: &Node) -> bool {
        if let Some(version) = version(document) {
            self.descriptor = self.descriptor.take().or(version);
            return true;
        }
        self.labels(document, 0);
        false
    }

    fn labels(&mut self, document: &Node, depth: usize) {
        if let Some(items) = document.get("items").and_then(Node::items).filter(|_| depth == 0) {
            items.iter().for_each(|item| self.labels(item, 1));
        }
        let Some(version) = labelled(document, "labels", LABEL) else { return };
        let runs = ["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Pod", "ReplicaSet"];
        let place = match text(document, &["kind"]).is_some_and(|kind| runs.contains(&kind)) {
            true => &mut self.running,
            false => &mut self.other,
        };
        if place.is_none() {
            *place = Some(version);
        }
    }

    /// Of a HostWorkload, which has its version among its labels or annotations.
    pub fn read_host(&mut self, document: &Node) {
        let found = ["annotations", "labels"]
            .iter()
            .flat_map(|map| HOST_KEYS.iter().filter_map(|key| labelled(document, map, key)))
            .next();
        self.running = self.running.take().or(found);
    }

    pub fn best(self) -> Option<String> {
        self.descriptor.or(self.running).or(self.other)
    }
}

fn labelled(document: &Node, map: &str, key: &str) -> Option<String> {
    let value = document.get("metadata")?.get(map)?.get(key)?.text()?;
    is_short(value).then(|| value.to_owned())
}

/// A version is a word; more is something else.
fn is_short(text: &str) -> bool {
    !text.is_empty() && text.len() <= 128
}

/// Deeper than a descriptor goes.
const MAX_DEPTH: usize = 8;

/// The shallowest first: `workloadVersion.version` in Kalypso's own.
fn find_version(node: &Node, depth: usize) -> Option<String> {
    let direct = node.get("version").and_then(Node::text).filter(|text| is_short(text));
    if let Some(version) = direct {
        return Some(version.to_owned());
    }
    let NodeValue::Map(entries) = &node.value else { return None };
    if depth > MAX_DEPTH {
        return None;
    }
    entries.iter().find_map(|(_, value)| find_version(value, depth + 1))
}
