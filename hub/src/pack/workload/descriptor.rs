//! Documents of a manifest file: which are objects to deliver, and the `DeploymentDescriptor` of Kalypso's pipelines,
//! which is read for the version and left out.

use kedge_goyaml::{Limits, Node, NodeValue, node};
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
    for (chunk, first_line) in chunks(text) {
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
pub fn version(document: &Node) -> Option<Option<String>> {
    let is_descriptor = text(document, &["kind"]) == Some("DeploymentDescriptor")
        && text(document, &["apiVersion"]).is_some_and(|version| version.starts_with("hub.kalypso.io/"));
    is_descriptor.then(|| document.get("spec").and_then(|spec| find_version(spec, 0)))
}

/// Deeper than a descriptor goes.
const MAX_DEPTH: usize = 8;

/// The shallowest first: `workloadVersion.version` in Kalypso's own.
fn find_version(node: &Node, depth: usize) -> Option<String> {
    let direct = node.get("version").and_then(Node::text).filter(|text| !text.is_empty() && text.len() <= 128);
    if let Some(version) = direct {
        return Some(version.to_owned());
    }
    let NodeValue::Map(entries) = &node.value else { return None };
    if depth > MAX_DEPTH {
        return None;
    }
    entries.iter().find_map(|(_, value)| find_version(value, depth + 1))
}

/// The texts between `---` lines, with the number of lines before each.
fn chunks(text: &str) -> Vec<(&str, u32)> {
    let is_separator = |line: &str| {
        line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
    };
    let mut chunks = Vec::new();
    let (mut start, mut first_line, mut offset) = (0, 0, 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if is_separator(line) && offset > start {
            chunks.push((&text[start..offset], first_line));
            (start, first_line) = (offset, u32::try_from(number).unwrap_or(u32::MAX));
        }
        offset += line.len();
    }
    chunks.push((&text[start..], first_line));
    chunks
}
