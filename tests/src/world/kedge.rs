//! The real `kedge` program, as a person types it, with a home of its own.

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::lab::skip;

/// The program, where the build puts it; `KEDGE_BIN` names another.
const PROGRAM: &str = "kedge";

/// One person at one terminal.
#[derive(Debug)]
pub struct Kedge {
    program: PathBuf,
    hub: String,
    token: String,
    home: TempDir,
}

/// What a run of the program gave.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Kedge {
    /// A person who talks to this hub. Without the program the test is marked as skipped and there is none.
    pub fn new(hub: &str) -> Option<Kedge> {
        let named = env::var_os("KEDGE_BIN").map(PathBuf::from);
        let beside = || {
            let own = env::current_exe().ok()?;
            own.ancestors().skip(1).take(2).map(|folder| folder.join(PROGRAM)).find(|path| path.is_file())
        };
        let Some(program) = named.or_else(beside).filter(|path| path.is_file()) else {
            skip("kedge isn't built (./tests/run hub builds it)");
            return None;
        };
        Some(Kedge { program, hub: hub.to_owned(), token: String::new(), home: tempfile::tempdir().unwrap() })
    }

    pub fn set_token(&mut self, token: &str) {
        self.token = token.to_owned();
    }

    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).stdin(Stdio::null()).current_dir(self.home.path());
        command.env("HOME", self.home.path()).env("XDG_CACHE_HOME", self.home.path().join("cache"));
        command.env("XDG_CONFIG_HOME", self.home.path().join("config")).env("COLUMNS", "160");
        if !self.hub.is_empty() {
            command.env("KEDGE_HUB", &self.hub).env("KEDGE_TOKEN", &self.token);
        }
        command
    }

    /// Runs it to its end, whatever that is.
    pub fn try_run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Run {
        let output = self.command(arguments).output().unwrap();
        Run {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs it; its stdout. Anything but success ends the test.
    #[track_caller]
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> String {
        let arguments: Vec<_> = arguments.into_iter().map(|argument| argument.as_ref().to_owned()).collect();
        let run = self.try_run(&arguments);
        assert_eq!(run.code, 0, "kedge {arguments:?}\nstdout:\n{}\nstderr:\n{}", run.stdout, run.stderr);
        run.stdout
    }

    /// The same with `-o json`.
    #[track_caller]
    pub fn json<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Value {
        let mut arguments: Vec<_> = arguments.into_iter().map(|argument| argument.as_ref().to_owned()).collect();
        arguments.extend(["-o".into(), "json".into()]);
        let text = self.run(&arguments);
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("kedge {arguments:?}: {e}\n{text}"))
    }
}
