//! The real `kedge-agent` program below a folder of its own (`--root`): no rights of root, files and artifacts only, so that a fleet
//! of them runs beside each other. Joined by its own command; stopped, continued, killed, cut off and started again by the test.

use std::env;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::part::Part;
use super::relay::Relay;
use super::skip;

/// The program, where the build puts it; `KEDGE_AGENT_BIN` names another.
const PROGRAM: &str = "kedge-agent";

/// SIGTERM ends the step under way, which is short here.
const STOPPED_WITHIN: Duration = Duration::from_secs(30);

/// A cluster of one process; running or not.
#[derive(Debug)]
pub struct RootAgent {
    // Before the folder, so that the program has ended when its files go.
    part: Option<Part>,
    name: String,
    program: PathBuf,
    /// The way to the hub that can be cut.
    pub cable: Option<Relay>,
    /// The network that it runs in; none: this machine's.
    namespace: Option<String>,
    folder: TempDir,
}

impl RootAgent {
    /// An agent that has joined with this token and runs. Without the program the test is marked as skipped and there is none.
    pub fn start(name: &str, token: &str) -> Option<RootAgent> {
        let mut agent = RootAgent::join(name, token, None)?;
        agent.start_again();
        Some(agent)
    }

    /// The same with a cable to the hub that the test can cut.
    pub fn start_with_cable(name: &str, token: &str, hub: SocketAddr) -> Option<RootAgent> {
        let mut agent = RootAgent::join(name, token, Some(hub))?;
        agent.start_again();
        Some(agent)
    }

    /// Joined, and not running.
    pub fn join(name: &str, token: &str, hub: Option<SocketAddr>) -> Option<RootAgent> {
        let program = program()?;
        let folder = tempfile::Builder::new().prefix("kedge-agent-").tempdir().unwrap();
        let cable = hub.map(|hub| Relay::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), hub));
        let agent = RootAgent { part: None, name: name.to_owned(), program, cable, namespace: None, folder };
        agent.write("etc/machine-id", &machine_id(name));
        let way = agent.cable.as_ref().map(|cable| format!("hub = \"https://{}\"\n", cable.address()));
        agent.write("etc/kedge/agent.toml", &way.unwrap_or_default());
        let ran = agent.command(&["join", "--token", token, "--name", name]).output().unwrap();
        assert!(ran.status.success(), "{name} joins: {}", String::from_utf8_lossy(&ran.stderr));
        Some(agent)
    }

    /// One that hasn't joined and never will over a network: its way to any hub ends at a port that nobody serves.
    pub fn without_network(name: &str) -> Option<RootAgent> {
        let program = program()?;
        let folder = tempfile::Builder::new().prefix("kedge-agent-").tempdir().unwrap();
        let agent = RootAgent { part: None, name: name.to_owned(), program, cable: None, namespace: None, folder };
        agent.write("etc/machine-id", &machine_id(name));
        agent.write("etc/kedge/agent.toml", "hub = \"https://127.0.0.1:1\"\n");
        Some(agent)
    }

    /// It runs in this network from its next start on.
    pub fn move_to(&mut self, namespace: &str) {
        self.namespace = Some(namespace.to_owned());
    }

    /// From its next start on it runs a copy of the program, so that it shares no memory with others of the same.
    pub fn take_own_program(&mut self) {
        let copy = self.folder.path().join(PROGRAM);
        fs::copy(&self.program, &copy).unwrap();
        self.program = copy;
    }

    /// From its next start on it is a copy of another, down to its identity.
    pub fn take_disk_of(&mut self, other: &RootAgent) {
        assert!(self.part.is_none() && other.part.is_none(), "a disk is copied while nobody writes on it");
        fs::remove_dir_all(self.root()).unwrap();
        let copied = Command::new("cp").arg("-a").arg(other.root()).arg(self.root()).status().unwrap();
        assert!(copied.success());
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Everything that it has and applies is below this.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// Starts it; what it did before is on its disk.
    pub fn start_again(&mut self) {
        assert!(!self.is_running(), "{} is running", self.name);
        let log = self.folder.path().join("agent.log");
        let mut command = self.command(&["run"]);
        self.part = Some(Part::start(&self.name, command.env("RUST_BACKTRACE", "1"), &log));
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

    /// It is there and does nothing, as a machine that hangs.
    pub fn freeze(&mut self) {
        self.part().signal(Signal::SIGSTOP);
    }

    pub fn thaw(&mut self) {
        self.part().signal(Signal::SIGCONT);
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
        fs::read_to_string(self.folder.path().join("agent.log")).unwrap_or_default()
    }

    /// A command of its own program on the same folder, with that folder as the current one.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = match &self.namespace {
            None => Command::new(&self.program),
            Some(namespace) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace]).arg(&self.program);
                command
            }
        };
        command.args(arguments).arg("--root").arg(self.root()).current_dir(self.root());
        command
    }

    /// What `status -o json` says, without the hub.
    pub fn status(&self) -> Option<Value> {
        let ran = self.command(&["status", "-o", "json"]).output().unwrap();
        serde_json::from_slice(&ran.stdout).ok()
    }

    /// Memory that the running program has for itself, in KiB: its proportional set.
    pub fn memory(&mut self) -> u64 {
        let path = format!("/proc/{}/smaps_rollup", self.part().pid());
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).expect("a line with the sum");
        line.trim_end_matches("kB").trim().parse().unwrap()
    }

    /// A file below the root.
    pub fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root().join(path.trim_start_matches('/'))).ok()
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().expect("below the root")).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn remove(&self, path: &str) {
        fs::remove_file(self.root().join(path.trim_start_matches('/'))).unwrap();
    }
}

/// Each is a machine of its own.
fn machine_id(name: &str) -> String {
    let sum = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
    sum.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>() + "\n"
}

/// The agent's program, or the test is marked as skipped.
pub fn program() -> Option<PathBuf> {
    let named = env::var_os("KEDGE_AGENT_BIN").map(PathBuf::from);
    let beside = || {
        let own = env::current_exe().ok()?;
        own.ancestors().skip(1).take(2).map(|folder| folder.join(PROGRAM)).find(|path| path.is_file())
    };
    let found = named.or_else(beside).filter(|path| Path::is_file(path));
    if found.is_none() {
        skip("kedge-agent isn't built (./tests/run rollout builds it)");
    }
    found
}
