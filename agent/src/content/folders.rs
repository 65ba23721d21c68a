//! Folders that a goal's files need: those inside of the namespace's folders are its own, the others are only made where they are missing.

use std::collections::BTreeSet;

use super::Making;
use crate::goal::FolderGoal;
use crate::policy::path::is_below;

impl Making<'_> {
    pub fn add_folders(&mut self) {
        let named: Vec<FolderGoal> = self.goal.folders.clone();
        let files = self.goal.files.iter().map(|file| file.path.as_str());
        let artifacts = self.goal.artifacts.iter().map(|artifact| artifact.path.as_str());
        let needed = files.chain(artifacts).chain(named.iter().map(|folder| folder.path.as_str()));
        let needed: BTreeSet<&str> = needed.flat_map(above).collect();
        let (mut inside, mut parents) = (Vec::new(), Vec::new());
        for path in needed {
            if named.iter().any(|folder| folder.path == path) {
                continue;
            }
            // The innermost folder of the namespace says whose it is.
            let holder =
                named.iter().filter(|folder| is_below(path, &folder.path)).max_by_key(|folder| folder.path.len());
            match holder {
                Some(folder) => inside.push(FolderGoal { path: path.to_owned(), ..folder.clone() }),
                None => parents.push(path.to_owned()),
            }
        }
        self.goal.folders.extend(inside);
        self.goal.parents = parents;
    }
}

/// The folders above a path, without `/`.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at]).filter(|folder| !folder.is_empty())
}
