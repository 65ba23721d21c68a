//! Where a platform is read from: the options that commands share, `PATH[@REV]`, and loading. Used by every command
//! that reads a platform.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use kedge_model::Platform;
use kedge_model::name::{NameError, check_path_name};
use kedge_platform::{ControlPlane, Fetch, Repositories, Sources, is_git_repository};

use crate::error::UsageError;
use crate::output::say;

/// An environment of a control plane.
#[derive(Clone, Debug, clap::Args)]
pub struct EnvironmentArgs {
    /// The environment; of a Git repository, one that `.environments/` on main names
    #[arg(short, long, value_name = "NAME", value_parser = parse_environment)]
    pub environment: String,

    /// A folder that is the environment's branch, or a Git repository, whose revision defaults to that branch
    #[arg(short, long, value_name = "PATH[@REV]", default_value = ".")]
    pub control_plane: PathBuf,

    #[command(flatten)]
    pub repositories: RepositoryArgs,
}

/// Where the repositories are that a platform names.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct RepositoryArgs {
    /// A file that lists where each repository is; nothing is fetched then
    #[arg(short, long, value_name = "FILE")]
    pub sources: Option<PathBuf>,

    /// Where fetched repositories are kept [default: kedge/git in the user's cache folder]
    #[arg(long, value_name = "DIR", conflicts_with = "sources")]
    pub cache: Option<PathBuf>,
}

/// `PATH[@REV]` as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub path: PathBuf,
    pub revision: Option<String>,
}

impl Place {
    /// Paths may contain `@`: it splits only where what stands before it exists.
    pub fn parse(text: &Path) -> Result<Place, UsageError> {
        let whole = Place { path: text.to_owned(), revision: None };
        let Some(typed) = text.to_str().filter(|_| !text.exists()) else { return Ok(whole) };
        for (at, _) in typed.rmatch_indices('@') {
            let (path, revision) = (Path::new(&typed[..at]), &typed[at + 1..]);
            if path.exists() {
                if revision.is_empty() {
                    let message = format!("there is no revision behind the `@` of `{typed}`");
                    return Err(UsageError::new(message, "name a branch, tag or commit, or leave the `@` out"));
                }
                return Ok(Place { path: path.to_owned(), revision: Some(revision.to_owned()) });
            }
        }
        Ok(whole)
    }

    pub fn control_plane(&self) -> ControlPlane {
        ControlPlane::at(&self.path, self.revision.clone())
    }

    pub fn is_git(&self) -> bool {
        is_git_repository(&self.path)
    }

    /// A Git repository with files that people edit.
    pub fn is_checkout(&self) -> bool {
        self.path.join(".git").exists()
    }

    /// Whether files below the path are read, or will be once they are committed.
    pub fn has_files(&self) -> bool {
        self.is_checkout() || !self.is_git()
    }
}

/// An environment as it was typed: its name becomes part of paths.
pub fn parse_environment(typed: &str) -> Result<String, NameError> {
    check_path_name(typed)?;
    Ok(typed.to_owned())
}

impl EnvironmentArgs {
    pub fn place(&self) -> Result<Place, UsageError> {
        Place::parse(&self.control_plane)
    }

    pub fn load(&self) -> Result<Platform> {
        let place = self.place()?;
        let repositories = self.repositories.open(&place.path)?;
        Ok(kedge_platform::load(&place.control_plane(), &self.environment, repositories.as_ref())?)
    }
}

impl RepositoryArgs {
    /// Relative addresses begin at the control plane's folder.
    pub fn open(&self, control_plane: &Path) -> Result<Box<dyn Repositories>> {
        if let Some(file) = &self.sources {
            return Ok(Box::new(Sources::read(file)?));
        }
        let cache = self.cache.clone().or_else(Fetch::default_cache).context("there is no folder for a cache")?;
        Ok(Box::new(Fetch::new(cache).relative_to(control_plane).on_progress(say)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn parse(path: &Path) -> (String, Option<String>) {
        let place = Place::parse(path).unwrap();
        (place.path.file_name().unwrap().to_str().unwrap().to_owned(), place.revision)
    }

    #[test]
    fn an_at_splits_only_behind_something_that_exists() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["plain", "with@sign"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let parse = |text: &str| parse(&folder.path().join(text));
        assert_eq!(parse("plain"), ("plain".into(), None));
        assert_eq!(parse("plain@dev"), ("plain".into(), Some("dev".into())));
        assert_eq!(parse("plain@dev@{1}"), ("plain".into(), Some("dev@{1}".into())));
        assert_eq!(parse("with@sign"), ("with@sign".into(), None));
        assert_eq!(parse("with@sign@dev"), ("with@sign".into(), Some("dev".into())));
        assert_eq!(parse("nowhere@dev"), ("nowhere@dev".into(), None));
    }

    #[test]
    fn an_at_with_nothing_behind_it_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut typed = folder.path().as_os_str().to_owned();
        typed.push("@");
        assert!(Place::parse(Path::new(&typed)).unwrap_err().to_string().starts_with("there is no revision behind"));
    }
}
