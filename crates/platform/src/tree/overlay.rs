//! A tree with some files replaced, added or taken away: what a change would look like before anybody commits it. Used by
//! the hub to plan pasted files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kedge_model::Source;

use super::{ContentId, Entry, EntryKind, Tree, TreeError, join};

/// A tree below, and files by their clean paths; none: the file is gone.
#[derive(Debug)]
pub struct OverlayTree {
    below: Box<dyn Tree>,
    files: BTreeMap<String, Option<String>>,
}

impl OverlayTree {
    pub fn new(below: Box<dyn Tree>, files: BTreeMap<String, Option<String>>) -> OverlayTree {
        OverlayTree { below, files }
    }

    /// Whether a file lies over or below this path.
    fn touches(&self, path: &str) -> bool {
        self.files.contains_key(path) || self.children(path).next().is_some()
    }

    /// Files below a folder, by what is left of their paths.
    fn children<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a str, &'a Option<String>)> {
        self.files.iter().filter_map(move |(path, text)| {
            let rest = match folder {
                "" => path.as_str(),
                folder => path.strip_prefix(folder)?.strip_prefix('/')?,
            };
            Some((rest, text))
        })
    }

    /// A folder that only added files make.
    fn is_made(&self, folder: &str) -> bool {
        self.children(folder).any(|(_, text)| text.is_some())
    }

    fn missing(&self, path: &str) -> TreeError {
        TreeError::Missing { path: path.to_owned(), place: self.below.source().to_string() }
    }
}

impl Tree for OverlayTree {
    fn source(&self) -> Arc<Source> {
        self.below.source()
    }

    fn entry(&self, path: &str) -> Result<EntryKind, TreeError> {
        match self.files.get(path) {
            Some(Some(_)) => Ok(EntryKind::File),
            Some(None) => Err(self.missing(path)),
            None => match self.below.entry(path) {
                Err(TreeError::Missing { .. }) if self.is_made(path) => Ok(EntryKind::Folder),
                found => found,
            },
        }
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>, TreeError> {
        let below = match self.below.entry(folder) {
            Err(TreeError::Missing { .. }) if self.is_made(folder) => Vec::new(),
            _ => self.below.list(folder)?,
        };
        let mut entries: BTreeMap<String, EntryKind> =
            below.into_iter().map(|entry| (entry.path, entry.kind)).collect();
        let mut folders = BTreeSet::new();
        for (rest, text) in self.children(folder) {
            match (rest.split_once('/'), text) {
                (Some((name, _)), Some(_)) => drop(folders.insert(join(folder, name))),
                (Some(_), None) => {}
                (None, Some(_)) => drop(entries.insert(join(folder, rest), EntryKind::File)),
                (None, None) => drop(entries.remove(&join(folder, rest))),
            }
        }
        for folder in folders {
            entries.entry(folder).or_insert(EntryKind::Folder);
        }
        Ok(entries.into_iter().map(|(path, kind)| Entry { path, kind }).collect())
    }

    fn read(&self, file: &str, limit: u64) -> Result<Vec<u8>, TreeError> {
        match self.files.get(file) {
            None => self.below.read(file, limit),
            Some(None) => Err(self.missing(file)),
            Some(Some(text)) => {
                let size = text.len() as u64;
                match size > limit {
                    true => Err(TreeError::TooLarge { path: file.to_owned(), size, limit }),
                    false => Ok(text.clone().into_bytes()),
                }
            }
        }
    }

    /// What lies over the tree has no name of its own, and neither have the folders above it.
    fn content_id(&self, path: &str) -> Option<ContentId> {
        match self.touches(path) {
            true => None,
            false => self.below.content_id(path),
        }
    }

    fn beginning(&self, file: &str) -> Vec<u8> {
        match self.files.get(file) {
            None => self.below.beginning(file),
            Some(text) => text.clone().unwrap_or_default().into_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::folder;
    use crate::tree::folder::FolderTree;

    fn overlay(files: &[(&str, Option<&str>)]) -> (tempfile::TempDir, OverlayTree) {
        let root = folder(&[("a.yaml", "a"), ("configs/b.yaml", "b"), ("configs/c.yaml", "c")]);
        let below = FolderTree::new(root.path(), Source { repo: "r".to_owned(), revision: None });
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), text.map(str::to_owned))).collect();
        (root, OverlayTree::new(Box::new(below), files))
    }

    fn names(tree: &OverlayTree, folder: &str) -> Vec<String> {
        tree.list(folder).unwrap().into_iter().map(|entry| entry.path).collect()
    }

    #[test]
    fn files_are_replaced_added_and_taken_away() {
        let (_root, tree) =
            overlay(&[("configs/b.yaml", Some("B")), ("new/deep/d.yaml", Some("d")), ("configs/c.yaml", None)]);
        assert_eq!(names(&tree, ""), ["a.yaml", "configs", "new"]);
        assert_eq!(names(&tree, "configs"), ["configs/b.yaml"]);
        assert_eq!(names(&tree, "new"), ["new/deep"]);
        assert_eq!(names(&tree, "new/deep"), ["new/deep/d.yaml"]);
        assert_eq!(tree.read("configs/b.yaml", 10).unwrap(), b"B");
        assert_eq!(tree.read("a.yaml", 10).unwrap(), b"a");
        assert!(matches!(tree.read("configs/c.yaml", 10), Err(TreeError::Missing { .. })));
        assert_eq!(tree.entry("new/deep").unwrap(), EntryKind::Folder);
        assert!(matches!(tree.entry("configs/c.yaml"), Err(TreeError::Missing { .. })));
    }

    #[test]
    fn a_file_over_the_limit_is_refused() {
        let (_root, tree) = overlay(&[("big.yaml", Some("too much"))]);
        assert!(matches!(tree.read("big.yaml", 3), Err(TreeError::TooLarge { size: 8, .. })));
    }
}
