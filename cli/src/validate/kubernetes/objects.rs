//! Objects of a folder of manifests, as the hub would pack them, each with its line. Lists are unfolded.

use kedge_goyaml::Node;

use crate::validate::folder::{File, Folder, documents, is_yaml, name_of, text};
use kedge_platform::tree::EntryKind;

pub(super) struct Object {
    /// From 1.
    pub line: u32,
    pub column: u32,
    /// `apiVersion`.
    pub version: String,
    pub kind: String,
    pub name: String,
    pub namespace: Option<String>,
    pub node: Node,
}

/// A chart is the hub's to render.
const CHART: &str = "Chart.yaml";
/// More than the hub packs.
const MAX_FILES: usize = 10_000;
const MAX_DEPTH: usize = 20;
/// A list of lists is as far as anybody goes.
const MAX_LISTS: usize = 4;

impl Object {
    /// Empty: the core group.
    pub fn group(&self) -> &str {
        self.version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// By file. An error says why the folder can't be read here.
pub(super) fn of(folder: &Folder<'_>) -> Result<Vec<(File, Vec<Object>)>, String> {
    let mut paths = Vec::new();
    walk(folder, &folder.path, 0, &mut paths)?;
    let read = |path: String| {
        let file = folder.yaml(&path)?;
        let objects = of_file(&file)?;
        Ok((file, objects))
    };
    paths.into_iter().map(read).collect()
}

pub(super) fn of_text(path: &str, text: &str) -> Result<Vec<Object>, String> {
    of_file(&File { path: path.to_owned(), text: text.to_owned() })
}

fn walk(folder: &Folder<'_>, path: &str, depth: usize, into: &mut Vec<String>) -> Result<(), String> {
    let entries = folder.list(path).map_err(|error| error.to_string())?;
    if entries.iter().any(|entry| name_of(&entry.path) == CHART) {
        return Err(format!("`{}` is a Helm chart, which only the hub renders", path.escape_debug()));
    }
    if depth > MAX_DEPTH || into.len() + entries.len() > MAX_FILES {
        return Err(format!("`{}` is too large to be looked through", path.escape_debug()));
    }
    let found: Vec<(String, EntryKind)> = match folder.listed(&entries)? {
        Some(paths) => {
            let of = |path: String| folder.entry(&path).map(|kind| (path, kind)).map_err(|error| error.to_string());
            paths.into_iter().map(of).collect::<Result<_, _>>()?
        }
        None => entries.into_iter().map(|entry| (entry.path, entry.kind)).collect(),
    };
    for (path, kind) in found {
        match kind {
            EntryKind::Folder => walk(folder, &path, depth + 1, into)?,
            EntryKind::File if is_yaml(&path) => into.push(path),
            _ => {}
        }
    }
    Ok(())
}

fn of_file(file: &File) -> Result<Vec<Object>, String> {
    let mut objects = Vec::new();
    for document in documents(file)? {
        unfold(document.node, document.first_line, None, 0, &mut objects);
    }
    Ok(objects)
}

/// `implied`: `apiVersion` and `kind` of an item that has none itself. What isn't an object is the hub's to refuse.
fn unfold(node: Node, before: u32, implied: Option<(&str, &str)>, depth: usize, into: &mut Vec<Object>) {
    let (version, kind) = implied.unzip();
    let (Some(version), Some(kind)) = (text(&node, &["apiVersion"]).or(version), text(&node, &["kind"]).or(kind))
    else {
        return;
    };
    if kind == "DeploymentDescriptor" && version.starts_with("hub.kalypso.io/") {
        return;
    }
    let items = node.get("items").and_then(Node::items).filter(|_| depth < MAX_LISTS);
    if let (Some(item), Some(items)) = (kind.strip_suffix("List"), items) {
        let implied = (!item.is_empty()).then_some((version, item));
        for item in items {
            unfold(item.clone(), before, implied, depth + 1, into);
        }
        return;
    }
    let Some(name) = text(&node, &["metadata", "name"]) else { return };
    into.push(Object {
        line: before + node.line,
        column: node.column,
        version: version.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        namespace: text(&node, &["metadata", "namespace"]).map(str::to_owned),
        node,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_in_lists_and_behind_other_documents() {
        let text = "# first\n---\napiVersion: v1\nkind: SecretList\nitems:\n  - metadata: {name: a, namespace: x}\n---\nkind: Pod\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: b}\n";
        let objects = of_text("a.yaml", text).unwrap();
        let shown: Vec<_> = objects.iter().map(|one| (one.line, one.kind.as_str(), one.name.as_str())).collect();
        assert_eq!(shown, [(6, "Secret", "a"), (10, "Pod", "b")]);
        assert_eq!(objects[0].namespace.as_deref(), Some("x"));
        assert!(of_text("a.yaml", "a: [").is_err());
    }
}
