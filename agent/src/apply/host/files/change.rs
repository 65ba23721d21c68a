//! The steps: each says how something should be, and does nothing where it already is so.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use kedge_model::wire::Digest;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, fchownat, symlinkat, unlinkat};
use ring::digest::{Context, SHA256};

use super::state::{open_file, permissions};
use super::walk::{Parents, Spot, WalkError, kind, reach};
use super::{Files, barred, failed, owner, std_file};
use crate::apply::host::artifacts;
use crate::goal::Owner;
use crate::objects::{damaged, digest_of_stream};
use crate::record::Failure;

/// What a trace says of a step that had nothing to do.
const ALREADY: &str = "already so";
/// Begins the name of a file that isn't in its place yet. The rest follows from the name, so that doing a step again finds what a cut left.
const NEW: &str = ".kedge-new-";
const NEW_DIGITS: usize = 16;
const PIECE: usize = 64 * 1024;

type Done = Result<String, Failure>;

impl Files {
    pub(super) fn make_folder(&self, path: &str, owner: &Owner, mode: u32) -> Done {
        let fail = |error: io::Error| failed("made", path, &error);
        let ids = self.ids(owner)?;
        let spot = reach(&self.paths, path, Parents::Make).map_err(|error| barred(path, error))?;
        let was = spot.stat().map_err(fail)?;
        match &was {
            Some(stat) if kind(stat) == SFlag::S_IFDIR => {}
            Some(stat) => return Err(in_the_way(path, stat)),
            None => mkdirat(&spot.folder, spot.name.as_os_str(), Mode::from_bits_truncate(0o700))
                .map_err(|e| fail(e.into()))?,
        }
        if was.as_ref().is_some_and(|stat| permissions(stat) == mode && owns(stat, ids)) {
            return Ok(ALREADY.to_owned());
        }
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let folder = openat(&spot.folder, spot.name.as_os_str(), flags, Mode::empty()).map_err(|e| fail(e.into()))?;
        if let Some((uid, gid)) = ids {
            fchown(&folder, Some(uid), Some(gid)).map_err(|e| fail(e.into()))?;
        }
        // After the owner: a change of owner takes special bits away.
        fchmod(&folder, Mode::from_bits_truncate(mode)).map_err(|e| fail(e.into()))?;
        std_file(folder).sync_all().and_then(|()| spot.sync()).map_err(fail)?;
        Ok(String::new())
    }

    pub(super) fn remove_folder(&self, path: &str) -> Done {
        let Some(spot) = self.reach_or_gone(path)? else { return Ok(ALREADY.to_owned()) };
        match unlinkat(&spot.folder, spot.name.as_os_str(), UnlinkatFlags::RemoveDir) {
            Ok(()) => spot.sync().map(|()| String::new()).map_err(|error| failed("removed", path, &error)),
            Err(Errno::ENOENT) => Ok(ALREADY.to_owned()),
            Err(Errno::ENOTEMPTY | Errno::EEXIST) => Ok("it isn't empty and stays".to_owned()),
            Err(Errno::ENOTDIR) => Ok("it isn't a folder any more and stays".to_owned()),
            Err(Errno::EBUSY) => Ok("it is in use (a mount) and stays".to_owned()),
            Err(errno) => Err(failed("removed", path, &errno.into())),
        }
    }

    pub(super) fn put_file(&self, path: &str, content: &Digest, owner: &Owner, mode: u32) -> Done {
        let fail = |error: io::Error| failed("written", path, &error);
        let ids = self.ids(owner)?;
        let spot = reach(&self.paths, path, Parents::Make).map_err(|error| barred(path, error))?;
        let new = new_name(&spot.name);
        clear(&spot, &new).map_err(fail)?;
        if let Some(stat) = spot.stat().map_err(fail)? {
            match kind(&stat) {
                SFlag::S_IFREG if permissions(&stat) == mode && owns(&stat, ids) => {
                    if digest_of_stream(open_file(&spot).map_err(fail)?).map_err(fail)? == *content {
                        return Ok(ALREADY.to_owned());
                    }
                }
                SFlag::S_IFREG | SFlag::S_IFLNK => {}
                _ => return Err(in_the_way(path, &stat)),
            }
        }
        let written = self.write_new(&spot, &new, content, ids, mode).and_then(|()| {
            renameat(&spot.folder, new.as_os_str(), &spot.folder, spot.name.as_os_str())?;
            spot.sync()
        });
        written.map(|()| String::new()).map_err(|error| {
            // A full disk needs the space back.
            _ = clear(&spot, &new);
            fail(error)
        })
    }

    /// A file beside the real one: whole, synced, with its owner and mode.
    fn write_new(
        &self,
        spot: &Spot,
        new: &OsStr,
        content: &Digest,
        ids: Option<(Uid, Gid)>,
        mode: u32,
    ) -> io::Result<()> {
        let missing =
            |error| io::Error::new(io::ErrorKind::InvalidData, format!("its content {content} can't be read: {error}"));
        let mut from = self.objects.read(content).map_err(missing)?;
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut to = std_file(openat(&spot.folder, new, flags, Mode::from_bits_truncate(0o600))?);
        let (mut hash, mut piece) = (Context::new(&SHA256), vec![0; PIECE]);
        loop {
            match from.read(&mut piece)? {
                0 => break,
                read => {
                    hash.update(&piece[..read]);
                    to.write_all(&piece[..read])?;
                }
            }
        }
        if Digest::finish(hash) != *content {
            _ = self.objects.remove(content);
            return Err(damaged(content));
        }
        if let Some((uid, gid)) = ids {
            fchown(&to, Some(uid), Some(gid))?;
        }
        fchmod(&to, Mode::from_bits_truncate(mode))?;
        to.sync_all()
    }

    pub(super) fn put_link(&self, path: &str, target: &str, owner: &Owner) -> Done {
        let fail = |error: io::Error| failed("linked", path, &error);
        let ids = self.ids(owner)?;
        if let Some(digest) = artifacts::content(&self.objects, Path::new(target)) {
            self.objects.publish(&digest).map_err(fail)?;
        }
        let spot = reach(&self.paths, path, Parents::Make).map_err(|error| barred(path, error))?;
        let new = new_name(&spot.name);
        clear(&spot, &new).map_err(fail)?;
        if let Some(stat) = spot.stat().map_err(fail)? {
            match kind(&stat) {
                SFlag::S_IFLNK if owns(&stat, ids) => {
                    let is = readlinkat(&spot.folder, spot.name.as_os_str()).map_err(|e| fail(e.into()))?;
                    if is == OsStr::new(target) {
                        return Ok(ALREADY.to_owned());
                    }
                }
                SFlag::S_IFREG | SFlag::S_IFLNK => {}
                _ => return Err(in_the_way(path, &stat)),
            }
        }
        let switch = || -> io::Result<()> {
            symlinkat(target, &spot.folder, new.as_os_str())?;
            if let Some((uid, gid)) = ids {
                fchownat(&spot.folder, new.as_os_str(), Some(uid), Some(gid), AtFlags::AT_SYMLINK_NOFOLLOW)?;
            }
            renameat(&spot.folder, new.as_os_str(), &spot.folder, spot.name.as_os_str())?;
            spot.sync()
        };
        switch().map(|()| String::new()).map_err(fail)
    }

    pub(super) fn remove_path(&self, path: &str) -> Done {
        let fail = |error: io::Error| failed("removed", path, &error);
        let Some(spot) = self.reach_or_gone(path)? else { return Ok(ALREADY.to_owned()) };
        clear(&spot, &new_name(&spot.name)).map_err(fail)?;
        match spot.stat().map_err(fail)? {
            None => return Ok(ALREADY.to_owned()),
            Some(stat) if matches!(kind(&stat), SFlag::S_IFREG | SFlag::S_IFLNK) => {}
            Some(stat) => return Err(in_the_way(path, &stat)),
        }
        clear(&spot, &spot.name).and_then(|()| spot.sync()).map(|()| String::new()).map_err(fail)
    }

    /// None: the folder isn't there, so neither is the path.
    fn reach_or_gone(&self, path: &str) -> Result<Option<Spot>, Failure> {
        match reach(&self.paths, path, Parents::Expect) {
            Ok(spot) => Ok(Some(spot)),
            Err(WalkError::Missing | WalkError::NotAFolder { .. }) => Ok(None),
            Err(error) => Err(barred(path, error)),
        }
    }

    fn ids(&self, owner: &Owner) -> Result<Option<(Uid, Gid)>, Failure> {
        match self.paths.is_host() {
            true => owner::ids(owner),
            false => Ok(None),
        }
    }
}

fn owns(stat: &FileStat, ids: Option<(Uid, Gid)>) -> bool {
    ids.is_none_or(|(uid, gid)| stat.st_uid == uid.as_raw() && stat.st_gid == gid.as_raw())
}

/// Removes a name, if it is there.
fn clear(spot: &Spot, name: &OsStr) -> io::Result<()> {
    match unlinkat(&spot.folder, name, UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn new_name(name: &OsStr) -> OsString {
    OsString::from(format!("{NEW}{}", &Digest::of(name.as_bytes()).hex()[..NEW_DIGITS]))
}

fn in_the_way(path: &str, stat: &FileStat) -> Failure {
    let is = match kind(stat) {
        SFlag::S_IFDIR => "a folder",
        SFlag::S_IFLNK => "a symlink",
        SFlag::S_IFREG => "a file",
        _ => "a device, socket or pipe",
    };
    Failure::new("ConflictingFile", format!("{path} is {is} that Kedge didn't create; move it elsewhere"))
}
