//! The environments of a control plane's repository: Environment objects below `.environments/` on its main branch.
//! Asked by `load` for one, and by commands that go through all of them.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use kedge_model::kinds::Environment;
use kedge_model::{Object, Problem, Spec};

use super::{LoadError, error};
use crate::ignore::Ignore;
use crate::read::Batch;
use crate::repositories::{RepoKey, local_path};
use crate::tree::TreeError;
use crate::tree::git::GitRepository;

const FOLDER: &str = ".environments";

/// Where Environments are written.
const MAIN_BRANCHES: [&str; 2] = ["main", "master"];

#[derive(Debug, Default)]
pub struct Environments {
    /// Sorted by name; of two with one name the first by place.
    pub environments: Vec<Arc<Object>>,
    pub problems: Vec<Problem>,
}

/// The environments that a Git repository names.
pub fn environments(path: &Path) -> Result<Environments, LoadError> {
    error::check_folder(path)?;
    Environments::of(&GitRepository::open(path)?, &path.display().to_string())
}

impl Environments {
    pub(super) fn of(repo: &GitRepository, name: &str) -> Result<Environments, LoadError> {
        let revision = match repo.first_branch(&MAIN_BRANCHES) {
            Some(revision) => revision,
            None => repo.head()?,
        };
        let tree = repo.tree(&revision, name)?;
        let batch = match Batch::read(&tree, FOLDER, Ignore::default(), None) {
            Ok(batch) => batch,
            Err(TreeError::Missing { .. }) => return Ok(Environments::default()),
            Err(error) => return Err(error.into()),
        };
        let mut found = Environments { environments: Vec::new(), problems: batch.problems };
        let mut objects: Vec<Object> = batch.objects;
        objects.retain(|object| matches!(object.spec, Spec::Environment(_)));
        objects.sort_by(|one, other| (&one.meta.name, &one.origin).cmp(&(&other.meta.name, &other.origin)));
        for object in objects {
            match found.environments.last() {
                Some(last) if last.meta.name == object.meta.name => {
                    let message = format!("Environment {} is defined in {} too", object.meta.name, last.origin);
                    let problem = Problem::error("DuplicateObject", message).at(object.origin.clone());
                    found.problems.push(problem.also_at(last.origin.clone()).hint("delete one of the two"));
                }
                _ => found.environments.push(Arc::new(object)),
            }
        }
        Ok(found)
    }

    pub fn names(&self) -> Vec<String> {
        self.environments.iter().map(|object| object.meta.name.clone()).collect()
    }

    pub fn get(&self, name: &str) -> Option<(&Arc<Object>, &Environment)> {
        let object = self.environments.iter().find(|object| object.meta.name == name)?;
        match &object.spec {
            Spec::Environment(spec) => Some((object, spec)),
            _ => None,
        }
    }

    pub(super) fn into_missing(self, environment: &str, path: &Path) -> LoadError {
        LoadError::NoEnvironment {
            environment: environment.to_owned(),
            path: path.display().to_string(),
            known: self.names(),
            problems: self.problems,
        }
    }
}

/// What the given repository is, when it is known not to be the one that an Environment names.
pub(super) fn other_repository(repo: &GitRepository, path: &Path, named: &str) -> Option<String> {
    let here = fs::canonicalize(path).ok()?;
    let local = local_path(named);
    if let Some(local) = &local
        && fs::canonicalize(here.join(local)).is_ok_and(|found| found == here)
    {
        return None;
    }
    match repo.origin_url() {
        Some(origin) if RepoKey::new(&origin) == RepoKey::new(named) => None,
        Some(origin) => Some(origin),
        None => local.map(|_| path.display().to_string()),
    }
}
