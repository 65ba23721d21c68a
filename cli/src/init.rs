//! `kedge init`: makes a sample platform of local bare Git repositories that renders at once. Called by `main`.

pub(crate) mod commands;
mod place;
mod repository;
mod sample;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::Exit;
use crate::output::print_text;
use place::Place;
use repository::{Content, NewRepository};
pub use sample::Flavour;
use sample::{ENVIRONMENTS, SampleFile, Words};

/// Create a sample platform to try Kedge.
///
/// Writes local Git repositories into DIR: a control plane with the branches main, dev, stage and prod, an application
/// with a target for Kubernetes and one for Debian hosts in each environment, and their GitOps repositories. No network
/// and no `git` program is needed. DIR must be empty or not exist; if anything fails, nothing is left behind.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Make a sample and read what is in it:
    kedge init demo
    cat demo/README.md

  Look for problems in all its environments:
    kedge validate --control-plane demo/control-plane.git

  The sample that `kedge up` runs, without the hub and the agents:
    kedge init demo --files-only")]
pub struct InitArgs {
    /// The folder to make
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// Plain hosts with files only, so that agents can run below folders without root; `kedge up` uses this sample
    #[arg(long)]
    pub files_only: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum InitError {
    #[error("`{}` exists and isn't empty", path.display())]
    NotEmpty { path: PathBuf },
    #[error("`{}` isn't a folder", path.display())]
    NotAFolder { path: PathBuf },
    #[error("the folder `{}` doesn't exist", path.display())]
    NoParent { path: PathBuf },
    #[error("can't write in `{}`", path.display())]
    ParentNotWritable { path: PathBuf, source: io::Error },
    #[error("can't look at `{}`", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("the path `{}` isn't valid UTF-8, and URLs in YAML are made of it", path.display())]
    NotUtf8 { path: PathBuf },
    #[error("can't write `{}`", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("can't make the repository `{name}`")]
    Repository { name: &'static str, source: gix::Error },
}

const CONTROL_PLANE: &str = "control-plane.git";
const HELLO: &str = "hello.git";
const HELLO_GITOPS: &str = "hello-gitops.git";
const BEACON: &str = "beacon.git";
const BEACON_GITOPS: &str = "beacon-gitops.git";
const GITOPS: &str = "gitops.git";

/// What stands in the folder, and what it is.
fn entries(flavour: Flavour) -> Vec<(&'static str, &'static str)> {
    let manifests = match flavour {
        Flavour::Whole => "its manifests for Kubernetes and for Debian hosts",
        Flavour::FilesOnly => "its manifests for hosts, files only",
    };
    let mut entries = vec![
        (CONTROL_PLANE, "the platform: branches main, dev, stage, prod"),
        (HELLO, "the application hello: its Workload"),
        (HELLO_GITOPS, manifests),
    ];
    if flavour == Flavour::FilesOnly {
        entries.push((BEACON, "another team's application, beacon"));
        entries.push((BEACON_GITOPS, "its manifests"));
    }
    entries.extend([
        (GITOPS, "where rendered files go"),
        ("sources.yaml", "where each repository is found without a network"),
        ("README.md", "what is here, and what to try"),
    ]);
    entries
}

/// Makes the sample and tells on stdout what to do with it.
pub fn run(args: &InitArgs) -> anyhow::Result<Exit> {
    let flavour = if args.files_only { Flavour::FilesOnly } else { Flavour::Whole };
    create(&args.dir, flavour)?;
    let mut text = format!("Made a sample platform in {}:\n", args.dir.display());
    for (name, what) in entries(flavour) {
        text.push_str(&format!("  {name:<18} {what}\n"));
    }
    text.push_str(&format!("\nTry:\n{}", commands::list(Some(&args.dir), "  ")));
    print_text(&text)?;
    Ok(Exit::Success)
}

/// Makes the sample in `dir`, whole or not at all. Returns its path, absolute and without symbolic links.
pub fn create(dir: &Path, flavour: Flavour) -> Result<PathBuf, InitError> {
    let place = Place::prepare(dir)?;
    let url = file_url(place.target());
    // A clock before 1970 is wrong anyway; the time is only shown.
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());

    let words = Words { url, ..Words::default() };
    let main = in_repository(&place, CONTROL_PLANE, "main", seconds, |new| write_control_plane(new, flavour, &words))?;
    let words = Words { main, ..words };
    in_repository(&place, HELLO, "main", seconds, |new| {
        new.commit("main", "Describe the application", &fill("", &flavour.hello(), &words), None)
    })?;
    in_repository(&place, HELLO_GITOPS, "dev", seconds, |new| write_manifests(new, flavour, &words))?;
    if flavour == Flavour::FilesOnly {
        in_repository(&place, BEACON, "main", seconds, |new| {
            new.commit("main", "Describe the application", &fill("", sample::files_only::BEACON, &words), None)
        })?;
        in_repository(&place, BEACON_GITOPS, "dev", seconds, |new| write_beacon(new, &words))?;
    }
    in_repository(&place, GITOPS, "dev", seconds, |new| write_gitops(new, &words))?;
    write_file(&place, "sources.yaml", &words.fill(flavour.sources()))?;
    write_file(&place, "README.md", &flavour.readme().replace("@COMMANDS@\n", &commands::list(None, "    ")))?;

    place.finish()
}

impl InitError {
    /// The way out, in one sentence.
    pub fn hint(&self) -> Option<String> {
        match self {
            InitError::NotEmpty { .. } => {
                Some("name a folder that doesn't exist yet, or empty this one first".to_owned())
            }
            InitError::NotAFolder { .. } => Some("name a folder that doesn't exist yet".to_owned()),
            InitError::NoParent { path } => {
                Some(format!("make it first: mkdir -p {}", commands::quote(&path.display().to_string())))
            }
            InitError::ParentNotWritable { .. } => Some("name a place that you may write to".to_owned()),
            InitError::NotUtf8 { .. } => Some("name another place".to_owned()),
            InitError::Unreadable { .. } | InitError::Write { .. } | InitError::Repository { .. } => None,
        }
    }
}

/// Returns main's head.
fn write_control_plane(new: &NewRepository, flavour: Flavour, words: &Words) -> gix::Result<String> {
    let mut files = fill("", &flavour.control_plane_main(), words);
    for environment in &ENVIRONMENTS {
        let words = Words { environment: environment.name, ..words.clone() };
        let path = format!(".environments/{}.yaml", environment.name);
        files.push(Content { path, text: words.fill(sample::ENVIRONMENT) });
    }
    let main = new.commit("main", "Describe the platform", &files, None)?.to_string();

    for (at, environment) in ENVIRONMENTS.iter().enumerate() {
        let name = environment.name;
        let words = Words { main: main.clone(), environment: name, ..words.clone() };
        let files = fill("", &flavour.control_plane_environment(at), &words);
        let first = new.commit(name, &format!("Describe the environment {name}"), &files, None)?;
        if !environment.later.is_empty() {
            let later = fill("", environment.later, &words);
            new.commit(name, "Tell the line test apart from other targets", &later, Some(first))?;
        }
    }
    Ok(main)
}

fn write_manifests(new: &NewRepository, flavour: Flavour, words: &Words) -> gix::Result<()> {
    for environment in &ENVIRONMENTS {
        let in_folder = |target: &'static str, files: &[SampleFile]| {
            let words = Words { environment: environment.name, target, ..words.clone() };
            fill(&format!("{target}/"), files, &words)
        };
        let mut files = in_folder(environment.kubernetes_target, flavour.hello_kubernetes());
        files.extend(in_folder(environment.host_target, flavour.hello_host()));
        new.commit(environment.name, "Write the manifests of hello", &files, None)?;
    }
    Ok(())
}

fn write_beacon(new: &NewRepository, words: &Words) -> gix::Result<()> {
    for environment in &ENVIRONMENTS {
        let words = Words { environment: environment.name, ..words.clone() };
        let files = fill("beacon/", sample::files_only::BEACON_HOST, &words);
        new.commit(environment.name, "Write the manifests of beacon", &files, None)?;
    }
    Ok(())
}

fn write_gitops(new: &NewRepository, words: &Words) -> gix::Result<()> {
    for environment in &ENVIRONMENTS {
        let words = Words { environment: environment.name, ..words.clone() };
        new.commit(environment.name, "Say what this branch is for", &fill("", sample::GITOPS, &words), None)?;
    }
    Ok(())
}

fn in_repository<T>(
    place: &Place,
    name: &'static str,
    branch: &str,
    seconds: u64,
    write: impl FnOnce(&NewRepository) -> gix::Result<T>,
) -> Result<T, InitError> {
    NewRepository::create(&place.staging().join(name), branch, seconds)
        .and_then(|new| write(&new))
        .map_err(|source| InitError::Repository { name, source })
}

fn fill(folder: &str, files: &[SampleFile], words: &Words) -> Vec<Content> {
    files.iter().map(|file| Content { path: format!("{folder}{}", file.path), text: words.fill(file.text) }).collect()
}

fn write_file(place: &Place, name: &str, text: &str) -> Result<(), InitError> {
    let path = place.staging().join(name);
    fs::write(&path, text).map_err(|source| InitError::Write { path: place.target().join(name), source })
}

/// A URL that needs no quotes in YAML nor in a template, and that a Workload may name. Only what it can't be written with
/// is escaped, because not every reader of file URLs takes escapes back.
fn file_url(path: &Path) -> String {
    let text = path.to_string_lossy();
    let mut url = String::from("file://");
    for (at, c) in text.char_indices() {
        let is_key = c == ':' && text[at + 1..].starts_with(' ');
        if is_key || !(c.is_alphanumeric() || "._-~:/@+= ".contains(c)) {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                url.push_str(&format!("%{byte:02X}"));
            }
        } else {
            url.push(c);
        }
    }
    url
}
