//! Folders inside of the namespace's own that its files need: they are its own too. Those above are plan's, which makes what is missing.

use std::collections::BTreeSet;

use kedge_host_policy::path::is_below;

use super::Making;
use crate::goal::FolderGoal;
use crate::paths::above;

impl Making<'_> {
    pub fn add_folders(&mut self) {
        let named: Vec<FolderGoal> = self.goal.folders.clone();
        let files = self.goal.files.iter().map(|file| file.path.as_str());
        let artifacts = self.goal.artifacts.iter().map(|artifact| artifact.path.as_str());
        let needed = files.chain(artifacts).chain(named.iter().map(|folder| folder.path.as_str()));
        let needed: BTreeSet<&str> = needed.flat_map(above).collect();
        let mut inside = Vec::new();
        for path in needed {
            if named.iter().any(|folder| folder.path == path) {
                continue;
            }
            // The innermost folder of the namespace says whose it is.
            let holder =
                named.iter().filter(|folder| is_below(path, &folder.path)).max_by_key(|folder| folder.path.len());
            inside.extend(holder.map(|folder| FolderGoal { path: path.to_owned(), ..folder.clone() }));
        }
        self.goal.folders.extend(inside);
    }
}
