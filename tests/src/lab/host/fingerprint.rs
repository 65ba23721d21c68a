//! What is installed on a host, to the byte: debs, files with modes and owners, units. Two of them are compared to see that a
//! rollback was exact, or what a change touched.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use ring::digest::{Context, SHA256};

use super::DebianHost;

/// Name → how it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint(BTreeMap<String, String>);

/// Where a host has what was installed; `/var` and `/run` are what programs make of it.
const FOLDERS: [&str; 4] = ["etc", "usr", "srv", "opt"];

/// Backups and locks of tools, and what the agent itself was told.
const LEFT_OUT: [&str; 9] = [
    "etc/.pwd.lock",
    "etc/passwd-",
    "etc/group-",
    "etc/shadow-",
    "etc/gshadow-",
    "etc/subuid-",
    "etc/subgid-",
    "etc/kedge/agent.toml",
    "etc/kedge/join-token",
];

impl Fingerprint {
    pub fn of(host: &DebianHost) -> Fingerprint {
        let mut found = BTreeMap::new();
        let debs = host.ok(&["dpkg-query", "-W", "-f", "${Package} ${Version} ${Architecture} ${db:Status-Abbrev}\n"]);
        for line in debs.lines() {
            let (name, state) = line.split_once(' ').unwrap_or((line, ""));
            // What was removed and purged is still listed for a while.
            if !state.trim_end().ends_with("un") {
                found.insert(format!("deb {name}"), state.trim_end().to_owned());
            }
        }
        for what in ["showhold", "showauto"] {
            for name in host.ok(&["apt-mark", what]).lines() {
                found.insert(format!("{what} {name}"), String::new());
            }
        }
        let units = host.ok(&[
            "systemctl",
            "list-units",
            "--all",
            "--plain",
            "--no-legend",
            "--full",
            "--type=service,timer,slice",
        ]);
        for line in units.lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            // A unit that nothing knows any more, and what runs at its own time.
            if let [name, load, active, ..] = fields[..]
                && load == "loaded"
                && (!name.ends_with(".slice") || has_file(host, name))
                && !name.starts_with("systemd-")
                && !name.starts_with("apt-daily")
                && !name.starts_with("dpkg-db-backup")
                && !name.starts_with("e2scrub")
                && !name.starts_with("fstrim")
            {
                found.insert(format!("unit {name}"), active.to_owned());
            }
        }
        let root = host.machine().root();
        for folder in FOLDERS {
            walk(&root, folder, &mut found);
        }
        Fingerprint(found)
    }

    /// Lines `- was` and `+ is` of all that differs.
    pub fn differences(&self, now: &Fingerprint) -> Vec<String> {
        let names: BTreeSet<&String> = self.0.keys().chain(now.0.keys()).collect();
        let mut lines = Vec::new();
        for name in names {
            let (was, is) = (self.0.get(name), now.0.get(name));
            if was != is {
                lines.extend(was.map(|was| format!("- {name} {was}")));
                lines.extend(is.map(|is| format!("+ {name} {is}")));
            }
        }
        lines
    }

    #[track_caller]
    pub fn assert_same(&self, now: &Fingerprint, what: &str) {
        let differences = self.differences(now);
        assert!(differences.is_empty(), "{what}:\n{}", differences.join("\n"));
    }

    /// How something is: `deb hello`, `unit x.service`, `/etc/hostname`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// A slice without one is only a group that was there once; it stays until the next boot.
fn has_file(host: &DebianHost, unit: &str) -> bool {
    ["/etc/systemd/system", "/usr/lib/systemd/system"].iter().any(|folder| host.exists(&format!("{folder}/{unit}")))
}

fn walk(root: &Path, inside: &str, found: &mut BTreeMap<String, String>) {
    let path = root.join(inside);
    let Ok(meta) = fs::symlink_metadata(&path) else { return };
    if LEFT_OUT.contains(&inside) {
        return;
    }
    let kind = meta.file_type();
    let mut state = format!("{:04o} {}:{}", meta.mode() & 0o7777, meta.uid(), meta.gid());
    if kind.is_symlink() {
        state = format!("-> {}", fs::read_link(&path).unwrap().display());
    } else if kind.is_file() {
        _ = write!(state, " {}", hash(&path));
    } else if kind.is_fifo() || kind.is_socket() || kind.is_block_device() || kind.is_char_device() {
        state.push_str(" special");
    }
    found.insert(format!("/{inside}"), state);
    if kind.is_dir() {
        for entry in fs::read_dir(&path).unwrap() {
            let name = entry.unwrap().file_name();
            walk(root, &format!("{inside}/{}", name.to_string_lossy()), found);
        }
    }
}

fn hash(path: &Path) -> String {
    let (mut file, mut context, mut piece) = (File::open(path).unwrap(), Context::new(&SHA256), vec![0; 1 << 20]);
    loop {
        let read = file.read(&mut piece).unwrap();
        if read == 0 {
            break;
        }
        context.update(&piece[..read]);
    }
    context.finish().as_ref()[..8].iter().fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}
