//! A single file that is replaced as a whole: for what can be made again, or what a copy of ours would not help.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::Disk;

/// The old or the new content, whatever happens; durable when it returns. A failure leaves the old one.
pub fn replace_file(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = beside(path, "new");
    let replaced = write_new(disk, &temporary, bytes).and_then(|()| disk.rename(&temporary, path));
    if let Err(error) = replaced {
        // What is left of it only takes space, and the next call would overwrite it.
        _ = disk.remove(&temporary);
        return Err(error);
    }
    disk.sync_folder(folder_of(path))
}

/// Makes a synced file; its folder too, if that lacks.
pub(crate) fn write_new(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    match disk.write(path, bytes) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            disk.make_folder(folder_of(path))?;
            disk.write(path, bytes)?;
        }
        other => other?,
    }
    disk.sync_file(path)
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// `NAME.WHICH`.
pub(crate) fn beside(path: &Path, which: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(which);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

    use super::*;
    use crate::fake::{Power, every_cut};

    #[test]
    fn a_cut_leaves_the_old_or_the_new_file() {
        let path = Path::new("/state/token");
        let cases = every_cut(
            |disk| replace_file(disk, path, b"old").unwrap(),
            |disk| replace_file(&*disk, path, b"the new one"),
            |disk, power| {
                let found = disk.read(path, 100).unwrap();
                match power {
                    Power::Cut => assert!(found == b"old" || found == b"the new one", "{found:?}"),
                    Power::CutAfterwards => assert_eq!(found, b"the new one"),
                }
            },
        );
        assert!(cases > 10, "{cases}");
    }
}
