//! The folder that a Delivery names: its files by their paths in the repository, and what a kustomization there asks for. Read by `host`
//! and `kubernetes`.

use kedge_goyaml::{Limits, Node, node, split};
use kedge_model::{Excerpt, Origin, Problem, decode};
use kedge_platform::tree::{Entry, EntryKind, clean_path};
use kedge_platform::{Tree, TreeError};

pub(super) struct Folder<'t> {
    tree: &'t dyn Tree,
    /// From the root of the repository.
    pub path: String,
}

/// A text and what it is called in its repository.
pub(super) struct File {
    pub path: String,
    pub text: String,
}

/// A document of a YAML file.
pub(super) struct Document {
    pub node: Node,
    /// The line of the file that it begins on, from 0.
    pub first_line: u32,
}

const MAX_YAML: u64 = decode::MAX_FILE_BYTES as u64;
/// Names under which kustomize finds its file.
const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
/// What a kustomization may have that asks for nothing but files.
const LISTING: [&str; 4] = ["apiVersion", "kind", "metadata", "resources"];

impl<'t> Folder<'t> {
    pub fn open(tree: &'t dyn Tree, path: &str) -> Result<Folder<'t>, TreeError> {
        let path = clean_path(path)?;
        let folder = Folder { tree, path };
        // A link on the way is an error of its own.
        tree.entry(&folder.path)?;
        folder.list(&folder.path)?;
        Ok(folder)
    }

    /// Without names that begin with a dot: those are never content.
    pub fn list(&self, path: &str) -> Result<Vec<Entry>, TreeError> {
        let mut entries = self.tree.list(path)?;
        entries.retain(|entry| !name_of(&entry.path).starts_with('.'));
        Ok(entries)
    }

    pub fn entry(&self, path: &str) -> Result<EntryKind, TreeError> {
        self.tree.entry(path)
    }

    /// A file of the folder by its path there, as the HostWorkload writes it.
    pub fn bytes(&self, file: &str, limit: u64) -> Result<Vec<u8>, TreeError> {
        self.read(&clean_path(&format!("{}/{file}", self.path))?, limit)
    }

    /// Links are never followed: a repository is other people's, and they may lead anywhere.
    fn read(&self, path: &str, limit: u64) -> Result<Vec<u8>, TreeError> {
        match self.tree.entry(path)? {
            EntryKind::File => self.tree.read(path, limit),
            other => Err(TreeError::WrongKind { path: path.to_owned(), found: other.describe(), wanted: "a file" }),
        }
    }

    /// A file by its path in the repository.
    pub fn yaml(&self, path: &str) -> Result<File, String> {
        let bytes = self.read(path, MAX_YAML).map_err(|error| error.to_string())?;
        let text = String::from_utf8(bytes).map_err(|_| format!("`{}` isn't UTF-8", path.escape_debug()))?;
        Ok(File { path: path.to_owned(), text })
    }

    /// What the kustomization of a folder lists, by paths in the repository. None: there is no kustomization.
    pub fn listed(&self, entries: &[Entry]) -> Result<Option<Vec<String>>, String> {
        let is_one = |entry: &&Entry| KUSTOMIZATIONS.contains(&name_of(&entry.path));
        let Some(entry) = entries.iter().find(is_one) else { return Ok(None) };
        let file = self.yaml(&entry.path)?;
        let folder = entry.path.strip_suffix(name_of(&entry.path)).unwrap_or_default();
        let documents = documents(&file)?;
        match documents.as_slice() {
            [document] => match resources(&document.node, folder) {
                Some(paths) => Ok(Some(paths)),
                None => Err(format!("`{}` needs kustomize, which only the hub runs", entry.path.escape_debug())),
            },
            _ => Err(format!("`{}` isn't one kustomization", entry.path.escape_debug())),
        }
    }

    pub fn origin(&self, path: &str) -> Origin {
        Origin { source: self.tree.source(), file: path.into(), line: 0, column: 0 }
    }

    /// A file of the folder by its path there.
    pub fn path_of(&self, file: &str) -> String {
        clean_path(&format!("{}/{file}", self.path)).unwrap_or_else(|_| file.to_owned())
    }

    /// Where a problem is, and what stands there. Lines and columns count from 1.
    pub fn at(&self, problem: Problem, file: &File, line: u32, column: u32) -> Problem {
        let index = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
        let text = file.text.lines().nth(index).unwrap_or_default();
        let indent = text.len() - text.trim_start().len();
        let column = if column == 0 { indent + 1 } else { usize::try_from(column).unwrap_or(1) };
        let width = text.trim_end().chars().count().saturating_sub(column - 1);
        let place = self.origin(&file.path).at(line, u32::try_from(column).unwrap_or_default());
        problem.at(place).excerpt(Excerpt::of_line(text, column, width))
    }
}

/// Every document of a file, empty ones left out.
pub(super) fn documents(file: &File) -> Result<Vec<Document>, String> {
    let mut found = Vec::new();
    for (chunk, first_line) in split(&file.text) {
        let nodes = node::parse(chunk, &Limits::default()).map_err(|error| {
            let line = first_line + error.line;
            format!("`{}` can't be read as YAML: line {line}: {}", file.path.escape_debug(), error.message)
        })?;
        found.extend(nodes.into_iter().map(|node| Document { node, first_line }));
    }
    Ok(found)
}

pub(super) fn text<'n>(node: &'n Node, path: &[&str]) -> Option<&'n str> {
    path.iter().try_fold(node, |node, key| node.get(key))?.text().filter(|text| !text.is_empty())
}

pub(super) fn is_yaml(path: &str) -> bool {
    path.ends_with(".yaml") || path.ends_with(".yml")
}

pub(super) fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Whether names are bound in a text on the cluster: `${cluster.name}`, and not `$${`.
pub(super) fn binds(text: &str) -> bool {
    text.match_indices("${").any(|(at, _)| !text[..at].ends_with('$'))
}

/// None: it asks for more than files of the folder.
fn resources(kustomization: &Node, folder: &str) -> Option<Vec<String>> {
    let entries = kustomization.entries()?;
    entries.iter().all(|(key, _)| key.text().is_some_and(|key| LISTING.contains(&key))).then_some(())?;
    let path = |item: &Node| {
        let path = item.text().filter(|path| !path.starts_with('/') && !path.contains(':') && !path.contains('?'))?;
        clean_path(&format!("{folder}{path}")).ok()
    };
    kustomization.get("resources")?.items()?.iter().map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escaped_name_is_bound_nowhere() {
        assert!(binds("a ${cluster.name}"));
        assert!(!binds("a $${HOME} $HOME"));
        assert!(binds("$${HOME} ${x}"));
    }

    #[test]
    fn a_kustomization_is_followed_as_far_as_it_only_lists() {
        let of = |text: &str| {
            let nodes = node::parse(text, &Limits::default()).unwrap();
            resources(&nodes[0], "apps/hello/")
        };
        assert_eq!(of("resources: [./a.yaml, b]\n").unwrap(), ["apps/hello/a.yaml", "apps/hello/b"]);
        for text in [
            "resources: [a.yaml]\nnamePrefix: x-\n",
            "resources: [../base]\n",
            "resources: ['https://h/x']\n",
            "kind: Kustomization\n",
            "[a]\n",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
