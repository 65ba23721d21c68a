//! A Debian host with systemd, booted by systemd-nspawn on a disk of its own: commands run in it, its files are read and written
//! from outside, its power is cut, its cable pulled. It ends with the test, and nothing of it stays.

pub mod cgroup;
pub mod cut;
pub mod fingerprint;
pub mod machine;

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{self, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nix::unistd::Uid;
use tempfile::TempDir;

use super::image::{Flavour, Image};
use super::skip;
use machine::Machine;

/// How a host is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// The machine's own: a hub on loopback is reached.
    Shared,
    /// None but a loopback of its own: the cable is out.
    Out,
    /// A cable of its own, `host0` inside, with 10.213.N.2 there and 10.213.N.1 here.
    Cable(u8),
}

/// A host, booted or not.
#[derive(Debug)]
pub struct DebianHost {
    machine: Option<Machine>,
    image: Image,
    network: Network,
    name: String,
    folder: TempDir,
}

/// How a command inside ended.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// How long a clean shutdown may take.
const DOWN_WITHIN: Duration = Duration::from_secs(60);

impl Network {
    /// A cable that no other test of the moment has.
    pub fn cable() -> Network {
        Network::Cable((process::id() % 250 + 1) as u8)
    }

    /// Where the host reaches this machine.
    pub fn here(self) -> Option<IpAddr> {
        match self {
            Network::Shared => Some(Ipv4Addr::LOCALHOST.into()),
            Network::Out => None,
            Network::Cable(number) => Some(Ipv4Addr::new(10, 213, number, 1).into()),
        }
    }
}

static NEXT: AtomicU32 = AtomicU32::new(1);

impl DebianHost {
    /// A booted host on a new disk; without root or the disk the test is marked as skipped and there is none.
    pub fn boot(flavour: Flavour, network: Network) -> Option<DebianHost> {
        if !Uid::effective().is_root() {
            skip("a Debian host is booted by root only");
            return None;
        }
        Some(DebianHost::boot_on(Image::new(flavour)?, network))
    }

    /// A booted host on a disk that is there.
    pub fn boot_on(image: Image, network: Network) -> DebianHost {
        // Also the name of its cable, which has at most 15 characters with the prefix.
        let name = format!("k{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::Builder::new().prefix("kedge-host-").tempdir().unwrap();
        let mut host = DebianHost { machine: None, image, network, name, folder };
        host.start();
        host
    }

    /// Boots it again, on the same disk.
    pub fn start(&mut self) {
        assert!(self.machine.is_none(), "{} is booted", self.name);
        self.machine = Some(Machine::boot(&self.name, &self.image, self.network, self.folder.path()));
    }

    /// A clean shutdown.
    pub fn shut_down(&mut self) {
        self.machine.take().expect("it is booted").shut_down(DOWN_WITHIN);
    }

    /// How it is connected from the next start on.
    pub fn set_network(&mut self, network: Network) {
        self.network = network;
    }

    /// Cuts the power: what wasn't written to the disk is lost. It can be started again.
    pub fn cut_power(&mut self) {
        let machine = self.machine.take().expect("it is booted");
        self.image = machine.while_frozen(|machine| machine.snapshot(&self.image, Image::copy));
        machine.kill();
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn image(&self) -> &Image {
        &self.image
    }

    pub fn machine(&self) -> &Machine {
        self.machine.as_ref().expect("it is booted")
    }

    /// Runs a command inside, whatever its end.
    pub fn run(&self, command: &[&str]) -> Ran {
        let Output { status, stdout, stderr } = self.machine().command(command).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ran { code: status.code().unwrap_or(-1), stdout: text(&stdout), stderr: text(&stderr) }
    }

    /// Runs a command that must succeed; its stdout.
    #[track_caller]
    pub fn ok(&self, command: &[&str]) -> String {
        let ran = self.run(command);
        assert_eq!(ran.code, 0, "{command:?}\nstdout:\n{}\nstderr:\n{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    /// The same for a shell's words.
    #[track_caller]
    pub fn sh(&self, script: &str) -> String {
        self.ok(&["sh", "-ec", script])
    }

    /// A path inside, as it is reached from here. Symlinks in it that begin with `/` lead elsewhere: name what they mean.
    pub fn path(&self, inside: &str) -> PathBuf {
        self.machine().root().join(inside.trim_start_matches('/'))
    }

    pub fn read(&self, inside: &str) -> Option<String> {
        fs::read(self.path(inside)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    pub fn exists(&self, inside: &str) -> bool {
        fs::symlink_metadata(self.path(inside)).is_ok()
    }

    pub fn write(&self, inside: &str, text: impl AsRef<[u8]>) {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().expect("a path below /")).unwrap();
        fs::write(&path, text).unwrap_or_else(|e| panic!("{inside}: {e}"));
    }

    /// Copies a file of this machine to the host.
    pub fn copy_in(&self, from: &Path, inside: &str, mode: u32) {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().expect("a path below /")).unwrap();
        fs::copy(from, &path).unwrap_or_else(|e| panic!("{} to {inside}: {e}", from.display()));
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Whether a unit is active.
    pub fn is_active(&self, unit: &str) -> bool {
        self.run(&["systemctl", "is-active", "--quiet", unit]).code == 0
    }

    /// The installed version of a deb.
    pub fn version_of(&self, deb: &str) -> Option<String> {
        let ran = self.run(&["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", deb]);
        ran.stdout.strip_prefix("installed ").map(str::to_owned)
    }

    /// Pulls the cable out, or puts it back.
    pub fn set_cable(&self, plugged: bool) {
        let state = if plugged { "up" } else { "down" };
        let done =
            process::Command::new("ip").args(["link", "set", &format!("ve-{}", self.name), state]).status().unwrap();
        assert!(done.success(), "ip link set ve-{} {state}", self.name);
    }

    /// The process of a service inside, as it is numbered here.
    pub fn pid_of(&self, service: &str) -> Option<u32> {
        let inside = self.ok(&["systemctl", "show", "-P", "MainPID", service]);
        let own = fs::read_link(self.path("/proc/1/ns/pid")).ok()?;
        let processes =
            fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        processes.into_iter().find(|pid: &u32| {
            let numbers = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let line = numbers.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
            line.split_whitespace().last() == Some(inside.trim())
                && fs::read_link(format!("/proc/{pid}/ns/pid")).is_ok_and(|namespace| namespace == own)
        })
    }

    /// What a unit logged.
    pub fn journal(&self, unit: &str) -> String {
        self.run(&["journalctl", "--no-pager", "-o", "cat", "-u", unit]).stdout
    }
}
