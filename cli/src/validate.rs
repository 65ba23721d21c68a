//! `kedge validate`: every problem of a checkout, or of all environments of a control plane. Called by `main`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use kedge_model::Problem;
use kedge_platform::{ControlPlane, GitRepository, LoadError, Repositories, environments, load};
use kedge_scheduler::Scheduler;
use serde_json::{Value, json};

use crate::control_plane::{Place, RepositoryArgs};
use crate::error::{Exit, NotFound, UsageError};
use crate::output::{counted, print_json, print_yaml, say};
use crate::problems::Problems;

/// Show every problem of a control plane.
///
/// A folder or a checkout is read as the branch of one environment, with its files as they are now. A bare repository is
/// read whole: every environment that `.environments/` on main names, each problem once.
///
/// Exits with 1 when there are errors, with 0 when there are only warnings.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Check the checkout that you are in, before you commit:
    kedge validate

  Check it as the environment dev, with repositories from a file:
    kedge validate --environment dev --sources sources.yaml

  Check all environments of a control plane:
    kedge validate control-plane.git
    kedge validate --all-environments

  Annotate a pull request in GitHub Actions:
    kedge validate --environment dev -o github")]
pub struct ValidateArgs {
    /// A folder, a checkout or a Git repository [default: .]
    #[arg(value_name = "PATH[@REV]")]
    path: Option<PathBuf>,

    /// The same as PATH
    #[arg(short, long, value_name = "PATH[@REV]", conflicts_with = "path")]
    control_plane: Option<PathBuf>,

    /// The environment [default: the checkout's branch, or the folder's name]
    #[arg(short, long, value_name = "NAME")]
    environment: Option<String>,

    /// Every environment that `.environments/` on main names
    #[arg(short, long, conflicts_with = "environment")]
    all_environments: bool,

    #[command(flatten)]
    repositories: RepositoryArgs,

    /// How to print the problems
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    Text,
    Json,
    Yaml,
    /// Annotations of GitHub Actions
    Github,
}

/// What was looked at.
struct Validated {
    problems: Problems,
    environments: Vec<String>,
    assignments: usize,
}

pub fn run(args: &ValidateArgs) -> Result<Exit> {
    let path = args.path.as_ref().or(args.control_plane.as_ref());
    let place = Place::parse(path.map_or(Path::new("."), PathBuf::as_path))?;
    let repositories = args.repositories.open(&place.path)?;
    let mut validated = Validated { problems: Problems::default(), environments: Vec::new(), assignments: 0 };

    let whole_repository = place.is_git() && !place.is_checkout() && place.revision.is_none();
    if args.all_environments || (whole_repository && args.environment.is_none()) {
        if place.revision.is_some() {
            let message = "a revision is one environment, and all of them were asked for";
            return Err(UsageError::new(message, "leave `@REV` or `--all-environments` out").into());
        }
        validated.all(&place, repositories.as_ref())?;
    } else {
        let environment = environment_name(args, &place)?;
        // A checkout's own files are what is about to be committed; a revision is read as it is.
        let control_plane = match place.is_checkout() && place.revision.is_none() {
            true => ControlPlane::Folder(place.path.clone()),
            false => place.control_plane(),
        };
        validated.one(&control_plane, &environment, repositories.as_ref())?;
    }

    let Validated { problems, .. } = &validated;
    match args.output {
        Output::Text => problems.write_text(&mut anstream::stdout().lock())?,
        Output::Json => print_json(&validated.to_json())?,
        Output::Yaml => print_yaml(&validated.to_json())?,
        Output::Github => {
            let mut out = std::io::stdout().lock();
            problems.write_github(&mut out, &place.path)?;
            out.flush()?;
        }
    }
    say(&validated.summary());
    Ok(if problems.errors() > 0 { Exit::Invalid } else { Exit::Success })
}

impl Validated {
    fn one(
        &mut self,
        control_plane: &ControlPlane,
        environment: &str,
        repositories: &dyn Repositories,
    ) -> Result<(), LoadError> {
        let scheduler = Scheduler::new(load(control_plane, environment, repositories)?);
        self.problems.add_scheduled(&scheduler);
        self.assignments += scheduler.schedule().assignments.len();
        self.environments.push(environment.to_owned());
        Ok(())
    }

    /// An environment that can't be read doesn't hide the others.
    fn all(&mut self, place: &Place, repositories: &dyn Repositories) -> Result<()> {
        let known = environments(&place.path)?;
        if known.environments.is_empty() && known.problems.is_empty() {
            let message = format!("`{}` names no environment", place.path.display());
            let hint = "write an Environment below `.environments/` on main, or name one with --environment";
            return Err(NotFound::new(message, hint).into());
        }
        for object in &known.environments {
            let name = &object.meta.name;
            let control_plane = ControlPlane::Git { path: place.path.clone(), revision: None };
            if let Err(error) = self.one(&control_plane, name, repositories) {
                let mut problem =
                    Problem::error("EnvironmentUnreadable", format!("environment `{name}` can't be read: {error}"));
                problem.origin = Some(object.origin.clone());
                problem.hint = error.hint();
                self.problems.add(name, [&problem]);
                self.environments.push(name.clone());
            }
        }
        for name in known.names() {
            self.problems.add(&name, &known.problems);
        }
        Ok(())
    }

    /// `2 errors and 1 warning in environment dev (12 assignments)`
    fn summary(&self) -> String {
        let what = self.problems.summary().unwrap_or_else(|| "no problems".to_owned());
        let noun = if self.environments.len() == 1 { "environment" } else { "environments" };
        format!("{what} in {noun} {} ({})", self.environments.join(", "), counted(self.assignments, "assignment"))
    }

    fn to_json(&self) -> Value {
        json!({
            "environments": self.environments,
            "assignments": self.assignments,
            "errors": self.problems.errors(),
            "warnings": self.problems.warnings(),
            "problems": self.problems.to_json(),
        })
    }
}

fn environment_name(args: &ValidateArgs, place: &Place) -> Result<String, UsageError> {
    if let Some(name) = &args.environment {
        return Ok(name.clone());
    }
    if let Some(revision) = &place.revision {
        return Ok(revision.clone());
    }
    if let Some(name) = place.is_checkout().then(|| environment_of_checkout(&place.path)).flatten() {
        return Ok(name);
    }
    let folder = place.path.canonicalize().ok();
    let name = folder.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    name.ok_or_else(|| {
        let message = format!("`{}` has no name that an environment could have", place.path.display());
        UsageError::new(message, "say which environment it is with --environment")
    })
}

/// The environment whose branch is checked out; a branch that none names is taken for one of the same name.
fn environment_of_checkout(path: &Path) -> Option<String> {
    let branch = GitRepository::open(path).ok()?.head().ok()?.name?;
    let known = environments(path).unwrap_or_default();
    let mut names = known.names().into_iter();
    let declared = names.find(|name| known.get(name).is_some_and(|(_, spec)| spec.control_plane.branch == branch));
    Some(declared.unwrap_or(branch))
}
