//! What to try on a living fleet: a checkout to change, the file `env` that a shell sources, and three things with their exact
//! commands. Called by `up`; owns `work` and `env` in the folder.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::hub::LocalHub;
use super::place::Place;
use super::program::{Programs, UpError, remove_git_variables};
use crate::init::commands::quote;

/// Something to try, and what to type in the folder after `. ./env`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Try {
    pub title: &'static str,
    pub commands: &'static [&'static str],
    /// What is seen then.
    pub then: &'static str,
}

const TRIES: [Try; 3] = [
    Try {
        title: "Change a value and push it",
        commands: &[
            "sed -i 's/GREETING: .*/GREETING: Ahoy/' work/configs/hello.yaml",
            "git -C work commit -qam 'Say ahoy' && git -C work push -q",
            "kedge rollout status -e stage --workload hello --wait",
            "kedge rollout approve -e prod --workload hello --reason 'looks good in stage'",
        ],
        then: "dev, then stage, each after its gate; prod asks for a yes: by a click, or with the last line",
    },
    Try {
        title: "Kill an agent",
        commands: &["kill -9 $(cat agents/prod-drone-2/pid)", "touch agents/prod-drone-2/start"],
        then: "its promise is broken after half a minute and it is Unknown; the second line brings it back",
    },
    Try {
        title: "Break a health check",
        commands: &[
            "sed -i 's/GREETING: .*/GREETING: \"\"/' work/configs/hello.yaml",
            "git -C work commit -qam 'Greet nobody' && git -C work push -q",
            "git -C work revert --no-edit HEAD && git -C work push -q",
        ],
        then: "dev fails its check and keeps what ran before; stage and prod never see it. The last line mends it",
    },
];

pub(super) fn list() -> &'static [Try] {
    &TRIES
}

/// For a person to read and copy.
pub(super) fn text(place: &Place) -> String {
    let mut text = "Three things to try. In another terminal, first:\n\n".to_owned();
    text.push_str(&format!("    cd {} && . ./env\n", quote(&place.path().display().to_string())));
    for (at, one) in TRIES.iter().enumerate() {
        text.push_str(&format!("\n{}. {}: {}\n\n", at + 1, one.title, one.then));
        one.commands.iter().for_each(|command| text.push_str(&format!("    {command}\n")));
    }
    text + "\n"
}

pub(super) fn page(hub: &LocalHub) -> String {
    format!("{}/", hub.address())
}

/// The first administrator's, for the page's log-in.
pub(super) fn token(hub: &LocalHub) -> String {
    fs::read_to_string(hub.token_file()).map(|token| token.trim().to_owned()).unwrap_or_default()
}

/// A checkout of the control plane's `main` in which a person can commit at once.
pub(super) fn check_out(place: &Place) -> Result<(), UpError> {
    let work = place.path().join("work");
    if work.exists() {
        return Ok(());
    }
    // Under another name until it is whole.
    let part = place.path().join(".work");
    if part.exists() {
        fs::remove_dir_all(&part).map_err(UpError::file(&part))?;
    }
    let from = place.platform().join("control-plane.git");
    git("clone", place.path(), &["clone".as_ref(), "-q".as_ref(), from.as_os_str(), part.as_os_str()])?;
    if git("config", &part, &["config", "user.email"].map(AsRef::as_ref)).is_err() {
        git("config", &part, &["config", "user.email", "you@localhost"].map(AsRef::as_ref))?;
        git("config", &part, &["config", "user.name", "You"].map(AsRef::as_ref))?;
    }
    // A key that asks for its passphrase would stop the commands to try.
    git("config", &part, &["config", "commit.gpgsign", "false"].map(AsRef::as_ref))?;
    fs::rename(&part, &work).map_err(UpError::file(&work))
}

/// What the commands to try need: the programs, the hub's address and the token, which stays in its own file.
pub(super) fn write_environment(place: &Place, programs: &Programs, hub: &LocalHub) -> Result<(), UpError> {
    let folder = programs.kedge.parent().unwrap_or(Path::new("/"));
    let word = |path: &Path| quote(&path.display().to_string());
    let text = format!(
        "# Written by `kedge up` at each start. In a shell: . ./env\n\
         PATH={}:\"$PATH\"\n\
         KEDGE_HUB={}\n\
         KEDGE_TOKEN=$(cat {})\n\
         export PATH KEDGE_HUB KEDGE_TOKEN\n",
        word(folder),
        hub.address(),
        word(hub.token_file())
    );
    let path = place.path().join("env");
    fs::write(&path, text).map_err(UpError::file(&path))
}

fn git(what: &'static str, folder: &Path, arguments: &[&std::ffi::OsStr]) -> Result<(), UpError> {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    remove_git_variables(&mut command);
    let output = command.output().map_err(|source| UpError::Start { program: "git".to_owned(), source })?;
    match output.status.success() {
        true => Ok(()),
        false => Err(UpError::Git { what, said: String::from_utf8_lossy(&output.stderr).trim().to_owned() }),
    }
}
