//! The way to a path, one open folder after the other, so that nobody can put a symlink under our feet: a tenant owns folders that the
//! agent writes into as root. Files and artifacts go through it for every look and every change.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, fchmod, fstat, fstatat, mkdirat};
use nix::unistd::{fsync, geteuid};

use crate::paths::Paths;

/// An open folder and a name in it.
#[derive(Debug)]
pub struct Spot {
    pub folder: OwnedFd,
    pub name: OsString,
}

#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    #[error("a folder on the way isn't there")]
    Missing,
    #[error("`{at}` on the way is a symlink that isn't root's, and those are never followed")]
    Symlink { at: String },
    #[error("`{at}` on the way isn't a folder")]
    NotAFolder { at: String },
    #[error("`{at}` can't be opened")]
    Io { at: String, source: io::Error },
}

/// What is made on the way when it is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parents {
    Expect,
    Make,
}

/// As many as Linux follows.
const MAX_LINKS: usize = 40;
/// Of folders that are only on the way.
const PARENT_MODE: Mode = Mode::from_bits_truncate(0o755);
const FOLDER: OFlag = OFlag::O_DIRECTORY.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// Opens the folder that holds `path`.
pub fn reach(paths: &Paths, path: &str, parents: Parents) -> Result<Spot, WalkError> {
    let at = || path.chars().take(200).collect::<String>();
    let mut left: VecDeque<OsString> = path.split('/').filter(|part| !part.is_empty()).map(OsString::from).collect();
    let Some(name) = left.pop_back() else { return Err(WalkError::NotAFolder { at: at() }) };
    let root =
        || open(paths.root(), OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty()).map_err(|e| failed(&at(), e));
    let mut folder = root()?;
    let (mut links, mut way) = (0, String::new());
    while let Some(part) = left.pop_front() {
        let before = way.len();
        way.push('/');
        way.push_str(&part.to_string_lossy());
        match openat(&folder, part.as_os_str(), FOLDER, Mode::empty()) {
            Ok(next) => folder = next,
            Err(Errno::ENOENT) if parents == Parents::Make => folder = make(&folder, &part, &way)?,
            Err(Errno::ENOENT) => return Err(WalkError::Missing),
            // Linux says ENOTDIR of a symlink here; ELOOP is the portable word.
            Err(Errno::ENOTDIR | Errno::ELOOP) => {
                let target = trusted_link(paths, &folder, &part, &way)?;
                links += 1;
                if links > MAX_LINKS {
                    return Err(WalkError::Symlink { at: way });
                }
                way.truncate(before);
                if target.as_bytes().starts_with(b"/") {
                    (folder, way) = (root()?, String::new());
                }
                let parts =
                    target.as_bytes().split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".");
                let parts: Vec<OsString> = parts.map(|part| OsString::from_vec(part.to_vec())).collect();
                parts.into_iter().rev().for_each(|part| left.push_front(part));
            }
            Err(errno) => return Err(failed(&way, errno)),
        }
    }
    Ok(Spot { folder, name })
}

impl Spot {
    /// What is there, without following it.
    pub fn stat(&self) -> io::Result<Option<FileStat>> {
        match fstatat(&self.folder, self.name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The folder's entries are on the disk.
    pub fn sync(&self) -> io::Result<()> {
        fsync(&self.folder).map_err(Into::into)
    }
}

/// Where a symlink leads that only root can have put there: `/lib`, `/var/run`, an administrator's `/srv`. Below `--root` none counts.
fn trusted_link(paths: &Paths, folder: &OwnedFd, name: &OsString, way: &str) -> Result<OsString, WalkError> {
    let link = fstatat(folder, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW).map_err(|errno| failed(way, errno))?;
    if !is_link(&link) {
        return Err(WalkError::NotAFolder { at: way.to_owned() });
    }
    let holder = fstat(folder).map_err(|errno| failed(way, errno))?;
    let is_roots = geteuid().is_root() && link.st_uid == 0 && holder.st_uid == 0 && holder.st_mode & 0o022 == 0;
    if !paths.is_host() || !is_roots {
        return Err(WalkError::Symlink { at: way.to_owned() });
    }
    readlinkat(folder, name.as_os_str()).map_err(|errno| failed(way, errno))
}

fn make(folder: &OwnedFd, name: &OsString, way: &str) -> Result<OwnedFd, WalkError> {
    let fail = |errno| failed(way, errno);
    match mkdirat(folder, name.as_os_str(), PARENT_MODE) {
        Ok(()) | Err(Errno::EEXIST) => {}
        Err(errno) => return Err(fail(errno)),
    }
    let made = openat(folder, name.as_os_str(), FOLDER, Mode::empty()).map_err(fail)?;
    // Whatever the umask is.
    fchmod(&made, PARENT_MODE).map_err(fail)?;
    fsync(folder).map_err(fail)?;
    Ok(made)
}

pub fn is_link(stat: &FileStat) -> bool {
    kind(stat) == nix::sys::stat::SFlag::S_IFLNK
}

pub fn kind(stat: &FileStat) -> nix::sys::stat::SFlag {
    nix::sys::stat::SFlag::from_bits_truncate(stat.st_mode & nix::sys::stat::SFlag::S_IFMT.bits())
}

fn failed(at: &str, errno: Errno) -> WalkError {
    WalkError::Io { at: at.to_owned(), source: errno.into() }
}
