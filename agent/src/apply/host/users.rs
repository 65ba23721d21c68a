//! System users of namespaces: without a home and a shell, and with a comment that says whose they are. Plan decides whether one that is
//! there already is the namespace's. The host applier calls it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use kedge_host_policy::tenant::{MARK, mark_of};
use nix::unistd::{Group, User};

use crate::command;
use crate::observed::{Account, UserState};
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
/// Processes that were killed are gone when the kernel has cleared them up.
const LAST_WORDS: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
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

    /// What is there by each name.
    pub fn look(&self, wanted: &BTreeSet<String>) -> Result<BTreeMap<String, UserState>, Failure> {
        wanted.iter().map(|name| Ok((name.clone(), self.look_at(name)?))).collect()
    }

    fn look_at(&self, name: &str) -> Result<UserState, Failure> {
        let account = self.user(name)?.map(|user| Account { uid: user.uid.as_raw(), comment: comment_of(&user) });
        Ok(UserState { account, has_group: has_group(name)? })
    }

    /// The steps of users.
    pub fn execute(&self, step: &Step, trace: &mut Tracer<'_>) -> Result<(), Failure> {
        let (line, done) = match step {
            Step::AddUser { name, namespace } => {
                (trace.begin(format!("add user {name}")), self.add(name, namespace.as_deref()))
            }
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

    fn add(&self, name: &str, namespace: Option<&str>) -> Result<String, Failure> {
        let mark = namespace.map_or_else(|| MARK.to_owned(), mark_of);
        let Some(user) = self.user(name)? else {
            let group: &[&str] = if has_group(name)? { &["--gid", name] } else { &["--user-group"] };
            let mut arguments = vec!["--system", "--no-create-home", "--home-dir", "/nonexistent"];
            arguments.extend(["--shell", "/usr/sbin/nologin", "--comment", &mark]);
            arguments.extend(group);
            arguments.push(name);
            return run("useradd", &arguments);
        };
        // A cut between the two files of one useradd.
        let gid = user.gid;
        if Group::from_gid(gid).map_err(|errno| unreadable("group", name, errno))?.is_none() {
            run("groupadd", &["--system", "--gid", &gid.to_string(), name])?;
        }
        if namespace.is_some() && comment_of(&user) != mark {
            return run("usermod", &["--comment", &mark, name]);
        }
        Ok("it is there".to_owned())
    }

    fn remove(&self, name: &str) -> Result<String, Failure> {
        let mut said = String::from("it isn't there");
        if let Some(user) = self.user(name)? {
            // userdel refuses a user whose processes run, and one may have outlived its unit or check.
            end_processes(user.uid.as_raw())?;
            said = run("userdel", &[name])?;
        }
        // userdel keeps the group where the host's settings say so, or when a cut came between.
        if has_group(name)? {
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

fn comment_of(user: &User) -> String {
    user.gecos.to_string_lossy().into_owned()
}

fn has_group(name: &str) -> Result<bool, Failure> {
    Ok(Group::from_name(name).map_err(|errno| unreadable("group", name, errno))?.is_some())
}

/// Kills what runs as this user, all at once: a process that forks for ever can't be quicker than the kernel.
fn end_processes(uid: u32) -> Result<(), Failure> {
    let deadline = Instant::now() + LAST_WORDS;
    while runs_as(uid) {
        if uid == 0 || Instant::now() > deadline {
            let message = format!("processes of the user {uid} don't end; `ps -u {uid}` on the host lists them");
            return Err(Failure::passing("UserFailed", message));
        }
        let (user, group) = (format!("--reuid={uid}"), format!("--regid={uid}"));
        // It ends badly when there is nobody left to kill.
        let _ = command::run(
            "setpriv",
            &[&user, &group, "--clear-groups", "--no-new-privs", "--", "sh", "-c", "kill -KILL -1"],
            &[],
            LIMIT,
        );
        thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}

/// Whether a process has it as its real, effective or saved user: as userdel sees it.
fn runs_as(uid: u32) -> bool {
    let has = |status: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
        line.split_whitespace().any(|number| number.parse() == Ok(uid))
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut statuses = processes.filter_map(|process| fs::read_to_string(process.path().join("status")).ok());
    statuses.any(|status| has(&status))
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
        let there = |name: &str| found[name].account.as_ref().map(|account| account.uid);
        assert_eq!((there("root"), there("kedge-no-such-user")), (Some(0), None));
        assert!(found["root"].has_group && !found["kedge-no-such-user"].has_group);
    }

    #[test]
    fn what_runs_as_a_user_ends_before_the_user_goes() {
        const UID: u32 = 64_321;
        if !nix::unistd::Uid::effective().is_root() {
            return;
        }
        // In a session of its own, and its shell has ended: nothing but the user is left to find it by.
        let arguments =
            ["--reuid=64321", "--regid=64321", "--clear-groups", "sh", "-c", "setsid sleep 600 >/dev/null 2>&1 &"];
        assert!(command::run("setpriv", &arguments, &[], LIMIT).unwrap().ok());
        assert!(runs_as(UID));
        end_processes(UID).unwrap();
        assert!(!runs_as(UID));
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
