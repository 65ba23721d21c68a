//! System users of namespaces: without a home and a shell. One that was there before is used and stays. The host applier calls it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::{Group, User};

use crate::command;
use crate::paths::Paths;
use crate::record::Failure;
use crate::step::Step;
use crate::trace::Tracer;

#[derive(Clone, Debug)]
pub struct Users {
    paths: Paths,
}

/// They rewrite a few small files; a lock of another tool is waited for by them.
const LIMIT: Duration = Duration::from_secs(60);
/// Files whose `.lock` the tools leave behind when the power is cut in the middle.
const LOCKED: [&str; 6] = ["passwd", "group", "shadow", "gshadow", "subuid", "subgid"];
/// Tools that hold such a lock, as the kernel calls them.
const TOOLS: [&str; 15] = [
    "useradd",
    "userdel",
    "usermod",
    "groupadd",
    "groupdel",
    "groupmod",
    "groupmems",
    "gpasswd",
    "passwd",
    "chpasswd",
    "chage",
    "chsh",
    "chfn",
    "newusers",
    "vipw",
];

impl Users {
    pub fn new(paths: Paths) -> Users {
        Users { paths }
    }

    /// Whether each user exists.
    pub fn look(&self, wanted: &BTreeSet<String>) -> Result<BTreeMap<String, bool>, Failure> {
        wanted.iter().map(|name| Ok((name.clone(), self.user(name)?.is_some()))).collect()
    }

    /// The steps of users.
    pub fn execute(&self, step: &Step, trace: &mut Tracer<'_>) -> Result<(), Failure> {
        let (line, done) = match step {
            Step::AddUser { name } => (trace.begin(format!("add user {name}")), self.add(name)),
            Step::RemoveUser { name } => (trace.begin(format!("remove user {name}")), self.remove(name)),
            _ => return Err(Failure::new("Unsupported", "this isn't a step of users")),
        };
        match done {
            Ok(output) => {
                trace.end(line, &output);
                Ok(())
            }
            Err(failure) => {
                trace.fail(line, &failure, "");
                Err(failure)
            }
        }
    }

    /// At start: locks that a power cut left would stop every later change of users.
    pub fn repair(&self, trace: &mut Tracer<'_>) -> Result<(), Failure> {
        let (settings, processes) = (self.paths.place("/etc"), Path::new("/proc"));
        for lock in stale_locks(&settings, processes) {
            let line = trace.begin(format!("remove {}, which a cut left", lock.display()));
            match fs::remove_file(&lock) {
                Ok(()) => trace.end(line, ""),
                Err(error) => {
                    let failure = Failure::new("UserFailed", format!("{} can't be removed: {error}", lock.display()));
                    trace.fail(line, &failure, "");
                    return Err(failure);
                }
            }
        }
        Ok(())
    }

    fn add(&self, name: &str) -> Result<String, Failure> {
        let Some(user) = self.user(name)? else {
            let has_group = Group::from_name(name).map_err(|errno| unreadable("group", name, errno))?.is_some();
            let group: &[&str] = if has_group { &["--gid", name] } else { &["--user-group"] };
            let mut arguments = vec!["--system", "--no-create-home", "--home-dir", "/nonexistent"];
            arguments.extend(["--shell", "/usr/sbin/nologin", "--comment", "Kedge namespace"]);
            arguments.extend(group);
            arguments.push(name);
            return run("useradd", &arguments);
        };
        // A cut between the two files of one useradd.
        let gid = user.gid;
        if Group::from_gid(gid).map_err(|errno| unreadable("group", name, errno))?.is_none() {
            return run("groupadd", &["--system", "--gid", &gid.to_string(), name]);
        }
        Ok("it is there".to_owned())
    }

    fn remove(&self, name: &str) -> Result<String, Failure> {
        let mut said = String::from("it isn't there");
        if self.user(name)?.is_some() {
            said = run("userdel", &[name])?;
        }
        // userdel keeps the group where the host's settings say so, or when a cut came between.
        if Group::from_name(name).map_err(|errno| unreadable("group", name, errno))?.is_some() {
            said = run("groupdel", &[name])?;
        }
        Ok(said)
    }

    fn user(&self, name: &str) -> Result<Option<User>, Failure> {
        if !self.paths.is_host() {
            return Err(Failure::new("Unsupported", "below `--root` there are no users"));
        }
        User::from_name(name).map_err(|errno| unreadable("user", name, errno))
    }
}

fn unreadable(kind: &str, name: &str, errno: nix::errno::Errno) -> Failure {
    Failure::new("UserFailed", format!("the {kind} `{name}` can't be looked up: {errno}"))
}

fn run(program: &str, arguments: &[&str]) -> Result<String, Failure> {
    let output =
        command::run(program, arguments, &[], LIMIT).map_err(|error| Failure::new("UserFailed", error.to_string()))?;
    match output.ok() {
        true => Ok(output.text()),
        false => {
            Err(Failure::new("UserFailed", format!("`{program} {}` failed: {}", arguments.join(" "), output.text())))
        }
    }
}

/// Locks whose process is gone: a number in the file that is no tool's any more.
fn stale_locks(settings: &Path, processes: &Path) -> Vec<PathBuf> {
    let locks = LOCKED.iter().map(|name| settings.join(format!("{name}.lock")));
    locks
        .filter(|lock| {
            let Ok(text) = fs::read_to_string(lock) else { return false };
            let pid = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
            let is_number = !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit());
            let name = fs::read_to_string(processes.join(pid).join("comm")).unwrap_or_default();
            !is_number || !TOOLS.contains(&name.trim())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_there_and_others_are_not() {
        let users = Users::new(Paths::host());
        let found = users.look(&["root", "kedge-no-such-user"].map(str::to_owned).into()).unwrap();
        assert_eq!(found, [("kedge-no-such-user".to_owned(), false), ("root".to_owned(), true)].into());
    }

    #[test]
    fn below_a_root_there_are_no_users() {
        let users = Users::new(Paths::below(Path::new("/nowhere")));
        assert_eq!(users.look(&["root".to_owned()].into()).unwrap_err().reason, "Unsupported");
    }

    #[test]
    fn a_lock_without_its_tool_is_stale() {
        let folder = tempfile::tempdir().unwrap();
        let (settings, processes) = (folder.path().join("etc"), folder.path().join("proc"));
        for (pid, name) in [("7", "useradd\n"), ("8", "sshd\n")] {
            fs::create_dir_all(processes.join(pid)).unwrap();
            fs::write(processes.join(pid).join("comm"), name).unwrap();
        }
        fs::create_dir_all(&settings).unwrap();
        for (name, pid) in [("passwd", "7\0"), ("group", "8"), ("shadow", "9"), ("gshadow", "")] {
            fs::write(settings.join(format!("{name}.lock")), pid).unwrap();
        }
        let stale: Vec<_> = stale_locks(&settings, &processes);
        let names: Vec<_> = stale.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["group.lock", "shadow.lock", "gshadow.lock"]);
    }
}
