//! Whether the agent runs: who holds the lock of the state folder. Asked of the kernel's list, because trying the lock could take
//! it from an agent that is just starting. `status`, `why` and `doctor` read it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::paths::Paths;

/// The process that holds it.
pub fn holder(paths: &Paths) -> Option<u32> {
    let inode = fs::metadata(paths.state().join("lock")).ok()?.ino();
    find(&fs::read_to_string("/proc/locks").ok()?, inode)
}

/// `1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF`. The device isn't compared: on overlays and btrfs the two differ.
fn find(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (kind, pid) = (words.next()?, words.nth(2)?);
        let file = words.next()?.rsplit(':').next()?;
        (kind == "FLOCK" && file.parse() == Ok(inode)).then(|| pid.parse().unwrap_or(0))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_holder_is_found_by_the_files_number() {
        let locks =
            "1: POSIX  ADVISORY  WRITE 7 fe:00:99 0 EOF\n2: FLOCK  ADVISORY  WRITE 4321 fe:00:99 0 EOF\n2: -> FLOCK";
        assert_eq!(find(locks, 99), Some(4321));
        assert_eq!(find(locks, 98), None);
    }

    #[test]
    fn a_lock_that_somebody_holds_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        fs::create_dir_all(paths.state()).unwrap();
        assert_eq!(holder(&paths), None);
        let file = fs::File::create(paths.state().join("lock")).unwrap();
        assert_eq!(holder(&paths), None);
        let held = nix::fcntl::Flock::lock(file, nix::fcntl::FlockArg::LockExclusiveNonblock).unwrap();
        assert_eq!(holder(&paths), Some(std::process::id()));
        drop(held);
        assert_eq!(holder(&paths), None);
    }
}
