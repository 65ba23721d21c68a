//! Configuration files of debs, kept as objects before a change and put back exactly on the way back: content, owner, mode, and also
//! that there was none. Prepare keeps them, execute restores them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::unistd::{Gid, Group, Uid, User, chown};

use crate::goal::Owner;
use crate::objects::{Objects, digest_of};
use crate::record::Failure;
use crate::step::{ConffileBefore, FileBefore};

/// What dpkg leaves beside a configuration file that somebody edited.
const LEFTOVERS: [&str; 4] = ["dpkg-dist", "dpkg-old", "dpkg-new", "dpkg-tmp"];
/// Rights and the three special bits.
const MODE: u32 = 0o7777;

/// The files that dpkg really writes: it follows a symlink that somebody put in a configuration file's place. One that leads nowhere
/// is left alone.
pub fn follow(paths: BTreeSet<String>, root: &Path) -> BTreeSet<String> {
    let follow = |path: String| {
        let place = place(root, &path);
        if !place.is_symlink() {
            return Some(path);
        }
        let real = fs::canonicalize(place).ok()?;
        let below = real.strip_prefix(fs::canonicalize(root).ok()?).ok()?.to_str()?.to_owned();
        Some(format!("/{below}"))
    };
    paths.into_iter().filter_map(follow).collect()
}

/// What is at these paths now, leftovers beside them included; a path that isn't in the answer is empty.
pub fn keep(paths: &BTreeSet<String>, objects: &Objects, root: &Path) -> Result<BTreeMap<String, FileBefore>, Failure> {
    let mut kept = BTreeMap::new();
    for path in paths {
        let beside = LEFTOVERS.iter().map(|leftover| format!("{path}.{leftover}"));
        for path in std::iter::once(path.clone()).chain(beside) {
            if let Some(before) = file_at(&place(root, &path), objects).map_err(|error| failed(&path, &error))? {
                kept.insert(path, before);
            }
        }
    }
    Ok(kept)
}

/// How a way back says it: each path with what was there, or that there was nothing.
pub fn before(paths: &BTreeSet<String>, kept: &BTreeMap<String, FileBefore>) -> Vec<ConffileBefore> {
    let all: BTreeSet<&String> = paths.iter().chain(kept.keys()).collect();
    all.into_iter().map(|path| ConffileBefore { path: path.clone(), was: kept.get(path).cloned() }).collect()
}

/// Removes what wasn't there, if it is one of these, and answers how to undo that. Done before an older version is unpacked: dpkg
/// forgets a configuration file that is gone then, while one that goes later counts as deleted by the admin and never comes again
/// with the newer version.
pub fn clear(
    conffiles: &[ConffileBefore],
    of: &BTreeSet<&str>,
    objects: &Objects,
    root: &Path,
) -> Result<Vec<ConffileBefore>, Failure> {
    let mut cleared = Vec::new();
    for conffile in conffiles.iter().filter(|conffile| conffile.was.is_none() && of.contains(conffile.path.as_str())) {
        let (path, place) = (conffile.path.clone(), place(root, &conffile.path));
        let gone = file_at(&place, objects)
            .and_then(|was| remove(&place).map(|_| was))
            .map_err(|error| failed(&path, &error))?;
        cleared.extend(gone.map(|was| ConffileBefore { path, was: Some(was) }));
    }
    Ok(cleared)
}

/// Puts every path back as it was; answers those that differed.
pub fn restore(conffiles: &[ConffileBefore], objects: &Objects, root: &Path) -> Result<Vec<String>, Failure> {
    let named: BTreeSet<&str> = conffiles.iter().map(|conffile| conffile.path.as_str()).collect();
    let mut changed = Vec::new();
    for conffile in conffiles {
        let place = place(root, &conffile.path);
        remove(&new_beside(&place)).map_err(|error| failed(&conffile.path, &error))?;
        let done = match &conffile.was {
            Some(was) => put(&place, was, objects),
            None => remove(&place),
        };
        if done.map_err(|error| failed(&conffile.path, &error))? {
            changed.push(conffile.path.clone());
        }
        for leftover in LEFTOVERS {
            let beside = format!("{}.{leftover}", conffile.path);
            let path = place.with_file_name(Path::new(&beside).file_name().unwrap_or_default());
            if !named.contains(beside.as_str()) && remove(&path).map_err(|error| failed(&beside, &error))? {
                changed.push(beside);
            }
        }
    }
    Ok(changed)
}

fn place(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

fn failed(path: &str, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::StorageFull => Failure::passing("DiskFull", format!("{path}: {error}")),
        _ => Failure::new("FileFailed", format!("{path}: {error}")),
    }
}

fn file_at(path: &Path, objects: &Objects) -> io::Result<Option<FileBefore>> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        metadata => metadata?,
    };
    if !metadata.is_file() {
        return Ok(None);
    }
    let owner = Owner { user: user_name(metadata.uid()), group: group_name(metadata.gid()) };
    Ok(Some(FileBefore { content: objects.put_copy(path)?, owner, mode: metadata.mode() & MODE }))
}

fn put(path: &Path, was: &FileBefore, objects: &Objects) -> io::Result<bool> {
    let (uid, gid) = (user_id(&was.owner.user)?, group_id(&was.owner.group)?);
    if let Ok(now) = fs::symlink_metadata(path)
        && now.is_file()
        && (now.uid(), now.gid(), now.mode() & MODE) == (uid.as_raw(), gid.as_raw(), was.mode)
        && digest_of(path)? == was.content
    {
        return Ok(false);
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let beside = new_beside(path);
    let mut file = File::create_new(&beside)?;
    io::copy(&mut objects.read(&was.content)?, &mut file)?;
    chown(&beside, Some(uid), Some(gid)).map_err(io::Error::from)?;
    // After the owner: a change of owner clears the special bits.
    file.set_permissions(Permissions::from_mode(was.mode))?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    File::open(folder)?.sync_all()?;
    Ok(true)
}

/// Where a file is written before it takes its place; one that is there was left by a cut.
fn new_beside(path: &Path) -> PathBuf {
    path.with_file_name(format!(".{}.kedge-new", path.file_name().unwrap_or_default().to_string_lossy()))
}

fn remove(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(false),
        Ok(_) => fs::remove_file(path).map(|()| true),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(error),
    }
}

/// An id without a name stands for itself.
fn user_name(id: u32) -> String {
    User::from_uid(Uid::from_raw(id)).ok().flatten().map_or_else(|| id.to_string(), |user| user.name)
}

fn group_name(id: u32) -> String {
    Group::from_gid(Gid::from_raw(id)).ok().flatten().map_or_else(|| id.to_string(), |group| group.name)
}

fn user_id(name: &str) -> io::Result<Uid> {
    let unknown = || io::Error::new(io::ErrorKind::NotFound, format!("there is no user `{name}`"));
    let known = User::from_name(name).map_err(io::Error::from)?.map(|user| user.uid);
    known.or_else(|| name.parse().ok().map(Uid::from_raw)).ok_or_else(unknown)
}

fn group_id(name: &str) -> io::Result<Gid> {
    let unknown = || io::Error::new(io::ErrorKind::NotFound, format!("there is no group `{name}`"));
    let known = Group::from_name(name).map_err(io::Error::from)?.map(|group| group.gid);
    known.or_else(|| name.parse().ok().map(Gid::from_raw)).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[&str]) -> BTreeSet<String> {
        paths.iter().map(|path| (*path).to_owned()).collect()
    }

    fn host() -> (tempfile::TempDir, Objects) {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("etc")).unwrap();
        let objects = Objects::open(&root.path().join("objects")).unwrap();
        (root, objects)
    }

    #[test]
    fn content_mode_and_absence_return() {
        let (root, objects) = host();
        let etc = root.path().join("etc");
        fs::write(etc.join("a.conf"), "mine").unwrap();
        fs::set_permissions(etc.join("a.conf"), Permissions::from_mode(0o640)).unwrap();
        let paths = names(&["/etc/a.conf", "/etc/new.conf"]);
        let kept = keep(&paths, &objects, root.path()).unwrap();
        let before = before(&paths, &kept);

        fs::write(etc.join("a.conf"), "theirs").unwrap();
        fs::set_permissions(etc.join("a.conf"), Permissions::from_mode(0o600)).unwrap();
        fs::write(etc.join("a.conf.dpkg-dist"), "shipped").unwrap();
        fs::write(etc.join("new.conf"), "new").unwrap();
        fs::write(etc.join(".new.conf.kedge-new"), "cut off").unwrap();
        fs::write(etc.join(".a.conf.kedge-new"), "cut off").unwrap();
        let changed = restore(&before, &objects, root.path()).unwrap();
        assert_eq!(changed, ["/etc/a.conf", "/etc/a.conf.dpkg-dist", "/etc/new.conf"]);
        assert_eq!(fs::read_to_string(etc.join("a.conf")).unwrap(), "mine");
        assert_eq!(fs::metadata(etc.join("a.conf")).unwrap().mode() & MODE, 0o640);
        assert_eq!(fs::read_dir(&etc).unwrap().count(), 1);
        assert_eq!(restore(&before, &objects, root.path()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_leftover_that_was_there_stays() {
        let (root, objects) = host();
        let leftover = root.path().join("etc/a.conf.dpkg-old");
        fs::write(&leftover, "earlier").unwrap();
        let paths = names(&["/etc/a.conf"]);
        let before = before(&paths, &keep(&paths, &objects, root.path()).unwrap());
        assert_eq!(before.len(), 2);
        restore(&before, &objects, root.path()).unwrap();
        assert_eq!(fs::read_to_string(&leftover).unwrap(), "earlier");
    }

    #[test]
    fn the_file_behind_a_symlink_is_the_one_that_returns() {
        let (root, objects) = host();
        fs::create_dir_all(root.path().join("data")).unwrap();
        fs::write(root.path().join("data/real.conf"), "mine").unwrap();
        std::os::unix::fs::symlink("../data/real.conf", root.path().join("etc/a.conf")).unwrap();
        std::os::unix::fs::symlink("/nowhere", root.path().join("etc/b.conf")).unwrap();
        let paths = follow(names(&["/etc/a.conf", "/etc/b.conf"]), root.path());
        assert_eq!(paths, names(&["/data/real.conf"]));
        let before = before(&paths, &keep(&paths, &objects, root.path()).unwrap());
        fs::write(root.path().join("data/real.conf"), "theirs").unwrap();
        restore(&before, &objects, root.path()).unwrap();
        assert_eq!(fs::read_to_string(root.path().join("etc/a.conf")).unwrap(), "mine");
        assert!(root.path().join("etc/b.conf").is_symlink());
    }

    #[test]
    fn only_what_belongs_to_the_named_is_cleared() {
        let (root, objects) = host();
        for name in ["a", "b", "c"] {
            fs::write(root.path().join("etc").join(name), name).unwrap();
        }
        let kept = keep(&names(&["/etc/a"]), &objects, root.path()).unwrap();
        let before = before(&names(&["/etc/a", "/etc/b", "/etc/c"]), &kept);
        let cleared = clear(&before, &BTreeSet::from(["/etc/a", "/etc/b"]), &objects, root.path()).unwrap();
        let left: BTreeSet<_> =
            fs::read_dir(root.path().join("etc")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, BTreeSet::from(["a".into(), "c".into()]));
        restore(&cleared, &objects, root.path()).unwrap();
        assert_eq!(fs::read_to_string(root.path().join("etc/b")).unwrap(), "b");
    }
}
