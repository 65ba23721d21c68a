//! From a control plane to a `Platform`: the environment's own files, the BaseRepos behind them, and the applications
//! that are registered. Called by the CLI for a checkout; the hub gives `load_tree` its own trees.

mod applications;
mod bases;
mod environments;
mod error;
mod layers;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kedge_model::{Empty, EmptyInput, Failing, Kind, Object, Platform, Problem, Source, Spec};

use crate::ignore::Ignore;
use crate::read::Batch;
use crate::repositories::{RepoKey, Repositories};
use crate::tree::folder::{FolderTree, is_git_repository};
use crate::tree::git::GitRepository;
use crate::tree::{Tree, clean_path};
use bases::{Bases, Step};
pub use environments::{Environments, environments, is_main_branch};
pub use error::LoadError;
use layers::Layers;

/// What a person points at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlPlane {
    /// The environment branch itself, as files.
    Folder(PathBuf),
    /// A repository, bare or not. Without a revision the environment's branch is read.
    Git { path: PathBuf, revision: Option<String> },
}

/// The tree of an environment, and where in it the environment is.
#[derive(Debug)]
struct Opened {
    tree: Box<dyn Tree>,
    path: String,
    /// The repository, when its address is known: a BaseRepo may lead back to it.
    step: Option<Step>,
    /// The branch, when it is known.
    branch: Option<String>,
    /// An Environment names it: without objects it only begins. Else somebody pointed at it, maybe by mistake.
    declared: bool,
    problems: Vec<Problem>,
}

impl ControlPlane {
    /// A path as typed: a repository when it is one or a revision was named, else a folder.
    pub fn at(path: impl Into<PathBuf>, revision: Option<String>) -> ControlPlane {
        let path = path.into();
        match revision.is_some() || is_git_repository(&path) {
            true => ControlPlane::Git { path, revision },
            false => ControlPlane::Folder(path),
        }
    }
}

/// Reads one environment. What is wrong with single files and repositories is in the platform; an error means that
/// there is no platform to speak of.
pub fn load(
    control_plane: &ControlPlane,
    environment: &str,
    repositories: &dyn Repositories,
) -> Result<Platform, LoadError> {
    let opened = match control_plane {
        ControlPlane::Folder(path) => open_folder(path)?,
        ControlPlane::Git { path, revision } => open_git(path, revision.as_deref(), environment, repositories)?,
    };
    let mut platform = assemble(opened, environment, repositories)?;
    // What an application held before nobody knows here: what is published of it isn't deleted.
    for Empty { input, problem } in platform.empty.clone() {
        if let EmptyInput::Registration(name) = input {
            fail(&mut platform, Some(&name), vec![problem]);
        }
    }
    Ok(platform)
}

/// Reads one environment from a tree that is already open, below `path`. A BaseRepo that leads back to the tree's own
/// branch closes a ring. Which of the empty inputs were emptied the caller says.
pub fn load_tree(
    tree: Box<dyn Tree>,
    path: &str,
    environment: &str,
    repositories: &dyn Repositories,
) -> Result<Platform, LoadError> {
    let path = clean_path(path)?;
    let source = tree.source();
    let branch = source.revision.as_deref().and_then(|revision| revision.rsplit_once("@sha1:"));
    let step = branch.map(|(branch, _)| Step::environment(environment, RepoKey::new(&source.repo), branch, &path));
    let branch = branch.map(|(branch, _)| branch.to_owned());
    assemble(Opened { tree, path, step, branch, declared: true, problems: Vec::new() }, environment, repositories)
}

/// Reads the applications of these registrations too: those that are in force though they can't be read now.
pub fn load_applications(platform: &mut Platform, registrations: &[Arc<Object>], repositories: &dyn Repositories) {
    applications::load(platform, registrations, &mut bases::Trees::new(repositories));
}

fn open_folder(path: &Path) -> Result<Opened, LoadError> {
    error::check_folder(path)?;
    let source = Source { repo: path.display().to_string(), revision: None };
    let tree = Box::new(FolderTree::new(path, source));
    let branch = match is_git_repository(path) {
        true => GitRepository::open(path).and_then(|repo| repo.head()).ok().and_then(|head| head.name),
        false => None,
    };
    Ok(Opened { tree, path: String::new(), step: None, branch, declared: false, problems: Vec::new() })
}

fn open_git(
    path: &Path,
    revision: Option<&str>,
    environment: &str,
    repositories: &dyn Repositories,
) -> Result<Opened, LoadError> {
    error::check_folder(path)?;
    let repo = GitRepository::open(path)?;
    let name = path.display().to_string();
    let known = match Environments::of(&repo, &name) {
        Err(_) if revision.is_some() => Environments::default(),
        known => known?,
    };
    let declared = match (known.get(environment), revision) {
        (Some(found), _) => Some(found),
        // Where no environment is declared, a revision that somebody chose is one by whatever name. Else it's a slip,
        // and no target would be of that environment.
        (None, Some(_)) if !known.declares() => None,
        (None, _) => return Err(known.into_missing(environment, path)),
    };
    let mut problems = Vec::new();
    let (mut branch, mut folder, mut step) = ("", String::new(), None);
    if let Some((object, spec)) = declared {
        let at = &spec.control_plane;
        branch = at.branch.trim();
        folder = clean_path(&at.path)?;
        if !repositories.is_at(&at.repo, path)
            && let Some(other) = environments::other_repository(&repo, path, &at.repo)
        {
            let message = format!(
                "Environment {environment} is in {}, and this repository is {other}; its branch `{branch}` is read from here",
                at.repo
            );
            let problem = Problem::warning("OtherRepository", message).at(object.origin.clone());
            problems.push(problem.hint("name that repository instead, or fix `controlPlane.repo`"));
        }
        step = Some(Step::environment(environment, RepoKey::new(&at.repo), revision.unwrap_or(branch), &folder));
    }
    let revision = match (revision, branch) {
        (Some(named), _) => repo.resolve(named)?,
        (None, "") => repo.head()?,
        (None, branch) => repo.branch(branch).map_err(|error| known.no_branch(environment, error))?,
    };
    let tree = Box::new(repo.tree(&revision, &name)?);
    Ok(Opened { tree, path: folder, step, branch: revision.name, declared: declared.is_some(), problems })
}

fn assemble(opened: Opened, environment: &str, repositories: &dyn Repositories) -> Result<Platform, LoadError> {
    let Opened { tree, path, step, branch, declared, mut problems } = opened;
    let mut own = Batch::read(tree.as_ref(), &path, Ignore::environment(), None, repositories.cache())?;
    let mut empty = Vec::new();
    if own.is_empty() {
        let error = LoadError::Empty { place: tree.source().to_string(), path };
        if !declared {
            return Err(error);
        }
        let problem = Problem::warning("NothingFound", format!("environment {environment} is empty: {error}"));
        problems
            .push(problem.hint("add ClusterTypes, SchedulingPolicies and a GitOpsRepo, or correct its `controlPlane`"));
        empty.extend(problems.last().map(|problem| Empty { input: EmptyInput::Environment, problem: problem.clone() }));
    }
    drop(tree);
    if branch.is_some_and(|branch| !is_main_branch(&branch)) {
        problems.extend(misplaced_policies(&mut own));
    }

    let mut platform = Platform { environment: environment.to_owned(), problems, empty, ..Platform::default() };
    let mut trees = bases::Trees::new(repositories);
    let mut layers = Layers::default();
    Bases { trees: &mut trees, platform: &mut platform, layers: &mut layers }.load(own, step);
    platform.objects = std::mem::take(&mut layers.objects);
    platform.broken = std::mem::take(&mut layers.broken);
    platform.problems.append(&mut layers.problems);
    fail(&mut platform, None, layers.failures);

    let registrations: Vec<Arc<Object>> = platform.of_kind(Kind::WorkloadRegistration).cloned().collect();
    applications::load(&mut platform, &registrations, &mut trees);
    warn_of_paths(&mut platform);
    platform.problems.sort_by(|one, other| (&one.origin, one).cmp(&(&other.origin, other)));
    platform.problems.dedup();
    Ok(platform)
}

/// Policies on an environment's branch would gate themselves; they are taken out.
fn misplaced_policies(own: &mut Batch) -> Vec<Problem> {
    let is_policy = |object: &Arc<Object>| matches!(object.spec, Spec::PromotionPolicy(_));
    let (policies, others) = std::mem::take(&mut own.objects).into_iter().partition::<Vec<_>, _>(is_policy);
    own.objects = others;
    let refuse = |object: &Arc<Object>| {
        let message = format!("{} is on an environment's branch, and a policy is read from `main` only", object.id());
        let problem = Problem::error("PolicyMisplaced", message).at(object.origin.clone());
        problem.hint("move its file to `main`, and delete it here")
    };
    policies.iter().map(refuse).collect()
}

/// Marks an input as failing for each of these, which are already among the problems.
fn fail(platform: &mut Platform, registration: Option<&str>, failures: Vec<Problem>) {
    platform
        .failing
        .extend(failures.into_iter().map(|problem| Failing { registration: registration.map(str::to_owned), problem }));
}

/// Notes an input that holds nothing.
fn note_empty(platform: &mut Platform, input: EmptyInput, problem: Problem) {
    platform.problems.push(problem.clone());
    platform.empty.push(Empty { input, problem });
}

/// Kalypso never looked at `GitOpsRepo.path`, so whoever sets it expects something that doesn't happen.
fn warn_of_paths(platform: &mut Platform) {
    let mut warnings = Vec::new();
    for object in platform.of_kind(Kind::GitOpsRepo) {
        let Spec::GitOpsRepo(gitops) = &object.spec else { continue };
        if clean_path(&gitops.repo.path).is_ok_and(|path| path.is_empty()) {
            continue;
        }
        let message = format!(
            "GitOpsRepo {} has the path `{}`, which has no effect: files are written at the branch's root",
            object.meta.name, gitops.repo.path
        );
        let problem = Problem::warning("PathIgnored", message).at(object.origin.clone());
        warnings.push(problem.hint("write `path: .`"));
    }
    platform.problems.append(&mut warnings);
}

#[cfg(test)]
mod tests;
