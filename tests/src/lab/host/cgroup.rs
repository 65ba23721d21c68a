//! A control group of one booted host: two hosts in one group would take each other's services for their own. It also freezes
//! the host.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Folders of the hierarchies that systemd uses; the last is of version 2.
#[derive(Debug)]
pub struct Cgroup {
    folders: Vec<PathBuf>,
    unified: PathBuf,
    /// Ends the host when the test's process is gone without having done so (a timeout, a kill -9).
    guard: Child,
}

/// What is frozen stops at once. One that waits for us to let it open a file can't say so, and stands still all the same.
const FROZEN_WITHIN: Duration = Duration::from_millis(100);
const LOOK_AGAIN: Duration = Duration::from_millis(2);

impl Cgroup {
    pub fn create(name: &str) -> Cgroup {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let folder = |kind: &str, option: &str, prefix: &str| {
            let line = mounts.lines().find(|line| {
                line.split_once(" - ").is_some_and(|(_, what)| {
                    what.split(' ').next() == Some(kind) && what.ends_with(option)
                        || kind == "cgroup2" && what.starts_with("cgroup2 ")
                })
            })?;
            let mount = line.split(' ').nth(4)?;
            let place = own.lines().find_map(|line| line.split_once(':')?.1.strip_prefix(prefix))?;
            Some(Path::new(mount).join(place.trim_start_matches('/')).join(format!("kedge-lab-{name}")))
        };
        let unified = folder("cgroup2", "", ":").expect("control groups of version 2");
        let folders: Vec<PathBuf> =
            folder("cgroup", "name=systemd", "name=systemd:").into_iter().chain([unified.clone()]).collect();
        for folder in &folders {
            fs::create_dir_all(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        }
        let guard = guard_over(&folders, &unified);
        Cgroup { folders, unified, guard }
    }

    /// Where a process writes its number to be in it.
    pub fn entrances(&self) -> Vec<PathBuf> {
        self.folders.iter().map(|folder| folder.join("cgroup.procs")).collect()
    }

    /// Stops every process of the host, or lets them go on.
    pub fn freeze(&self, frozen: bool) {
        fs::write(self.unified.join("cgroup.freeze"), if frozen { "1" } else { "0" }).unwrap();
        let (events, began) = (self.unified.join("cgroup.events"), Instant::now());
        let wanted = format!("frozen {}", u8::from(frozen));
        let is_so = || fs::read_to_string(&events).is_ok_and(|text| text.lines().any(|line| line == wanted));
        while !is_so() && began.elapsed() < FROZEN_WITHIN {
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// Kills everything in it, at once.
    pub fn kill(&self) {
        // It may be gone already.
        let _ = fs::write(self.unified.join("cgroup.kill"), "1");
    }

    /// Removes it; processes that are still in it keep it.
    pub fn remove(&mut self) {
        // It may have ended, which is what this is for.
        let _ = self.guard.kill();
        let _ = self.guard.wait();
        for folder in &self.folders {
            remove_below(folder);
        }
    }
}

/// It waits for the end of a pipe whose other end only this process holds.
fn guard_over(folders: &[PathBuf], unified: &Path) -> Child {
    let script = r#"read -r _; echo 1 >"$0/cgroup.kill"; sleep 2; find "$@" -depth -type d -exec rmdir {} +"#;
    Command::new("sh")
        .args(["-c", script])
        .arg(unified)
        .args(folders)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("sh starts")
}

fn remove_below(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_below(&entry.path());
        }
    }
    // One that is in use stays, and is empty soon.
    let _ = fs::remove_dir(folder);
}
