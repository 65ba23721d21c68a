//! Where `kustomize` and `helm` are on this machine. Used by `local`, for the hub's own and for the renderer's.

use std::path::{Path, PathBuf};

use super::request::Program;

/// Each a path, or a name that is looked for where programs are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    pub kustomize: PathBuf,
    pub helm: PathBuf,
}

impl Installed {
    pub fn find(&self, program: Program) -> Option<PathBuf> {
        find(self.path(program))
    }

    /// As it was configured.
    pub fn path(&self, program: Program) -> &Path {
        match program {
            Program::Kustomize => &self.kustomize,
            Program::Helm => &self.helm,
        }
    }
}

/// The program itself: a path, or a name that is looked for where programs are.
pub(super) fn find(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|found| found.is_file())
}
