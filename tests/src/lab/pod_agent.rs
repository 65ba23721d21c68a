//! The real `kedge-agent` program in its mode for Kubernetes, as one pod of its Deployment would run it: a folder of its own for the
//! node's cache, the service account's token in a kubeconfig, the join token as a file. Several of one cluster compete for its Lease.
//! Or as a pod of its DaemonSet: a cache, which has nothing but the key of the caches.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::part::Part;
use super::root_agent;

/// SIGTERM ends the step under way and gives the Lease back.
const STOPPED_WITHIN: Duration = Duration::from_secs(30);

/// One pod; running or not.
#[derive(Debug)]
pub struct PodAgent {
    // Before the folder, so that the program has ended when its files go.
    part: Option<Part>,
    name: String,
    program: PathBuf,
    arguments: Vec<OsString>,
    folder: TempDir,
}

impl PodAgent {
    /// Not started yet. `cluster` is what the cluster calls itself when it joins. Without the program the test is marked as skipped
    /// and there is none.
    pub fn prepare(name: &str, cluster: &str, kubeconfig: &Path, namespace: &str, token: &str) -> Option<PodAgent> {
        let mut arguments: Vec<OsString> = ["run", "--kubernetes", "--namespace", namespace].map(OsString::from).into();
        arguments.extend(["--kubeconfig".into(), kubeconfig.into()]);
        let agent = PodAgent::new(name, arguments)?;
        let settings = agent.root().join("etc/kedge");
        fs::create_dir_all(&settings).unwrap();
        fs::write(settings.join("agent.toml"), format!("name = {cluster:?}\n")).unwrap();
        fs::write(settings.join("join-token"), token).unwrap();
        Some(agent)
    }

    /// A cache of the agents at this address, with the files of the Secret that is mounted into it.
    pub fn prepare_cache(name: &str, agents: &str, key: &[(&str, String)]) -> Option<PodAgent> {
        let agent = PodAgent::new(name, ["run", "--cache-of", agents].map(OsString::from).into())?;
        let folder = agent.root().join("etc/kedge/cache");
        fs::create_dir_all(&folder).unwrap();
        for (file, text) in key {
            fs::write(folder.join(file), text).unwrap();
        }
        Some(agent)
    }

    fn new(name: &str, arguments: Vec<OsString>) -> Option<PodAgent> {
        let program = root_agent::program()?;
        let folder = tempfile::Builder::new().prefix("kedge-pod-").tempdir().unwrap();
        Some(PodAgent { part: None, name: name.to_owned(), program, arguments, folder })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The node's folder: a cache.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// Starts it; what it did before is in the cluster, and perhaps in its folder.
    pub fn start(&mut self) {
        assert!(!self.is_running(), "{} is running", self.name);
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg("--root").arg(self.root());
        command.env("POD_NAME", &self.name).env("POD_IP", "127.0.0.1");
        command.env("RUST_BACKTRACE", "1").current_dir(self.root());
        self.part = Some(Part::start(&self.name, &mut command, &self.log_file()));
    }

    /// SIGTERM, and waits for its end.
    pub fn stop(&mut self) {
        if let Some(mut part) = self.part.take() {
            part.stop(Signal::SIGTERM, STOPPED_WITHIN);
        }
    }

    /// kill -9.
    pub fn kill(&mut self) {
        if let Some(mut part) = self.part.take() {
            part.kill();
        }
    }

    /// It is there and does nothing, as a node that hangs.
    pub fn freeze(&mut self) {
        self.part().signal(Signal::SIGSTOP);
    }

    pub fn thaw(&mut self) {
        self.part().signal(Signal::SIGCONT);
    }

    /// The node is another: its cache is gone.
    pub fn forget(&mut self) {
        assert!(!self.is_running(), "{} is running", self.name);
        let state = self.root().join("var");
        if state.exists() {
            fs::remove_dir_all(state).unwrap();
        }
    }

    pub fn is_running(&mut self) -> bool {
        self.part.as_mut().is_some_and(Part::is_running)
    }

    /// The running program, for its process id and its log.
    pub fn part(&mut self) -> &mut Part {
        self.part.as_mut().expect("the agent is running")
    }

    /// All that it ever logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// A command of its own program on the same folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).arg("--root").arg(self.root()).current_dir(self.root());
        command
    }

    /// What `status -o json` says in the pod.
    pub fn status(&self) -> Option<Value> {
        self.said(&["status", "-o", "json"])
    }

    /// What `peers -o json` says of the cluster's pods.
    pub fn pods(&self) -> Option<Value> {
        self.said(&["peers", "-o", "json"])?.get("pods").cloned()
    }

    /// Whether this blob is on the node.
    pub fn has(&self, digest: &str) -> bool {
        self.root().join("var/lib/kedge-agent/objects").join(digest.replace(':', "-")).exists()
    }

    fn said(&self, arguments: &[&str]) -> Option<Value> {
        serde_json::from_slice(&self.command(arguments).output().unwrap().stdout).ok()
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("agent.log")
    }
}
