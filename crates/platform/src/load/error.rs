//! Why there is no platform at all, each with the way out.

use std::fs;
use std::io;
use std::path::Path;

use kedge_model::Problem;

use crate::tree::TreeError;
use crate::tree::git::GitError;

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("the control plane `{path}` does not exist")]
    Missing { path: String },
    #[error("the control plane `{path}` is a file, not a folder or a Git repository")]
    NotAFolder { path: String },
    #[error("the control plane `{path}` can't be read")]
    Unreadable { path: String, source: io::Error },
    #[error("there is no YAML object in {place}{}", below(path))]
    Empty { place: String, path: String },
    #[error("there is no environment `{environment}` in `{path}`")]
    NoEnvironment {
        environment: String,
        path: String,
        known: Vec<String>,
        /// What is wrong with the files that should name it.
        problems: Vec<Problem>,
    },
    #[error("{error}, which Environment {environment} names ({place})")]
    NoBranch {
        environment: String,
        /// Where the Environment is written.
        place: String,
        error: Box<GitError>,
    },
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Tree(#[from] TreeError),
}

impl LoadError {
    pub fn hint(&self) -> Option<String> {
        match self {
            LoadError::Missing { .. } => Some("name the folder or the Git repository of the control plane".to_owned()),
            LoadError::NotAFolder { path } => {
                let folder = Path::new(path).parent().filter(|folder| !folder.as_os_str().is_empty());
                Some(format!("name its folder: `{}`", folder.unwrap_or(Path::new(".")).display()))
            }
            LoadError::Unreadable { .. } => Some("check who may read it".to_owned()),
            LoadError::Empty { .. } => Some(
                "an environment branch holds ClusterTypes, SchedulingPolicies and a BaseRepo in .yaml files; is this \
                 another branch or folder?"
                    .to_owned(),
            ),
            LoadError::NoEnvironment { known, .. } if known.is_empty() => Some(
                "an Environment object below `.environments/` on `main` names the branch of an environment".to_owned(),
            ),
            LoadError::NoEnvironment { known, .. } => Some(format!("the environments are {}", known.join(", "))),
            LoadError::NoBranch { error, .. } => error.hint(),
            LoadError::Git(error) => error.hint(),
            LoadError::Tree(error) => error.hint(),
        }
    }
}

/// A folder that can be listed; through a link is fine, since a person named it.
pub(super) fn check_folder(path: &Path) -> Result<(), LoadError> {
    let shown = path.display().to_string();
    match fs::metadata(path) {
        Ok(found) if !found.is_dir() => Err(LoadError::NotAFolder { path: shown }),
        Ok(_) => match fs::read_dir(path) {
            Ok(_) => Ok(()),
            Err(source) => Err(LoadError::Unreadable { path: shown, source }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(LoadError::Missing { path: shown }),
        Err(source) => Err(LoadError::Unreadable { path: shown, source }),
    }
}

fn below(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" below `{path}`") }
}
