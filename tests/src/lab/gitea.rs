//! A real Gitea with SQLite, as a user other than root: the forge that pull requests and webhooks are tested against.
//! tests/shell/programs.sh builds the program; this module starts it, and `rest` is what people do in its pages.

mod rest;

pub use rest::PullRequest;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use tempfile::TempDir;

use super::part::Part;
use super::port::Port;
use super::user::User;
use super::{http, skip};

/// Where tests/shell/programs.sh keeps it, below the cache; the version is part of the name.
const KEPT_IN: &str = "programs/gitea-v1.26.0";

/// A start takes about 2 s on two idle cores.
const READY_WITHIN: Duration = Duration::from_secs(120);
const STOPPED_WITHIN: Duration = Duration::from_secs(20);

const ADMIN: &str = "kedge";
const PASSWORD: &str = "correct-horse-battery";

/// The running forge, with one administrator who owns the repositories.
#[derive(Debug)]
pub struct Gitea {
    // Before the folder, so that the program has ended when its files go.
    part: Part,
    port: Port,
    user: User,
    folder: TempDir,
    token: String,
    client: reqwest::blocking::Client,
}

/// The folder with the program and what it reads, or why there is none.
fn home() -> Result<PathBuf, String> {
    let kept = || {
        let cache = env::var_os("KEDGE_CACHE").map(PathBuf::from);
        cache
            .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache/kedge")))
            .map(|cache| cache.join(KEPT_IN))
    };
    let home = env::var_os("KEDGE_GITEA").map(PathBuf::from).or_else(kept);
    if let Some(home) = home.filter(|home| home.join("gitea").is_file()) {
        return Ok(home);
    }
    Err(env::var("KEDGE_NO_GITEA").unwrap_or_else(|_| "Gitea isn't built (./tests/run hub builds it)".to_owned()))
}

impl Gitea {
    /// Starts one with nothing but an administrator in it. Without the program the test is marked as skipped and there is none.
    pub fn start() -> Option<Gitea> {
        let (home, user) = match home().and_then(|home| Ok((home, User::unprivileged("nobody")?))) {
            Ok(found) => found,
            Err(reason) => {
                skip(&reason);
                return None;
            }
        };
        let folder = tempfile::Builder::new().prefix("kedge-gitea-").tempdir().unwrap();
        user.own(folder.path());
        // The cache may be below a home that only root may enter.
        link_tree(&home, &folder.path().join("program"));
        let port = Port::claim();
        let settings = folder.path().join("app.ini");
        fs::write(&settings, settings_text(folder.path(), &port, user.name())).unwrap();
        user.own(&settings);
        run(&user, folder.path(), &["migrate"]);
        let token = create_admin(&user, folder.path());
        let part = serve(&user, folder.path());
        let mut gitea = Gitea { part, port, user, folder, token, client: http::client() };
        gitea.await_ready();
        Some(gitea)
    }

    /// Ends the program and starts it again on the same files and port.
    pub fn restart(&mut self) {
        self.stop();
        self.part = serve(&self.user, self.folder.path());
        self.await_ready();
    }

    /// Ends the program: connections are refused.
    pub fn stop(&mut self) {
        self.part.stop(Signal::SIGTERM, STOPPED_WITHIN);
    }

    fn await_ready(&mut self) {
        let (client, health) = (self.client.clone(), format!("{}/api/healthz", self.url()));
        self.part.await_ready(READY_WITHIN, |_| {
            client.get(&health).send().ok().filter(|answer| answer.status().is_success()).map(drop)
        });
    }

    /// Its address, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.port.address())
    }

    /// The administrator's name: the owner of the repositories.
    pub fn owner(&self) -> &str {
        ADMIN
    }

    /// The administrator's access token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Where a repository is cloned from; it needs the token.
    pub fn clone_url(&self, repository: &str) -> String {
        format!("{}/{ADMIN}/{repository}.git", self.url())
    }

    /// The same with the token inside, for a clone in a test.
    pub fn push_url(&self, repository: &str) -> String {
        format!("http://{ADMIN}:{}@{}/{ADMIN}/{repository}.git", self.token, self.port.address())
    }
}

fn settings_text(folder: &Path, port: &Port, user: &str) -> String {
    let (folder, number, address) = (folder.display(), port.number(), port.address());
    format!(
        "APP_NAME = Lab
RUN_USER = {user}
RUN_MODE = prod
WORK_PATH = {folder}
[server]
PROTOCOL = http
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {number}
ROOT_URL = http://{address}/
STATIC_ROOT_PATH = {folder}/program
APP_DATA_PATH = {folder}/data
DISABLE_SSH = true
OFFLINE_MODE = true
LFS_START_SERVER = false
[database]
DB_TYPE = sqlite3
PATH = {folder}/gitea.db
SQLITE_JOURNAL_MODE = WAL
[repository]
ROOT = {folder}/repositories
DEFAULT_BRANCH = main
[security]
INSTALL_LOCK = true
SECRET_KEY = secret-of-the-lab
PASSWORD_HASH_ALGO = pbkdf2_v2
[oauth2]
ENABLED = false
[session]
PROVIDER = memory
[indexer]
ISSUE_INDEXER_TYPE = db
[webhook]
ALLOWED_HOST_LIST = *
DELIVER_TIMEOUT = 10
[service]
DISABLE_REGISTRATION = true
REQUIRE_SIGNIN_VIEW = false
[api]
DEFAULT_PAGING_NUM = 50
[actions]
ENABLED = false
[packages]
ENABLED = false
[cron]
ENABLED = false
[mailer]
ENABLED = false
[log]
MODE = console
LEVEL = info
"
    )
}

fn program(user: &User, folder: &Path) -> Command {
    let mut command = Command::new(folder.join("program/gitea"));
    user.run(&mut command).env_clear().current_dir(folder);
    command.env("PATH", env::var_os("PATH").unwrap_or_default()).env("HOME", folder).env("USER", user.name());
    command.arg("--config").arg(folder.join("app.ini")).arg("--work-path").arg(folder);
    command
}

fn serve(user: &User, folder: &Path) -> Part {
    Part::start("gitea", program(user, folder).arg("web"), &folder.join("gitea.log"))
}

fn run(user: &User, folder: &Path, arguments: &[&str]) -> String {
    let output = program(user, folder).args(arguments).output().unwrap();
    let (said, erred) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "gitea {}: {said}{erred}", arguments.join(" "));
    said.into_owned()
}

/// The administrator's token; Gitea says it once, in the last word of a line.
fn create_admin(user: &User, folder: &Path) -> String {
    let mail = format!("{ADMIN}@example.com");
    let mut arguments = vec!["admin", "user", "create", "--admin", "--username", ADMIN, "--password", PASSWORD];
    arguments.extend(["--email", &mail, "--must-change-password=false"]);
    arguments.extend(["--access-token", "--access-token-name", "lab", "--access-token-scopes", "all"]);
    let said = run(user, folder, &arguments);
    let line = said.lines().find(|line| line.to_lowercase().contains("token")).expect("gitea says the token");
    line.split_whitespace().last().expect("the line isn't empty").to_owned()
}

/// Hard links where the file system is the same, else copies.
fn link_tree(from: &Path, to: &Path) {
    let copied = |how: &str| Command::new("cp").arg(how).arg(from).arg(to).output().unwrap().status.success();
    if !copied("-al") {
        // What was linked before the failure is in the way.
        let _ = fs::remove_dir_all(to);
        assert!(copied("-a"), "cp -a {}", from.display());
    }
}
