//! What is at a path now: kind, content, owner, mode.

use std::fs::File;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::fcntl::{OFlag, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};

use super::walk::{Parents, Spot, WalkError, kind, reach};
use super::{Files, barred, failed, owner, std_file};
use crate::goal::Owner;
use crate::objects::digest_of_stream;
use crate::observed::PathState;
use crate::record::Failure;

/// What changes with every write to a file. The kernel sets the change time, so a tenant can't set it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// A file that was changed so recently may change again within the same tick of its clock.
const FRESH: Duration = Duration::from_secs(2);

impl Files {
    pub(super) fn look_at(&self, path: &str) -> Result<PathState, Failure> {
        let spot = match reach(&self.paths, path, Parents::Expect) {
            Ok(spot) => spot,
            Err(WalkError::Missing | WalkError::NotAFolder { .. }) => return Ok(PathState::Absent),
            Err(WalkError::Symlink { .. }) => return Ok(PathState::Other),
            Err(error) => return Err(barred(path, error)),
        };
        self.state_of(&spot, path).map_err(|error| failed("read", path, &error))
    }

    fn state_of(&self, spot: &Spot, path: &str) -> io::Result<PathState> {
        let Some(stat) = spot.stat()? else { return Ok(PathState::Absent) };
        Ok(match kind(&stat) {
            SFlag::S_IFREG => return self.file_state(spot, path),
            SFlag::S_IFDIR => PathState::Folder { owner: self.owner_of(&stat), mode: permissions(&stat) },
            SFlag::S_IFLNK => PathState::Link {
                target: readlinkat(&spot.folder, spot.name.as_os_str())?.to_string_lossy().into_owned(),
                owner: self.owner_of(&stat),
            },
            _ => PathState::Other,
        })
    }

    fn file_state(&self, spot: &Spot, path: &str) -> io::Result<PathState> {
        let file = open_file(spot)?;
        let stat = fstat(&file)?;
        let stamp = Stamp::of(&stat);
        let known = self.seen.borrow().get(path).filter(|(seen, _)| *seen == stamp).map(|(_, digest)| *digest);
        let content = match known {
            Some(digest) => digest,
            None => {
                let digest = digest_of_stream(&file)?;
                if stamp.is_settled() && Stamp::of(&fstat(&file)?) == stamp {
                    self.seen.borrow_mut().insert(path.to_owned(), (stamp, digest));
                }
                digest
            }
        };
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        Ok(PathState::File { content, size, owner: self.owner_of(&stat), mode: permissions(&stat) })
    }

    fn owner_of(&self, stat: &FileStat) -> Owner {
        match self.paths.is_host() {
            true => owner::names(stat.st_uid, stat.st_gid),
            false => Owner::default(),
        }
    }
}

impl Stamp {
    #[allow(clippy::useless_conversion, reason = "the fields have other widths on armhf")]
    fn of(stat: &FileStat) -> Stamp {
        Stamp {
            device: u64::from(stat.st_dev),
            inode: u64::from(stat.st_ino),
            size: i64::from(stat.st_size),
            modified: (i64::from(stat.st_mtime), i64::from(stat.st_mtime_nsec)),
            changed: (i64::from(stat.st_ctime), i64::from(stat.st_ctime_nsec)),
        }
    }

    fn is_settled(&self) -> bool {
        let changed = UNIX_EPOCH + Duration::from_secs(u64::try_from(self.changed.0).unwrap_or(0));
        SystemTime::now().duration_since(changed).is_ok_and(|age| age > FRESH)
    }
}

/// Opens a regular file for reading; anything else is an error, and a pipe that was put there doesn't block.
pub fn open_file(spot: &Spot) -> io::Result<File> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOCTTY;
    let file = std_file(openat(&spot.folder, spot.name.as_os_str(), flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it isn't a regular file")),
    }
}

/// With setuid, setgid and sticky.
pub fn permissions(stat: &FileStat) -> u32 {
    stat.st_mode & 0o7777
}
