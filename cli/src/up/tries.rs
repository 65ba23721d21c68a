//! What to try on a living fleet: a checkout to change, the file `env` that a shell sources, and three things with their exact
//! commands. Called by `up`; owns `work` and `env` in the folder.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::agents::{Agents, Member};
use super::error::UpError;
use super::hub::LocalHub;
use super::place::Place;
use super::program::{Programs, remove_git_variables};
use crate::init::commands::quote;

/// Something to try, and what to type in the folder after `. ./env`.
#[derive(Clone, Debug)]
pub(super) struct Try {
    pub title: &'static str,
    /// What is seen then.
    pub then: &'static str,
    pub commands: Vec<String>,
}

/// The file on `main` that everybody's greeting comes from.
const GREETING: &str = "configs/hello.yaml";

/// With agents that are there.
pub(super) fn list(agents: &Agents) -> Vec<Try> {
    let members: Vec<&Member> = agents.members().collect();
    let in_production = members.iter().find(|member| member.environment == "prod" && !member.canary);
    let name = in_production.or(members.last()).map_or("none", |member| member.name.as_str());
    let head = "$(git -C work rev-parse HEAD)";
    vec![
        Try {
            title: "Change a value and push it",
            then: "it moves to dev, then to stage, each after its gate. prod needs an approval: on the page, or with the last command.",
            commands: vec![
                format!("sed -i 's/GREETING: .*/GREETING: Ahoy/' work/{GREETING}"),
                "git -C work commit -qam 'Say ahoy' && git -C work push -q".to_owned(),
                format!("kedge rollout status -e stage --main-commit {head} --wait"),
                "kedge promote approve prod --reason 'looks good in stage'".to_owned(),
            ],
        },
        Try {
            title: "Kill an agent",
            then: "it misses its check-in after half a minute: it is offline, and what it ran is Unknown. The second line brings it back.",
            commands: vec![format!("kill -9 $(cat agents/{name}/pid)"), format!("touch agents/{name}/start")],
        },
        Try {
            title: "Break a health check",
            then: "dev fails its check and keeps what ran before; stage and prod never see it. The last command fixes it.",
            commands: vec![
                format!("sed -i 's/GREETING: .*/GREETING: \"\"/' work/{GREETING}"),
                "git -C work commit -qam 'Greet nobody' && git -C work push -q".to_owned(),
                format!("kedge rollout status -e dev --main-commit {head} --wait"),
                "git -C work revert --no-edit HEAD && git -C work push -q".to_owned(),
            ],
        },
    ]
}

/// For a person to read and copy.
pub(super) fn text(place: &Place, tries: &[Try]) -> String {
    let mut text = "Three things to try. In another terminal, first:\n\n".to_owned();
    text.push_str(&format!("    cd {} && . ./env\n", quote(&place.path().display().to_string())));
    for (at, one) in tries.iter().enumerate() {
        text.push_str(&format!("\n{}. {}: {}\n\n", at + 1, one.title, one.then));
        one.commands.iter().for_each(|command| text.push_str(&format!("    {command}\n")));
    }
    text + "\n"
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

/// The first change, so that a promotion is seen moving without anybody typing; its commit.
pub(super) fn push_first_change(place: &Place) -> Result<String, UpError> {
    let work = place.path().join("work");
    let file = work.join(GREETING);
    let text = fs::read_to_string(&file).map_err(UpError::file(&file))?;
    let changed: Vec<&str> = text
        .lines()
        .map(|line| if line.trim_start().starts_with("GREETING:") { "  GREETING: Hello, fleet" } else { line })
        .collect();
    fs::write(&file, changed.join("\n") + "\n").map_err(UpError::file(&file))?;
    let who = ["-c", "user.name=kedge up", "-c", "user.email=kedge@localhost"];
    let commit = ["commit", "-q", "--allow-empty", "-m", "Greet the whole fleet", "--", GREETING];
    git("commit", &work, &[&who[..], &commit[..]].concat().iter().map(AsRef::as_ref).collect::<Vec<_>>())?;
    git("push", &work, &["push", "-q"].map(AsRef::as_ref))?;
    git("rev-parse", &work, &["rev-parse", "HEAD"].map(AsRef::as_ref))
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

fn git(what: &'static str, folder: &Path, arguments: &[&std::ffi::OsStr]) -> Result<String, UpError> {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    remove_git_variables(&mut command);
    let output = command.output().map_err(|source| UpError::Start { program: "git".to_owned(), source })?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(UpError::Git { what, said: String::from_utf8_lossy(&output.stderr).trim().to_owned() }),
    }
}
