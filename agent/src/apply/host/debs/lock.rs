//! The locks of dpkg and apt: who has them, and a bounded wait until they are free. Everything that runs dpkg or refreshes indexes
//! waits here first.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use crate::record::Failure;

/// Who holds a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub file: PathBuf,
    pub pid: i32,
    /// Its command line.
    pub command: String,
}

#[derive(Clone, Debug)]
pub struct Locks {
    files: Vec<PathBuf>,
}

/// How often a taken lock is looked at. The kernel's own wait for such a lock knows no time limit.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// What is shown of a command line.
const MAX_COMMAND: usize = 120;

impl Locks {
    /// What stands in the way of installing.
    pub fn of_dpkg(root: &Path) -> Locks {
        let at = |path: &str| root.join(path);
        Locks { files: vec![at("var/lib/dpkg/lock-frontend"), at("var/lib/dpkg/lock")] }
    }

    /// What stands in the way of new indexes.
    pub fn of_lists(root: &Path) -> Locks {
        Locks { files: vec![root.join("var/lib/apt/lists/lock")] }
    }

    pub fn holder(&self) -> Option<Holder> {
        self.files.iter().find_map(|file| holder(file))
    }

    /// Returns once all are free.
    pub fn wait(&self, limit: Duration) -> Result<(), Failure> {
        let began = Instant::now();
        let mut told = false;
        while let Some(holder) = self.holder() {
            if began.elapsed() >= limit {
                return Err(locked(&holder, limit));
            }
            if !told {
                tracing::info!(pid = holder.pid, command = %holder.command, lock = %holder.file.display(), "waiting for a lock");
                told = true;
            }
            thread::sleep(LOOK_EVERY.min(limit));
        }
        Ok(())
    }
}

pub fn locked(holder: &Holder, waited: Duration) -> Failure {
    let Holder { file, pid, command } = holder;
    let (file, seconds) = (file.display(), waited.as_secs());
    Failure::passing("DpkgLocked", format!("process {pid} (`{command}`) has held {file} for more than {seconds} s"))
}

/// Whose lock it is, by the kernel's word: a lock file that nobody holds says nothing.
fn holder(file: &Path) -> Option<Holder> {
    let open = File::open(file).ok()?;
    let mut question = libc::flock {
        l_type: i16::try_from(libc::F_WRLCK).unwrap_or_default(),
        l_whence: i16::try_from(libc::SEEK_SET).unwrap_or_default(),
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    fcntl(&open, FcntlArg::F_GETLK(&mut question)).ok()?;
    if i32::from(question.l_type) == libc::F_UNLCK {
        return None;
    }
    Some(Holder { file: file.to_owned(), pid: question.l_pid, command: command_of(question.l_pid) })
}

fn command_of(pid: i32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> =
        line.split(|byte| *byte == 0).filter(|word| !word.is_empty()).map(String::from_utf8_lossy).collect();
    let mut command = words.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    if command.is_empty() {
        command = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned();
    }
    if command.is_empty() {
        command = "unknown".to_owned();
    }
    command.truncate(command.floor_char_boundary(MAX_COMMAND));
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_free_lock_is_passed_at_once() {
        let root = tempfile::tempdir().unwrap();
        let locks = Locks::of_dpkg(root.path());
        assert_eq!(locks.holder(), None);
        fs::create_dir_all(root.path().join("var/lib/dpkg")).unwrap();
        fs::write(root.path().join("var/lib/dpkg/lock"), "").unwrap();
        locks.wait(Duration::ZERO).unwrap();
    }

    #[test]
    fn a_taken_lock_names_its_holder() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("var/lib/apt/lists/lock");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "").unwrap();
        let script = "import fcntl, sys\nlock = open(sys.argv[1], 'w')\nfcntl.lockf(lock, fcntl.LOCK_EX)\nprint('held', flush=True)\nsys.stdin.read()";
        let started = Command::new("python3")
            .args(["-c", script])
            .arg(&file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut other) = started else { return };
        let mut said = [0; 4];
        std::io::Read::read_exact(other.stdout.as_mut().unwrap(), &mut said).unwrap();
        let failure = Locks::of_lists(root.path()).wait(Duration::from_millis(1)).unwrap_err();
        assert_eq!(failure.reason, "DpkgLocked");
        assert!(failure.passes);
        let (message, by) = (&failure.message, format!("process {} (`", other.id()));
        assert!(message.starts_with(&by) && message.contains("python3 -c import fcntl, sys lock"), "{message}");
        drop(other.stdin.take());
        other.wait().unwrap();
        Locks::of_lists(root.path()).wait(Duration::ZERO).unwrap();
    }
}
