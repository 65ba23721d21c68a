//! A Git server over HTTP: our own few lines in front of `git http-backend`, with the faults a test asks for. It owns a folder
//! of bare repositories and counts what clients ask of each.

mod answer;
mod cgi;
mod requests;
mod webhook;

pub use requests::Requests;
pub use webhook::{Delivery, Webhook};

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::http::{Handler, Server};
use super::{git, part};

/// The server; it answers until it is dropped.
#[derive(Debug)]
pub struct GitServer {
    server: Server,
    shared: Arc<Shared>,
    folder: TempDir,
}

/// What every answer looks at.
#[derive(Debug)]
struct Shared {
    root: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    login: Option<Login>,
    repositories: BTreeMap<String, Repository>,
    deliveries: Vec<Delivery>,
    log: Vec<String>,
}

/// One repository's switches and counts.
#[derive(Debug, Default, Clone)]
struct Repository {
    fault: Option<Fault>,
    refusal: Option<Refusal>,
    delay: Duration,
    webhook: Option<Webhook>,
    requests: Requests,
}

/// Who may use the server: basic authentication with both, or the password alone as a bearer token.
#[derive(Debug, Clone)]
pub struct Login {
    pub user: String,
    pub password: String,
}

/// What is wrong with a repository, for every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// This status and a line of text.
    Status(u16),
    /// An answer that is no Git protocol, with status 200.
    Nonsense,
    /// The answer stops in the middle.
    CutShort,
}

/// How pushes are turned down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The server's answer is 403.
    Forbidden,
    /// A pre-receive hook says no, as for a protected branch.
    Hook,
}

impl GitServer {
    /// A server that everybody may read and write.
    pub fn start() -> GitServer {
        let folder = tempfile::Builder::new().prefix("kedge-git-").tempdir().unwrap();
        let shared = Arc::new(Shared { root: folder.path().to_owned(), state: Mutex::default() });
        let asked = shared.clone();
        let handler: Handler = Arc::new(move |request| Box::pin(answer::answer(asked.clone(), request)));
        GitServer { server: Server::start(handler), shared, folder }
    }

    /// A server that asks for a user and a password.
    pub fn start_with_login(user: &str, password: &str) -> GitServer {
        let server = GitServer::start();
        server.require(Some(Login { user: user.to_owned(), password: password.to_owned() }));
        server
    }

    /// Changes who may use the server, from the next request on.
    pub fn require(&self, login: Option<Login>) {
        self.shared.state().login = login;
    }

    /// Makes an empty bare repository; `name` is without `.git` and may have folders.
    pub fn create(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).unwrap();
        for arguments in [
            &["init", "--quiet", "--bare", "--initial-branch=main"][..],
            // Without REMOTE_USER http-backend takes no pushes, unless the repository says so.
            &["config", "http.receivepack", "true"],
            &["config", "uploadpack.allowAnySHA1InWant", "true"],
            // A gc in the background would outlive the test.
            &["config", "gc.auto", "0"],
            &["config", "receive.autogc", "false"],
        ] {
            git::finish(git::command(&path).args(arguments)).unwrap();
        }
        self.shared.state().repositories.entry(name.to_owned()).or_default();
        path
    }

    /// Where the bare repository is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.git"))
    }

    pub fn url(&self, name: &str) -> String {
        format!("{}/{name}.git", self.server.url())
    }

    /// The URL with user and password inside, for a clone in a test.
    pub fn url_with_login(&self, name: &str) -> String {
        match &self.shared.state().login {
            Some(Login { user, password }) => {
                format!("http://{user}:{password}@{}/{name}.git", self.server.address())
            }
            None => self.url(name),
        }
    }

    /// The commit of a branch, read from the bare repository itself.
    pub fn head(&self, name: &str, branch: &str) -> Option<String> {
        let reference = format!("refs/heads/{branch}");
        let found = git::finish(git::command(&self.path(name)).args(["rev-parse", "--verify", "--quiet", &reference]));
        found.ok().map(|id| id.trim().to_owned())
    }

    /// Refuses connections, for all repositories.
    pub fn go_down(&self) {
        self.server.close();
    }

    /// Takes connections again.
    pub fn come_back(&self) {
        self.server.open();
    }

    /// Breaks a repository, or mends it.
    pub fn fail(&self, name: &str, fault: Option<Fault>) {
        self.shared.change(name, |repository| repository.fault = fault);
    }

    /// Turns pushes down, or takes them again.
    pub fn refuse_pushes(&self, name: &str, refusal: Option<Refusal>) {
        let hook = self.path(name).join("hooks/pre-receive");
        if refusal == Some(Refusal::Hook) {
            fs::create_dir_all(hook.parent().expect("it has one")).unwrap();
            fs::write(&hook, "#!/bin/sh\necho 'this branch is protected' >&2\nexit 1\n").unwrap();
            fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        } else if hook.exists() {
            fs::remove_file(&hook).unwrap();
        }
        self.shared.change(name, |repository| repository.refusal = refusal);
    }

    /// Lets every answer about a repository wait first.
    pub fn slow_down(&self, name: &str, delay: Duration) {
        self.shared.change(name, |repository| repository.delay = delay);
    }

    /// Tells `webhook` of every push from now on.
    pub fn notify(&self, name: &str, webhook: Webhook) {
        self.shared.change(name, |repository| repository.webhook = Some(webhook));
    }

    /// What was asked of a repository since the start or the last `forget_requests`.
    pub fn requests(&self, name: &str) -> Requests {
        self.shared.state().repositories.get(name).map(|repository| repository.requests.clone()).unwrap_or_default()
    }

    pub fn forget_requests(&self) {
        for repository in self.shared.state().repositories.values_mut() {
            repository.requests = Requests::default();
        }
    }

    /// What became of the webhooks' messages, in order.
    pub fn deliveries(&self) -> Vec<Delivery> {
        self.shared.state().deliveries.clone()
    }
}

impl Drop for GitServer {
    fn drop(&mut self) {
        if thread::panicking() {
            part::show_log("git server", &self.shared.state().log.join("\n"));
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Repository)) {
        change(self.state().repositories.entry(name.to_owned()).or_default());
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.root.join(format!("{name}.git"))
    }

    fn root(&self) -> &Path {
        &self.root
    }
}
