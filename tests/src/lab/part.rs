//! A running program of the lab: in a process group of its own that ends with the test, however the test ends. Every module
//! that starts a program uses it; it owns the program's log file.

use std::fs::{self, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use super::await_some;

/// How much of a log a failing test shows.
const SHOWN_LINES: usize = 60;

/// A program that runs until it is stopped or dropped.
#[derive(Debug)]
pub struct Part {
    name: String,
    child: Child,
    ended: Option<ExitStatus>,
    guard: Guard,
    log: PathBuf,
    began: u64,
}

/// Kills the group when the test's process is gone without having dropped its parts (a timeout, a kill -9).
#[derive(Debug)]
struct Guard(Child);

impl Part {
    /// Starts `command` with both outputs appended to the file `log`.
    pub fn start(name: &str, command: &mut Command, log: &Path) -> Part {
        let out = OpenOptions::new().create(true).append(true).open(log).unwrap();
        let began = out.metadata().unwrap().len();
        let err = out.try_clone().unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .process_group(0)
            .spawn()
            .unwrap_or_else(|e| panic!("{name} doesn't start: {e} ({command:?})"));
        let guard = Guard::over(child.id());
        Part { name: name.to_owned(), child, ended: None, guard, log: log.to_owned(), began }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn is_running(&mut self) -> bool {
        self.exit_status().is_none()
    }

    /// How it ended, if it has.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().unwrap();
        }
        self.ended
    }

    /// Sends a signal to the program itself, not to what it started.
    pub fn signal(&mut self, which: Signal) {
        if self.is_running() {
            signal::kill(pid_of(&self.child), which).unwrap_or_else(|e| panic!("{which} to {}: {e}", self.name));
        }
    }

    /// Asks the program to end and waits; one that takes longer than `within` fails the test.
    pub fn stop(&mut self, how: Signal, within: Duration) -> ExitStatus {
        self.signal(how);
        let what = format!("{} ends after {how}", self.name);
        await_some(&what, within, || self.exit_status())
    }

    /// kill -9 for the whole group, and waits until the program is gone.
    pub fn kill(&mut self) {
        if self.is_running() {
            // What it started may have ended meanwhile; then there is no group, and that is as wished.
            let _ = signal::killpg(pid_of(&self.child), Signal::SIGKILL);
            self.ended = self.child.wait().ok();
        }
    }

    /// What this start of the program has written so far.
    pub fn log(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(bytes.get(self.began as usize..).unwrap_or_default()).into_owned()
    }

    /// Waits until `look` sees what shows that the program is ready; an end of the program before that fails the test.
    pub fn await_ready<T>(&mut self, within: Duration, mut look: impl FnMut(&mut Part) -> Option<T>) -> T {
        let what = format!("{} is ready", self.name);
        await_some(&what, within, || {
            let seen = look(self);
            if seen.is_none()
                && let Some(status) = self.exit_status()
            {
                panic!("{} ended before it was ready: {status}", self.name);
            }
            seen
        })
    }

    /// Waits for a line of the log that contains `text`, and returns it.
    pub fn await_line(&mut self, text: &str, within: Duration) -> String {
        let what = format!("{} logs \"{text}\"", self.name);
        await_some(&what, within, || self.log().lines().find(|line| line.contains(text)).map(str::to_owned))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.guard.dismiss();
        self.kill();
        if thread::panicking() {
            show_log(&self.name, &self.log());
        }
    }
}

/// Prints the end of a part's log, for the reader of a failed test.
pub fn show_log(name: &str, log: &str) {
    let lines: Vec<&str> = log.lines().collect();
    let first = lines.len().saturating_sub(SHOWN_LINES);
    eprintln!("--- {name}: the last {} of {} lines", lines.len() - first, lines.len());
    for line in &lines[first..] {
        eprintln!("{line}");
    }
}

impl Guard {
    /// It waits for the end of a pipe whose other end only this process holds.
    fn over(group: u32) -> Guard {
        let child = Command::new("sh")
            .args(["-c", "read -r _; kill -s KILL -- \"-$0\""])
            .arg(group.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("sh starts");
        Guard(child)
    }

    fn dismiss(&mut self) {
        // It may be gone already, which is what dismissing it is for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}
