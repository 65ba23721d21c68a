//! The two sides of a plan: what `--from` and `--to` mean, and what they are when they aren't given.

use std::fmt;
use std::path::Path;

use anyhow::Result;
use kedge_platform::{ControlPlane, GitError, GitRepository, LoadError, environments};

use crate::control_plane::{EnvironmentArgs, Place};
use crate::error::UsageError;

/// So many digits of a commit are shown.
const SHORT: usize = 10;

#[derive(Debug)]
pub(super) struct Sides {
    pub from: Side,
    pub to: Side,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Before the first commit.
    Nothing,
    Read(ControlPlane),
}

impl Sides {
    pub fn of(args: &EnvironmentArgs, from: Option<&Path>, to: Option<&Path>) -> Result<Sides> {
        let place = args.place()?;
        let to_side = match to {
            Some(typed) => named(&place, typed)?,
            None => on_branch(place.control_plane(), &args.environment)?,
        };
        let from_side = match from {
            Some(typed) => Side::Read(named(&place, typed)?),
            None => before(&place, &to_side, &args.environment)?,
        };
        Ok(Sides { from: from_side, to: Side::Read(to_side) })
    }
}

/// A revision of the control plane wins over a folder of the same name; `./name` is always the folder.
fn named(place: &Place, typed: &Path) -> Result<ControlPlane> {
    let mut unknown = None;
    if place.is_git()
        && let Some(revision) = typed.to_str()
    {
        match GitRepository::open(&place.path)?.resolve(revision) {
            Ok(_) => return Ok(ControlPlane::Git { path: place.path.clone(), revision: Some(revision.to_owned()) }),
            Err(error) => unknown = Some(error),
        }
    }
    let other = Place::parse(typed)?;
    match (other.path.exists(), unknown) {
        // The files of a checkout as they are now: what is about to be committed.
        (true, _) if other.revision.is_none() && (other.is_checkout() || !other.is_git()) => {
            Ok(ControlPlane::Folder(other.path))
        }
        (true, _) => Ok(other.control_plane()),
        (false, Some(error @ GitError::NoRevision { .. })) => {
            let hint = error.hint().unwrap_or_default();
            Err(UsageError::new(error.to_string(), hint).into())
        }
        (false, Some(error)) => Err(LoadError::Git(error).into()),
        (false, None) => Err(LoadError::Missing { path: typed.display().to_string() }.into()),
    }
}

/// A repository without a revision means the environment's branch. One that isn't declared or doesn't exist is left to
/// the reader, which says so with those that do.
fn on_branch(control_plane: ControlPlane, environment: &str) -> Result<ControlPlane> {
    let ControlPlane::Git { path, revision: None } = control_plane else { return Ok(control_plane) };
    let declared = environments(&path)?;
    let branch = declared.get(environment).map(|(_, spec)| spec.control_plane.branch.trim().to_owned());
    let repo = GitRepository::open(&path).map_err(LoadError::Git)?;
    Ok(ControlPlane::Git { path, revision: branch.filter(|branch| repo.branch(branch).is_ok()) })
}

/// The first parent of a commit; the branch's head for files that aren't committed.
fn before(place: &Place, to: &ControlPlane, environment: &str) -> Result<Side> {
    let ControlPlane::Git { path, revision } = to else {
        if place.is_git() {
            return Ok(Side::Read(on_branch(place.control_plane(), environment)?));
        }
        let message = "a folder has no commit before it to compare with";
        return Err(UsageError::new(message, "name the other side with --from").into());
    };
    let repo = GitRepository::open(path).map_err(LoadError::Git)?;
    let commit = repo.resolve(revision.as_deref().unwrap_or("HEAD")).map_err(LoadError::Git)?.commit;
    match repo.resolve(&format!("{commit}~1")) {
        Ok(parent) => {
            Ok(Side::Read(ControlPlane::Git { path: path.clone(), revision: Some(parent.commit.to_string()) }))
        }
        Err(GitError::NoRevision { .. }) => Ok(Side::Nothing),
        Err(error) => Err(LoadError::Git(error).into()),
    }
}

impl Side {
    /// With the commit that a name stands for now, as people compare commits: by their first digits.
    pub fn in_full(&self) -> String {
        let Side::Read(ControlPlane::Git { path, revision: Some(typed) }) = self else { return self.to_string() };
        let resolved = GitRepository::open(path).and_then(|repo| repo.resolve(typed));
        let Ok(commit) = resolved.map(|found| found.commit.to_string()) else { return self.to_string() };
        let short = &commit[..SHORT.min(commit.len())];
        if commit.starts_with(typed.as_str()) { short.to_owned() } else { format!("{typed} ({short})") }
    }
}

/// As typed, or the whole commit when it wasn't.
impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Side::Nothing => f.write_str("nothing"),
            Side::Read(ControlPlane::Folder(path)) => write!(f, "{}", path.display()),
            Side::Read(ControlPlane::Git { revision: Some(revision), .. }) => f.write_str(revision),
            Side::Read(ControlPlane::Git { path, revision: None }) => write!(f, "the head in {}", path.display()),
        }
    }
}
