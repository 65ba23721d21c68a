//! Files and folders that only the hub's own user may read: keys, the first token, backups. Written so that after a
//! power cut there is either the whole file or none. Called by `keys`, `run` and `backup`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Owner only.
const FOLDER: u32 = 0o700;
const FILE: u32 = 0o600;
/// Bits by which people other than the owner get at a file.
const OTHERS: u32 = 0o077;
const GROUP_READS: u32 = 0o040;

/// Makes the folder and those above it, if they aren't there. One that others may enter is closed to them.
pub fn folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(FOLDER).create(path)?;
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & OTHERS != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(FOLDER))?;
    }
    Ok(())
}

/// Writes a file that isn't there yet: first under another name, synced, then linked to its own.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let half = parent.join(format!(".{name}.{:016x}", rand::random::<u64>()));
    let written = write_half(&half, bytes).and_then(|()| fs::hard_link(&half, path));
    let removed = fs::remove_file(&half);
    written?;
    removed?;
    sync_folder(parent)
}

fn write_half(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A new name is on disk only once its folder is.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Whether people who have no business with it can read or change the file. One of another owner, `root`, may be readable
/// by its group: that is how the hub's user gets at it.
pub fn is_open_to_others(path: &Path) -> io::Result<bool> {
    let file = fs::metadata(path)?;
    let own = file.uid() == nix::unistd::geteuid().as_raw();
    Ok(file.mode() & if own { OTHERS } else { OTHERS & !GROUP_READS } != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_for_the_owner_only_and_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        super::folder(&inner).unwrap();
        let file = inner.join("key");
        write_new(&file, b"first").unwrap();
        assert_eq!(write_new(&file, b"second").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&file).unwrap(), b"first");
        assert_eq!(fs::read_dir(&inner).unwrap().count(), 1);
        assert!(!is_open_to_others(&file).unwrap());
        assert!(!is_open_to_others(&inner).unwrap());
    }

    #[test]
    fn a_file_of_root_may_be_read_by_the_group_alone() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        fs::write(&file, "x").unwrap();
        let open_with = |owner, mode| {
            std::os::unix::fs::chown(&file, Some(owner), None).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            is_open_to_others(&file).unwrap()
        };
        assert!(open_with(0, 0o640) && !open_with(0, 0o600));
        assert!(!open_with(1, 0o640) && open_with(1, 0o644) && open_with(1, 0o660));
    }

    #[test]
    fn a_folder_that_others_can_enter_is_closed_to_them() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        super::folder(folder.path()).unwrap();
        assert!(!is_open_to_others(folder.path()).unwrap());
    }
}
