//! Room on the disk for the agent's folder and, on a host, for what dpkg unpacks. Part of `doctor`.

use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;

use super::Finding;
use crate::paths::Paths;

/// A ledger write, a status document and a small deb fit.
const FREE_BYTES: u64 = 200 * 1024 * 1024;
const FREE_FILES: u64 = 1000;

pub fn check(paths: &Paths) -> Vec<Finding> {
    let mut places = vec![("disk", paths.state())];
    if paths.is_host() {
        places.push(("disk /usr", PathBuf::from("/usr")));
        places.push(("disk /boot", PathBuf::from("/boot")));
    }
    let mut seen = Vec::new();
    let mut findings = Vec::new();
    for (what, place) in places {
        let Some(place) = place.ancestors().find(|place| place.exists()) else { continue };
        // /boot and /usr are often on the same file system as /var.
        let system = statvfs(place).map(|system| system.filesystem_id()).unwrap_or_default();
        if !seen.contains(&system) {
            seen.push(system);
            findings.push(check_one(what, place));
        }
    }
    findings
}

fn check_one(what: &'static str, place: &Path) -> Finding {
    let system = match statvfs(place) {
        Ok(system) => system,
        Err(why) => return Finding::problem(what, format!("{}: {why}", place.display()), "look at dmesg"),
    };
    let read_only = system.flags().contains(nix::sys::statvfs::FsFlags::ST_RDONLY);
    #[allow(clippy::unnecessary_cast, reason = "these are 32 bits wide on armhf")]
    let (free, files) =
        (system.blocks_available() as u64 * system.fragment_size() as u64, system.files_available() as u64);
    judge(what, place, free, (system.files() > 0).then_some(files), read_only)
}

fn judge(what: &'static str, place: &Path, free: u64, files: Option<u64>, read_only: bool) -> Finding {
    let place = place.display();
    if read_only {
        let way_out =
            "the kernel does this after a disk fault: look at dmesg, then sudo mount -o remount,rw the file system";
        return Finding::problem(what, format!("{place} is mounted read-only"), way_out);
    }
    let free_mb = free / 1_000_000;
    let way_out =
        "make room: sudo apt-get clean, sudo journalctl --vacuum-size=100M; the agent gives up its own cache by itself";
    match files {
        _ if free < FREE_BYTES => Finding::problem(what, format!("{free_mb} MB are free at {place}"), way_out),
        Some(files) if files < FREE_FILES => {
            Finding::problem(what, format!("only {files} more files fit at {place}"), way_out)
        }
        _ => Finding::ok(what, format!("{free_mb} MB are free at {place}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_one_without_room_for_files_and_a_read_only_one_are_problems() {
        let judged = |free, files, read_only| judge("disk", Path::new("/var"), free, files, read_only).problem;
        assert!(!judged(1 << 30, Some(5000), false));
        assert!(!judged(1 << 30, None, false));
        assert!(judged(1 << 20, Some(5000), false));
        assert!(judged(1 << 30, Some(10), false));
        assert!(judged(1 << 30, Some(5000), true));
    }
}
