//! `kedge validate`: every problem of a checkout, or of all environments of a control plane. Called by `main`.

mod delivered;
mod environment;
mod folder;
mod host;
mod kubernetes;
mod policy;
mod sources;

use std::path::{Path, PathBuf};

use anyhow::Result;
use kedge_model::Problem;
use kedge_platform::{ControlPlane, Environments, LoadError, Repositories, environments, load};
use kedge_scheduler::Scheduler;
use serde_json::{Value, json};

use crate::control_plane::{Place, RepositoryArgs, parse_environment};
use crate::error::{Exit, NotFound, UsageError};
use crate::output::{counted, print_json, print_text, print_yaml, say, unless_closed};
use crate::problems::{Problems, listed};
use delivered::Contents;

/// Show every problem of a control plane.
///
/// A folder or a checkout is read as the branch of one environment, with its files as they are now. In a bare repository, all
/// environments that `.environments/` on main declares are checked, and each problem is reported once. Main's PromotionPolicy is
/// checked with them: environments that don't exist, rings that a cluster type's reconciler can't follow, Pins that name what
/// isn't there. A Delivery whose source its workspace wasn't granted is an error, because the hub would refuse it.
///
/// What Kedge itself delivers is read too, where the Delivery names it. An error reports what the agents would refuse: files,
/// debs and units that the HostNamespace doesn't allow, objects outside of the workload's Kubernetes namespace. A warning names
/// rights that depend on the cluster. What can't be fetched, or needs kustomize or helm, isn't checked; a note lists it.
///
/// Exits with 1 when there are errors, with 0 when there are only warnings.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Check the checkout that you are in, before you commit:
    kedge validate

  Check all environments of its control plane:
    kedge validate --all-environments

  Check a repository without a network, all environments or one:
    kedge validate control-plane.git -s sources.yaml
    kedge validate control-plane.git -s sources.yaml -e dev

  Annotate a pull request in GitHub Actions:
    kedge validate -e dev -o github")]
pub struct ValidateArgs {
    /// A folder, a checkout or a Git repository [default: .]
    #[arg(value_name = "PATH[@REV]")]
    path: Option<PathBuf>,

    /// The same as PATH
    #[arg(short, long, value_name = "PATH[@REV]", conflicts_with = "path")]
    control_plane: Option<PathBuf>,

    /// The environment [default: the checkout's branch, or the folder's name]
    #[arg(short, long, value_name = "NAME", value_parser = parse_environment)]
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
#[derive(Default)]
struct Validated {
    problems: Problems,
    contents: Contents,
    environments: Vec<String>,
    assignments: usize,
}

pub fn run(args: &ValidateArgs) -> Result<Exit> {
    let path = args.path.as_ref().or(args.control_plane.as_ref());
    let place = Place::parse(path.map_or(Path::new("."), PathBuf::as_path))?;
    let repositories = args.repositories.open(&place.path)?;
    let mut validated = Validated::default();

    let whole_repository = place.is_git() && !place.is_checkout() && place.revision.is_none();
    if args.all_environments || (whole_repository && args.environment.is_none()) {
        if place.revision.is_some() {
            let message = "a revision is one environment, and all of them were asked for";
            return Err(UsageError::new(message, "leave `@REV` or `--all-environments` out").into());
        }
        validated.all(&place, repositories.as_ref())?;
    } else {
        let environment = environment::name(args.environment.as_deref(), &place)?;
        // A checkout's own files are what is about to be committed; a revision is read as it is.
        let control_plane = match place.is_checkout() && place.revision.is_none() {
            true => ControlPlane::Folder(place.path.clone()),
            false => place.control_plane(),
        };
        let known = policy::of_place(&place);
        validated.one(&control_plane, &environment, &known, repositories.as_ref())?;
    }

    let Validated { problems, .. } = &validated;
    match args.output {
        Output::Text => unless_closed(problems.write_text(&mut anstream::stdout().lock()))?,
        Output::Json => print_json(&validated.to_json())?,
        Output::Yaml => print_yaml(&validated.to_json())?,
        Output::Github => print_text(&problems.to_github(&place.path))?,
    }
    validated.notes().iter().for_each(|note| say(note));
    say(&validated.summary());
    Ok(if problems.errors() > 0 { Exit::Invalid } else { Exit::Success })
}

impl Validated {
    fn one(
        &mut self,
        control_plane: &ControlPlane,
        environment: &str,
        known: &Environments,
        repositories: &dyn Repositories,
    ) -> Result<(), LoadError> {
        let scheduler = Scheduler::new(load(control_plane, environment, repositories)?);
        self.problems.add_all_redacted(&scheduler);
        self.problems.add(environment, &policy::check(known, scheduler.platform()));
        self.problems.add(environment, &sources::check(&scheduler));
        self.problems.add_redacted(&scheduler, self.contents.check(&scheduler, repositories).iter());
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
            if let Err(error) = self.one(&control_plane, name, &known, repositories) {
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

    /// What wasn't judged, and why.
    fn notes(&self) -> Vec<String> {
        let note = |(why, assignments): (&String, _)| {
            format!("note: what {} would deliver isn't checked: {why}", listed(assignments).unwrap_or_default())
        };
        self.contents.unchecked.iter().map(note).collect()
    }

    /// `2 errors and 1 warning in environment dev (12 assignments)`
    fn summary(&self) -> String {
        let what = self.problems.summary().unwrap_or_else(|| "no problems".to_owned());
        let noun = if self.environments.len() == 1 { "environment" } else { "environments" };
        format!("{what} in {noun} {} ({})", self.environments.join(", "), counted(self.assignments, "assignment"))
    }

    fn unchecked(&self) -> Value {
        let one = |(why, assignments)| json!({ "assignments": assignments, "reason": why });
        self.contents.unchecked.iter().map(one).collect()
    }

    fn to_json(&self) -> Value {
        json!({
            "environments": self.environments,
            "assignments": self.assignments,
            "errors": self.problems.errors(),
            "warnings": self.problems.warnings(),
            "problems": self.problems.to_json(),
            "unchecked": self.unchecked(),
        })
    }
}
