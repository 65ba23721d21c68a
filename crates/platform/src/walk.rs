//! The YAML files below a path of a tree, in a fixed order, and what was met on the way that can't be read. Called by
//! `read`.

use kedge_model::{Origin, Problem};

use crate::ignore::{IGNORE_FILE, Ignore};
use crate::tree::{ENTRY_LIMIT, Entry, EntryKind, FILE_LIMIT, Tree, TreeError, chain, join};

/// Deeper trees exist only to exhaust whoever walks them.
const DEPTH_LIMIT: usize = 100;

#[derive(Debug, Default)]
pub struct Walk {
    /// Paths of YAML files.
    pub files: Vec<String>,
    /// What should have been read and wasn't: links, unreadable folders.
    pub failures: Vec<Problem>,
    /// Worth knowing; nothing is lost by it.
    pub warnings: Vec<Problem>,
}

impl Walk {
    /// Everything below `path` (clean), or the one file that it names.
    pub fn below(tree: &dyn Tree, path: &str, ignore: Ignore) -> Result<Walk, TreeError> {
        Walk::limited(tree, path, ignore, ENTRY_LIMIT)
    }

    fn limited(tree: &dyn Tree, path: &str, mut ignore: Ignore, limit: usize) -> Result<Walk, TreeError> {
        let mut walk = Walk::default();
        let kind = tree.entry(path)?;
        walk.descend(tree, path, kind, &mut ignore)?;
        match kind {
            EntryKind::Folder => {}
            EntryKind::File if is_yaml(path) => {
                walk.files.push(path.to_owned());
                return Ok(walk);
            }
            other => {
                let (path, found) = (path.to_owned(), other.describe());
                return Err(TreeError::WrongKind { path, found, wanted: "a folder or a .yaml file" });
            }
        }

        let mut met = 0usize;
        let mut todo = vec![(tree.list(path)?, ignore, 0usize)];
        while let Some((mut entries, mut ignore, depth)) = todo.pop() {
            met = met.saturating_add(entries.len());
            if met > limit {
                return Err(TreeError::TooMany { path: shown(path), limit });
            }
            if let Some(at) = entries.iter().position(|entry| base_name(&entry.path) == IGNORE_FILE)
                && entries[at].kind == EntryKind::File
            {
                let entry = entries.remove(at);
                // The path's own file was read on the way down.
                if depth > 0 {
                    walk.load_ignore(tree, &entry.path, &mut ignore);
                }
            }
            let mut folders = Vec::new();
            for entry in entries {
                if ignore.rule(&entry.path, entry.kind == EntryKind::Folder).is_some() {
                    continue;
                }
                if let Some(folder) = walk.meet(tree, entry) {
                    if depth >= DEPTH_LIMIT {
                        return Err(TreeError::TooDeep { path: folder, limit: DEPTH_LIMIT });
                    }
                    folders.push(folder);
                }
            }
            for folder in folders.into_iter().rev() {
                match tree.list(&folder) {
                    Ok(entries) => todo.push((entries, ignore.clone(), depth + 1)),
                    Err(error) => walk.fail(tree, &folder, &error),
                }
            }
        }
        walk.files.sort();
        Ok(walk)
    }

    /// Reads the ignore files from the root down to `path`, and refuses a path that they leave out.
    fn descend(&mut self, tree: &dyn Tree, path: &str, kind: EntryKind, ignore: &mut Ignore) -> Result<(), TreeError> {
        let mut here = String::new();
        let mut parts = path.split('/').filter(|part| !part.is_empty()).peekable();
        loop {
            let file = join(&here, IGNORE_FILE);
            match tree.entry(&file) {
                Ok(EntryKind::File) => self.load_ignore(tree, &file, ignore),
                // A link is met again by the walk when it is below the path; above it, it can't be left unsaid.
                Err(error @ TreeError::Symlink { .. }) if here != path => self.fail(tree, &file, &error),
                _ => {}
            }
            let Some(part) = parts.next() else { return Ok(()) };
            here = join(&here, part);
            let is_folder = parts.peek().is_some() || kind == EntryKind::Folder;
            if let Some(rule) = ignore.rule(&here, is_folder) {
                return Err(TreeError::Ignored { path: path.to_owned(), rule });
            }
            if !is_folder {
                return Ok(());
            }
        }
    }

    /// Sorts one entry in; gives back a folder that is to be walked.
    fn meet(&mut self, tree: &dyn Tree, entry: Entry) -> Option<String> {
        let Entry { path, kind } = entry;
        match kind {
            EntryKind::Folder => return Some(path),
            EntryKind::File => {
                if is_yaml(&path) {
                    self.files.push(path);
                }
            }
            EntryKind::Symlink => self.fail(tree, &path, &TreeError::Symlink { path: path.clone() }),
            EntryKind::Submodule => {
                let message = format!("`{path}` is a Git submodule; what is in it isn't read");
                let hint = "name its repository in a BaseRepo, or list it in .sourceignore";
                self.warnings.push(Problem::warning("Submodule", message).at(place(tree, &path)).hint(hint));
            }
            EntryKind::BadName => {
                let message = format!(
                    "the name of `{}` can't be read: it isn't UTF-8, or no folder could hold it",
                    path.escape_debug()
                );
                self.failures.push(Problem::error("BadName", message).at(place(tree, &path)).hint("rename it"));
            }
            EntryKind::Other => {
                if is_yaml(&path) {
                    let found = kind.describe();
                    self.fail(tree, &path, &TreeError::WrongKind { path: path.clone(), found, wanted: "a file" });
                }
            }
        }
        None
    }

    fn load_ignore(&mut self, tree: &dyn Tree, file: &str, ignore: &mut Ignore) {
        match tree.read(file, FILE_LIMIT) {
            Ok(text) => {
                let folder = file.strip_suffix(IGNORE_FILE).unwrap_or(file).trim_end_matches('/');
                self.warnings.extend(ignore.add(folder, &text, &place(tree, file)));
            }
            Err(error) => self.fail(tree, file, &error),
        }
    }

    fn fail(&mut self, tree: &dyn Tree, path: &str, error: &TreeError) {
        self.failures.push(problem(tree, path, error));
    }
}

/// An error of a tree as a problem at its file.
pub fn problem(tree: &dyn Tree, path: &str, error: &TreeError) -> Problem {
    let problem = Problem::error(error.code(), chain(error)).at(place(tree, path));
    match error.hint() {
        Some(hint) => problem.hint(hint),
        None => problem,
    }
}

/// A file as a whole.
pub fn place(tree: &dyn Tree, path: &str) -> Origin {
    Origin { source: tree.source(), file: path.into(), line: 0, column: 0 }
}

pub fn is_yaml(path: &str) -> bool {
    path.ends_with(".yaml") || path.ends_with(".yml")
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn shown(path: &str) -> String {
    if path.is_empty() { ".".to_owned() } else { path.to_owned() }
}

#[cfg(test)]
mod tests;
