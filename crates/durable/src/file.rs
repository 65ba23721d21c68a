//! Files and their names as ledgers write them: made whole and synced, in a folder that is there.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::Disk;

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
