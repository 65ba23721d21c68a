//! The platform configuration: its files as the package has them, bound, below the assignment's own folder.

use super::super::package::{Package, disk};
use super::Making;
use crate::bind::Names;
use crate::bind::environment::bind_environment;
use crate::bind::yaml::bind_yaml;
use crate::goal::{FileGoal, FolderGoal, Part};
use crate::record::Failure;

const YAML: &str = "platform-config.yaml";
const SHELL: &str = "platform-config.sh";
const ENVIRONMENT: &str = "platform-config.env";
/// Passwords are in them: root writes, the tenant reads.
const FILE_MODE: u32 = 0o640;
const FOLDER_MODE: u32 = 0o750;

impl Making<'_> {
    pub fn platform_files(&mut self, platform: &Package<'_>) -> Result<(), Failure> {
        let owner = self.owner("root", &self.tenant.group);
        let folder = self.tenant.settings();
        self.goal.folders.push(FolderGoal { path: folder.clone(), owner: owner.clone(), mode: FOLDER_MODE });
        let beside_shell = platform.text(SHELL)?.is_some();
        for name in [YAML, SHELL, ENVIRONMENT] {
            let Some(text) = platform.text(name)? else { continue };
            let bound = match name {
                YAML => bind_yaml(&text, name, self.facts)?,
                // A shell has names of its own, in the file that it reads and in what was made from it.
                ENVIRONMENT if beside_shell => bind_environment(&text, name, self.facts, Names::Ours)?,
                ENVIRONMENT => bind_environment(&text, name, self.facts, Names::All)?,
                _ => None,
            };
            let text = bound.unwrap_or(text);
            let content = self.objects.put(text.as_bytes()).map_err(|error| disk("platform", &error))?;
            let (path, size) = (format!("{folder}/{name}"), text.len() as u64);
            let part = Part::Platform;
            self.goal.files.push(FileGoal { path, content, size, owner: owner.clone(), mode: FILE_MODE, part });
        }
        Ok(())
    }

    /// Paths of the platform configuration, for units that ask for its changes.
    pub fn platform_paths(&self) -> Vec<String> {
        let folder = self.tenant.settings();
        let of_platform = self.goal.files.iter().filter(|file| file.part == Part::Platform);
        of_platform
            .map(|file| file.path.clone())
            .filter(|path| kedge_host_policy::path::is_below(path, &folder))
            .collect()
    }
}
