//! The files of an assignment, and where the environment's branch has them.

use std::sync::Arc;

/// `<cluster type>/README.md` marks a cluster type's folder as ours.
pub const README: &str = "README.md";

/// Without a newline at its end.
pub const README_TEXT: &str = "This folder contains deployment targets scheduled on the cluster type";

/// Holds the commit of BaseRepo main, without a newline at its end.
pub const PROMOTED_COMMIT: &str = ".github/tracking/Promoted_Commit_Id";

/// What an assignment publishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    pub reconciler: Arc<str>,
    pub namespace: Arc<str>,
    /// Absent when the configuration renders to nothing.
    pub config: Option<(ConfigFile, Arc<str>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigFile {
    Yaml,
    Shell,
}

impl ConfigFile {
    pub fn name(self) -> &'static str {
        match self {
            ConfigFile::Yaml => "platform-config.yaml",
            ConfigFile::Shell => "platform-config.sh",
        }
    }
}

impl Files {
    pub const RECONCILER: &str = "reconciler.yaml";
    pub const NAMESPACE: &str = "namespace.yaml";

    /// Every name that a file of ours can have in an assignment's folder.
    pub const NAMES: [&str; 4] = [Files::RECONCILER, Files::NAMESPACE, "platform-config.yaml", "platform-config.sh"];

    /// Name and text of each file.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Arc<str>)> {
        [(Files::RECONCILER, &self.reconciler), (Files::NAMESPACE, &self.namespace)]
            .into_iter()
            .chain(self.config.iter().map(|(kind, text)| (kind.name(), text)))
    }
}
