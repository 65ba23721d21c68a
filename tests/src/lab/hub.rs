//! The real `kedge-hub` program with a configuration that the test writes: started, killed and started again on the same data
//! folder and addresses.

use std::env;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use nix::sys::signal::Signal;
use tempfile::TempDir;

use super::part::Part;
use super::port::Port;
use super::{http, skip};

/// The program, where the build puts it; `KEDGE_HUB_BIN` names another.
const PROGRAM: &str = "kedge-hub";

const READY_WITHIN: Duration = Duration::from_secs(60);

/// In-flight answers finish and long polls end at once, so a clean end is quick.
const STOPPED_WITHIN: Duration = Duration::from_secs(20);

/// Where a hub has its things: for the text of its configuration.
#[derive(Debug)]
pub struct Places {
    /// The data folder.
    pub data: PathBuf,
    /// Where people and programs reach it.
    pub api: SocketAddr,
    /// Where agents reach it, with mTLS.
    pub agents: SocketAddr,
}

/// A hub and its files; running or not.
#[derive(Debug)]
pub struct Hub {
    // Before the folder, so that the program has ended when its files go.
    part: Option<Part>,
    program: PathBuf,
    places: Places,
    environment: Vec<(String, String)>,
    folder: TempDir,
    client: reqwest::blocking::Client,
    _ports: [Port; 2],
}

impl Hub {
    /// Writes the configuration that `settings` makes of the places, starts the hub and waits until it is ready. Without the
    /// program the test is marked as skipped and there is none.
    pub fn start(settings: impl FnOnce(&Places) -> String) -> Option<Hub> {
        let mut hub = Hub::prepare(settings)?;
        hub.start_again();
        Some(hub)
    }

    /// The same without the start.
    pub fn prepare(settings: impl FnOnce(&Places) -> String) -> Option<Hub> {
        let program = program()?;
        let folder = tempfile::Builder::new().prefix("kedge-hub-").tempdir().unwrap();
        let ports = [Port::claim(), Port::claim()];
        let places = Places { data: folder.path().join("data"), api: ports[0].address(), agents: ports[1].address() };
        let hub =
            Hub { part: None, program, places, environment: Vec::new(), folder, client: http::client(), _ports: ports };
        hub.configure(settings);
        Some(hub)
    }

    /// Writes the configuration anew; the next start reads it.
    pub fn configure(&self, settings: impl FnOnce(&Places) -> String) {
        fs::write(self.config(), settings(&self.places)).unwrap();
    }

    /// Sets a variable for the starts that follow.
    pub fn set_environment(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Starts it and waits until it says that it is ready.
    pub fn start_again(&mut self) {
        self.spawn();
        self.await_ready();
    }

    /// Starts it, and doesn't wait.
    pub fn spawn(&mut self) {
        assert!(!self.is_running(), "the hub is running");
        let log = self.folder.path().join("hub.log");
        self.part = Some(Part::start(PROGRAM, self.command("serve").env("RUST_BACKTRACE", "1"), &log));
    }

    pub fn await_ready(&mut self) {
        let (client, ready) = (self.client.clone(), self.url("/readyz"));
        let part = self.part.as_mut().expect("the hub was started");
        part.await_ready(READY_WITHIN, |_| {
            client.get(&ready).send().ok().filter(|answer| answer.status().is_success()).map(drop)
        });
    }

    /// A command of the hub's program with this hub's configuration, to be run by the test: `backup`, `check-config`.
    pub fn command(&self, subcommand: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(subcommand).arg("--config").arg(self.config()).current_dir(self.folder.path());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// kill -9.
    pub fn kill(&mut self) {
        if let Some(mut part) = self.part.take() {
            part.kill();
        }
    }

    /// SIGTERM, and how it ended.
    pub fn stop(&mut self) -> ExitStatus {
        let mut part = self.part.take().expect("the hub is running");
        part.stop(Signal::SIGTERM, STOPPED_WITHIN)
    }

    pub fn is_running(&mut self) -> bool {
        self.part.as_mut().is_some_and(Part::is_running)
    }

    /// The running program, for signals, its process id, its log.
    pub fn part(&mut self) -> &mut Part {
        self.part.as_mut().expect("the hub is running")
    }

    pub fn places(&self) -> &Places {
        &self.places
    }

    pub fn config(&self) -> PathBuf {
        self.folder.path().join("hub.toml")
    }

    /// An address of the API.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.places.api)
    }

    /// All that this hub ever logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("hub.log")).unwrap_or_default()
    }
}

/// The hub's program, or the test is marked as skipped.
pub fn program() -> Option<PathBuf> {
    let named = env::var_os("KEDGE_HUB_BIN").map(PathBuf::from);
    let program = named.or_else(|| {
        // target/debug/deps/TEST or target/debug/PROGRAM: the hub is beside either.
        let own = env::current_exe().ok()?;
        own.ancestors().skip(1).take(2).map(|folder| folder.join(PROGRAM)).find(|path| path.is_file())
    });
    let found = program.filter(|path| Path::is_file(path));
    if found.is_none() {
        skip("kedge-hub isn't built (./tests/run hub builds it)");
    }
    found
}
