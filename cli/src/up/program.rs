//! Programs: where they are, how they are started, asked to end and ended. Used by the hub's and the agents' part of `up`.

use std::env;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::error::UpError;

/// Where the other two programs are.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    pub kedge: PathBuf,
    pub hub: PathBuf,
    pub agent: PathBuf,
}

/// A part that runs. Dropped, it is killed.
#[derive(Debug)]
pub(super) struct Program {
    child: Child,
    log: PathBuf,
}

/// What is read of a log's end.
const LOG_END: usize = 16 * 1024;
const LOG_LINES: usize = 12;
/// Between two looks whether a part has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

impl Programs {
    /// Beside our own program, then in the PATH.
    pub fn find() -> Result<Programs, UpError> {
        let kedge = env::current_exe().map_err(|source| UpError::Start { program: "kedge".to_owned(), source })?;
        let beside = kedge.parent().unwrap_or(Path::new("/")).to_owned();
        let find = |program: &'static str| {
            let path = env::var_os("PATH").unwrap_or_default();
            let mut found =
                [beside.clone()].into_iter().chain(env::split_paths(&path)).map(|folder| folder.join(program));
            found.find(|path| is_program(path)).ok_or(UpError::NoProgram { program, beside: beside.clone() })
        };
        let programs = Programs { hub: find("kedge-hub")?, agent: find("kedge-agent")?, kedge: kedge.clone() };
        match Command::new("git").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status() {
            Ok(status) if status.success() => Ok(programs),
            _ => Err(UpError::NoGit),
        }
    }
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

impl Program {
    /// Starts it with that current folder; all it says is appended to the log.
    pub fn start(program: &Path, arguments: &[OsString], folder: &Path, log: &Path) -> Result<Program, UpError> {
        let open = || OpenOptions::new().create(true).append(true).open(log).map_err(UpError::file(log));
        // It ends when we do; and it is in a group of its own, so that Ctrl-C reaches us alone.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("kedge").args(["up", "--guard"]).arg(std::process::id().to_string()).arg(program).args(arguments);
        command.current_dir(folder).stdin(Stdio::null()).stdout(open()?).stderr(open()?).process_group(0);
        // What a person set for commands or for tests isn't meant for these.
        command.env_remove("KEDGE_TOKEN").env_remove("NOTIFY_SOCKET");
        remove_git_variables(&mut command);
        let child =
            command.spawn().map_err(|source| UpError::Start { program: program.display().to_string(), source })?;
        Ok(Program { child, log: log.to_owned() })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// SIGTERM.
    pub fn ask_to_end(&self) {
        if let Ok(id) = i32::try_from(self.child.id()) {
            // Gone already is as good.
            let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
        }
    }

    /// Waits for its end; after that time it is killed.
    pub fn await_end(mut self, until: Instant) {
        while self.ended().is_none() && Instant::now() < until {
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// The last lines that it said.
    pub fn last_lines(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let end = String::from_utf8_lossy(&text[text.len().saturating_sub(LOG_END)..]).into_owned();
        let lines: Vec<&str> = end.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].iter().map(|line| format!("  {line}\n")).collect()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A hook that runs us has its own repository in these.
pub(super) fn remove_git_variables(command: &mut Command) {
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"] {
        command.env_remove(name);
    }
}

/// Starts something that nobody waits for, that goes on without us and that Ctrl-C doesn't reach.
pub(super) fn start_apart(program: &str, argument: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(argument).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    command.spawn().is_ok()
}

/// `killed by SIGKILL`, `exit code 1`.
pub(super) fn how_it_ended(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => {
            let name = Signal::try_from(signal).map_or_else(|_| signal.to_string(), |signal| signal.to_string());
            format!("killed by {name}")
        }
        (None, None) => "unknown how".to_owned(),
    }
}
