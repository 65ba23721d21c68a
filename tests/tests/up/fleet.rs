//! A running `kedge up` that tells what happens as JSON, and a shell in its folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use kedge_tests::lab::part::Part;
use kedge_tests::lab::{await_some, await_true, root_agent, skip};
use kedge_tests::world::kedge::Kedge;
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

/// The program, its folder, and where a person would be.
pub struct Up {
    // Before the folders, so that the program has ended when its files go.
    pub part: Part,
    pub folder: PathBuf,
    outer: TempDir,
    kedge: Kedge,
}

/// What a shell's commands gave.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub text: String,
}

/// A whole fleet on a machine that does other things too; alone it takes half a minute.
pub const CONVERGED_WITHIN: Duration = Duration::from_secs(180);
/// A promotion through three environments, or a broken promise.
pub const SEEN_WITHIN: Duration = Duration::from_secs(180);
pub const ENDED_WITHIN: Duration = Duration::from_secs(30);

impl Up {
    /// In a new folder with a space in its name.
    pub fn start(arguments: &[&str]) -> Option<Up> {
        let outer = tempfile::Builder::new().prefix("kedge up ").tempdir().unwrap();
        let folder = outer.path().join("my fleet");
        Up::start_in(outer, folder, arguments)
    }

    fn start_in(outer: TempDir, folder: PathBuf, arguments: &[&str]) -> Option<Up> {
        let kedge = Kedge::new("")?;
        root_agent::program()?;
        let mut command = kedge.command(["up", "-o", "json"]);
        command.arg(&folder).args(arguments).current_dir(outer.path());
        let part = Part::start("kedge up", &mut command, &outer.path().join("up.log"));
        Some(Up { part, folder, outer, kedge })
    }

    /// Ends it with Ctrl-C and starts it anew on the same folder.
    pub fn again(mut self, arguments: &[&str]) -> Up {
        assert!(self.end(Signal::SIGINT).success());
        let Up { outer, folder, .. } = self;
        Up::start_in(outer, folder, arguments).expect("it was there before")
    }

    /// All that this run told so far.
    pub fn events(&self) -> Vec<Value> {
        self.part.log().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The first event of this name; its end before that fails the test.
    pub fn await_event(&mut self, name: &str, within: Duration) -> Value {
        let look = |part: &mut Part| {
            let events = part.log();
            let mut events = events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            events.find(|event| event["event"] == name)
        };
        self.part.await_ready(within, look)
    }

    /// The newest picture of the fleet, once it is like this.
    pub fn await_fleet(&mut self, what: &str, like: impl Fn(&Value) -> bool) -> Value {
        let newest = || self.events().into_iter().rfind(|event| event["event"] == "fleet");
        await_some(what, SEEN_WITHIN, || newest().filter(&like))
    }

    /// Types a command in a new terminal: into the folder, then what `up` says to type first.
    pub fn shell(&self, command: &str) -> Ran {
        let mut shell = self.kedge.command(["--version"]);
        let environment: Vec<_> =
            shell.get_envs().map(|(name, value)| (name.to_owned(), value.map(|value| value.to_owned()))).collect();
        shell = Command::new("/bin/sh");
        shell.arg("-c").arg(format!(". ./env && {command}")).current_dir(&self.folder);
        shell.envs(environment.into_iter().filter_map(|(name, value)| Some((name, value?))));
        let output = shell.output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        Ran { code: output.status.code().unwrap_or(-1), text }
    }

    #[track_caller]
    pub fn ok(&self, command: &str) -> String {
        let ran = self.shell(command);
        assert_eq!(ran.code, 0, "{command}\n{}", ran.text);
        ran.text
    }

    pub fn end(&mut self, how: Signal) -> ExitStatus {
        self.part.stop(how, ENDED_WITHIN)
    }

    /// No process of it, and its folder is as wished.
    pub fn assert_gone(&self, folder_is_there: bool) {
        assert_eq!(processes_of(&self.folder), Vec::<String>::new());
        assert_eq!(self.folder.exists(), folder_is_there, "{}", self.folder.display());
    }

    pub fn await_no_process(&self) {
        await_true("no part is left", ENDED_WITHIN, || processes_of(&self.folder).is_empty());
    }

    /// The process with these words in its command line.
    pub fn process(&self, words: &str) -> i32 {
        let found = processes_of(&self.folder).into_iter().find(|line| line.contains(words));
        let line = found.unwrap_or_else(|| panic!("no process has {words}"));
        line.split(' ').next().unwrap().parse().unwrap()
    }
}

/// Processes whose command line names the folder: number and words. `kedge up` itself isn't meant.
fn processes_of(folder: &Path) -> Vec<String> {
    let name = folder.to_str().expect("a plain path");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let id = entry.file_name().to_string_lossy().into_owned();
        if !id.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(name) && (line.contains("kedge-hub") || line.contains("kedge-agent")) {
            found.push(format!("{id} {line}"));
        }
    }
    found
}

/// Whether a program of the machine can be started.
pub fn has(program: &str, arguments: &[&str]) -> bool {
    let there = Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success());
    if !there {
        skip(&format!("`{program} {}` doesn't work here", arguments.join(" ")));
    }
    there
}

/// An environment of a picture.
pub fn environment<'p>(picture: &'p Value, name: &str) -> &'p Value {
    let environments = picture["environments"].as_array().expect("a picture");
    environments.iter().find(|environment| environment["name"] == name).expect("it is there")
}
