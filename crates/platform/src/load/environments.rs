//! The environments of a control plane's repository: Environment objects below `.environments/` on its main branch, and the
//! PromotionPolicy beside them.
//! Asked by `load` for one, and by commands that go through all of them.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use kedge_model::kinds::Environment;
use kedge_model::{Object, Problem, Spec};

use super::{LoadError, error};
use crate::cache::Cache;
use crate::ignore::Ignore;
use crate::policy::DeclaredPolicy;
use crate::read::Batch;
use crate::repositories::{RepoKey, local_path};
use crate::tree::git::{GitError, GitRepository, GitTree};
use crate::tree::{Tree, TreeError};

const FOLDER: &str = ".environments";

/// Where Environments are written.
const MAIN_BRANCHES: [&str; 2] = ["main", "master"];

#[derive(Debug, Default)]
pub struct Environments {
    /// Sorted by name; of two with one name neither.
    pub environments: Vec<Arc<Object>>,
    /// Of `.environments/`; the policy has its own.
    pub problems: Vec<Problem>,
    pub policy: DeclaredPolicy,
}

/// Whether a branch of this name is where environments and the policy are written.
pub fn is_main_branch(name: &str) -> bool {
    MAIN_BRANCHES.contains(&name)
}

/// The environments that a Git repository names.
pub fn environments(path: &Path) -> Result<Environments, LoadError> {
    error::check_folder(path)?;
    let tree = main_tree(&GitRepository::open(path)?, &path.display().to_string())?;
    Ok(Environments::in_tree(&tree, None)?)
}

/// The main branch of a control plane's repository.
fn main_tree(repo: &GitRepository, name: &str) -> Result<GitTree, LoadError> {
    let revision = match repo.first_branch(&MAIN_BRANCHES) {
        Some(revision) => revision,
        None => repo.head()?,
    };
    Ok(repo.tree(&revision, name)?)
}

impl Environments {
    /// Without the policy: whoever wants one environment needn't read all of main for it.
    pub(super) fn of(repo: &GitRepository, name: &str) -> Result<Environments, LoadError> {
        let folder = folder(&main_tree(repo, name)?, None)?;
        Ok(Environments::among(folder, DeclaredPolicy::default()))
    }

    /// The environments that a commit of the main branch names, and its policy.
    pub fn in_tree(tree: &dyn Tree, cache: Option<&Cache>) -> Result<Environments, TreeError> {
        let folder = folder(tree, cache)?;
        let policy = DeclaredPolicy::read(tree, &folder, cache);
        Ok(Environments::among(folder, policy))
    }

    fn among(folder: Batch, policy: DeclaredPolicy) -> Environments {
        let mut found = Environments { environments: Vec::new(), problems: folder.problems, policy };
        let mut objects: Vec<Arc<Object>> = folder.objects;
        objects.retain(|object| matches!(object.spec, Spec::Environment(_)));
        objects.sort_by(|one, other| (&one.meta.name, &one.origin).cmp(&(&other.meta.name, &other.origin)));
        for same in objects.chunk_by(|one, other| one.meta.name == other.meta.name) {
            let [first, others @ ..] = same else { continue };
            if others.is_empty() {
                found.environments.push(Arc::clone(first));
                continue;
            }
            let message =
                format!("Environment {} is defined {} times; none of them is used", first.meta.name, same.len());
            let mut problem = Problem::error("DuplicateObject", message).at(first.origin.clone());
            problem.related = others.iter().map(|object| object.origin.clone()).collect();
            found.problems.push(problem.hint("delete all but one, or rename them"));
        }
        found
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

    /// Whether any is written, be it wrongly.
    pub(super) fn declares(&self) -> bool {
        !self.environments.is_empty() || self.problems.iter().any(Problem::is_error)
    }

    /// The branch of this environment isn't there.
    pub(super) fn no_branch(&self, environment: &str, error: GitError) -> LoadError {
        let Some((object, _)) = self.get(environment) else { return error.into() };
        let origin = object.origin.at(object.origin.line, 0);
        let branch = origin.source.revision.as_deref().and_then(|revision| revision.rsplit_once("@sha1:"));
        let place = match branch {
            Some((branch, _)) => format!("{origin} on {branch}"),
            None => origin.to_string(),
        };
        LoadError::NoBranch { environment: environment.to_owned(), place, error: Box::new(error) }
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

/// What the folder of environments holds; nothing when there is none.
fn folder(tree: &dyn Tree, cache: Option<&Cache>) -> Result<Batch, TreeError> {
    match Batch::read(tree, FOLDER, Ignore::default(), None, cache) {
        Err(TreeError::Missing { .. }) => Ok(Batch::default()),
        read => read,
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
