//! One boot of a host: the systemd-nspawn process, its mount of the disk (in a mount namespace of its own, so that it goes with the
//! process), and the way in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;

use super::Network;
use super::cgroup::Cgroup;
use crate::lab::image::Image;
use crate::lab::part::Part;
use crate::lab::{await_some, await_true};

/// A booted host.
#[derive(Debug)]
pub struct Machine {
    part: Part,
    /// The host's process 1, as it is numbered here.
    leader: u32,
    cgroup: Cgroup,
}

/// A boot takes two seconds; a busy machine has more to do.
const UP_WITHIN: Duration = Duration::from_secs(120);
/// The kernel takes namespaces and mounts apart once the last process is gone.
const GONE_WITHIN: Duration = Duration::from_secs(30);
/// A disk at rest is copied in less than a second.
const AT_REST_WITHIN: Duration = Duration::from_secs(60);

/// Arguments: the disk, where it is mounted, then those of systemd-nspawn. Groups to enter are in the environment.
const BEGIN: &str = r#"
set -e
for group in $GROUPS_TO_ENTER; do echo $$ >"$group"; done
mount -o loop,noatime "$1" "$2"
mkdir -p /run/systemd/nspawn
mount -t tmpfs tmpfs /run/systemd/nspawn
folder=$2
shift 2
exec systemd-nspawn -D "$folder" "$@"
"#;

impl Machine {
    pub fn boot(name: &str, image: &Image, network: Network, folder: &Path) -> Machine {
        let cgroup = Cgroup::create(name);
        let mount = folder.join("disk");
        fs::create_dir_all(&mount).unwrap();
        let groups: Vec<String> = cgroup.entrances().iter().map(|path| path.display().to_string()).collect();
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "--", "sh", "-c", BEGIN, "sh"]);
        command.arg(image.path()).arg(&mount).env("GROUPS_TO_ENTER", groups.join(" "));
        command.args(["--boot", "--register=no", "--keep-unit", "--link-journal=no", "--resolv-conf=off"]);
        command.args(["--timezone=off", "--console=read-only", "-M", name]);
        match network {
            Network::Shared => {}
            Network::Out => drop(command.arg("--private-network")),
            Network::Cable(_) => drop(command.arg("--network-veth")),
        }
        let mut part = Part::start(&format!("host {name}"), &mut command, &folder.join("console.log"));
        let children = format!("/proc/{0}/task/{0}/children", part.pid());
        let leader = part.await_ready(UP_WITHIN, |_| {
            let text = fs::read_to_string(&children).ok()?;
            let first = text.split_whitespace().next()?.parse().ok()?;
            // nspawn's first child only prepares; process 1 is systemd.
            let program = fs::read_to_string(format!("/proc/{first}/comm")).ok()?;
            (program.trim() == "systemd").then_some(first)
        });
        let mut machine = Machine { part, leader, cgroup };
        machine.await_running();
        if let Network::Cable(number) = network {
            machine.plug_in(name, number);
        }
        machine
    }

    fn await_running(&mut self) {
        let mut ask = self.command(&["systemctl", "is-system-running", "--wait"]);
        ask.stderr(Stdio::null());
        let state = self.part.await_ready(UP_WITHIN, |_| {
            let output = ask.output().unwrap();
            let state = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            // Before its bus is there, systemctl has nobody to ask.
            (!["", "offline", "unknown", "initializing", "starting"].contains(&state.as_str())).then_some(state)
        });
        // A failed unit is for the test to judge.
        assert!(["running", "degraded"].contains(&state.as_str()), "the host is {state}");
    }

    fn plug_in(&self, name: &str, number: u8) {
        let outside =
            [format!("ip address replace 10.213.{number}.1/24 dev ve-{name}"), format!("ip link set ve-{name} up")];
        for line in outside {
            let done = Command::new("sh").args(["-c", &line]).status().unwrap();
            assert!(done.success(), "{line}");
        }
        let inside = format!(
            "ip address replace 10.213.{number}.2/24 dev host0; ip link set host0 up; ip route replace default via 10.213.{number}.1"
        );
        let done = self.command(&["sh", "-ec", &inside]).status().unwrap();
        assert!(done.success(), "{inside}");
    }

    /// A command inside, with a clean environment.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.leader.to_string(), "-m", "-u", "-i", "-n", "-p", "--root", "--"]);
        command.args(words).stdin(Stdio::null()).env_clear().current_dir("/");
        command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command.envs([
            ("HOME", "/root"),
            ("LC_ALL", "C.UTF-8"),
            ("TERM", "dumb"),
            ("DEBIAN_FRONTEND", "noninteractive"),
        ]);
        command
    }

    /// Its file system, from here.
    pub fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.leader))
    }

    /// Stops everything inside while `work` is done.
    pub fn while_frozen<T>(&self, work: impl FnOnce(&Machine) -> T) -> T {
        self.cgroup.freeze(true);
        let done = work(self);
        self.cgroup.freeze(false);
        done
    }

    /// What `take` makes of the disk at one moment: taken again if the kernel wrote meanwhile.
    pub fn snapshot<T>(&self, image: &Image, take: impl Fn(&Image) -> T) -> T {
        await_some("a copy of the disk of one moment", AT_REST_WITHIN, || {
            let before = self.writes();
            let taken = take(image);
            (self.writes() == before).then_some(taken)
        })
    }

    /// Writes that the disk has seen, and those under way.
    fn writes(&self) -> (String, String) {
        let mounts = fs::read_to_string(format!("/proc/{}/mountinfo", self.leader)).unwrap();
        let root = mounts.lines().find(|line| line.split(' ').nth(4) == Some("/")).expect("it has a root");
        let device = root.split(' ').nth(2).expect("a mount has a device");
        let stat = fs::read_to_string(format!("/sys/dev/block/{device}/stat")).unwrap();
        let fields: Vec<&str> = stat.split_whitespace().collect();
        (fields[4].to_owned(), fields[8].to_owned())
    }

    /// A clean shutdown.
    pub fn shut_down(mut self, within: Duration) {
        self.part.stop(Signal::SIGTERM, within);
    }

    /// Nothing inside runs any more.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // What runs inside doesn't end with systemd-nspawn.
        self.cgroup.kill();
        self.part.kill();
        let leader = PathBuf::from(format!("/proc/{}", self.leader));
        await_true("the host is gone", GONE_WITHIN, || !leader.exists());
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // After a clean shutdown its number may be another's.
        if self.part.is_running() {
            self.end();
        }
        self.cgroup.remove();
    }
}
