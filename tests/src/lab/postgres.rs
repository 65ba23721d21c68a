//! A real PostgreSQL with a data folder and a port of its own, as the user `postgres` when the tests run as root. It listens on
//! loopback only and trusts everybody there.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;
use tempfile::TempDir;

use super::part::Part;
use super::port::Port;
use super::user::User;
use super::{await_some, skip};

/// Where Debian's packages put the programs, one folder a version.
const DEBIAN: &str = "/usr/lib/postgresql";

const READY_WITHIN: Duration = Duration::from_secs(60);
const STOPPED_WITHIN: Duration = Duration::from_secs(60);

static DATABASE: AtomicU32 = AtomicU32::new(1);

/// Whether a commit is on the disk when it is acknowledged. Off is faster; a kill -9 of the server loses nothing either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fsync {
    On,
    Off,
}

/// The server; `stop` and `start_again` are the database that goes away.
#[derive(Debug)]
pub struct Postgres {
    // Before the folder, so that the program has ended when its files go.
    part: Option<Part>,
    port: Port,
    fsync: Fsync,
    user: User,
    programs: PathBuf,
    folder: TempDir,
}

impl Postgres {
    /// Starts an empty one. Without the programs the test is marked as skipped and there is none.
    pub fn start(fsync: Fsync) -> Option<Postgres> {
        let user = User::unprivileged("postgres");
        let (programs, user) = match (programs(), user) {
            (Some(programs), Ok(user)) => (programs, user),
            (None, _) => {
                skip("PostgreSQL isn't here (Debian's package postgresql)");
                return None;
            }
            (_, Err(reason)) => {
                skip(&reason);
                return None;
            }
        };
        let folder = tempfile::Builder::new().prefix("kedge-postgres-").tempdir().unwrap();
        user.own(folder.path());
        let mut postgres = Postgres { part: None, port: Port::claim(), fsync, user, programs, folder };
        postgres.init();
        postgres.start_again();
        Some(postgres)
    }

    fn init(&self) {
        let mut initdb = self.program("initdb");
        initdb.arg("--pgdata").arg(self.data()).args(["--username=postgres", "--auth=trust", "--encoding=UTF8"]);
        let output = initdb.args(["--locale=C", "--no-sync", "--no-instructions"]).output().unwrap();
        assert!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Starts the server on the data it has, and waits until it takes connections.
    pub fn start_again(&mut self) {
        assert!(self.part.is_none(), "it is running");
        let fsync = if self.fsync == Fsync::On { "on" } else { "off" };
        let number = self.port.number().to_string();
        let mut server = self.program("postgres");
        server.arg("-D").arg(self.data()).args(["-h", "127.0.0.1", "-p", &number, "-k", ""]);
        for setting in [&format!("fsync={fsync}"), "max_connections=200", "log_min_messages=warning"] {
            server.args(["-c", setting]);
        }
        let mut part = Part::start("postgres", &mut server, &self.folder.path().join("postgres.log"));
        part.await_ready(READY_WITHIN, |_| self.psql("postgres", "select 1").ok());
        self.part = Some(part);
    }

    /// Ends the server at once, as `pg_ctl stop -m fast`: connections break, and new ones are refused.
    pub fn stop(&mut self) {
        if let Some(mut part) = self.part.take() {
            part.stop(Signal::SIGINT, STOPPED_WITHIN);
        }
    }

    /// kill -9 of the server.
    pub fn kill(&mut self) {
        if let Some(mut part) = self.part.take() {
            part.kill();
            // Its children notice by themselves, and until then the data folder is theirs.
            let lock = self.data().join("postmaster.pid");
            await_some("the children of postgres end", STOPPED_WITHIN, || (!self.has_children()).then_some(()));
            let _ = fs::remove_file(lock);
        }
    }

    fn has_children(&self) -> bool {
        let data = self.data();
        let in_data = |entry: fs::DirEntry| fs::read_link(entry.path().join("cwd")).is_ok_and(|folder| folder == data);
        fs::read_dir("/proc").unwrap().flatten().any(in_data)
    }

    /// A new empty database; its URL.
    pub fn create_database(&self) -> String {
        let name = format!("kedge_{}", DATABASE.fetch_add(1, Ordering::Relaxed));
        self.psql("postgres", &format!("create database {name}")).unwrap_or_else(|e| panic!("{e}"));
        self.url(&name)
    }

    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@{}/{database}", self.port.address())
    }

    /// The result of a statement as bare text, columns separated by `|`; or what psql said against it.
    pub fn psql(&self, database: &str, statement: &str) -> Result<String, String> {
        query(&self.programs, &self.url(database), statement)
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        self.user.run(&mut command).current_dir(self.folder.path()).env("LC_ALL", "C");
        command
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(part) = &mut self.part {
            // A clean end gives back its shared memory; if it can't, the part's own drop kills it.
            part.signal(Signal::SIGINT);
            let began = std::time::Instant::now();
            while part.is_running() && began.elapsed() < STOPPED_WITHIN {
                std::thread::sleep(super::LOOK_AGAIN);
            }
        }
    }
}

/// The same for any server; `programs` is the folder with psql.
fn query(programs: &Path, url: &str, statement: &str) -> Result<String, String> {
    let mut psql = Command::new(programs.join("psql"));
    psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"]);
    let output = psql.arg(url).args(["--command", statement]).output().unwrap();
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A new empty database on the server that the runner started for the whole suite; its URL. A test that stops the server
/// starts one of its own.
pub fn shared_database() -> Option<String> {
    let (Some(programs), Ok(base)) = (programs(), env::var("KEDGE_TEST_POSTGRES")) else {
        skip("KEDGE_TEST_POSTGRES isn't set (./tests/run hub starts a PostgreSQL and sets it)");
        return None;
    };
    // Many processes share the server, so the name has this one's number.
    let name = format!("kedge_{}_{}", process::id(), DATABASE.fetch_add(1, Ordering::Relaxed));
    query(&programs, &base, &format!("create database {name}")).unwrap_or_else(|e| panic!("{base}: {e}"));
    let (server, _) = base.rsplit_once('/').expect("the URL names a database");
    Some(format!("{server}/{name}"))
}

/// The folder with the programs: Debian's newest version, or one of the path.
fn programs() -> Option<PathBuf> {
    let holds = |folder: &Path| ["initdb", "postgres", "psql"].iter().all(|name| folder.join(name).is_file());
    let path = env::var_os("PATH").unwrap_or_default();
    let mut versions: Vec<PathBuf> =
        fs::read_dir(DEBIAN).into_iter().flatten().flatten().map(|entry| entry.path().join("bin")).collect();
    versions.sort();
    versions.into_iter().rev().chain(env::split_paths(&path)).find(|folder| holds(folder))
}
